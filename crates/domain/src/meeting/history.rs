//! Earlier decisions like those of a case, and how they turned out.

use std::collections::BTreeSet;

use concord_wire::payload::SuccessRate;
use concord_wire::{DebateId, Timestamp};
use serde::Serialize;

use super::{Dispute, Lesson};
use crate::rules::precedent::rate;

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

/// Earlier decisions like one dispute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// How often the chosen position proved right.
    pub success: SuccessRate,
    /// The decisions, the newest first.
    pub earlier: Vec<EarlierDecision>,
}

impl History {
    /// The history that these decisions make.
    pub(super) fn of(earlier: Vec<EarlierDecision>) -> Self {
        Self {
            success: rate(earlier.iter().filter_map(|one| one.was_right)),
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
