//! What openers have of their quotas, by request and reply.

use concord_domain::aggregates::opener::OpenerState;
use concord_events::{Aggregate, QuotaKind};
use concord_runtime::Ports;
use concord_runtime::event_store::step;
use concord_runtime::service::api::{self, Call, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_wire::envelope::from_json;
use concord_wire::payload::Role;
use concord_wire::{AgentId, ErrorCode, Fault, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::openers::Openers;

/// `quotas`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// One opener; all that have something when it is left out.
    #[serde(default)]
    opener: Option<AgentId>,
}

/// What one opener has.
#[derive(Debug, Serialize)]
struct Row {
    opener: AgentId,
    open_cases: u64,
    gates: u64,
    challenges: u64,
    open_tasks: u64,
    /// When people were last told that a quota is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    told_at: Option<Timestamp>,
}

impl Row {
    fn new(opener: AgentId, state: &OpenerState) -> Self {
        Self {
            opener,
            open_cases: state.held(QuotaKind::OpenCases),
            gates: state.held(QuotaKind::Gates),
            challenges: state.held(QuotaKind::Challenges),
            open_tasks: state.held(QuotaKind::OpenTasks),
            told_at: state.told.values().max().copied(),
        }
    }
}

/// Answers `quotas`: `{"quotas": {...}, "openers": [...]}`. Operators and auditors see every opener, an opener themself alone.
pub(crate) fn verb<P: Ports>(openers: &Openers<P>) -> Verb {
    api::verb(openers.clone(), |openers, call| async move {
        let Asked { opener } = from_json(&call.body, "")?;
        let only = only_of(&call, opener)?;
        let rows = rows(&openers, only).await.map_err(|error| unread(&error))?;
        answer(&json!({ "quotas": openers.quotas, "openers": rows }))
    })
}

/// The one opener that is shown; all where there is none.
fn only_of(call: &Call, asked: Option<AgentId>) -> Result<Option<AgentId>, Fault> {
    let Some(caller) = &call.caller else {
        return Ok(asked);
    };
    let mut sees_all = [Role::Operator, Role::Auditor].into_iter();
    if sees_all.any(|role| caller.authority.holds(role)) {
        return Ok(asked);
    }
    match asked {
        Some(other) if other != caller.name => Err(Fault::new(
            ErrorCode::Unauthorized,
            "/opener",
            format!("{} may not see what {other} has.", caller.name),
            "Leave it out to see what you have. Operators and auditors see everybody.",
        )),
        _ => Ok(Some(caller.name.clone())),
    }
}

async fn rows<P: Ports>(
    openers: &Openers<P>,
    only: Option<AgentId>,
) -> Result<Vec<Row>, step::Error> {
    let names = match only {
        Some(only) => vec![only],
        None => openers.names().await?,
    };
    let mut rows = Vec::new();
    for name in names {
        let state = openers.held.to_read().load(&name.token()).await?.state;
        rows.push(Row::new(name, &state));
    }
    rows.sort_by(|a, b| (b.open_cases, &a.opener).cmp(&(a.open_cases, &b.opener)));
    Ok(rows)
}

impl<P: Ports> Openers<P> {
    /// Everybody who has ever had a place.
    async fn names(&self) -> Result<Vec<AgentId>, step::Error> {
        let ids = self.service.ports.ids(Aggregate::Opener).await;
        let ids = ids.map_err(|source| step::Error::EventStore {
            aggregate: Aggregate::Opener.to_string(),
            source,
        })?;
        Ok(ids
            .iter()
            .filter_map(|id| AgentId::new(id.as_str()).ok())
            .collect())
    }
}
