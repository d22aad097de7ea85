//! The registration of an agent: its card and its status. Owned by the coordinator; its id is the
//! agent's.
//!
//! | state          | Register                         | Deregister            | Status                                  |
//! |----------------|----------------------------------|-----------------------|-----------------------------------------|
//! | not registered | registered (joined), or refused [1] | refused: not registered | refused: not registered              |
//! | registered     | registered (updated, or same)    | deregistered          | status_changed; ignored when it is so already |
//!
//! [1] A card that is not valid is refused in every state; `must_exist` (`update_agent`) refuses an
//! agent that is not registered.
//!
//! **Always answered.** An agent that restarts registers again and waits for the answer, so a
//! registration that changes nothing is an event too. Others are told only of changes.
//!
//! **Whoever does not answer is unavailable for a while**, when that has happened too often in a row (Silent, Answered, Retry: [`silence`]).
//!
//! **A registration makes available.** From then on the agent's heartbeats, its status messages,
//! and missing heartbeats decide ([`liveness`]).

use concord_events::{
    AgentDeregistered, AgentEvent, AgentRegistered, AgentStatusChanged, CardChange, SilenceBounds,
    StoredEvent,
};
use concord_wire::payload::{AgentJoined, AgentStatus, CARD_BYTES_MAX, Card, StatusReport};
use concord_wire::{AgentId, Fault, MessageId, Timestamp, Token};
use serde::{Deserialize, Serialize};
use serde_json::json;

use silence::Silence;

use crate::aggregates::case::reused_message_id;
use crate::aggregates::review_queue::Recent;
use crate::digest::digest;
use crate::effect::Effect;
use crate::machine::{Carry, Context, Decision, Ignored, Machine, forgetting};

pub mod liveness;
pub mod silence;

/// How many messages are remembered, to recognise a repetition.
const CAUSES_MAX: usize = 64;

/// The JSON pointer of the parameters of a request.
const PARAMETERS: &str = "/payload/parameters";

/// The state machine of an agent's registration.
#[derive(Debug, Clone, Copy)]
pub struct AgentMachine;

/// The state of an agent's registration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The card of the agent; `None` while it is not registered.
    pub card: Option<Card>,
    /// Whether the agent is available, busy or unavailable.
    pub status: AgentStatus,
    /// The last stated reason for the status.
    pub why: String,
    /// When the status last changed.
    pub since: Option<Timestamp>,
    /// How much it lets pass without an answer.
    pub silence: Silence,
    /// The messages that have led to an event, those that brought a card with its digest.
    causes: Recent<MessageId, Option<String>>,
}

impl Default for AgentState {
    fn default() -> Self {
        Self {
            card: None,
            status: AgentStatus::Unavailable,
            why: String::new(),
            since: None,
            silence: Silence::default(),
            causes: Recent::new(CAUSES_MAX),
        }
    }
}

/// One input of an agent's registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentInput {
    /// Registers the agent, or replaces its card.
    Register {
        /// The card.
        card: Box<Card>,
        /// The sender. The caller checks whether the sender may register the agent.
        by: AgentId,
        /// The message that is answered, where one is.
        request_id: Option<MessageId>,
        /// Whether the agent must be registered already.
        must_exist: bool,
    },
    /// Removes the agent from the register.
    Deregister {
        /// The agent.
        agent_id: AgentId,
        /// The sender.
        by: AgentId,
        /// The reason; may be empty.
        why: String,
        /// The message that is answered, where one is.
        request_id: Option<MessageId>,
    },
    /// Changes the status of the agent.
    Status {
        /// The agent.
        agent_id: AgentId,
        /// The new status.
        status: AgentStatus,
        /// The reason; may be empty.
        why: String,
    },
    /// The agent has let something pass without an answer.
    Silent {
        /// The agent.
        agent_id: AgentId,
        /// The request or the task.
        about: Token,
        /// The agent whose request it was; none where a service has asked.
        asked_by: Option<AgentId>,
        /// How often it may do so.
        bounds: SilenceBounds,
    },
    /// The agent has answered something.
    Answered {
        /// The agent.
        agent_id: AgentId,
    },
    /// The time may have come to try an agent again that was silent too often.
    Retry {
        /// The agent.
        agent_id: AgentId,
    },
}

impl Machine for AgentMachine {
    type State = AgentState;
    type Event = AgentEvent;
    type Input = AgentInput;

    // Its status changes around each task, for as long as it is there.
    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    fn state_bytes_max(_: &AgentState) -> usize {
        forgetting(CARD_BYTES_MAX)
    }

    fn decide(state: &AgentState, context: &Context, input: &AgentInput) -> Decision<AgentEvent> {
        if let Some(earlier) = state.causes.get(&context.cause) {
            return repeated(earlier.as_ref(), input);
        }
        match input {
            AgentInput::Register {
                card,
                by,
                request_id,
                must_exist,
            } => register(state, card, by, request_id.as_ref(), *must_exist),
            AgentInput::Deregister {
                agent_id,
                by,
                why,
                request_id,
            } => {
                let (agent_id, by, why) = (agent_id.clone(), by.clone(), why.clone());
                if state.card.is_none() {
                    return Decision::Reject(not_registered(&agent_id));
                }
                let request_id = request_id.clone();
                Decision::Append(AgentEvent::Deregistered(AgentDeregistered {
                    agent_id,
                    by,
                    why,
                    request_id,
                }))
            }
            AgentInput::Status {
                agent_id,
                status,
                why,
            } => {
                if state.card.is_none() {
                    return Decision::Reject(not_registered(agent_id));
                }
                if state.status == *status {
                    return Decision::Ignore(Ignored::AlreadyDone);
                }
                let (agent_id, status, why) = (agent_id.clone(), *status, why.clone());
                Decision::Append(AgentEvent::StatusChanged(AgentStatusChanged {
                    agent_id,
                    status,
                    why,
                }))
            }
            AgentInput::Silent {
                agent_id,
                about,
                asked_by,
                bounds,
            } => silence::silent(
                state,
                context,
                agent_id,
                (about, asked_by.as_ref()),
                *bounds,
            ),
            AgentInput::Answered { agent_id } => silence::answered(state, agent_id),
            AgentInput::Retry { agent_id } => silence::retry(state, context, agent_id),
        }
    }

    fn apply(state: &mut AgentState, record: StoredEvent<AgentEvent>) {
        let card = match &record.event {
            AgentEvent::Registered(registered) => Some(digest_of_card(&registered.card)),
            _ => None,
        };
        state.causes.insert(record.meta.cause, card);
        let at = record.meta.at;
        let mut set = |status: AgentStatus, why: String| {
            if state.status != status {
                state.since = Some(at);
            }
            (state.status, state.why) = (status, why);
        };
        match record.event {
            AgentEvent::Registered(registered) => {
                set(AgentStatus::Available, String::new());
                state.silence = Silence::default();
                state.card = Some(registered.card);
            }
            AgentEvent::Deregistered(left) => {
                set(AgentStatus::Unavailable, left.why);
                state.silence = Silence::default();
                state.card = None;
            }
            AgentEvent::StatusChanged(changed) => {
                let is_there = changed.status != AgentStatus::Unavailable;
                set(changed.status, changed.why);
                if is_there {
                    state.silence = Silence::default();
                }
            }
            AgentEvent::Silent(silent) => {
                if silent.retry_at.is_some() {
                    set(AgentStatus::Unavailable, silent.why.clone());
                }
                state.silence.silent(&silent);
            }
            AgentEvent::Answered(answered) => {
                if answered.available {
                    set(AgentStatus::Available, String::new());
                }
                state.silence = Silence::default();
            }
            AgentEvent::Retried(retried) => {
                set(AgentStatus::Available, retried.why);
                state.silence.retried();
            }
        }
    }

    fn effects(record: &StoredEvent<AgentEvent>) -> Vec<Effect> {
        let answer = |to: &AgentId, request_id: &Option<MessageId>, result| {
            let request_id = request_id.clone();
            request_id.map(|request_id| Effect::Respond {
                to: to.clone(),
                request_id,
                result,
            })
        };
        let status = |agent_id: &AgentId, status, why: &str| {
            Effect::AnnounceStatus(StatusReport {
                agent_id: Some(agent_id.clone()),
                status,
                why: why.to_owned(),
            })
        };
        match &record.event {
            AgentEvent::Registered(AgentRegistered {
                card,
                change,
                by,
                request_id,
            }) => {
                let result = json!({ "agent_id": card.agent_id, "change": change });
                let joined = AgentJoined {
                    card: card.clone(),
                    status: AgentStatus::Available,
                };
                let tell =
                    (*change != CardChange::Same).then(|| Effect::AnnounceAgent(Box::new(joined)));
                answer(by, request_id, result)
                    .into_iter()
                    .chain(tell)
                    .collect()
            }
            AgentEvent::Deregistered(AgentDeregistered {
                agent_id,
                by,
                why,
                request_id,
            }) => {
                let why = if why.is_empty() {
                    "It has left the register."
                } else {
                    why
                };
                let answer = answer(by, request_id, json!({ "agent_id": agent_id }));
                answer
                    .into_iter()
                    .chain([status(agent_id, AgentStatus::Unavailable, why)])
                    .collect()
            }
            AgentEvent::StatusChanged(_)
            | AgentEvent::Silent(_)
            | AgentEvent::Answered(_)
            | AgentEvent::Retried(_) => announced(&record.event)
                .into_iter()
                .map(Effect::AnnounceStatus)
                .collect(),
        }
    }
}

/// What everybody is told of an agent's status, where that has changed with the event.
fn announced(event: &AgentEvent) -> Option<StatusReport> {
    use AgentStatus::{Available, Unavailable};
    let (agent_id, status, why) = match event {
        AgentEvent::StatusChanged(changed) => (&changed.agent_id, changed.status, &*changed.why),
        AgentEvent::Silent(silent) if silent.retry_at.is_some() => {
            (&silent.agent_id, Unavailable, &*silent.why)
        }
        AgentEvent::Answered(answered) if answered.available => (&answered.agent_id, Available, ""),
        AgentEvent::Retried(retried) => (&retried.agent_id, Available, &*retried.why),
        AgentEvent::Registered(_)
        | AgentEvent::Deregistered(_)
        | AgentEvent::Silent(_)
        | AgentEvent::Answered(_) => return None,
    };
    Some(StatusReport {
        agent_id: Some(agent_id.clone()),
        status,
        why: why.to_owned(),
    })
}

fn digest_of_card(card: &Card) -> String {
    digest(json!(card).to_string().as_bytes())
}

/// What to do about a message under an id that was heard before, with the digest of the card that it brought.
fn repeated(earlier: Option<&String>, input: &AgentInput) -> Decision<AgentEvent> {
    match (earlier, input) {
        (Some(earlier), AgentInput::Register { card, .. }) if *earlier != digest_of_card(card) => {
            Decision::Reject(reused_message_id())
        }
        _ => Decision::Ignore(Ignored::Repetition),
    }
}

fn register(
    state: &AgentState,
    card: &Card,
    by: &AgentId,
    request_id: Option<&MessageId>,
    must_exist: bool,
) -> Decision<AgentEvent> {
    if let Err(fault) = card.check(PARAMETERS) {
        return Decision::Reject(fault);
    }
    let change = match &state.card {
        None if must_exist => return Decision::Reject(not_registered(&card.agent_id)),
        None => CardChange::Joined,
        // The agent was gone, so others are told that it is there again.
        Some(_) if state.status == AgentStatus::Unavailable => CardChange::Joined,
        Some(earlier) if earlier == card => CardChange::Same,
        Some(_) => CardChange::Updated,
    };
    let (card, by, request_id) = (card.clone(), by.clone(), request_id.cloned());
    Decision::Append(AgentEvent::Registered(AgentRegistered {
        card,
        change,
        by,
        request_id,
    }))
}

fn not_registered(agent_id: &AgentId) -> Fault {
    Fault::invalid(
        "/from_agent",
        format!("{agent_id} is not registered."),
        "Register first: a request to coordinator with the action register_agent and the card as its parameters.",
    )
}

#[cfg(test)]
mod tests;
