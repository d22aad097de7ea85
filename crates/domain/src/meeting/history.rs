//! Earlier decisions like those of a case, and how they turned out.

use std::collections::BTreeSet;

use concord_wire::payload::track_record::Interval;
use concord_wire::{DebateId, Timestamp};
use serde::Serialize;

use super::{Dispute, Lesson};
use crate::rules::credibility::{Z, wilson};

/// An earlier decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EarlierDecision {
    /// The debate.
    pub debate_id: DebateId,
    /// What was disputed.
    pub topic: String,
    /// The position that was chosen, in words.
    pub position: String,
    /// How it ended, as a name.
    pub status: String,
    /// When it ended.
    pub at: Timestamp,
    /// What proved right, in words; absent while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proved: Option<String>,
    /// How that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Whether the chosen position is what proved right; absent while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was_right: Option<bool>,
}

impl EarlierDecision {
    /// What was learned from it, where its outcome is known.
    pub(super) fn lesson(&self) -> Option<Lesson> {
        let proved = self.proved.clone()?;
        let explanation = self.explanation.clone()?;
        Some(Lesson {
            debate_id: self.debate_id.clone(),
            topic: self.topic.clone(),
            proved,
            explanation,
        })
    }
}

/// How often something proved right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// How often it proved right.
    pub right: u32,
    /// Of how many of which the outcome is known.
    pub known: u32,
    /// 95 % interval of the rate (Wilson); 0 to 1 where nothing is known.
    pub interval: Interval,
}

impl Rate {
    /// The rate of these: true for each that proved right.
    pub fn of(outcomes: impl Iterator<Item = bool>) -> Self {
        let (right, known) = outcomes.fold((0_u32, 0_u32), |(right, known), was_right| {
            (right + u32::from(was_right), known + 1)
        });
        let share = f64::from(right) / f64::from(known.max(1));
        Self {
            right,
            known,
            interval: wilson(share, f64::from(known), Z),
        }
    }

    /// How often it proved right, 0 to 1; `None` where nothing is known.
    pub fn share(&self) -> Option<f64> {
        (self.known > 0).then(|| f64::from(self.right) / f64::from(self.known))
    }
}

/// Earlier decisions like one dispute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// How often the chosen position proved right.
    pub success: Rate,
    /// The decisions, the newest first.
    pub earlier: Vec<EarlierDecision>,
}

impl History {
    /// The history that these decisions make.
    pub(super) fn of(earlier: Vec<EarlierDecision>) -> Self {
        Self {
            success: Rate::of(earlier.iter().filter_map(|one| one.was_right)),
            earlier,
        }
    }
}

/// Every earlier decision of all disputes once, the newest first.
pub(super) fn all(disputes: &[Dispute]) -> Vec<&EarlierDecision> {
    let mut seen = BTreeSet::new();
    let mut all: Vec<&EarlierDecision> = disputes
        .iter()
        .flat_map(|dispute| &dispute.history.earlier)
        .filter(|one| seen.insert(&one.debate_id))
        .collect();
    all.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.debate_id.cmp(&b.debate_id)));
    all
}
