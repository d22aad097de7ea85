//! The ladder of a debate: five levels from the agents themselves to the review at a gate.
//!
//! A debate is on the ladder from its opening when it began with a challenge, and from level 2 on when its discussion
//! settled nothing that the policy takes for settled. It never goes back to a lower level, and ends exactly once.
//!
//! | level       | acknowledge, clarify, evidence      | agreement, disagreement       | ruling                  | queue       | its deadlines                          |
//! |-------------|-------------------------------------|-------------------------------|-------------------------|-------------|----------------------------------------|
//! | 1 agents    | acknowledged, clarified,            | of the challenger: resolved,  | refused: no person is   | ignored     | acknowledge, evidence, evaluation:     |
//! |             | evidence_given (asks the challenger)| or escalated to 2             | asked yet               |             | escalated to 2                         |
//! | 2 mediation | evidence_given; of the mediator:    | set aside as late             | refused                 | ignored     | compare: resolved, or escalated to 3;  |
//! |             | opinion_given                       |                               |                         |             | mediation: escalated to 3              |
//! | 3 person    | evidence_given, and the brief of    | set aside as late             | of the expert, on the   | (un)assigned| person-half, person-nearly: reminded;  |
//! |             | the expert changes                  |                               | brief as it is: resolved| or fell_back| person: fell_back                      |
//! | 4 fallback  | set aside as late                   | set aside as late             | ruling_set_aside        | ignored     | provisional: awaits_gate, or resolved  |
//! |             |                                     |                               |                         |             | where there is no gate                 |
//! | 5 gate      | set aside as late                   | set aside as late             | ruling_set_aside        | ignored     | -                                      |
//! | resolved    | set aside as late                   | set aside as late             | ruling_set_aside        | ignored     | -                                      |
//!
//! From level 4 on a review at a gate resolves the debate: confirmed, overridden, or debated again under another id. An
//! operator can hold, resume and extend the deadlines of every level, and cancel the debate before it is resolved.
//! A level that fails never stops the case: every level but the last has a deadline that leads to the next.

use concord_events::{Deadline, DeadlineControl, DebateOpened};
use concord_wire::payload::{
    ConflictOutcome, Contact, Evidence, Level, Mediation, Overflow, Review, Ruling, Tally,
};
use concord_wire::{AgentId, DebateId, MessageId, Timestamp, Token};

mod brief;
mod deadlines;
mod effects;
mod fallback;
mod human;
mod mediate;
mod messages;
mod operator;

pub(crate) use brief::changes;
pub(crate) use deadlines::{Climb, climb, elapsed};
pub(crate) use effects::effects;
pub(crate) use fallback::reviewed;
pub(crate) use human::{assigned, overflowed, unassigned};
pub(crate) use mediate::mediate;
pub(crate) use messages::{answer, heard_answer, opening_deadlines, said};
pub(crate) use operator::{cancel, control};

/// What is known of a debate's way on the ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// The level that it is on.
    pub level: Level,
    /// Whether the challenged agent has acknowledged.
    pub acknowledged: bool,
    /// Whether evidence waits for the challenger's word.
    pub evaluating: bool,
    /// Clarifications passed on.
    pub clarifications: u32,
    /// Items of evidence and revisions taken.
    pub evidence: u32,
    /// What it waits for.
    pub waits_for: Vec<Deadline>,
    /// Deadlines that an operator holds, and since when.
    pub held: Option<(Vec<Deadline>, Timestamp)>,
    /// The vote that was too narrow.
    pub tally: Option<Tally>,
    /// What the mediator said.
    pub opinion: Option<String>,
    /// What mediation came to.
    pub mediation: Option<Mediation>,
    /// The expert who has it, or had it last.
    pub expert: Option<AgentId>,
    /// Where that expert is notified.
    pub contact: Contact,
    /// Digest of the brief that the expert was given last.
    pub digest: Option<String>,
    /// What has changed since an expert was first shown the debate: the digest of the brief before, and one line.
    pub changes: Vec<(String, String)>,
    /// The provisional decision.
    pub provisional: Option<ConflictOutcome>,
}

impl Ladder {
    /// At this level, waiting for this.
    pub(crate) fn at(level: Level, waits_for: Vec<Deadline>) -> Self {
        Self {
            level,
            acknowledged: false,
            evaluating: false,
            clarifications: 0,
            evidence: 0,
            waits_for,
            held: None,
            tally: None,
            opinion: None,
            mediation: None,
            expert: None,
            contact: Contact::default(),
            digest: None,
            changes: Vec::new(),
            provisional: None,
        }
    }

    /// When this deadline is due, if it is open.
    pub(crate) fn due(&self, name: &str) -> Option<Timestamp> {
        self.waits_for
            .iter()
            .find(|deadline| deadline.name.as_str() == name)
            .map(|deadline| deadline.due)
    }

    /// What it waits for besides this.
    pub(crate) fn without(&self, names: &[&str]) -> Vec<Deadline> {
        without(&self.waits_for, names)
    }

    /// What it waits for, and what is held, when these are closed and that is opened.
    pub(crate) fn rearranged(
        &self,
        closed: &[&str],
        opened: Option<Deadline>,
    ) -> (Vec<Deadline>, Vec<Deadline>) {
        let pending = self.held.as_ref().map_or(&self.waits_for, |(held, _)| held);
        let after: Vec<Deadline> = opened.into_iter().chain(without(pending, closed)).collect();
        if self.held.is_some() {
            (Vec::new(), after)
        } else {
            (after, Vec::new())
        }
    }

    /// Takes over what a fact says of the deadlines.
    pub(crate) fn rearrange(&mut self, waits_for: Vec<Deadline>, held: Vec<Deadline>) {
        self.waits_for = waits_for;
        if let Some((now_held, _)) = &mut self.held {
            *now_held = held;
        }
    }
}

/// Something said to a debate on the ladder, as it came in.
#[derive(Debug, Clone)]
pub struct Said {
    /// Who says it.
    pub agent_id: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// What.
    pub word: Word,
}

/// What can be said.
#[derive(Debug, Clone)]
pub enum Word {
    /// The challenge has been seen.
    Acknowledgement {
        /// Until when an answer is meant to come.
        commit_by: Option<Timestamp>,
    },
    /// A question or answer between challenger and challenged.
    Clarification {
        /// Its words.
        text: String,
    },
    /// What supports a finding; of the mediator, an opinion.
    Evidence(Evidence),
    /// A person's binding answer.
    Ruling(Box<Ruling>),
}

/// What the queue of people, a gate or an operator does to a debate.
#[derive(Debug, Clone)]
pub enum Order {
    /// The queue has given it to this expert.
    Assigned {
        /// Who.
        expert: AgentId,
        /// Where the expert is notified.
        contact: Contact,
    },
    /// The expert has left; it waits in the queue again.
    Unassigned {
        /// Who had it.
        expert: AgentId,
    },
    /// The queue has no place for it.
    Overflowed {
        /// What the policy says.
        handling: Overflow,
    },
    /// A gate has reviewed it.
    Reviewed {
        /// Who reviewed.
        by: AgentId,
        /// The review.
        review: Box<Review>,
        /// For a new debate: its id.
        again: Option<DebateId>,
    },
    /// An operator moves its deadlines.
    Deadlines {
        /// What to do.
        control: DeadlineControl,
        /// By how much, for `extend`.
        later_ms: u64,
        /// Who.
        by: AgentId,
        /// Why.
        why: String,
    },
    /// An operator cancels it, or its case.
    Cancel {
        /// Who.
        by: AgentId,
        /// Why.
        why: String,
    },
}

fn without(deadlines: &[Deadline], names: &[&str]) -> Vec<Deadline> {
    deadlines
        .iter()
        .filter(|deadline| !names.contains(&deadline.name.as_str()))
        .cloned()
        .collect()
}

/// Name of a ladder deadline as a token.
pub(crate) fn named(name: &'static str, due: Timestamp) -> Deadline {
    Deadline {
        name: Token::fixed(name),
        due,
    }
}

/// Who takes part: the parties, and the challenger and the challenged among them.
pub(crate) fn parties(opened: &DebateOpened) -> Vec<AgentId> {
    opened
        .conflict
        .positions
        .iter()
        .map(|position| position.agent_id.clone())
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
