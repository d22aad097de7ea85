//! Levels 4 and 5: the cautious position stands provisionally until a gate has reviewed it.

use std::cmp::Ordering;

use concord_events::names::PROVISIONAL;
use concord_events::{DebateEvent, DebateOpened, FellBack};
use concord_wire::AgentId;
use concord_wire::payload::{
    BriefedPosition, Level, Provisional, Resolution, Review, ReviewAction, RuledBy, Status,
};
use concord_wire::{DebateId, Fault};

use super::{Ladder, brief, named};
use crate::aggregates::debate::{DebateState, Resolving};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::conservative;
use crate::rules::size_budget::truncate;

/// Alternatives that a provisional decision repeats; all positions stand beside them in its outcome.
const ALTERNATIVES_MAX: usize = 8;

/// Why a debate falls back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Because {
    /// Level 3 ran out.
    NobodyRuled,
    /// The queue of people had no place, and the policy lets it fall back.
    NoPlace,
    /// The queue of people had no place, and the policy defers it to the gate.
    Deferred,
}

impl Because {
    fn in_words(self) -> &'static str {
        match self {
            Self::NobodyRuled => "Nobody ruled in time",
            Self::NoPlace => "The queue of people had no place",
            Self::Deferred => "The queue of people had no place, and it is deferred to the gate",
        }
    }
}

/// The debate falls back to the cautious position.
pub(super) fn fell_back(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    because: Because,
) -> DebateEvent {
    let rules = &opened.policy.ladder;
    let window = rules.scaled(rules.times_of(opened.terms.priority).provisional_ms);
    // What is deferred to the gate has no window of its own.
    let until = context.now.plus_millis(if because == Because::Deferred {
        0
    } else {
        window
    });
    let positions = brief::briefed_positions(opened, &state.positions);
    let (chosen, rule) = cautious(opened, &positions);
    let others = positions.iter().filter(|one| Some(*one) != chosen);
    let alternatives = others.take(ALTERNATIVES_MAX).map(as_resolution).collect();
    let provisional = Provisional {
        rationale: format!("{}: {rule}", because.in_words()),
        alternatives,
        review_at: opened.terms.gate.clone(),
        until,
        dependants: opened.terms.dependants.clone(),
    };
    let resolving = Resolving::of(
        opened,
        Status::Provisional,
        Level::Fallback,
        chosen.map(as_resolution),
    );
    DebateEvent::FellBack(Box::new(FellBack {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        outcome: resolving.provisional(provisional).outcome(state, context),
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

/// The most cautious position, and by which rule it is that: of the metric, of the kind of conflict, else the sceptical
/// one, that of the challenger; else the one with the lower id.
fn cautious<'a>(
    opened: &DebateOpened,
    positions: &'a [BriefedPosition],
) -> (Option<&'a BriefedPosition>, String) {
    let (kind, subject, policy) = (
        opened.conflict.kind,
        opened.conflict.subject.as_str(),
        &opened.policy,
    );
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
    let decides = best.is_some_and(|best| {
        positions
            .iter()
            .any(|one| compare(best, one) == Ordering::Greater)
    });
    if decides {
        let rule = conservative::rule_in_words(kind, subject, policy);
        return (
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
        Some(_) => (
            doubted,
            "no rule compares these positions; the sceptical one stands, that of the challenger."
                .into(),
        ),
        None => (
            best,
            "no rule compares these positions; the one with the lower id stands.".into(),
        ),
    }
}

/// A gate has reviewed the provisional decision.
pub(crate) fn reviewed(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    by: &AgentId,
    review: &Review,
    again: Option<&DebateId>,
) -> Decision<DebateEvent> {
    let Some(provisional) = ladder
        .provisional
        .as_ref()
        .filter(|_| state.outcome.is_none())
    else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let (status, resolution) = match review.action {
        ReviewAction::Confirm => (Status::Confirmed, provisional.resolution.clone()),
        ReviewAction::Redebate => (Status::Redebated, provisional.resolution.clone()),
        ReviewAction::Override => (Status::Overridden, Some(overriding(by, review))),
        ReviewAction::Pass => {
            return Decision::Reject(Fault::invalid(
                "/payload/action",
                "Passing a gate is nothing that happens to a debate.",
                "Confirm, override or debate again.",
            ));
        }
    };
    let ruled = RuledBy {
        expert: by.clone(),
        rationale: truncate::words(&review.rationale),
        digest: None,
    };
    let resolving = Resolving::of(opened, status, Level::Gate, resolution)
        .ruled(ruled)
        .again(again.cloned());
    Decision::Append(resolving.event(state, context))
}

fn overriding(by: &AgentId, review: &Review) -> Resolution {
    Resolution {
        position: truncate::words(review.position.as_deref().unwrap_or_default()),
        value: review.value.as_ref().map(truncate::value),
        supporters: vec![by.clone()],
    }
}
