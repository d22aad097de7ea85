//! What confirmations of findings do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a confirmation of a finding does besides being recorded and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confirmations {
    /// Nothing.
    #[default]
    Shown,
    /// Conflicts are detected with the strengthened confidence, which so weighs in ranking, discussion and vote.
    Count,
}

impl Confirmations {
    /// Whether it is the usual value; such a field is left out.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
