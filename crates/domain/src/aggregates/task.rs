//! A task: one piece of work that a strategy hands out to agents. Owned by the coordinator.
//!
//! This machine keeps the life of the task: who is asked, who has it, deadlines, the end. The [`strategy`] says whom to ask next,
//! when it is enough, and what the result is. Every event says what follows from it ([`concord_events::TaskStep`]).
//!
//! | input                | not opened           | open                                              | ended   |
//! |----------------------|----------------------|---------------------------------------------------|---------|
//! | Open                 | opened, or refused   | ignored: the same request; refused: another one   | as open |
//! | Place                | -                    | assigned; lost: the agent is not there; ignored: it is not asked any more | ignored |
//! | Result, Refuse       | refused              | reported, declined; refused: not asked, answered before, too late [1] | refused |
//! | Bid                  | refused              | bid; refused: not called, a second one, too late  | refused |
//! | Hand on              | refused              | handed_on; refused: to oneself, to one who had it | refused |
//! | Join, Leave          | refused              | joined, left; refused: no swarm, a member already, no member | refused |
//! | Lost                 | ignored              | lost; ignored: it has nothing to do               | ignored |
//! | Elapsed              | ignored              | elapsed; ignored: not open                        | ignored |
//! | Case ended           | ignored              | case_ended; ignored: it was given to no case      | ignored |
//! | Cancel               | refused              | cancelled; refused: not by its opener or an operator | refused |
//!
//! [1] What an agent sends twice under one id is ignored.
//!
//! One agent after the other is a part of the task ([`Part`]): asked, at work, and finished in one of several ways. Nobody has
//! two parts, so a task cannot go in a circle, whoever hands it on.

use concord_events::{
    Deadline, DeadlineElapsed, StoredEvent, TaskCandidate, TaskEvent, TaskOutcome,
};
use concord_wire::payload::{Bid, Handoff, OpenTask, ResultStatus, TaskResult};
use concord_wire::{AgentId, CaseId, MessageId, Timestamp, Token};
use serde_json::{Value, json};

use crate::aggregates::person::Authority;
use crate::digest::digest;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

mod conclude;
mod decide;
mod effects;
mod opening;
mod progress;
mod said;
mod state;
pub mod strategy;

pub use opening::{AGENTS_MAX, TASK_MS_MAX};
pub use progress::Progress;
pub use state::{Part, Stage, TaskState};

/// The name of the deadline of the whole task.
pub const DUE: &str = "task";
/// The name of the deadline for bids.
pub const BIDS: &str = "bids";
/// The name of the deadline of the agent that must answer first.
pub const ATTEMPT: &str = "attempt";

/// The state machine of a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskMachine;

/// A request to open a task.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedTask {
    /// Who opens it.
    pub opened_by: AgentId,
    /// The request.
    pub request_id: MessageId,
    /// What is asked for.
    pub terms: OpenTask,
    /// Who fits, in the order in which they are asked; one more than [`AGENTS_MAX`] where there are more.
    pub candidates: Vec<TaskCandidate>,
    /// What the opener may do.
    pub sender: Authority,
}

/// What an agent says about its part of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The agent.
    pub by: AgentId,
    /// The sequence of the event from which the message follows that it answers; none where it names the task alone.
    pub asked: Option<u64>,
    /// What it says.
    pub word: Word,
}

/// What can be said about a part.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// A result, or a part of one.
    Result(TaskResult),
    /// It does not do it; the reason.
    Refuse(String),
    /// It has failed, as an `error` says; the reason. An assignment has failed with it, and a call for proposals is declined.
    Failed(String),
    /// A bid, with the reliability of the bidder, 0 to 1.
    Bid(Bid, f64),
    /// It passes its assignment on. The text says why the other agent cannot have it, where that is so.
    HandOn(Handoff, Option<String>),
}

/// One input of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskInput {
    /// Opens the task.
    Open(Box<OpenedTask>),
    /// An agent that was to be asked has room for the task.
    Place {
        /// The agent.
        agent: AgentId,
        /// Why it cannot be asked after all, where that is so.
        gone: Option<String>,
    },
    /// An agent says something about its part.
    Say(Box<Said>),
    /// An agent joins or leaves a swarm.
    Member {
        /// The agent.
        agent: AgentId,
        /// The request.
        request_id: MessageId,
        /// Whether it joins.
        joins: bool,
    },
    /// An agent is not there any more.
    Lost {
        /// The agent.
        agent: AgentId,
        /// Why.
        why: String,
    },
    /// A deadline has passed.
    Elapsed(DeadlineElapsed),
    /// The case that the task was given to is decided, or there is none.
    CaseEnded {
        /// The case.
        case_id: CaseId,
        /// How the task ends by that.
        outcome: Box<TaskOutcome>,
    },
    /// Somebody ends the task.
    Cancel {
        /// Who.
        by: AgentId,
        /// What they may do.
        sender: Box<Authority>,
        /// The request, where it is a message that is answered.
        request_id: Option<MessageId>,
        /// Why.
        why: String,
    },
}

/// What is known of a message that has led to an event.
#[derive(Debug, Clone, PartialEq)]
struct HeardWord {
    /// Its sender.
    by: AgentId,
    /// The digest of the result that it gave, where it is one.
    result: Option<String>,
}

/// The digest of what a result says.
fn digest_of_result(status: ResultStatus, result: &Value, why: &str) -> String {
    digest(json!([status, result, why]).to_string().as_bytes())
}

/// The message of an agent that an event follows from; none where it is no message of one that has a part.
fn heard_word(event: &TaskEvent) -> Option<HeardWord> {
    let (by, result) = match event {
        TaskEvent::Reported(reported) => {
            let digest = digest_of_result(reported.status, &reported.result, &reported.why);
            (&reported.by, Some(digest))
        }
        TaskEvent::BidMade(bid) => (&bid.by, None),
        TaskEvent::Declined(declined) => (&declined.by, None),
        TaskEvent::HandedOn(handed) => (&handed.handed.from, None),
        TaskEvent::Joined(moved) | TaskEvent::Left(moved) => (&moved.agent, None),
        _ => return None,
    };
    let by = by.clone();
    Some(HeardWord { by, result })
}

impl Machine for TaskMachine {
    type State = TaskState;
    type Event = TaskEvent;
    type Input = TaskInput;

    fn decide(state: &TaskState, context: &Context, input: &TaskInput) -> Decision<TaskEvent> {
        match input {
            TaskInput::Open(asked) => opening::open(state, context, asked),
            TaskInput::Place { agent, gone } => {
                decide::place(state, context, agent, gone.as_deref())
            }
            TaskInput::Say(word) => said::say(state, context, word),
            TaskInput::Member {
                agent,
                request_id,
                joins,
            } => decide::member(state, context, agent, request_id, *joins),
            TaskInput::Lost { agent, why } => decide::lost(state, context, agent, why),
            TaskInput::Elapsed(elapsed) => decide::elapsed(state, context, elapsed),
            TaskInput::CaseEnded { case_id, outcome } => {
                decide::case_ended(state, case_id, outcome)
            }
            TaskInput::Cancel {
                by,
                sender,
                request_id,
                why,
            } => decide::cancel(state, (by, sender), request_id.as_ref(), why),
        }
    }

    fn is_taken(state: &TaskState, id: &MessageId, sender: &AgentId) -> bool {
        let heard = state.heard.get(id);
        heard.is_some_and(|heard| heard.as_ref().is_none_or(|word| word.by != *sender))
    }

    fn apply(state: &mut TaskState, record: StoredEvent<TaskEvent>) {
        let heard = heard_word(&record.event);
        state.heard.insert(record.meta.cause, heard);
        state.take_in(&record.event, record.sequence);
        if let TaskEvent::Assigned(assigned) = &record.event {
            state.note_assigned(assigned, record.meta.at);
        }
        if let Some(next) = record.event.next() {
            state.take_step(next);
        }
        if record.event.end().is_some() {
            state.ended_by = Some(record.meta.event_id);
        }
    }

    fn deadlines(state: &TaskState) -> Vec<Deadline> {
        let Some(opened) = state.opened.as_ref().filter(|_| state.ended.is_none()) else {
            return Vec::new();
        };
        let deadline = |name, due: Timestamp| Deadline {
            name: Token::fixed(name),
            due,
        };
        let bids = opened.bids_due.filter(|_| state.bids_open);
        let working = state.parts.values().filter(|part| part.is_working());
        let attempt = working.filter_map(|part| part.due).min();
        let attempt = attempt.filter(|due| *due < opened.due);
        bids.map(|due| deadline(BIDS, due))
            .into_iter()
            .chain(attempt.map(|due| deadline(ATTEMPT, due)))
            .chain([deadline(DUE, opened.due)])
            .collect()
    }

    fn effects(record: &StoredEvent<TaskEvent>) -> Vec<Effect> {
        effects::effects(record)
    }

    fn creates(input: &TaskInput) -> bool {
        matches!(input, TaskInput::Open(_))
    }

    fn fan_out_bytes(input: &TaskInput) -> usize {
        match input {
            TaskInput::Open(asked) => opening::fan_out_bytes(asked),
            _ => 0,
        }
    }

    const MUST_END: bool = true;

    fn begins(event: &TaskEvent) -> bool {
        matches!(event, TaskEvent::Opened(_))
    }

    fn ends(event: &TaskEvent) -> bool {
        event.end().is_some()
    }

    fn may_follow_end(_: &TaskEvent) -> bool {
        false
    }

    fn misplaced(before: &TaskState, event: &TaskEvent) -> Option<String> {
        state::misplaced(before, event)
    }
}

#[cfg(test)]
mod tests;
