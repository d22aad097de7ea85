//! Levels 4 and 5: the cautious position stands provisionally until a gate has reviewed it.

use std::cmp::Ordering;

use concord_events::names::PROVISIONAL;
use concord_events::{DebateEvent, DebateOpened, FellBack};
use concord_wire::AgentId;
use concord_wire::payload::{
    BriefedPosition, Level, Provisional, Resolution, Review, ReviewAction, Status,
};
use concord_wire::{DebateId, Fault};

use super::{OnLadder, brief, named};
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::aggregates::debate::signed;
use crate::machine::{Decision, Ignored};
use crate::rules::conflict_type::{meant, valued};
use crate::rules::conservative;
use crate::rules::proved;
use crate::rules::size_budget::truncate;

/// Alternatives that a provisional decision repeats; all positions stand beside them in its
/// outcome.
const ALTERNATIVES_MAX: usize = 8;

/// Why a debate falls back to the cautious position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FallbackReason {
    /// The time of level 3 is over.
    NobodyRuled,
    /// The review queue was full, and the policy lets the debate fall back.
    NoPlace,
    /// The review queue was full, and the policy defers the debate to the gate.
    Deferred,
}

impl FallbackReason {
    fn in_words(self) -> &'static str {
        match self {
            Self::NobodyRuled => "Nobody ruled in time",
            Self::NoPlace => "The queue of people had no place",
            Self::Deferred => "The queue of people had no place, and it is deferred to the gate",
        }
    }
}

/// The event by which the debate falls back to the cautious position.
pub(super) fn fell_back(on: &OnLadder<'_>, reason: FallbackReason) -> DebateEvent {
    debug_assert!(
        on.ladder.level == Level::Person,
        "a debate falls back from level 3 only"
    );
    let opened = on.opened;
    let rules = &opened.policy.ladder;
    let window = rules.scaled(rules.times_of(opened.terms.priority).provisional_ms);
    // What is deferred to the gate has no window of its own.
    let until = on
        .context
        .now
        .plus_millis(if reason == FallbackReason::Deferred {
            0
        } else {
            window
        });
    let positions = brief::briefed_positions(opened, &on.state.positions);
    let (chosen, wanted, rule) = match cautious(opened, &positions) {
        Cautious::ByRule(chosen, rule) => (chosen, None, rule),
        Cautious::NoRule(chosen, rule) => match wanted(opened, &positions) {
            Some(wanted) => (None, Some(wanted), WANTED.to_owned()),
            None => (chosen, None, rule),
        },
    };
    let others = positions.iter().filter(|one| Some(*one) != chosen);
    let alternatives = others.take(ALTERNATIVES_MAX).map(as_resolution).collect();
    let provisional = Provisional {
        rationale: format!("{}: {rule}", reason.in_words()),
        alternatives,
        review_at: opened.terms.gate.clone(),
        until,
        dependants: opened.terms.dependants.clone(),
        expert: on.ladder.expert.clone(),
    };
    let resolution = wanted.or_else(|| chosen.map(as_resolution));
    let outcome = OutcomeBuilder::new(opened, Status::Provisional, Level::Fallback, resolution)
        .provisional(provisional)
        .outcome(on.state, on.context);
    DebateEvent::FellBack(Box::new(FellBack {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        outcome,
        waits_for: vec![named(PROVISIONAL, until)],
    }))
}

fn as_resolution(position: &BriefedPosition) -> Resolution {
    Resolution {
        position: position.position.clone(),
        value: position.value.clone(),
        supporters: position
            .held_by
            .iter()
            .map(|held| held.agent_id.clone())
            .collect(),
    }
}

/// Why the position that the challenger wanted meanwhile stands.
const WANTED: &str = "no rule compares these positions; the one stands that the challenger wanted to stand meanwhile.";

/// What the challenger wants to stand until the challenge is settled.
fn wanted(opened: &DebateOpened, positions: &[BriefedPosition]) -> Option<Resolution> {
    let terms = opened.terms.challenge.as_ref()?;
    let wanted = terms.provisional_resolution.as_ref()?;
    let words = wanted.as_str().map(str::to_owned);
    let as_meant = || meant(wanted, &opened.conflict.positions);
    let value = words.is_none().then(as_meant);
    let position = truncate::words(&words.unwrap_or_else(|| wanted.to_string()));
    let is_held = |one: &&BriefedPosition| {
        one.held_by
            .iter()
            .any(|held| proved::holds(opened, held, &position, value.as_ref()))
    };
    let held = positions.iter().find(is_held).map(as_resolution);
    Some(held.unwrap_or_else(|| {
        let own = Resolution {
            position: position.clone(),
            value: value.clone(),
            supporters: vec![terms.challenger.clone()],
        };
        valued(&opened.conflict, &opened.policy, own)
    }))
}

/// The position that stands provisionally, and why.
enum Cautious<'a> {
    /// A rule of caution says so.
    ByRule(Option<&'a BriefedPosition>, String),
    /// No rule compares the positions.
    NoRule(Option<&'a BriefedPosition>, String),
}

/// The most cautious position, and the rule that makes it that: the rule for the metric, else the
/// rule for the kind of conflict. Where no rule decides, it is the position of the challenger, else
/// the one with the lower id.
fn cautious<'a>(opened: &DebateOpened, positions: &'a [BriefedPosition]) -> Cautious<'a> {
    let kind = opened.conflict.kind;
    let subject = opened.conflict.subject.as_str();
    let policy = &opened.policy;
    let compare = |a: &BriefedPosition, b: &BriefedPosition| {
        conservative::compare_about(kind, subject, policy, a.value.as_ref(), b.value.as_ref())
    };
    // Of equally cautious ones the first is kept: positions are in the order of their ids.
    let best = positions.iter().reduce(|best, one| {
        if compare(one, best) == Ordering::Greater {
            one
        } else {
            best
        }
    });
    let is_decided_by_rule = best.is_some_and(|best| {
        positions
            .iter()
            .any(|one| compare(best, one) == Ordering::Greater)
    });
    if is_decided_by_rule {
        let value = best.and_then(|best| best.value.as_ref());
        let rule = conservative::rule_in_words(kind, subject, policy, value);
        return Cautious::ByRule(
            best,
            format!(
                "{rule}; of {} positions this is the most cautious.",
                positions.len()
            ),
        );
    }
    let sceptic = opened
        .terms
        .challenge
        .as_ref()
        .map(|terms| &terms.challenger);
    let doubted = sceptic.and_then(|agent| {
        positions
            .iter()
            .find(|one| one.held_by.iter().any(|held| held.agent_id == *agent))
    });
    match doubted {
        Some(_) => Cautious::NoRule(
            doubted,
            "no rule compares these positions; the sceptical one stands, that of the challenger."
                .into(),
        ),
        None => Cautious::NoRule(
            best,
            "no rule compares these positions; the one with the lower id stands.".into(),
        ),
    }
}

/// What to do about the review of the provisional decision at a gate; `first` has said the same before, where the policy wants two.
pub(in crate::aggregates::debate) fn reviewed(
    on: &OnLadder<'_>,
    (by, first): (&AgentId, Option<(&AgentId, Option<&str>)>),
    review: &Review,
    again: Option<&DebateId>,
) -> Decision<DebateEvent> {
    let Some(provisional) = on.ladder.provisional.as_ref().filter(|_| !on.is_resolved()) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let (status, resolution) = match review.action {
        ReviewAction::Confirm => (Status::Confirmed, provisional.resolution.clone()),
        ReviewAction::Redebate => (Status::Redebated, provisional.resolution.clone()),
        ReviewAction::Override => {
            let (conflict, policy) = (&on.opened.conflict, &on.opened.policy);
            let resolution = valued(conflict, policy, overriding(by, review));
            (Status::Overridden, Some(resolution))
        }
        ReviewAction::Pass => {
            return Decision::Reject(Fault::invalid(
                "/payload/action",
                "Passing a gate is nothing that happens to a debate.",
                "Confirm, override or debate again.",
            ));
        }
    };
    let ruled = signed::by_review(by, first, review);
    Decision::Append(
        OutcomeBuilder::new(on.opened, status, Level::Gate, resolution)
            .ruled_by(ruled)
            .debated_again_as(again.cloned())
            .event(on.state, on.context),
    )
}

/// The position that a reviewer puts in the place of the provisional one.
pub(in crate::aggregates::debate) fn overriding(by: &AgentId, review: &Review) -> Resolution {
    Resolution {
        position: truncate::words(review.position.as_deref().unwrap_or_default()),
        value: review.value.as_ref().map(truncate::value),
        supporters: vec![by.clone()],
    }
}
