//! Phase 5: the vote. A tally holds every weight, so that anyone can count again and get the same
//! result.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use concord_wire::AgentId;
use concord_wire::payload::{
    Conflict, ConflictType, Credibility, Position, Tally, VoteOption, Voter,
};
use concord_wire::policy::{Policy, VoteRule};
use serde_json::Value;

use crate::rules::canonical::{Canonical, group};
use crate::rules::conflict_type::rule_of;
use crate::rules::conservative;
use crate::rules::credibility::{DATA_POINTS_MIN, log_odds};

/// The credibility of voters, from their track records; empty where the policy does not use it.
pub type Credibilities = BTreeMap<AgentId, Credibility>;

/// What the positions that are compared are about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The type of the conflict.
    pub kind: ConflictType,
    /// Its subject, as in [`Conflict::subject`].
    pub subject: &'a str,
    /// The policy of the case.
    pub policy: &'a Policy,
}

impl<'a> About<'a> {
    /// What the positions in a conflict are about.
    pub fn conflict(conflict: &'a Conflict, policy: &'a Policy) -> Self {
        Self {
            kind: conflict.kind,
            subject: &conflict.subject,
            policy,
        }
    }

    /// `Greater` when `a` is the more cautious option.
    fn caution(self, a: &VoteOption, b: &VoteOption) -> Ordering {
        let (a, b) = (a.value.as_ref(), b.value.as_ref());
        conservative::compare(self.kind, self.subject, self.policy, a, b)
    }
}

/// The number of the option of each position, from 0, in the order of the positions. Only claimed
/// facts and estimates are compared with tolerance: a score of 70 is not the same as one of 70.3.
pub fn options_of(about: About<'_>, positions: &[Position]) -> Vec<usize> {
    let rule = rule_of(about.kind);
    let comparable: Vec<Canonical> = positions
        .iter()
        .map(|position| rule.comparable(about.policy, position))
        .collect();
    let options = group(&comparable, &rule.allowance(about.policy, about.subject));
    debug_assert!(
        options.len() == positions.len(),
        "every position has an option"
    );
    options
}

/// How many different options the positions make.
pub fn option_count(about: About<'_>, positions: &[Position]) -> usize {
    count_of(&options_of(about, positions))
}

fn count_of(options: &[usize]) -> usize {
    options.iter().max().map_or(0, |last| last + 1)
}

/// The weight that a rule gives to a vote with this stated confidence.
pub fn weight(rule: VoteRule, confidence: f64) -> f64 {
    match rule {
        VoteRule::Confidence => confidence,
        VoteRule::Majority | VoteRule::Unanimous => 1.0,
        // The stated confidence stands in where no track record is known.
        VoteRule::Reconcile | VoteRule::Credibility => reconcile(confidence),
    }
}

/// The weight of a stated confidence by a rule. Under [`VoteRule::Credibility`] it follows from the
/// track record instead, where that has enough data ([`DATA_POINTS_MIN`]).
pub fn calibrated_weight(
    rule: VoteRule,
    confidence: f64,
    credibility: Option<&Credibility>,
    options: usize,
) -> f64 {
    let known = credibility.filter(|known| known.data_points >= DATA_POINTS_MIN);
    match (rule, known) {
        (VoteRule::Credibility, Some(known)) => log_odds(known.score, options),
        _ => weight(rule, confidence),
    }
}

/// The weight of one vote.
fn weight_of(
    rule: VoteRule,
    position: &Position,
    credibility: &Credibilities,
    options: usize,
) -> f64 {
    let known = credibility.get(&position.agent_id);
    calibrated_weight(rule, position.confidence, known, options)
}

/// ReConcile's rescaling of stated confidence (Chen, Saha, Bansal 2023, section 3.3).
fn reconcile(confidence: f64) -> f64 {
    if confidence >= 1.0 {
        1.0
    } else if confidence >= 0.9 {
        0.8
    } else if confidence >= 0.8 {
        0.5
    } else if confidence > 0.6 {
        0.3
    } else {
        0.1
    }
}

/// Counts the votes.
///
/// The winner is the option with the greatest weight. A tie goes to the more cautious option
/// ([`conservative`]), then to the lower `position_id`. [`VoteRule::Unanimous`] chooses only when
/// there is one option.
pub fn tally(about: About<'_>, positions: &[Position], credibility: &Credibilities) -> Tally {
    let rule = about.policy.vote_rule;
    let options = options(about, positions, credibility);
    let total: f64 = options.iter().map(|option| option.weight).sum();
    let mut ranked: Vec<&VoteOption> = options.iter().collect();
    ranked.sort_by(|a, b| better(about, a, b));
    let (first, second) = (ranked.first(), ranked.get(1));
    let allowed = rule != VoteRule::Unanimous || options.len() == 1;
    let winner = first
        .filter(|_| allowed)
        .map(|option| option.position_id.clone());
    let lead = first.map_or(0.0, |a| a.weight) - second.map_or(0.0, |b| b.weight);
    let tied = first
        .zip(second)
        .filter(|(a, b)| a.weight.total_cmp(&b.weight) == Ordering::Equal);
    let tie_broken_by = tied.filter(|_| winner.is_some()).map(|(a, b)| {
        let by_caution = about.caution(a, b) != Ordering::Equal;
        if by_caution { "caution" } else { "position_id" }.to_owned()
    });
    let margin = if total > 0.0 { lead / total } else { 0.0 };
    debug_assert!(
        winner.is_none() || margin >= 0.0 && margin.is_finite(),
        "the winner leads by a margin, not {margin}"
    );
    Tally {
        rule,
        winner,
        margin,
        tie_broken_by,
        options: options.clone(),
    }
}

/// The order of options, the best first.
fn better(about: About<'_>, a: &VoteOption, b: &VoteOption) -> Ordering {
    b.weight
        .total_cmp(&a.weight)
        .then_with(|| about.caution(b, a))
        .then_with(|| position_number(a).cmp(&position_number(b)))
}

fn position_number(option: &VoteOption) -> usize {
    option
        .position_id
        .trim_start_matches('p')
        .parse()
        .unwrap_or(usize::MAX)
}

fn options(
    about: About<'_>,
    positions: &[Position],
    credibility: &Credibilities,
) -> Vec<VoteOption> {
    let numbers = options_of(about, positions);
    let count = count_of(&numbers);
    let mut ordered: Vec<(usize, &Position)> = numbers.into_iter().zip(positions).collect();
    // Voters in the order of their ids: the sums are then the same whoever counts.
    ordered.sort_by(|(a, p), (b, q)| a.cmp(b).then_with(|| p.agent_id.cmp(&q.agent_id)));
    let mut options: Vec<VoteOption> = Vec::new();
    for (number, position) in ordered {
        let vote = weight_of(about.policy.vote_rule, position, credibility, count);
        let voter = Voter {
            agent_id: position.agent_id.clone(),
            confidence: position.confidence,
            weight: vote,
        };
        match options.get_mut(number) {
            Some(option) => {
                option.weight += vote;
                option.voters.push(voter);
            }
            None => options.push(VoteOption {
                position_id: format!("p{}", number + 1),
                position: position.position.clone(),
                value: position.value.clone().filter(|value| *value != Value::Null),
                weight: vote,
                voters: vec![voter],
            }),
        }
    }
    for option in &mut options {
        // 0.6 + 0.3 is a little less than 0.9 in binary; a tie must not be decided by that.
        option.weight = (option.weight * 1e9).round() / 1e9;
    }
    options
}

#[cfg(test)]
mod tests;
