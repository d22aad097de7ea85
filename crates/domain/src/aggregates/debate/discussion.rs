//! The discussion of a debate at the end of a round: what the parties answered, and what they hold
//! now.

use concord_events::{DebateOpened, ReceivedAnswer};
use concord_wire::AgentId;
use concord_wire::payload::{Position, Resolution, RoundRecord, Tally};

use super::state::{DebateState, RoundAnswer};
use crate::rules::vote;

/// The answers of the round and the positions after it, with the last answer included.
#[derive(Debug)]
pub struct Discussion<'a> {
    opened: &'a DebateOpened,
    answers: Vec<RoundAnswer>,
    positions: Vec<Position>,
}

impl<'a> Discussion<'a> {
    /// The discussion after `last`, an answer that is not applied to the state yet.
    pub(super) fn after(
        state: &DebateState,
        opened: &'a DebateOpened,
        last: Option<&ReceivedAnswer>,
    ) -> Self {
        let mut answers = state.answers.clone();
        answers.extend(last.map(|last| RoundAnswer {
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

    /// The discussion when every answer has been applied.
    pub(super) fn of_state(state: &DebateState, opened: &'a DebateOpened) -> Self {
        Self::after(state, opened, None)
    }

    /// How the debate was opened.
    pub fn opened(&self) -> &DebateOpened {
        self.opened
    }

    /// What each party holds now, ordered by agent id.
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// The positions, without a copy.
    pub(super) fn into_positions(self) -> Vec<Position> {
        self.positions
    }

    fn about(&self) -> vote::About<'_> {
        vote::About::conflict(&self.opened.conflict, &self.opened.policy)
    }

    /// Counts the votes of the parties.
    pub fn tally(&self) -> Tally {
        vote::tally(self.about(), &self.positions, &self.opened.credibility)
    }

    /// The record of the round; `before` is the debate's state without the last answer.
    pub(super) fn record(&self, before: &DebateState) -> RoundRecord {
        let options = |positions: &[Position]| {
            let options = vote::option_count(self.about(), positions);
            u32::try_from(options).unwrap_or(u32::MAX)
        };
        let mut answered: Vec<AgentId> = self
            .answers
            .iter()
            .map(|answer| answer.agent_id.clone())
            .collect();
        answered.sort();
        let silent: Vec<AgentId> = before
            .asked
            .iter()
            .filter(|agent| !answered.contains(agent))
            .cloned()
            .collect();
        debug_assert!(
            answered.len() + silent.len() == before.asked.len(),
            "only those who were asked answer, and each once"
        );
        RoundRecord {
            round: before.round,
            silent,
            answered,
            agreements: u32::try_from(self.agreements()).unwrap_or(u32::MAX),
            positions_before: options(&before.round_positions),
            positions_after: options(&self.positions),
        }
    }

    /// The position that the round has settled on; the rule is in the module `debate`.
    pub(super) fn settled(&self) -> Option<Resolution> {
        let answers = self.answers.len();
        if answers < self.opened.policy.answers_min as usize {
            return None;
        }
        let lead = self.leading()?;
        (self.all_hold(&lead) || self.agreements() + 1 >= answers).then_some(lead)
    }

    /// The position that all parties hold now, where they held different ones when the debate was opened: nobody disagrees any more,
    /// however few have answered.
    pub(super) fn agreed(&self) -> Option<Resolution> {
        let opened_with = &self.opened.conflict.positions;
        let has_differed = vote::option_count(self.about(), opened_with) > 1;
        let lead = self.leading().filter(|lead| self.all_hold(lead));
        lead.filter(|_| has_differed)
    }

    fn all_hold(&self, lead: &Resolution) -> bool {
        lead.supporters.len() == self.positions.len()
    }

    fn agreements(&self) -> usize {
        self.answers.iter().filter(|answer| answer.agrees).count()
    }

    /// The position that more parties hold than any other.
    fn leading(&self) -> Option<Resolution> {
        let options = vote::options_of(self.about(), &self.positions);
        let mut holders: Vec<Vec<usize>> =
            vec![Vec::new(); options.iter().max().map_or(0, |last| last + 1)];
        for (index, option) in options.into_iter().enumerate() {
            if let Some(list) = holders.get_mut(option) {
                list.push(index);
            }
        }
        let most = holders.iter().map(Vec::len).max()?;
        let mut leaders = holders.iter().filter(|list| list.len() == most);
        let leader = leaders.next()?;
        if leaders.next().is_some() {
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
}
