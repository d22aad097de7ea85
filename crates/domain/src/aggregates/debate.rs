//! A debate: the life of one conflict, from rounds of discussion to its resolution. Owned by the
//! debate facilitator.
//!
//! | state     | Open    | Answer of an asked party           | other Answer                          | round due       |
//! |-----------|---------|------------------------------------|---------------------------------------|-----------------|
//! | new       | opened  | refused: unknown debate            | refused                               | -               |
//! | round n   | ignored | answered; the last one closes the  | answer_set_aside (late, repeated), or | closes the      |
//! |           |         | round: round_closed or resolved    | refused (no party, not asked)         | round           |
//! | resolved  | ignored | answer_set_aside (late)            | answer_set_aside or refused           | ignored         |
//!
//! After its end, what proved right can be reported once ([`ground_truth`]); before that a report
//! is refused.
//!
//! **When a round settles a conflict.** The specification's rule, `agreements >= answers - 1`, is
//! met by no answer and by one. Here a round settles when at least `answers_min` (2 or more)
//! parties answered and either all parties hold the same position, or all answers but one agreed
//! with a peer and one position is held by more parties than any other. So two parties that
//! politely adopt each other's position have settled nothing. After the last round, what all hold
//! who held different positions in the beginning stands, however few have answered, in place of
//! going up the ladder.
//!
//! **Who hears an answer.** Each answer of a round is told to all other parties, where the policy
//! says so (`hear_answers`): as an agreement to those with whose position it agrees, else as a
//! disagreement. Being told asks for nothing; the next question shows every position anyway.
//!
//! **Before the first round**, where the policy says so (`memory_sync_ms`), the parties are asked to
//! write what they know into shared memory. When all have acknowledged, or the time is over,
//! the debate is `synced`: that event is the snapshot that its messages refer to ([`memory_sync`]).
//! A challenge is presented at once, and its snapshot is its `opened`.
//!
//! What follows when the rounds settle nothing is the [strategy](strategy) of the debate: a vote,
//! or the [ladder](escalation). A challenge is on the ladder from its beginning.
//!
//! Each module uses only modules before it: `input`, `state`, `admission`, `position`,
//! `discussion`, `outcome_builder`, `escalation`, `signed`, `strategy`, `rounds`, `ground_truth`, `memory_sync`,
//! `decide`.

use concord_events::{Deadline, DebateEvent, StoredEvent};
use concord_wire::payload::Snapshot;
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Timestamp, Token};

mod admission;
mod decide;
mod discussion;
mod effects;
mod escalation;
mod ground_truth;
mod input;
mod lifecycle;
mod memory_sync;
mod outcome_builder;
mod position;
mod recount;
mod rounds;
mod signed;
mod state;
pub mod strategy;
pub mod verdicts;

pub use crate::rules::conflict_type::{value_wanted, valued};
pub use discussion::Discussion;
#[cfg(test)]
pub(crate) use escalation::tests::stories as ladder_stories;
pub use escalation::{Sources, background, believed};
pub use input::{
    AnswerMessage, Command, DebateInput, LadderMessage, MessageBody, Opening, OutcomeMessage,
    PriorKnowledge,
};
pub use recount::counted_vote;
pub(crate) use signed::{review_differences, ruling_differences};
pub use state::{DebateState, Ladder, MemorySyncState, RoundAnswer};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

/// The state machine of a debate.
#[derive(Debug, Clone, Copy)]
pub struct DebateMachine;

/// The name of the deadline of a round.
pub fn round_name(round: u32) -> Token {
    Token::numbered("round", round)
}

/// The deadline of a round, in a list.
fn round_deadline(round: u32, due: Option<Timestamp>) -> Vec<Deadline> {
    due.map(|due| Deadline {
        name: round_name(round),
        due,
    })
    .into_iter()
    .collect()
}

impl Machine for DebateMachine {
    type State = DebateState;
    type Event = DebateEvent;
    type Input = DebateInput;

    fn decide(
        state: &DebateState,
        context: &Context,
        input: &DebateInput,
    ) -> Decision<DebateEvent> {
        decide::decide(state, context, input)
    }

    fn apply(state: &mut DebateState, record: StoredEvent<DebateEvent>) {
        state.apply(record);
    }

    fn is_taken(state: &DebateState, id: &MessageId, sender: &AgentId) -> bool {
        state.is_taken(id, sender)
    }

    fn deadlines(state: &DebateState) -> Vec<Deadline> {
        if state.outcome.is_some() {
            return Vec::new();
        }
        match (&state.sync, &state.ladder) {
            (Some(sync), _) => memory_sync::deadline(sync.until),
            (None, Some(ladder)) => ladder.waits_for.clone(),
            (None, None) => round_deadline(state.round, state.due),
        }
    }

    fn deadlines_after(state: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<Deadline> {
        match &record.event {
            DebateEvent::Opened(opened) if opened.due.is_none() => opened.waits_for.clone(),
            DebateEvent::Opened(opened) if opened.sync_until.is_some() => opened
                .sync_until
                .map(memory_sync::deadline)
                .unwrap_or_default(),
            DebateEvent::Synced(synced) => round_deadline(1, Some(synced.due)),
            DebateEvent::Opened(opened) => round_deadline(1, opened.due),
            DebateEvent::RoundClosed(closed) => round_deadline(closed.next_round, Some(closed.due)),
            DebateEvent::Resolved(_) | DebateEvent::AwaitsGate(_) => Vec::new(),
            DebateEvent::Acknowledged(acknowledged) => acknowledged.waits_for.clone(),
            DebateEvent::EvidenceGiven(given) => given.waits_for.clone(),
            DebateEvent::Escalated(escalated) => escalated.waits_for.clone(),
            DebateEvent::OpinionGiven(given) => given.waits_for.clone(),
            DebateEvent::Reminded(reminded) => reminded.waits_for.clone(),
            DebateEvent::FellBack(fell) => fell.waits_for.clone(),
            DebateEvent::DeadlinesMoved(moved) => moved.waits_for.clone(),
            DebateEvent::Answered(_)
            | DebateEvent::Flushed(_)
            | DebateEvent::AnswerSetAside(_)
            | DebateEvent::Clarified(_)
            | DebateEvent::Assigned(_)
            | DebateEvent::Unassigned(_)
            | DebateEvent::RulingSetAside(_)
            | DebateEvent::OutcomeKnown(_) => Self::deadlines(state),
        }
    }

    fn effects(record: &StoredEvent<DebateEvent>) -> Vec<Effect> {
        let mut list = effects::effects(record);
        if let Ok(debate_id) = DebateId::new(record.meta.id.as_str()) {
            list.extend(escalation::effects(&debate_id, &record.event));
            // Last, so that the other effects have the places that earlier versions give them.
            list.extend(effects::answer_told(&debate_id, &record.event));
        }
        list
    }

    fn case_of(record: &StoredEvent<DebateEvent>) -> Option<CaseId> {
        match &record.event {
            DebateEvent::Opened(opened) => Some(opened.case_id.clone()),
            DebateEvent::Flushed(flushed) => Some(flushed.case_id.clone()),
            DebateEvent::Synced(synced) => Some(synced.case_id.clone()),
            DebateEvent::AnswerSetAside(aside) => Some(aside.case_id.clone()),
            DebateEvent::RoundClosed(closed) => Some(closed.case_id.clone()),
            DebateEvent::Resolved(resolved) => Some(resolved.case_id.clone()),
            DebateEvent::Acknowledged(acknowledged) => Some(acknowledged.case_id.clone()),
            DebateEvent::Clarified(clarified) => Some(clarified.case_id.clone()),
            DebateEvent::EvidenceGiven(given) => Some(given.case_id.clone()),
            DebateEvent::Escalated(escalated) => Some(escalated.case_id.clone()),
            DebateEvent::OpinionGiven(given) => Some(given.case_id.clone()),
            DebateEvent::Assigned(assigned) => Some(assigned.case_id.clone()),
            DebateEvent::Unassigned(unassigned) => Some(unassigned.case_id.clone()),
            DebateEvent::Reminded(reminded) => Some(reminded.case_id.clone()),
            DebateEvent::RulingSetAside(aside) => Some(aside.case_id.clone()),
            DebateEvent::FellBack(fell) => Some(fell.case_id.clone()),
            DebateEvent::AwaitsGate(awaits) => Some(awaits.case_id.clone()),
            DebateEvent::DeadlinesMoved(moved) => Some(moved.case_id.clone()),
            DebateEvent::OutcomeKnown(known) => Some(known.case_id.clone()),
            DebateEvent::Answered(answered) => answered.case_id.clone(),
        }
    }

    fn memory_snapshot(state: &DebateState) -> Option<Snapshot> {
        state.snapshot
    }

    fn snapshot_of(record: &StoredEvent<DebateEvent>) -> Option<Snapshot> {
        state::taken_by(record).or(record.meta.memory_snapshot)
    }

    fn creates(input: &DebateInput) -> bool {
        matches!(input, DebateInput::Open(_))
    }

    const MUST_END: bool = true;

    fn begins(event: &DebateEvent) -> bool {
        matches!(event, DebateEvent::Opened(_))
    }

    fn ends(event: &DebateEvent) -> bool {
        matches!(event, DebateEvent::Resolved(_))
    }

    fn may_follow_end(event: &DebateEvent) -> bool {
        lifecycle::may_follow_end(event)
    }

    fn may_rest(state: &DebateState) -> bool {
        lifecycle::may_rest(state)
    }

    fn misplaced(before: &DebateState, event: &DebateEvent) -> Option<String> {
        lifecycle::misplaced(before, event)
    }

    fn recount(after: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<String> {
        recount::recount(after, record)
    }
}

#[cfg(test)]
pub(crate) mod tests;
