//! Resolution strategies: how a debate about a conflict begins, and what happens when its
//! discussion settles nothing.
//!
//! The policy of a case names the strategy of its detected conflicts in `conflict_handling`; a
//! challenge has a strategy of its own. [`of_policy`] is the table of strategies. A new strategy is
//! a variant of [`ConflictHandling`], a file in this folder, and a row in the table. What a
//! strategy leaves to others stays in one place for all of them: rounds are in
//! [`rounds`](super::rounds), and a debate that escalates goes up the ladder in
//! [`escalation`](super::escalation).

use std::fmt;

use concord_events::{Deadline, EscalationReason};
use concord_wire::payload::{DebateTerms, OpenDebate, Position, Resolution, Status, Tally};
use concord_wire::policy::{ConflictHandling, Policy};
use concord_wire::{AgentId, Timestamp};

use super::discussion::Discussion;

mod challenge;
mod escalate;
mod vote;
mod vote_then_escalate;

/// How debates of one kind are led to an end.
pub trait ResolutionStrategy: fmt::Debug + Sync {
    /// Whether the end may depend on track records and precedents. They are read before the debate
    /// opens, and its first event keeps them.
    fn needs_prior_knowledge(&self, policy: &Policy) -> bool;

    /// How a debate begins. Usually the parties are asked in a first round of discussion.
    fn begin(&self, now: Timestamp, request: &OpenDebate) -> Beginning {
        Beginning::first_round(now, request)
    }

    /// What follows when the last round has ended and the parties have not settled the conflict.
    fn conclude(&self, discussion: &Discussion<'_>) -> Conclusion;
}

/// The table of strategies for detected conflicts.
pub fn of_policy(policy: &Policy) -> &'static dyn ResolutionStrategy {
    match policy.conflict_handling {
        ConflictHandling::Vote => &vote::Vote,
        ConflictHandling::Ladder => &escalate::Escalate,
        ConflictHandling::VoteThenLadder => &vote_then_escalate::VoteThenEscalate,
    }
}

/// The strategy of a debate with this policy and these terms.
pub fn of_debate(policy: &Policy, terms: &DebateTerms) -> &'static dyn ResolutionStrategy {
    if terms.challenge.is_some() {
        &challenge::Challenge
    } else {
        of_policy(policy)
    }
}

/// How a debate begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Beginning {
    /// The agents that are asked in the first round.
    pub asked: Vec<AgentId>,
    /// Until when the first round lasts; `None` where the debate begins on level 1 of the ladder.
    pub due: Option<Timestamp>,
    /// The deadlines of level 1; empty where the debate begins with a round.
    pub waits_for: Vec<Deadline>,
}

impl Beginning {
    /// A first round of discussion. Where there are no rounds, nobody is asked and the round
    /// is due at once, so that the end follows from its deadline.
    pub fn first_round(now: Timestamp, request: &OpenDebate) -> Self {
        let (policy, terms) = (&request.policy, &request.terms);
        let has_rounds = rounds_max(policy, terms) > 0;
        let wait_ms = if has_rounds {
            policy.answer_timeout_ms
        } else {
            0
        };
        Self {
            asked: if has_rounds {
                asked(policy, terms, &request.conflict.positions)
            } else {
                Vec::new()
            },
            due: Some(now.plus_millis(wait_ms)),
            waits_for: Vec::new(),
        }
    }
}

/// How many rounds a debate has at most. A debate whose share of the case's answers is none has no
/// rounds.
pub(super) fn rounds_max(policy: &Policy, terms: &DebateTerms) -> u32 {
    if terms.answers_per_round_max == Some(0) {
        0
    } else {
        policy.rounds_max
    }
}

/// The agents that are asked in a round: all parties, up to the debate's share of the messages that
/// the policy allows, the most confident first.
pub(super) fn asked(policy: &Policy, terms: &DebateTerms, positions: &[Position]) -> Vec<AgentId> {
    let most = policy.messages_per_round_max;
    let most = terms.answers_per_round_max.unwrap_or(most).min(most);
    let mut by_confidence: Vec<&Position> = positions.iter().collect();
    by_confidence.sort_by(|a, b| {
        b.confidence
            .total_cmp(&a.confidence)
            .then_with(|| a.agent_id.cmp(&b.agent_id))
    });
    let first = by_confidence.into_iter().take(most as usize);
    let mut asked: Vec<AgentId> = first.map(|position| position.agent_id.clone()).collect();
    asked.sort();
    asked
}

/// What follows from the end of a discussion.
#[derive(Debug, Clone, PartialEq)]
pub enum Conclusion {
    /// The debate is resolved.
    Resolve(Ending),
    /// The debate goes to level 2 of the ladder.
    Escalate {
        /// The reason, for its event.
        reason: EscalationReason,
        /// The vote that did not decide, where there was one.
        tally: Option<Tally>,
    },
}

/// How a debate is resolved without the ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// By what it was resolved, or that it was not.
    pub status: Status,
    /// The position that stands.
    pub resolution: Option<Resolution>,
    /// The vote, where there was one.
    pub tally: Option<Tally>,
}
