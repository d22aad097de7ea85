//! The lead of an agent over the next one, and the probabilities that follow from it.

use std::collections::BTreeMap;

use concord_wire::AgentId;

use super::calibration::{Bonus, Calibration, Participation, sigmoid};
use super::matcher::Candidate;

/// How far an agent may be behind the best to share its lead.
const LEVEL: f64 = 0.1;
/// How far those who share a lead must be before all others. A sentence that is about two things is
/// about nothing that a third agent does.
const APART: f64 = 0.35;
/// How many agents share a lead at most.
pub(super) const SHARING_MAX: usize = 3;

/// Fills in leads, additions and probabilities.
pub(super) fn settle(
    candidates: &mut [Candidate<'_>],
    calibration: &Calibration,
    bonus: &Bonus,
    participations: &BTreeMap<AgentId, Participation>,
) {
    let (best, second) = two_best(candidates);
    let shared = Shared::among(candidates);
    for candidate in candidates.iter_mut() {
        let other = match (best, &shared) {
            (_, Some(shared)) if candidate.score >= shared.least => shared.next,
            (Some((agent, _)), _) if agent == candidate.agent => second,
            (best, _) => best.map(|(_, score)| score),
        };
        candidate.lead = calibration.lead_of(candidate.score, other);
        candidate.probability = sigmoid(calibration.log_odds(candidate.score, candidate.lead));
    }
    let is_sure = |candidate: &Candidate<'_>| candidate.probability >= calibration.threshold;
    let sure = candidates
        .iter()
        .filter(|candidate| is_sure(candidate))
        .count();
    for candidate in candidates.iter_mut() {
        // An agent that takes part yields to another agent that is certain without the addition.
        let yields = sure > usize::from(is_sure(candidate));
        if let Some(participation) = participations.get(candidate.agent).filter(|_| !yields) {
            candidate.bonus = bonus.of(*participation);
            let log_odds = calibration.log_odds(candidate.score, candidate.lead);
            candidate.probability = sigmoid(log_odds + candidate.bonus);
        }
    }
}

/// A lead that several agents share: none of them has to lead over another of them.
struct Shared {
    /// The least score of those who share it.
    least: f64,
    /// The best score of all others; none where there are no others.
    next: Option<f64>,
}

impl Shared {
    /// The lead that agents share, where two or three are nearly level and far before all others, or have the same skill.
    fn among(candidates: &[Candidate<'_>]) -> Option<Self> {
        Self::of_one_skill(candidates).or_else(|| Self::of_level(candidates))
    }

    /// Several agents for the same work are no rivals of each other, however near a third one is.
    fn of_one_skill(candidates: &[Candidate<'_>]) -> Option<Self> {
        let best = candidates
            .iter()
            .max_by(|a, b| a.score.total_cmp(&b.score))?;
        best.skill?;
        // The same name with other texts has another score.
        let is_same = |one: &&Candidate<'_>| one.skill == best.skill && one.score >= best.score;
        let same = candidates.iter().filter(is_same).count();
        let others = candidates.iter().filter(|one| !is_same(one));
        let next = others.map(|other| other.score).max_by(f64::total_cmp);
        let least = best.score;
        (2..=SHARING_MAX)
            .contains(&same)
            .then_some(Self { least, next })
    }

    fn of_level(candidates: &[Candidate<'_>]) -> Option<Self> {
        let mut scores: Vec<f64> = candidates.iter().map(|candidate| candidate.score).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let best = *scores.first()?;
        let is_level = |score: &&f64| best - **score <= LEVEL;
        let sharing = scores.iter().take_while(is_level).count();
        let (least, next) = (*scores.get(sharing.checked_sub(1)?)?, *scores.get(sharing)?);
        let is_shared = (2..=SHARING_MAX).contains(&sharing) && least - next >= APART;
        is_shared.then_some(Self {
            least,
            next: Some(next),
        })
    }
}

/// The agent with the highest score, and the highest score of any other.
fn two_best<'a>(candidates: &[Candidate<'a>]) -> (Option<(&'a AgentId, f64)>, Option<f64>) {
    let mut best: Option<(&AgentId, f64)> = None;
    let mut second: Option<f64> = None;
    for candidate in candidates {
        match best {
            Some((_, score)) if candidate.score <= score => {
                second = Some(second.map_or(candidate.score, |second| second.max(candidate.score)));
            }
            _ => {
                second = best.map(|(_, score)| score);
                best = Some((candidate.agent, candidate.score));
            }
        }
    }
    (best, second)
}
