//! The end of a round: the next round, the end of the debate, or the ladder.

use concord_events::{
    CloseReason, DebateEvent, DebateOpened, DebateResolved, DiscussionEnded, EscalationReason,
    ReceivedAnswer, RoundClosed,
};
use concord_wire::payload::{
    Conflict, ConflictOutcome, Level, Position, Resolution, RoundRecord, Status, Tally,
};

use super::discussion::Discussion;
use super::escalation::{self, Escalation};
use super::outcome_builder;
use super::state::DebateState;
use super::strategy::{self, Conclusion, Ending};
use crate::machine::Context;

/// A round that ends: with the answer that completed it if one did, and why.
struct EndedRound {
    last: Option<ReceivedAnswer>,
    reason: CloseReason,
}

/// Closes the round under way, with the answer that completed it if one did.
pub(super) fn close(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    last: Option<ReceivedAnswer>,
    reason: CloseReason,
) -> DebateEvent {
    debug_assert!(
        state.outcome.is_none() && state.ladder.is_none(),
        "only a debate that is discussed closes a round"
    );
    let discussion = Discussion::after(state, opened, last.as_ref());
    let record = discussion.record(state);
    let settled = discussion.settled();
    let round = EndedRound { last, reason };
    let rounds_max = strategy::rounds_max(&opened.policy, &opened.terms);
    if settled.is_none() && state.round < rounds_max {
        return next_round(state, opened, context, discussion, record, round);
    }
    let mut rounds = state.rounds.clone();
    // A debate without rounds asked nobody: there is no round to report.
    if rounds_max > 0 {
        rounds.push(record);
    }
    match conclude(&discussion, settled) {
        Conclusion::Resolve(ending) => {
            let outcome = outcome(opened, context, discussion, rounds, ending);
            DebateEvent::Resolved(Box::new(DebateResolved {
                case_id: opened.case_id.clone(),
                last: round.last,
                topic: opened.conflict.topic.clone(),
                outcome,
                heard: None,
                ruling: None,
            }))
        }
        Conclusion::Escalate { reason, tally } => {
            escalate(opened, context, &discussion, rounds, round, reason, tally)
        }
    }
}

/// What follows from a discussion whose last round has ended: what the parties settled, else what
/// the strategy says. What all hold in the end needs nobody else to decide it.
fn conclude(discussion: &Discussion<'_>, settled: Option<Resolution>) -> Conclusion {
    let by_discussion = |resolution| {
        Conclusion::Resolve(Ending {
            status: Status::Discussion,
            resolution: Some(resolution),
            tally: None,
        })
    };
    if let Some(settled) = settled {
        return by_discussion(settled);
    }
    let opened = discussion.opened();
    match strategy::of_debate(&opened.policy, &opened.terms).conclude(discussion) {
        Conclusion::Resolve(ending) => Conclusion::Resolve(ending),
        escalates @ Conclusion::Escalate { .. } => {
            discussion.agreed().map_or(escalates, by_discussion)
        }
    }
}

/// Decides again what follows from the discussion of a debate whose answers have all been applied.
pub(super) fn conclude_again(state: &DebateState, opened: &DebateOpened) -> Conclusion {
    let discussion = Discussion::of_state(state, opened);
    let settled = discussion.settled();
    conclude(&discussion, settled)
}

/// Counts the votes of a debate again whose answers have all been applied.
pub(super) fn tally_again(state: &DebateState, opened: &DebateOpened) -> Tally {
    Discussion::of_state(state, opened).tally()
}

fn next_round(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    discussion: Discussion<'_>,
    record: RoundRecord,
    ended: EndedRound,
) -> DebateEvent {
    let conflict = with_positions(&opened.conflict, discussion.into_positions());
    DebateEvent::RoundClosed(RoundClosed {
        case_id: opened.case_id.clone(),
        last: ended.last,
        reason: ended.reason,
        record,
        next_round: state.round + 1,
        rounds_max: opened.policy.rounds_max,
        tokens_per_message_max: opened.policy.tokens_per_message_max,
        asked: strategy::asked(&opened.policy, &opened.terms, &conflict.positions),
        due: context.now.plus_millis(opened.policy.answer_timeout_ms),
        added_context: opened.terms.added_context.clone(),
        conflict,
    })
}

fn outcome(
    opened: &DebateOpened,
    context: &Context,
    discussion: Discussion<'_>,
    rounds: Vec<RoundRecord>,
    ending: Ending,
) -> ConflictOutcome {
    ConflictOutcome {
        conflict_id: opened.conflict.conflict_id.clone(),
        status: ending.status,
        resolution: ending.resolution,
        tally: ending.tally,
        rounds,
        positions: discussion.into_positions(),
        positions_omitted: 0,
        resolved_at: context.now,
        level: None,
        mediation: None,
        ruled_by: None,
        provisional: None,
        debated_again_as: None,
        dependants: outcome_builder::dependants(opened),
    }
}

fn escalate(
    opened: &DebateOpened,
    context: &Context,
    discussion: &Discussion<'_>,
    rounds: Vec<RoundRecord>,
    ended: EndedRound,
    reason: EscalationReason,
    tally: Option<Tally>,
) -> DebateEvent {
    let ended = DiscussionEnded {
        last: ended.last,
        reason: ended.reason,
        rounds,
        tally,
    };
    let escalation = Escalation {
        from: Level::Agents,
        reason,
        positions: discussion.positions(),
        message: None,
        discussion: Some(ended),
        mediation: None,
    };
    escalation::escalate(opened, context, escalation)
}

/// The conflict with these positions in place of those it was opened with.
fn with_positions(conflict: &Conflict, positions: Vec<Position>) -> Conflict {
    Conflict {
        conflict_id: conflict.conflict_id.clone(),
        kind: conflict.kind,
        topic: conflict.topic.clone(),
        subject: conflict.subject.clone(),
        weight: conflict.weight,
        positions,
        positions_omitted: conflict.positions_omitted,
    }
}
