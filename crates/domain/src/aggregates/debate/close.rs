//! The end of a round: settled, next round, or vote.

use concord_events::{
    CloseReason, DebateEvent, DebateOpened, DebateResolved, DiscussionEnded, EscalationReason,
    ReceivedAnswer, RoundClosed,
};
use concord_wire::payload::{
    Conflict, ConflictOutcome, Level, Position, Resolution, RoundRecord, Status, Tally,
};
use concord_wire::policy::ConflictHandling;
use concord_wire::{AgentId, DebateId};

use super::decide::asked;
use super::state::{DebateState, Heard};
use crate::aggregates::escalation::{self, Climb};
use crate::machine::Context;
use crate::rules::vote;

/// A debate when a round has ended: what the parties hold and how they answered, the last answer included.
pub(crate) struct Ended<'a> {
    opened: &'a DebateOpened,
    answers: Vec<Heard>,
    positions: Vec<Position>,
}

impl<'a> Ended<'a> {
    fn new(state: &DebateState, opened: &'a DebateOpened, last: Option<&ReceivedAnswer>) -> Self {
        let mut answers = state.answers.clone();
        answers.extend(last.map(|last| Heard {
            agent_id: last.agent_id.clone(),
            agrees: last.agrees,
        }));
        let moved = |held: &Position| {
            last.filter(|last| last.agent_id == held.agent_id)
                .map(|last| &last.position)
        };
        let positions = state
            .positions
            .iter()
            .map(|held| moved(held).unwrap_or(held).clone())
            .collect();
        Self {
            opened,
            answers,
            positions,
        }
    }

    /// As it stands when every answer has been applied.
    pub(crate) fn of_state(state: &DebateState, opened: &'a DebateOpened) -> Self {
        Self::new(state, opened, None)
    }
}

/// Closes the round under way, with the answer that completed it if one did.
pub(super) fn close(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    last: Option<ReceivedAnswer>,
    reason: CloseReason,
) -> DebateEvent {
    let ended = Ended::new(state, opened, last.as_ref());
    let record = ended.record(state);
    let settled = ended.settled();
    if settled.is_none() && state.round < opened.policy.rounds_max {
        let conflict = with_positions(&opened.conflict, ended.positions);
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
    let mut rounds = state.rounds.clone();
    // A debate without rounds asked nobody: there is no round to report.
    if opened.policy.rounds_max > 0 {
        rounds.push(record);
    }
    let (status, resolution, tally) = ended.ending(settled);
    if let Some(tally) = climbs(opened, status, tally.as_ref()) {
        let discussion = Some(DiscussionEnded {
            last,
            reason,
            rounds,
            tally: tally.cloned(),
        });
        let why = if tally.is_some() {
            EscalationReason::NarrowVote
        } else {
            EscalationReason::NotSettled
        };
        let (from, positions) = (Level::Agents, &ended.positions);
        let climb = Climb {
            from,
            reason: why,
            positions,
            heard: None,
            discussion,
            mediation: None,
        };
        return escalation::climb(opened, context, climb);
    }
    let conflict_id: DebateId = opened.conflict.conflict_id.clone();
    let (positions, resolved_at) = (ended.positions, context.now);
    let outcome = ConflictOutcome {
        conflict_id,
        status,
        resolution,
        tally,
        rounds,
        positions,
        positions_omitted: 0,
        resolved_at,
        level: None,
        mediation: None,
        ruled_by: None,
        provisional: None,
        debated_again_as: None,
    };
    let (case_id, topic) = (opened.case_id.clone(), opened.conflict.topic.clone());
    DebateEvent::Resolved(Box::new(DebateResolved {
        case_id,
        last,
        topic,
        outcome,
        heard: None,
    }))
}

/// Whether a discussion that ends like this climbs the ladder, and with which vote: by the policy, what the parties did
/// not settle themselves, or what the vote settled too narrowly.
fn climbs<'a>(
    opened: &DebateOpened,
    status: Status,
    tally: Option<&'a Tally>,
) -> Option<Option<&'a Tally>> {
    if status == Status::Discussion {
        return None;
    }
    match opened.policy.conflict_handling {
        ConflictHandling::Vote => None,
        ConflictHandling::Ladder => Some(None),
        ConflictHandling::VoteThenLadder => {
            let narrow = |tally: &&Tally| {
                tally.winner.is_none() || tally.margin < opened.policy.ladder.vote_margin_min
            };
            tally.filter(narrow).map(Some)
        }
    }
}

/// The conflict as it stands with these positions in place of those it was opened with.
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

impl Ended<'_> {
    fn record(&self, before: &DebateState) -> RoundRecord {
        let count = |positions: &[Position]| {
            let options =
                vote::option_count(self.opened.conflict.kind, &self.opened.policy, positions);
            u32::try_from(options).unwrap_or(u32::MAX)
        };
        let mut answered: Vec<AgentId> = self
            .answers
            .iter()
            .map(|answer| answer.agent_id.clone())
            .collect();
        answered.sort();
        RoundRecord {
            round: before.round,
            silent: before
                .asked
                .iter()
                .filter(|agent| !answered.contains(agent))
                .cloned()
                .collect(),
            answered,
            agreements: u32::try_from(self.answers.iter().filter(|answer| answer.agrees).count())
                .unwrap_or(u32::MAX),
            positions_before: count(&before.round_positions),
            positions_after: count(&self.positions),
        }
    }

    /// The position that the round has settled on.
    fn settled(&self) -> Option<Resolution> {
        let answers = self.answers.len();
        if answers < self.opened.policy.answers_min as usize {
            return None;
        }
        let lead = self.leading()?;
        let all_agree = lead.supporters.len() == self.positions.len();
        let agreements = self.answers.iter().filter(|answer| answer.agrees).count();
        (all_agree || agreements + 1 >= answers).then_some(lead)
    }

    /// The position that more parties hold than any other.
    fn leading(&self) -> Option<Resolution> {
        let options = vote::options_of(
            self.opened.conflict.kind,
            &self.opened.policy,
            &self.positions,
        );
        let mut holders: Vec<Vec<usize>> =
            vec![Vec::new(); options.iter().max().map_or(0, |last| last + 1)];
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
        let held: Vec<_> = leader
            .iter()
            .filter_map(|index| self.positions.get(*index))
            .collect();
        let first = held.first()?;
        Some(Resolution {
            position: first.position.clone(),
            value: first.value.clone(),
            supporters: held
                .iter()
                .map(|position| position.agent_id.clone())
                .collect(),
        })
    }

    /// How a debate ends: what it settled on, else what the vote chooses.
    fn ending(&self, settled: Option<Resolution>) -> (Status, Option<Resolution>, Option<Tally>) {
        if settled.is_some() {
            return (Status::Discussion, settled, None);
        }
        let tally = vote::tally(
            self.opened.conflict.kind,
            &self.opened.policy,
            &self.positions,
            &self.opened.credibility,
        );
        let chosen = chosen(&tally);
        (
            if chosen.is_some() {
                Status::Vote
            } else {
                Status::Unresolved
            },
            chosen,
            Some(tally),
        )
    }

    /// How the debate ends, decided again from its answers and positions.
    pub(crate) fn ending_again(&self) -> (Status, Option<Resolution>, Option<Tally>) {
        self.ending(self.settled())
    }
}

/// What a tally has chosen.
fn chosen(tally: &Tally) -> Option<Resolution> {
    let winner = tally.winner.as_ref()?;
    let option = tally
        .options
        .iter()
        .find(|option| option.position_id == *winner)?;
    Some(Resolution {
        position: option.position.clone(),
        value: option.value.clone(),
        supporters: option
            .voters
            .iter()
            .map(|voter| voter.agent_id.clone())
            .collect(),
    })
}
