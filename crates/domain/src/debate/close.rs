//! The end of a round: settled, next round, or vote.

use concord_protocol::event::{CloseReason, DebateEvent, DebateOpened, DebateResolved, ReceivedAnswer, RoundClosed};
use concord_protocol::payload::{Conflict, ConflictOutcome, Resolution, RoundRecord, Status, Tally};
use concord_protocol::{AgentId, DebateId};

use super::decide::asked;
use super::state::DebateState;
use crate::machine::Context;
use crate::vote;

/// Closes the round under way, with the answer that completed it if one did.
pub(super) fn close(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    last: Option<ReceivedAnswer>,
    reason: CloseReason,
) -> DebateEvent {
    let mut after = state.clone();
    if let Some(last) = &last {
        after.take(last);
    }
    let record = record(state, &after, opened);
    let settled = settled(&after, opened);
    if settled.is_none() && state.round < opened.policy.rounds_max {
        let conflict = Conflict { positions: after.positions.clone(), ..opened.conflict.clone() };
        return DebateEvent::RoundClosed(RoundClosed {
            case_id: opened.case_id.clone(),
            last,
            reason,
            record,
            next_round: state.round + 1,
            rounds_max: opened.policy.rounds_max,
            tokens_per_message_max: opened.policy.tokens_per_message_max,
            asked: asked(&opened.policy, &conflict.positions),
            due: context.now.plus_millis(opened.policy.answer_timeout_ms),
            conflict,
        });
    }
    let outcome = outcome(&after, opened, context, record, settled);
    let (case_id, topic) = (opened.case_id.clone(), opened.conflict.topic.clone());
    DebateEvent::Resolved(Box::new(DebateResolved { case_id, last, topic, outcome }))
}

fn record(before: &DebateState, after: &DebateState, opened: &DebateOpened) -> RoundRecord {
    let count = |positions: &[_]| {
        u32::try_from(vote::option_count(opened.conflict.kind, &opened.policy, positions)).unwrap_or(u32::MAX)
    };
    let mut answered: Vec<AgentId> = after.answers.iter().map(|answer| answer.agent_id.clone()).collect();
    answered.sort();
    RoundRecord {
        round: before.round,
        silent: after.asked.iter().filter(|agent| !answered.contains(agent)).cloned().collect(),
        answered,
        agreements: u32::try_from(after.answers.iter().filter(|answer| answer.agrees).count()).unwrap_or(u32::MAX),
        positions_before: count(&before.round_positions),
        positions_after: count(&after.positions),
    }
}

/// The position that the round has settled on.
fn settled(after: &DebateState, opened: &DebateOpened) -> Option<Resolution> {
    let answers = after.answers.len();
    if answers < opened.policy.answers_min as usize {
        return None;
    }
    let lead = leading(after, opened)?;
    let all_agree = lead.supporters.len() == after.positions.len();
    let agreements = after.answers.iter().filter(|answer| answer.agrees).count();
    (all_agree || agreements + 1 >= answers).then_some(lead)
}

/// The position that more parties hold than any other.
fn leading(after: &DebateState, opened: &DebateOpened) -> Option<Resolution> {
    let options = vote::options_of(opened.conflict.kind, &opened.policy, &after.positions);
    let mut holders: Vec<Vec<usize>> = vec![Vec::new(); options.iter().max().map_or(0, |last| last + 1)];
    for (index, option) in options.into_iter().enumerate() {
        if let Some(list) = holders.get_mut(option) {
            list.push(index);
        }
    }
    let most = holders.iter().map(Vec::len).max()?;
    let mut leaders = holders.iter().filter(|list| list.len() == most);
    let (leader, rival) = (leaders.next()?, leaders.next());
    if rival.is_some() {
        return None;
    }
    let held: Vec<_> = leader.iter().filter_map(|index| after.positions.get(*index)).collect();
    let first = held.first()?;
    Some(Resolution {
        position: first.position.clone(),
        value: first.value.clone(),
        supporters: held.iter().map(|position| position.agent_id.clone()).collect(),
    })
}

fn outcome(
    after: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    record: RoundRecord,
    settled: Option<Resolution>,
) -> ConflictOutcome {
    let conflict_id: DebateId = opened.conflict.conflict_id.clone();
    let mut rounds = after.rounds.clone();
    // A debate without rounds asked nobody: there is no round to report.
    if opened.policy.rounds_max > 0 {
        rounds.push(record);
    }
    let (status, resolution, tally) = ending(after, opened, settled);
    ConflictOutcome {
        conflict_id,
        status,
        resolution,
        tally,
        rounds,
        positions: after.positions.clone(),
        positions_omitted: 0,
        resolved_at: context.now,
    }
}

/// How a debate ends: what it settled on, else what the vote chooses.
fn ending(
    after: &DebateState,
    opened: &DebateOpened,
    settled: Option<Resolution>,
) -> (Status, Option<Resolution>, Option<Tally>) {
    if settled.is_some() {
        return (Status::Discussion, settled, None);
    }
    let tally = vote::tally(opened.conflict.kind, &opened.policy, &after.positions);
    let chosen = chosen(&tally);
    (if chosen.is_some() { Status::Vote } else { Status::Unresolved }, chosen, Some(tally))
}

/// How a debate in this state ends, decided again from its answers and positions.
pub(crate) fn ending_again(after: &DebateState, opened: &DebateOpened) -> (Status, Option<Resolution>, Option<Tally>) {
    ending(after, opened, settled(after, opened))
}

/// What a tally has chosen.
fn chosen(tally: &Tally) -> Option<Resolution> {
    let winner = tally.winner.as_ref()?;
    let option = tally.options.iter().find(|option| option.position_id == *winner)?;
    Some(Resolution {
        position: option.position.clone(),
        value: option.value.clone(),
        supporters: option.voters.iter().map(|voter| voter.agent_id.clone()).collect(),
    })
}
