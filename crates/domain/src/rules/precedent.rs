//! Which debates are like one another, and what earlier ones say about a later one.
//!
//! Two debates are alike when the type of their conflict, the policy of their cases and their domain are the same, and their
//! subjects have most words in common: of the words of both, three in five. In which circumstances the cases were judged says
//! how far the earlier ones can be relied on, not whether they are alike.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{DebateOpened, OutcomeKnown, ReceivedFinding};
use concord_wire::AgentId;
use concord_wire::payload::{
    ConflictOutcome, ConflictType, Credibility, EstimateSide, HistoricalContext, Position,
    PositionRate, Precedent, PrecedentClaim, PrecedentGuidance, PrecedentMatter, ProvedPosition,
    SuccessRate,
};
use serde_json::Value;

use crate::rules::canonical::{
    Allowance, canonical, normalise, number_in_base_unit as number, same,
};
use crate::rules::conflict_type::meant;
use crate::rules::conservative::singular;
use crate::rules::credibility::{Z, wilson};
use crate::rules::proved::{holds, was_right};
use crate::rules::size_budget::{count, truncate};

mod limits;

/// The subject of a challenge that names no metric: nothing is known of what it is about.
const NO_SUBJECT: &str = "finding";

/// What a debate is about, as precedents are compared.
pub fn matter_of(opened: &DebateOpened) -> PrecedentMatter {
    PrecedentMatter {
        kind: opened.conflict.kind,
        subject: opened.conflict.subject.clone(),
        policy: opened.policy.preset.clone(),
        domain: opened.terms.domain.clone(),
        circumstances: opened.terms.circumstances.clone(),
    }
}

/// Whether what is known of one debate counts for the other.
pub fn is_like(one: &PrecedentMatter, other: &PrecedentMatter) -> bool {
    let has_subject = one.kind != ConflictType::Challenge || normalise(&one.subject) != NO_SUBJECT;
    let domain = |of: &PrecedentMatter| of.domain.as_deref().map(normalise);
    has_subject
        && one.kind == other.kind
        && normalise(&one.policy) == normalise(&other.policy)
        && domain(one) == domain(other)
        && has_like_subject(&one.subject, &other.subject)
}

/// Whether two subjects are alike, part by part: `acme/revenue` is not about the same as `beta/revenue`.
fn has_like_subject(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if has_like_words(one, other) => {}
            _ => return false,
        }
    }
}

fn has_like_words(one: &str, other: &str) -> bool {
    let (one, other) = (words(one), words(other));
    let common = one.intersection(&other).count();
    one == other || 5 * common >= 3 * one.union(&other).count() && common > 0
}

/// The words of a subject, without those that say nothing, each in the singular.
fn words(subject: &str) -> BTreeSet<String> {
    let subject = normalise(&subject.replace(['_', '-'], " "));
    let says_something =
        |word: &&str| !["a", "an", "the", "of", "on", "for", "in", "to"].contains(word);
    subject
        .split_whitespace()
        .filter(says_something)
        .map(|word| singular(word).to_owned())
        .collect()
}

/// The precedent that a debate is; `None` where it has ended without a position.
pub fn precedent_of(
    opened: &DebateOpened,
    outcome: &ConflictOutcome,
    known: Option<&OutcomeKnown>,
) -> Option<Precedent> {
    let chosen = outcome.resolution.as_ref()?;
    let matter = matter_of(opened);
    let proved = |known: &OutcomeKnown| {
        let was_right = was_right(opened, outcome, known);
        ProvedPosition {
            position: truncate::topic(&known.position),
            value: known.value.as_ref().map(truncate::value),
            was_chosen: was_right == Some(true),
            is_undecided: was_right.is_none(),
            side: side(&outcome.positions, known.value.as_ref()),
            explanation: truncate::topic(&known.explanation),
        }
    };
    Some(Precedent {
        debate_id: outcome.conflict_id.clone(),
        topic: opened.conflict.topic.clone(),
        position: chosen.position.clone(),
        level: outcome.level.map_or(1, u8::from),
        status: outcome.status.as_str().to_owned(),
        at: outcome.resolved_at,
        matter: limits::fits(&matter).then_some(matter),
        proved: known.map(proved),
    })
}

pub(crate) type Stated<'a> = (&'a str, Option<&'a Value>);

/// Whether two positions are the same: by their values where both have one, else by their words.
pub(crate) fn is_same(one: Stated<'_>, other: Stated<'_>) -> bool {
    match (one.1, other.1) {
        (Some(a), Some(b)) => same(
            &canonical(a, None),
            &canonical(b, None),
            &Allowance::default(),
        ),
        _ => normalise(one.0) == normalise(other.0),
    }
}

/// The different numbers of these positions, the lowest first, and their dimension; none where they are not all of one.
fn numbers(positions: &[Position]) -> Option<(f64, f64, String)> {
    let number = |held: &Position| number(&meant(held.value.as_ref()?, positions));
    let all: Option<Vec<(f64, String)>> = positions.iter().map(number).collect();
    let all = all?;
    let (_, dimension) = all.first()?.clone();
    let low = all.iter().map(|(value, _)| *value).reduce(f64::min)?;
    let high = all.iter().map(|(value, _)| *value).reduce(f64::max)?;
    let are_of_one = all.iter().all(|(_, of)| *of == dimension);
    (are_of_one && low < high).then_some((low, high, dimension))
}

/// Which end of the disputed numbers was nearer to what proved right.
fn side(positions: &[Position], proved: Option<&Value>) -> Option<EstimateSide> {
    let (low, high, dimension) = numbers(positions)?;
    let (value, _) = number(&meant(proved?, positions)).filter(|(_, of)| *of == dimension)?;
    let (to_low, to_high) = ((value - low).abs(), (value - high).abs());
    match to_low.total_cmp(&to_high) {
        std::cmp::Ordering::Less => Some(EstimateSide::Lower),
        std::cmp::Ordering::Greater => Some(EstimateSide::Higher),
        std::cmp::Ordering::Equal => None,
    }
}

/// How often something proved right: true for each time that it did.
pub fn rate(outcomes: impl Iterator<Item = bool>) -> SuccessRate {
    let (right, known) = outcomes.fold((0_u32, 0_u32), |(right, known), was_right| {
        (right + u32::from(was_right), known + 1)
    });
    let share = f64::from(right) / f64::from(known.max(1));
    SuccessRate {
        right,
        known,
        interval: wilson(share, f64::from(known), Z),
    }
}

/// What the precedents of a debate say about these positions; `None` where none of them is known to be like it.
pub fn guidance_of(opened: &DebateOpened, positions: &[Position]) -> Option<PrecedentGuidance> {
    let matter = matter_of(opened);
    let like: Vec<&Precedent> = like(&matter, &opened.precedents).collect();
    if like.is_empty() {
        return None;
    }
    let proved = || like.iter().filter_map(|one| one.proved.as_ref());
    let sides = proved().filter_map(|proved| proved.side);
    let lower = numbers(positions).map(|_| rate(sides.map(|side| side == EstimateSide::Lower)));
    let mut held: Vec<&Position> = Vec::new();
    for position in positions {
        if !held.iter().any(|known| is_held(opened, known, position)) {
            held.push(position);
        }
    }
    held.truncate(limits::POSITIONS_MAX);
    let of_position = |position: &&Position| PositionRate {
        position: truncate::topic(&position.position),
        rate: rate(
            proved().map(|proved| holds(opened, position, &proved.position, proved.value.as_ref())),
        ),
    };
    let chosen = rate(proved().filter_map(ProvedPosition::was_right));
    Some(PrecedentGuidance {
        found: count(like.len()),
        lower: lower.filter(|rate| rate.known > 0),
        positions: held.iter().map(of_position).collect(),
        conditions: limits::conditions(&matter, &like),
        risks: limits::risks(&matter, &like, &chosen),
        chosen,
    })
}

fn is_held(opened: &DebateOpened, one: &Position, other: &Position) -> bool {
    holds(opened, one, &other.position, other.value.as_ref())
}

/// Those of the precedents that are known to be like the matter.
pub fn like<'a>(
    matter: &PrecedentMatter,
    precedents: impl IntoIterator<Item = &'a Precedent>,
) -> impl Iterator<Item = &'a Precedent> {
    precedents.into_iter().filter(move |one| {
        let seen = one.matter.as_ref();
        seen.is_some_and(|seen| is_like(matter, seen))
    })
}

/// Most claims of one debate that are looked at.
const CLAIMS_MAX: usize = 16;

/// What parties claim about earlier cases, in the challenge and in their findings, beside what is known.
pub fn claims(
    opened: &DebateOpened,
    findings: &[ReceivedFinding],
    credibility: &BTreeMap<AgentId, Credibility>,
) -> Vec<PrecedentClaim> {
    let positions = &opened.conflict.positions;
    let challenge = opened.terms.challenge.iter();
    let in_challenge = challenge.filter_map(|terms| {
        let context = terms.historical_context.as_ref()?;
        Some((&terms.challenger, context))
    });
    let in_findings = findings.iter().filter_map(|received| {
        let context = received.finding.historical_context.as_ref()?;
        Some((&received.agent_id, context))
    });
    let claims = in_challenge.chain(in_findings);
    let of_parties = claims.filter_map(|(agent, context)| {
        let held = positions.iter().find(|held| held.agent_id == *agent)?;
        Some(claim(opened, held, context, credibility.get(agent)))
    });
    of_parties.take(CLAIMS_MAX).collect()
}

/// What an agent claims about earlier cases, beside what is known: how often the position that it holds proved right, or for
/// numbers its end of them.
fn claim(
    opened: &DebateOpened,
    held: &Position,
    context: &HistoricalContext,
    credibility: Option<&Credibility>,
) -> PrecedentClaim {
    let positions = &opened.conflict.positions;
    let guidance = guidance_of(opened, positions);
    let known = guidance.as_ref().map_or_else(
        || rate(std::iter::empty()),
        |known| own_rate(opened, known, held),
    );
    let believed = credibility.filter(|known| known.data_points > 0.0);
    let outside = |claimed: Option<f64>, low: f64, high: f64| {
        claimed.is_some_and(|claimed| !(low..=high).contains(&claimed))
    };
    let rate_is_off = known.known > 0
        && outside(
            context.pattern_success_rate,
            known.interval.low,
            known.interval.high,
        );
    let accuracy_is_off = believed.is_some_and(|known| {
        outside(
            context.my_accuracy_on_pattern,
            known.interval.low,
            known.interval.high,
        )
    });
    let remark = limits::remark(&known, believed, rate_is_off, accuracy_is_off);
    PrecedentClaim {
        agent_id: held.agent_id.clone(),
        claimed_rate: context.pattern_success_rate,
        claimed_observations: context.observations,
        known,
        claimed_accuracy: context.my_accuracy_on_pattern,
        credibility: believed.map(|known| known.score),
        is_far_outside: rate_is_off || accuracy_is_off,
        remark,
    }
}

/// How often the position of somebody proved right: for numbers that of their end, else of the position itself.
fn own_rate(opened: &DebateOpened, guidance: &PrecedentGuidance, held: &Position) -> SuccessRate {
    let positions = &opened.conflict.positions;
    let own_side = side(positions, held.value.as_ref());
    match (&guidance.lower, own_side) {
        (Some(lower), Some(EstimateSide::Lower)) => *lower,
        (Some(lower), Some(EstimateSide::Higher)) => {
            let right = lower.known - lower.right.min(lower.known);
            rate((0..lower.known).map(|place| place < right))
        }
        _ => {
            // Of positions that are the same the first one stands there.
            let mut same = positions.iter().filter(|one| is_held(opened, one, held));
            let own = same.next().unwrap_or(held);
            let own = normalise(&truncate::topic(&own.position));
            let mut rates = guidance.positions.iter();
            let own = rates.find(|one| normalise(&one.position) == own);
            own.map_or(guidance.chosen, |one| one.rate)
        }
    }
}

#[cfg(test)]
mod tests;
