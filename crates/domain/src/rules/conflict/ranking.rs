//! The ranking of conflicts.

use std::cmp::Ordering;

use concord_wire::payload::{Conflict, Position};
use concord_wire::policy::Policy;
use concord_wire::{CaseId, DebateId};

use crate::rules::conflict_type::{Found, Held, rule_of};
use crate::rules::size_budget::truncate::{self, Room};
use crate::rules::vote::{self, About};

/// A ranked conflict, with its positions still without evidence.
pub(super) struct Ranked<'a> {
    conflict: Conflict,
    held: Vec<Held<'a>>,
}

impl Ranked<'_> {
    /// The conflict with as much evidence as there is room for.
    pub(super) fn with_room(&self, room: Room) -> Conflict {
        let room = room.among(self.held.len());
        Conflict {
            positions: self.held.iter().map(|held| held.with_room(room)).collect(),
            ..self.conflict.clone()
        }
    }

    /// Whether it is about the score or the recommendation.
    pub(super) fn is_about_the_result(&self) -> bool {
        rule_of(self.conflict.kind).is_about_the_result()
    }
}

/// Collects conflicts and keeps the first of them in ranking order.
pub(super) struct Ranking<'a> {
    case: &'a CaseId,
    policy: &'a Policy,
    kept_max: usize,
    ranked: Vec<Ranked<'a>>,
    left_out: u32,
}

impl<'a> Ranking<'a> {
    pub(super) fn new(case: &'a CaseId, policy: &'a Policy, kept_max: usize) -> Self {
        Self {
            case,
            policy,
            kept_max,
            ranked: Vec::new(),
            left_out: 0,
        }
    }

    /// Takes a conflict that a rule has found. Positions that compare as the same, such as "yes"
    /// and "true", leave nothing to debate.
    pub(super) fn offer(&mut self, found: Found<'a>) {
        let positions: Vec<Position> = found
            .held
            .iter()
            .map(|held| held.position.clone())
            .collect();
        let about = About {
            kind: found.kind,
            subject: &found.subject,
            policy: self.policy,
        };
        if vote::option_count(about, &positions) < 2 {
            return;
        }
        let weight = found.stake * contested(about, &positions);
        debug_assert!(
            weight.is_finite() && weight >= 0.0,
            "a conflict has a weight, not {weight}"
        );
        let conflict = Conflict {
            conflict_id: DebateId::of_conflict(self.case, found.kind.as_str(), &found.subject),
            kind: found.kind,
            topic: truncate::topic(&found.topic),
            subject: found.subject,
            weight: (weight * 1e6).round() / 1e6,
            positions: Vec::new(),
            positions_omitted: 0,
        };
        self.ranked.push(Ranked {
            conflict,
            held: found.held,
        });
        // From time to time, so that conflicts that are left out do not fill the memory.
        if self.ranked.len() > self.kept_max.saturating_mul(2) {
            self.leave_out();
        }
    }

    /// The first conflicts in ranking order, and how many were left out.
    pub(super) fn finish(mut self) -> (Vec<Ranked<'a>>, u32) {
        self.leave_out();
        (self.ranked, self.left_out)
    }

    fn leave_out(&mut self) {
        self.ranked.sort_by(|a, b| order(&a.conflict, &b.conflict));
        let mut place = 0_usize;
        let before = self.ranked.len();
        self.ranked.retain(|ranked| {
            place += 1;
            place <= self.kept_max || ranked.is_about_the_result()
        });
        self.left_out = self
            .left_out
            .saturating_add(crate::rules::size_budget::count(before - self.ranked.len()));
    }
}

/// The ranking order: what is debated first comes first.
pub(super) fn order(a: &Conflict, b: &Conflict) -> Ordering {
    b.weight
        .total_cmp(&a.weight)
        .then_with(|| a.kind.cmp(&b.kind))
        .then_with(|| a.subject.cmp(&b.subject))
}

/// The highest confidence behind the second strongest option.
fn contested(about: About<'_>, positions: &[Position]) -> f64 {
    let options = vote::options_of(about, positions);
    let mut best = vec![0.0_f64; options.iter().max().map_or(0, |last| last + 1)];
    for (option, position) in options.into_iter().zip(positions) {
        if let Some(slot) = best.get_mut(option) {
            *slot = slot.max(position.confidence);
        }
    }
    best.sort_by(|a, b| b.total_cmp(a));
    best.get(1).copied().unwrap_or(0.0)
}
