//! What becomes of analyses that rest on something that has changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who begins to have analyses done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reruns {
    /// Whoever may, by asking for it.
    #[default]
    Manual,
    /// Nobody need ask: as soon as something has changed, what must be done again is given to its authors.
    Automatic,
}

/// The rules about analyses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImpactPolicy {
    /// Who begins to have analyses done again.
    pub reruns: Reruns,
}

impl ImpactPolicy {
    /// Whether it says what is usual; such rules are left out.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
