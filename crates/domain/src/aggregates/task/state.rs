//! The state of a task, and how events change it.

use std::collections::BTreeMap;

use concord_events::{TaskAssigned, TaskEvent, TaskOpened, TaskOutcome, TaskStep};
use concord_wire::payload::{Bid, HandedContext, ResultStatus};
use concord_wire::{AgentId, MessageId, Timestamp};
use serde_json::Value;

use super::strategy::{self, TaskStrategy};
use super::{BIDS, DUE, HeardWord, Progress};

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskState {
    /// The opening; `None` before it.
    pub opened: Option<TaskOpened>,
    /// The sequence of the opening, which the answers to a call for proposals name.
    pub opened_sequence: u64,
    /// Everybody who was asked.
    pub parts: BTreeMap<AgentId, Part>,
    /// Whether bids are waited for.
    pub bids_open: bool,
    /// How it ended.
    pub ended: Option<TaskOutcome>,
    /// The event with which it ended.
    pub ended_by: Option<MessageId>,
    /// The messages and events that led to an event.
    pub(super) heard: BTreeMap<MessageId, Option<HeardWord>>,
}

/// What one agent has to do with a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// How far it is.
    pub stage: Stage,
    /// The sequence of the event by which it got the task.
    pub assignment: Option<u64>,
    /// The time until which it must answer.
    pub due: Option<Timestamp>,
    /// How long it was from getting the task to that time, in milliseconds.
    pub given_ms: u64,
    /// Its bid, with its reliability then.
    pub bid: Option<(Bid, f64)>,
    /// Its result, or what it has given of it.
    pub result: Option<Value>,
    /// The sequence of the event by which it has given that.
    pub given_at: Option<u64>,
    /// How often it has given a part of the result.
    pub reports: usize,
    /// What it was handed on with.
    pub handed: Option<HandedContext>,
    /// Why it ended so.
    pub why: String,
}

impl Part {
    fn new(stage: Stage) -> Self {
        Self {
            stage,
            assignment: None,
            due: None,
            given_ms: 0,
            bid: None,
            result: None,
            given_at: None,
            reports: 0,
            handed: None,
            why: String::new(),
        }
    }

    /// Whether the agent has the task.
    pub fn is_working(&self) -> bool {
        self.stage == Stage::Working
    }

    /// Whether the agent has the task, or gets it when it has room.
    pub fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Working)
    }
}

/// How far an agent is with its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It was called for proposals.
    Called,
    /// It has made a bid.
    Bidding,
    /// It is to do the task when it has room.
    Waiting,
    /// It has the task.
    Working,
    /// It has given its result.
    Done,
    /// It says that it could not do it.
    Failed,
    /// It does not want to.
    Declined,
    /// It has handed the task on.
    HandedOn,
    /// It is not there any more.
    Lost,
    /// It has not answered in time.
    Silent,
    /// It was told that it need not go on, or has left the swarm.
    Withdrawn,
}

impl TaskState {
    /// The strategy of the task.
    pub fn strategy(&self) -> Option<&'static dyn TaskStrategy> {
        strategy::named(&self.opened.as_ref()?.terms.strategy)
    }

    /// What the strategy looks at.
    pub fn progress(&self) -> Option<Progress<'_>> {
        let opened = self.opened.as_ref()?;
        Some(Progress {
            terms: &opened.terms,
            candidates: &opened.candidates,
            parts: &self.parts,
            bids_open: self.bids_open,
        })
    }

    /// Whether an agent is to have a place for the task on its worklist.
    pub fn needs_place(&self, agent: &AgentId) -> bool {
        self.ended.is_none() && self.parts.get(agent).is_some_and(Part::is_active)
    }

    /// Whether the event at this sequence, of which there is one in the stream, has asked an agent for a bid or given it the task;
    /// without a sequence whether it was given the task.
    pub fn has_asked(&self, agent: &AgentId, asked: Option<u64>) -> bool {
        let part = self.parts.get(agent);
        part.is_some_and(|part| match asked {
            Some(_) => part.assignment == asked || asked == Some(self.opened_sequence),
            None => part.assignment.is_some(),
        })
    }

    /// Whether the event at this sequence has called for bids.
    pub fn has_called(&self, asked: Option<u64>) -> bool {
        asked == Some(self.opened_sequence)
    }

    /// Whether an agent is to be asked as soon as it has room.
    pub fn waits_for(&self, agent: &AgentId) -> bool {
        let waits = |part: &Part| part.stage == Stage::Waiting;
        self.ended.is_none() && self.parts.get(agent).is_some_and(waits)
    }

    /// What the event says, without what follows from it.
    pub(super) fn take_in(&mut self, event: &TaskEvent, sequence: u64) {
        match event {
            TaskEvent::Opened(opened) => {
                self.bids_open = opened.bids_due.is_some();
                self.opened_sequence = sequence;
                self.opened = Some(opened.clone());
            }
            TaskEvent::Assigned(assigned) => self.change(&assigned.agent, |part| {
                part.stage = Stage::Working;
                part.assignment = Some(sequence);
                part.due = Some(assigned.due);
            }),
            TaskEvent::Reported(reported) => self.change(&reported.by, |part| {
                part.reports += 1;
                part.why.clone_from(&reported.why);
                match reported.status {
                    ResultStatus::Success => part.stage = Stage::Done,
                    ResultStatus::Failure => part.stage = Stage::Failed,
                    ResultStatus::Partial => {}
                }
                if reported.status != ResultStatus::Failure {
                    part.result = Some(reported.result.clone());
                    part.given_at = Some(sequence);
                }
            }),
            TaskEvent::BidMade(made) => self.change(&made.by, |part| {
                part.stage = Stage::Bidding;
                part.bid = Some((made.bid.clone(), made.reliability));
            }),
            TaskEvent::Declined(declined) => {
                self.close(&declined.by, Stage::Declined, &declined.why)
            }
            TaskEvent::HandedOn(handed) => {
                let from = handed.handed.from.clone();
                self.close(&from, Stage::HandedOn, &handed.handed.reason);
                let mut part = Part::new(Stage::Waiting);
                part.handed = Some(handed.handed.clone());
                self.parts.insert(handed.to.clone(), part);
            }
            TaskEvent::Joined(moved) => {
                let part = Part::new(Stage::Waiting);
                self.parts.insert(moved.agent.clone(), part);
            }
            TaskEvent::Left(moved) => self.close(&moved.agent, Stage::Withdrawn, "It has left."),
            TaskEvent::Lost(lost) => self.close(&lost.agent, Stage::Lost, &lost.why),
            TaskEvent::Elapsed(elapsed) => {
                for agent in &elapsed.silent {
                    self.close(agent, Stage::Silent, "It has not answered in time.");
                }
                if [BIDS, DUE].contains(&elapsed.name.as_str()) {
                    self.bids_open = false;
                }
            }
            TaskEvent::CaseEnded(_) | TaskEvent::Cancelled(_) => {}
        }
    }

    /// What follows from an event.
    pub(super) fn take_step(&mut self, step: &TaskStep) {
        for agent in &step.call {
            self.parts.insert(agent.clone(), Part::new(Stage::Called));
        }
        for agent in &step.ask {
            let part = self.parts.entry(agent.clone());
            part.or_insert_with(|| Part::new(Stage::Waiting)).stage = Stage::Waiting;
            // Whoever is awarded the task ends the bidding.
            self.bids_open = false;
        }
        if let Some(end) = &step.end {
            let active = self.parts.values_mut().filter(|part| part.is_active());
            active.for_each(|part| part.stage = Stage::Withdrawn);
            self.bids_open = false;
            self.ended = Some(end.outcome.clone());
        }
    }

    /// The agent has got the task at this time.
    pub(super) fn note_assigned(&mut self, assigned: &TaskAssigned, at: Timestamp) {
        self.change(&assigned.agent, |part| {
            part.given_ms = assigned.due.millis_since(at);
        });
    }

    fn change(&mut self, agent: &AgentId, change: impl FnOnce(&mut Part)) {
        if let Some(part) = self.parts.get_mut(agent) {
            change(part);
        }
    }

    fn close(&mut self, agent: &AgentId, stage: Stage, why: &str) {
        self.change(agent, |part| {
            part.stage = stage;
            why.clone_into(&mut part.why);
        });
    }
}

/// What is wrong with an event, given the state before it.
pub(super) fn misplaced(before: &TaskState, event: &TaskEvent) -> Option<String> {
    let stage = |agent: &AgentId| before.parts.get(agent).map(|part| part.stage);
    let must_work = |agent: &AgentId| {
        let works = stage(agent) == Some(Stage::Working);
        (!works).then(|| format!("{agent} does not have the task."))
    };
    match event {
        TaskEvent::Assigned(assigned) => {
            let agent = &assigned.agent;
            if stage(agent) != Some(Stage::Waiting) {
                return Some(format!("{agent} was not to be asked."));
            }
            let is_exclusive = before.strategy().is_some_and(TaskStrategy::asks_one);
            let mut others = before.parts.iter();
            let other = others.find(|(_, part)| part.is_working())?.0;
            is_exclusive.then(|| format!("{agent} and {other} have the task at once."))
        }
        TaskEvent::Reported(reported) => must_work(&reported.by),
        TaskEvent::HandedOn(handed) => must_work(&handed.handed.from).or_else(|| {
            let again = stage(&handed.to).is_some();
            again.then(|| format!("{} has had the task before.", handed.to))
        }),
        TaskEvent::BidMade(made) if !before.bids_open || stage(&made.by) != Some(Stage::Called) => {
            Some(format!("{} was not called, or too late.", made.by))
        }
        _ => {
            let next = event.next()?;
            let is_exclusive = before.strategy().is_some_and(TaskStrategy::asks_one);
            (is_exclusive && next.ask.len() > 1).then(|| "Two agents are asked at once.".to_owned())
        }
    }
}
