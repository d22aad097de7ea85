//! The memory of an agent: what it knows, by topic, with every version. Owned by the coordinator; its id is that of the agent,
//! which is the only one to write in it.
//!
//! | the topic                | Put: based on nothing or its version | Put: based on another version | Put: the same message again |
//! |--------------------------|--------------------------------------|-------------------------------|-----------------------------|
//! | is not there (version 0) | put: version 1 [1]                   | refused                       | -                           |
//! | is at version n          | put: version n + 1 [1]               | refused                       | ignored: repetition [2]     |
//!
//! [1] Refused where the agent would have more topics, versions or bytes than an installation keeps of one. [2] Another message
//! under the same id is refused.
//!
//! In a case whose policy tells of entries, the event says whom this one reaches ([`reach`]).
//!
//! Nothing is taken away, so what the memory held at any sequence of the stream of events is the same for ever: [`as_of`]. A
//! snapshot is such a sequence, of all memories at once.
//!
//! **Rules.** What is written outside cases is held against the rules that operators have stored, as far as they hold for the sender; which
//! of them it fulfils is part of the event, and an alert follows from each ([`alerting`]). So it is raised once, whatever is repeated.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use concord_events::{FiredRule, Heard, MemoryBounds, MemoryEvent, MemoryPut, StoredEvent};
use concord_wire::payload::notification::InsightShared;
use concord_wire::payload::{MemoryEntry, MemoryListing, Remember, Snapshot};
use concord_wire::{CaseId, ErrorCode, Fault, MessageId, Timestamp, Token};
use serde_json::{Value, json};

use super::case::reused_message_id;
use super::review_queue::Recent;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine, forgetting};
use crate::rules::alerting::{self, Known, TopicHistory, Watched};

/// How many messages are remembered, to recognise a repetition.
const CAUSES_MAX: usize = 1_024;

mod reach;

pub use reach::{WrittenIn, insight_of};

/// How long alerts count against the rules' bound.
const HOUR_MS: u64 = 3_600_000;

const PARAMETERS: &str = "/payload/parameters";

/// The state machine of an agent's memory.
#[derive(Debug, Clone, Copy)]
pub struct MemoryMachine;

/// The memory of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryState {
    /// What is known, by topic. Shared: a state is copied whenever it is read.
    pub topics: BTreeMap<Token, Arc<MemoryEntry>>,
    /// How many versions were written, of all topics.
    pub versions: u32,
    /// The bytes of all versions.
    pub bytes: u64,
    /// What rules know of each topic. Shared, like the entries.
    histories: BTreeMap<Token, Arc<TopicHistory>>,
    /// When alerts were raised by what was written: those of the last hour before the last of them.
    raised: VecDeque<Timestamp>,
    causes: Recent<MessageId, String>,
    last_reaches: reach::LastReaches,
}

impl Default for MemoryState {
    fn default() -> Self {
        Self {
            topics: BTreeMap::new(),
            versions: 0,
            bytes: 0,
            histories: BTreeMap::new(),
            raised: VecDeque::new(),
            causes: Recent::new(CAUSES_MAX),
            last_reaches: reach::LastReaches::default(),
        }
    }
}

/// One input of a memory.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryInput {
    /// The agent writes a topic.
    Put(Box<ReceivedMemory>),
}

/// What an agent writes, as the coordinator received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedMemory {
    /// The message that brought it; its sender is the agent whose memory it is.
    pub heard: Heard,
    /// The case that it belongs to, if to one.
    pub case_id: Option<CaseId>,
    /// What is written. The caller has checked its form.
    pub entry: Remember,
    /// How much of one agent is kept.
    pub bounds: MemoryBounds,
    /// The rules that it is held against; none within a case.
    pub watched: Watched,
    /// What the case says about whom it reaches; none where it says nothing.
    pub written_in: Option<WrittenIn>,
}

impl Machine for MemoryMachine {
    type State = MemoryState;
    type Event = MemoryEvent;
    type Input = MemoryInput;

    fn state_bytes_max(state: &MemoryState) -> usize {
        let sizes = state.topics.iter().map(|(topic, entry)| {
            let bytes = usize::try_from(entry.listing.bytes).unwrap_or(usize::MAX);
            let history = state.histories.get(topic);
            let history = history.map_or(0, |history| history.bytes_about(bytes));
            bytes.saturating_add(history).saturating_add(512)
        });
        let topics = sizes.fold(0, usize::saturating_add);
        forgetting(topics.saturating_add(state.causes.len() * 128))
    }

    fn decide(
        state: &MemoryState,
        context: &Context,
        input: &MemoryInput,
    ) -> Decision<MemoryEvent> {
        let MemoryInput::Put(received) = input;
        if let Some(digest) = state.causes.get(&received.heard.message_id) {
            return if *digest == received.heard.digest {
                Decision::Ignore(Ignored::Repetition)
            } else {
                Decision::Reject(reused_message_id())
            };
        }
        let version = version_of(state, &received.entry.topic);
        let checked =
            check_version(version, &received.entry).and_then(|()| check_room(state, received));
        match checked {
            Err(fault) => Decision::Reject(fault),
            Ok(()) => {
                let (reach, told) = reach::reach(state, received).unzip();
                Decision::Append(MemoryEvent::Put(MemoryPut {
                    case_id: received.case_id.clone(),
                    version: version.saturating_add(1),
                    entry: received.entry.clone(),
                    reach,
                    told: told.unwrap_or_default(),
                    heard: received.heard.clone(),
                    fired: fired(state, context.now, received),
                }))
            }
        }
    }

    fn apply(state: &mut MemoryState, record: StoredEvent<MemoryEvent>) {
        let MemoryEvent::Put(put) = &record.event;
        let heard = &put.heard;
        state
            .causes
            .insert(heard.message_id.clone(), heard.digest.clone());
        note(state, put, record.meta.at);
        let entry = entry_of(&record);
        state.last_reaches.remember(put);
        state.versions = state.versions.saturating_add(1);
        state.bytes = state.bytes.saturating_add(entry.listing.bytes);
        let topic = put.entry.topic.clone();
        state.topics.insert(topic, Arc::new(entry));
    }

    fn effects(record: &StoredEvent<MemoryEvent>) -> Vec<Effect> {
        let MemoryEvent::Put(put) = &record.event;
        let mut result = json!({
            "topic": put.entry.topic, "version": put.version, "since": Snapshot(record.sequence),
        });
        if let (false, Some(result)) = (put.fired.is_empty(), result.as_object_mut()) {
            let (raised, withheld): (Vec<_>, Vec<_>) =
                put.fired.iter().partition(|fired| !fired.withheld);
            let ids: Vec<Token> = raised
                .into_iter()
                .map(|one| alerting::alert_id(put, one))
                .collect();
            let rules: Vec<&Token> = withheld.into_iter().map(|one| &one.rule).collect();
            result.insert("alerts".to_owned(), json!(ids));
            result.insert("withheld".to_owned(), json!(rules));
        }
        let Some(reach) = &put.reach else {
            return vec![respond(put, result)];
        };
        if let Some(fields) = result.as_object_mut() {
            fields.insert("reach".to_owned(), json!(reach.reach));
        }
        let data = InsightShared {
            insight: insight_of(&entry_of(record)),
            reach: reach.clone(),
        };
        let tell = put
            .told
            .iter()
            .map(|to| Effect::tell(to.clone(), data.clone()));
        std::iter::once(respond(put, result)).chain(tell).collect()
    }

    fn fan_out_bytes(input: &MemoryInput) -> usize {
        let MemoryInput::Put(received) = input;
        reach::fan_out_bytes(received)
    }

    fn recount(_: &MemoryState, record: &StoredEvent<MemoryEvent>) -> Vec<String> {
        let MemoryEvent::Put(put) = &record.event;
        reach::differences(put)
    }

    fn case_of(record: &StoredEvent<MemoryEvent>) -> Option<CaseId> {
        let MemoryEvent::Put(put) = &record.event;
        put.case_id.clone()
    }

    fn misplaced(before: &MemoryState, event: &MemoryEvent) -> Option<String> {
        let MemoryEvent::Put(put) = event;
        let next = version_of(before, &put.entry.topic).saturating_add(1);
        (put.version != next).then(|| {
            let topic = &put.entry.topic;
            format!(
                "It is version {} of {topic}, and {next} is due.",
                put.version
            )
        })
    }
}

/// The rules that the entry fulfils.
fn fired(state: &MemoryState, now: Timestamp, received: &ReceivedMemory) -> Vec<FiredRule> {
    let (entry, watched) = (&received.entry, &received.watched);
    if watched.rules.is_empty() || received.case_id.is_some() {
        return Vec::new();
    }
    let (none, raised) = (TopicHistory::default(), state.raised.iter());
    let within_hour = raised.filter(|at| now.millis_since(**at) < HOUR_MS);
    let known = Known {
        now,
        old: state.topics.get(&entry.topic).map(|before| &before.value),
        history: state
            .histories
            .get(&entry.topic)
            .map_or(&none, AsRef::as_ref),
        raised_within_hour: within_hour.count(),
    };
    alerting::fired(watched, entry, &known)
}

/// Keeps what rules look at later.
fn note(state: &mut MemoryState, put: &MemoryPut, at: Timestamp) {
    let history = state.histories.entry(put.entry.topic.clone()).or_default();
    Arc::make_mut(history).note(put, at);
    for _ in put.fired.iter().filter(|fired| !fired.withheld) {
        state.raised.push_back(at);
    }
    while state
        .raised
        .front()
        .is_some_and(|first| at.millis_since(*first) >= HOUR_MS)
    {
        state.raised.pop_front();
    }
}

fn respond(put: &MemoryPut, result: Value) -> Effect {
    Effect::Respond {
        to: put.heard.agent_id.clone(),
        request_id: put.heard.message_id.clone(),
        result,
    }
}

/// A version, as it is shown.
pub fn entry_of(record: &StoredEvent<MemoryEvent>) -> MemoryEntry {
    let MemoryEvent::Put(put) = &record.event;
    let entry = &put.entry;
    MemoryEntry {
        listing: MemoryListing {
            agent: put.heard.agent_id.clone(),
            topic: entry.topic.clone(),
            version: put.version,
            since: Snapshot(record.sequence),
            at: record.meta.at,
            importance: entry.importance,
            confidence: entry.confidence,
            tags: entry.tags.clone(),
            case_id: put.case_id.clone(),
            reach: put.reach.clone(),
            bytes: bytes_of(entry),
        },
        value: entry.value.clone(),
        evidence: entry.evidence.clone(),
    }
}

/// What a memory held at a snapshot, by topic: of each topic the last version at or before it.
pub fn as_of(
    records: &[StoredEvent<MemoryEvent>],
    snapshot: Snapshot,
) -> BTreeMap<Token, MemoryEntry> {
    let before = records
        .iter()
        .filter(|record| record.sequence <= snapshot.0);
    before
        .map(|record| {
            let MemoryEvent::Put(put) = &record.event;
            (put.entry.topic.clone(), entry_of(record))
        })
        .collect()
}

/// The version of the topic; 0 where there is none.
fn version_of(state: &MemoryState, topic: &Token) -> u64 {
    let known = state.topics.get(topic);
    known.map_or(0, |entry| entry.listing.version)
}

fn bytes_of(entry: &Remember) -> u64 {
    u64::try_from(entry.bytes()).unwrap_or(u64::MAX)
}

fn check_version(version: u64, entry: &Remember) -> Result<(), Fault> {
    let Some(based_on) = entry.based_on.filter(|based_on| *based_on != version) else {
        return Ok(());
    };
    let topic = &entry.topic;
    Err(Fault::invalid(
        format!("{PARAMETERS}/based_on"),
        format!("{topic} is at version {version}, and you write on version {based_on}."),
        format!("Read it, and write again with based_on {version}."),
    ))
}

fn check_room(state: &MemoryState, received: &ReceivedMemory) -> Result<(), Fault> {
    let ReceivedMemory { entry, bounds, .. } = received;
    let is_new = !state.topics.contains_key(&entry.topic);
    let after = state.bytes.saturating_add(bytes_of(entry));
    let (place, kept, name) = if is_new && state.topics.len() >= bounds.topics_max as usize {
        let kept = format!("{} topics", bounds.topics_max);
        ("topic", kept, "topics_max")
    } else if state.versions >= bounds.versions_max {
        let kept = format!("{} versions", bounds.versions_max);
        ("value", kept, "versions_max")
    } else if after > bounds.bytes_max {
        ("value", format!("{} bytes", bounds.bytes_max), "bytes_max")
    } else {
        return Ok(());
    };
    let who = &received.heard.agent_id;
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        format!("{PARAMETERS}/{place}"),
        format!(
            "{who} has {} topics, {} versions and {} bytes in memory, and {kept} of one agent are kept.",
            state.topics.len(),
            state.versions,
            state.bytes
        ),
        format!(
            "Every version is kept for ever. An operator raises service.memory.{name} of the coordinator; or share less, and less often."
        ),
    ))
}

#[cfg(test)]
mod tests;
