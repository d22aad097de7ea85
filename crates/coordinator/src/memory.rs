//! Shared memory: who may write, and reading by request and reply. Nothing is stored of what is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_domain::aggregates::case::{Sharing, check_member, written_in};
use concord_domain::aggregates::memory::{ReceivedMemory, WrittenIn, as_of, entry_of};
use concord_domain::aggregates::synthesis::SynthesisState;
use concord_events::{Aggregate, MemoryEvent};
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::Consistency;
use concord_runtime::service::api::{self, Call, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_runtime::service::under_way::UnderWay;
use concord_runtime::{Ports, Since};
use concord_wire::envelope::from_json;
use concord_wire::payload::{Checkpoint, MemoryEntry, MemoryListing, Reach, Snapshot};
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, Token};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::shared::Shared;

/// Bytes of the entries in one answer. What does not fit is asked for with the next request.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

/// What is asked of memory.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryAsked {
    /// Whose memory; without an agent and a case, who has any.
    #[serde(default)]
    agent: Option<AgentId>,
    /// Only what belongs to the case: of this agent, or of everybody in it.
    #[serde(default)]
    case_id: Option<CaseId>,
    /// One topic, with its value.
    #[serde(default)]
    topic: Option<Token>,
    /// Only what everybody in the case was told of, with the values.
    #[serde(default)]
    insights: bool,
    /// Every version of the topic, the oldest first.
    #[serde(default)]
    history: bool,
    /// Versions after this one; with the history.
    #[serde(default)]
    after: u64,
    /// As memory was at this snapshot.
    #[serde(default)]
    as_of: Option<Snapshot>,
}

impl MemoryAsked {
    fn check(&self) -> Result<(), Fault> {
        let (needs, what) = match (&self.agent, &self.topic) {
            _ if self.insights
                && (self.case_id.is_none() || self.history || self.as_of.is_some()) =>
            {
                return Err(Fault::invalid(
                    "/case_id",
                    "Insights are those of a case, as they stand.",
                    "Name the case, and ask for no history and no snapshot.",
                ));
            }
            (None, Some(_)) => ("/agent", "A topic belongs to an agent."),
            (_, None) if self.history || self.after > 0 => {
                ("/topic", "A history is that of a topic.")
            }
            _ => return Ok(()),
        };
        Err(Fault::invalid(needs, what, "Name agent and topic."))
    }
}

/// What is answered.
#[derive(Serialize)]
struct Shown {
    /// The snapshot that this is of: asked for again as of it, the answer is the same.
    as_of: Snapshot,
    /// By agent and topic; with values where one topic or insights are asked for.
    entries: Vec<Value>,
    /// Whether there is more than the answer has room for.
    more: bool,
    /// With insights: the checkpoints that the case has come to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checkpoints: Vec<Checkpoint>,
}

/// Answers `memory`: `{"as_of": ..., "entries": [...], "more": ...}`, or `{"agents": [...]}` where neither an agent nor a case is named.
/// No entry is no fault. An entry of a case is shown to whoever is in the case, every other to everybody.
pub(crate) fn memory<P: Ports>(shared: &Shared<P>) -> Verb {
    api::verb(
        (shared.clone(), UnderWay::of_pages()),
        |(shared, under_way), call| async move {
            let asked: MemoryAsked = from_json(&call.body, "")?;
            asked.check()?;
            let _place = under_way.place(&call)?;
            if let Some(case_id) = asked.case_id.as_ref() {
                // What agents remember of a case stays when the case is archived; who was in it is known no longer.
                let stays = call.caller.is_none() && !asked.insights;
                let ports = &shared.service.ports;
                if !stays || !ports.is_archived(Aggregate::Case, &case_id.token()) {
                    shared.check_reader(&call, case_id).await?;
                }
            }
            let owners = shared.owners(&asked).await?;
            if asked.agent.is_none() && asked.case_id.is_none() {
                return answer(&json!({ "agents": owners }));
            }
            answer(&shared.remembered(&call, &asked, owners).await?)
        },
    )
}

impl<P: Ports> Shared<P> {
    /// Who writes is in the case or, outside cases, on the register or among the people. What the case says about whom it reaches.
    pub(crate) async fn check_rememberer(
        &self,
        received: &ReceivedMemory,
    ) -> Result<Option<WrittenIn>, HandleError> {
        let who = &received.heard.agent_id;
        if let Some(case_id) = &received.case_id {
            let case = self.check_writer(case_id, who).await?;
            return Ok(written_in(&case));
        }
        if self.agents.load(&who.token()).await?.state.card.is_some() {
            return Ok(None);
        }
        let authority = self.people.authority(who).await?;
        if authority.person.is_some() {
            authority.check_active(who)?;
            return Ok(None);
        }
        Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{who} is not on the register."),
            "Register with register_agent, or write within a case that you are in.",
        )
        .into())
    }

    /// Whose memory is asked for.
    async fn owners(&self, asked: &MemoryAsked) -> Result<Vec<Token>, Fault> {
        if let Some(agent) = &asked.agent {
            return Ok(vec![agent.token()]);
        }
        let ports = &self.service.ports;
        let known = ports.ids(Aggregate::Memory).await;
        known.map_err(|error| unread(&error))
    }

    async fn remembered(
        &self,
        call: &Call,
        asked: &MemoryAsked,
        owners: Vec<Token>,
    ) -> Result<Shown, Fault> {
        let last = self.service.ports.last_sequence().await;
        let last = Snapshot(last.map_err(|error| unread(&error))?);
        let snapshot = asked.as_of.unwrap_or(last);
        if snapshot > last {
            return Err(Fault::invalid(
                "/as_of",
                format!("There is no {snapshot}: the last snapshot that there is yet is {last}."),
                "Ask as of a snapshot that an answer or a debate has named.",
            ));
        }
        let mut shown = Shown {
            as_of: snapshot,
            entries: Vec::new(),
            more: false,
            checkpoints: Vec::new(),
        };
        let synthesis = self.synthesis(asked).await?;
        if let Some(synthesis) = &synthesis {
            shown.checkpoints.clone_from(&synthesis.checkpoints);
        }
        let (mut bytes, mut readable) = (0, BTreeMap::new());
        for owner in &owners {
            for entry in self
                .of_owner(owner, asked, synthesis.as_deref(), snapshot)
                .await?
            {
                if !self.may_read(call, asked, &entry, &mut readable).await? {
                    continue;
                }
                let value = if asked.topic.is_some() || asked.insights {
                    json!(entry)
                } else {
                    json!(entry.listing)
                };
                bytes += value.to_string().len();
                if bytes > ANSWER_BYTES_MAX && !shown.entries.is_empty() {
                    shown.more = true;
                    return Ok(shown);
                }
                shown.entries.push(value);
            }
        }
        Ok(shown)
    }

    /// What was told at checkpoints of the case, where insights are asked for.
    async fn synthesis(&self, asked: &MemoryAsked) -> Result<Option<Arc<SynthesisState>>, Fault> {
        let Some(case_id) = asked.case_id.as_ref().filter(|_| asked.insights) else {
            return Ok(None);
        };
        let known = self.syntheses.load(&case_id.token()).await;
        Ok(Some(known.map_err(|error| unread(&error))?.state))
    }

    /// What one memory held at the snapshot, of what is asked for.
    async fn of_owner(
        &self,
        owner: &Token,
        asked: &MemoryAsked,
        synthesis: Option<&SynthesisState>,
        snapshot: Snapshot,
    ) -> Result<Vec<MemoryEntry>, Fault> {
        let is_asked = |entry: &MemoryEntry| {
            let listing = &entry.listing;
            let case = asked.case_id.as_ref();
            let topic = asked.topic.as_ref();
            if asked.insights && !synthesis.is_some_and(|one| was_told(one, listing)) {
                return false;
            }
            case.is_none_or(|case| listing.case_id.as_ref() == Some(case))
                && topic.is_none_or(|topic| listing.topic == *topic)
        };
        if asked.as_of.is_none() && !asked.history {
            let state = self.memories.load(owner).await;
            let state = state.map_err(|error| unread(&error))?.state;
            let entries = state.topics.values().map(AsRef::as_ref);
            if entries.clone().all(|entry| entry.listing.since <= snapshot) {
                return Ok(entries.filter(|entry| is_asked(entry)).cloned().collect());
            }
            // Something was written since; what stood before is in the events.
        }
        let ports = &self.service.ports;
        let loaded = ports
            .load::<MemoryEvent>(owner, Since::FIRST, Consistency::Leader)
            .await;
        let records = loaded.map_err(|error| unread(&error))?.records;
        if !asked.history {
            let then = as_of(&records, snapshot).into_values();
            return Ok(then.filter(is_asked).collect());
        }
        let before = records
            .iter()
            .filter(|record| record.sequence <= snapshot.0);
        let versions = before.map(entry_of);
        Ok(versions
            .filter(|entry| is_asked(entry) && entry.listing.version > asked.after)
            .collect())
    }

    /// Whether whoever asks may read an entry. What was asked about a case is remembered.
    async fn may_read(
        &self,
        call: &Call,
        asked: &MemoryAsked,
        entry: &MemoryEntry,
        readable: &mut BTreeMap<CaseId, bool>,
    ) -> Result<bool, Fault> {
        let (Some(case_id), Some(caller)) = (&entry.listing.case_id, &call.caller) else {
            return Ok(true);
        };
        // It is their own, or it was looked at already whether they are in the case.
        if entry.listing.agent == caller.name || asked.case_id.is_some() {
            return Ok(true);
        }
        if let Some(known) = readable.get(case_id) {
            return Ok(*known);
        }
        let case = self.cases.load(&case_id.token()).await;
        let case = case.map_err(|error| unread(&error))?.state;
        let may = check_member(&case, &caller.name, &caller.authority, Sharing::Read).is_ok();
        readable.insert(case_id.clone(), may);
        Ok(may)
    }
}

/// Whether everybody in the case was told of a version.
fn was_told(synthesis: &SynthesisState, listing: &MemoryListing) -> bool {
    match listing.reach.as_ref().map(|reach| reach.reach) {
        Some(Reach::Broadcast) => true,
        Some(Reach::Held) => {
            let place = (listing.topic.clone(), listing.agent.clone());
            let told = synthesis.told.get(&place);
            told.is_some_and(|version| *version >= listing.version)
        }
        Some(Reach::Kept) | None => false,
    }
}
