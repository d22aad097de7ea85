//! The strategies by which a task is handed out: one file each, and one row of the table ([`ALL`]).
//!
//! A strategy says whom to ask next, when it is enough, and what the result is. The machine does all else: it finds out who fits,
//! keeps deadlines, notices who is gone, gives places, and ends the task once.

use concord_wire::payload::OpenTask;
use concord_wire::{AgentId, ErrorCode, Fault};
use serde_json::{Map, Value};

use super::Progress;

mod broadcast;
mod capability;
mod consensus;
mod contract_net;
pub mod panel;
mod poll;
mod round_robin;
mod same;
mod swarm;

/// The table of strategies, by name.
pub const ALL: [(&str, &dyn TaskStrategy); 8] = [
    ("round_robin", &round_robin::RoundRobin),
    ("broadcast", &broadcast::Broadcast),
    ("capability", &capability::Capability),
    ("consensus", &consensus::Consensus),
    ("swarm", &swarm::Swarm),
    ("poll", &poll::Poll),
    ("contract_net", &contract_net::ContractNet),
    ("panel", &panel::Panel),
];

/// The strategy with this name.
pub fn named(name: &str) -> Option<&'static dyn TaskStrategy> {
    let mut all = ALL.iter();
    all.find(|(known, _)| *known == name).map(|(_, one)| *one)
}

/// What is to happen next with a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Nothing: somebody is waited for.
    Wait,
    /// This agent is asked too.
    Ask(AgentId),
    /// The task is done.
    Complete {
        /// Its result.
        result: Value,
        /// Whose work it is.
        by: Vec<AgentId>,
        /// Whether something is missing.
        partial: bool,
    },
    /// The task has failed.
    Fail(Failure),
}

/// Why a task has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason as a code of the wire.
    pub code: ErrorCode,
    /// The reason as a word, for programs.
    pub reason: &'static str,
    /// The reason as a sentence.
    pub why: String,
    /// What its opener can do.
    pub advice: &'static str,
}

/// One way to hand out a task.
pub trait TaskStrategy: Sync {
    /// What is to happen after an answer, a refusal, or the loss of an agent.
    fn after(&self, progress: &Progress<'_>) -> Next;

    /// What becomes of the task when its time is over; not [`Next::Wait`] and not [`Next::Ask`].
    fn at_deadline(&self, progress: &Progress<'_>) -> Next;

    /// Whether one agent has the task at a time; otherwise all who fit have it at once.
    fn asks_one(&self) -> bool {
        false
    }

    /// Whether those who fit take turns. Otherwise who fits best comes first.
    fn rotates(&self) -> bool {
        false
    }

    /// Whether agents are called for proposals first.
    fn calls_for_proposals(&self) -> bool {
        false
    }

    /// Whether agents may join and leave while it lasts. Such a task may begin with nobody.
    fn has_members(&self) -> bool {
        false
    }

    /// Whether those who fit do not have the task themselves but are the participants of a case with it, which decides it.
    fn opens_case(&self) -> bool {
        false
    }

    /// Checks what this strategy alone needs of a request; pointers begin with `/payload/parameters`.
    fn check_terms(&self, _terms: &OpenTask) -> Result<(), Fault> {
        Ok(())
    }

    /// The result as it counts and is stored; pointers of faults begin with `/payload/result`.
    fn read_result(&self, result: &Value) -> Result<Value, Fault> {
        Ok(result.clone())
    }
}

/// The next step where one agent after the other is asked until one succeeds.
fn one_after_another(progress: &Progress<'_>) -> Next {
    if let Some((agent, result)) = progress.results().next() {
        return Next::Complete {
            result: result.clone(),
            by: vec![agent.clone()],
            partial: false,
        };
    }
    match progress.untried() {
        _ if progress.is_active() => Next::Wait,
        Some(agent) => Next::Ask(agent.clone()),
        None => in_part(progress).unwrap_or_else(|| Next::Fail(all_failed(progress))),
    }
}

/// The end where nobody gives more and one result is wanted: what was given of it last.
fn in_part(progress: &Progress<'_>) -> Option<Next> {
    let parts = progress.parts.iter();
    let given = parts.filter(|(_, part)| part.result.is_some());
    let (agent, last) = given.max_by_key(|(_, part)| part.given_at)?;
    Some(Next::Complete {
        result: last.result.clone()?,
        by: vec![agent.clone()],
        partial: true,
    })
}

/// The end where time is over and one result is wanted.
fn one_in_time(progress: &Progress<'_>) -> Next {
    in_part(progress).unwrap_or_else(|| Next::Fail(too_late(progress)))
}

/// The results as an object, by agent.
fn by_agent<'a>(results: impl Iterator<Item = (&'a AgentId, &'a Value)>) -> (Value, Vec<AgentId>) {
    let (mut object, mut by) = (Map::new(), Vec::new());
    for (agent, result) in results {
        object.insert(agent.to_string(), result.clone());
        by.push(agent.clone());
    }
    (Value::Object(object), by)
}

/// The end where results of all are wanted and time is over.
fn all_in_time(progress: &Progress<'_>) -> Next {
    let (result, by) = by_agent(progress.results_and_parts());
    if by.is_empty() {
        return Next::Fail(too_late(progress));
    }
    Next::Complete {
        result,
        by,
        partial: true,
    }
}

fn all_failed(progress: &Progress<'_>) -> Failure {
    Failure {
        code: ErrorCode::AgentUnavailable,
        reason: "all_failed",
        why: format!(
            "Everybody who was asked has failed or is gone: {}.",
            progress.reasons()
        ),
        advice: "error_message says why, of the first eight; open the task again for other agents (find_agents).",
    }
}

fn too_late(progress: &Progress<'_>) -> Failure {
    Failure {
        code: ErrorCode::Timeout,
        reason: "deadline",
        why: match progress.parts.is_empty() {
            true => "Nobody was asked, and nobody has joined in time.".to_owned(),
            false => format!("Nobody has answered in time: {}.", progress.reasons()),
        },
        advice: "Give it more time (deadline_ms), or ask other agents.",
    }
}

/// What the opener can do where too few have voted or succeeded.
const MORE_OR_FEWER: &str = "Ask more agents, or lower the quorum.";

fn no_quorum(why: String, advice: &'static str) -> Failure {
    Failure {
        code: ErrorCode::InvalidRequest,
        reason: "quorum_not_reached",
        why,
        advice,
    }
}
