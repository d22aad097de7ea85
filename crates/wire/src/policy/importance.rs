//! Which entries of shared memory are told at once to everybody in a case, and which are held back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::out_of_range;
use crate::fault::Fault;

/// Thirty days.
const EVERY_MS_MAX: u64 = 30 * 86_400_000;

/// The rules by which the importance of an entry decides whom it reaches. It is stored and readable in any case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportancePolicy {
    /// Whether entries are told at all. Where they are not, they are read by whoever asks.
    pub filtered: bool,
    /// What is more important than this is told at once.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub broadcast_above: f64,
    /// What is more important than this, and not told at once, is held back. What is less important is told to nobody.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub hold_above: f64,
    /// After this time what is held back is told, also where the case has come to no other checkpoint; 0 for no such time.
    pub synthesis_every_ms: u64,
    /// By how much both are lower while a debate of the case is open, and higher for an agent most of whose last entries were told at
    /// once; 0 where they stay as they are.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub adapted_by: f64,
}

impl Default for ImportancePolicy {
    fn default() -> Self {
        Self {
            filtered: false,
            broadcast_above: 0.8,
            hold_above: 0.4,
            synthesis_every_ms: 0,
            adapted_by: 0.1,
        }
    }
}

impl ImportancePolicy {
    /// Whether it says what is usual; such rules are left out.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Checks ranges and order; `pointer` is where this stands, for the fault.
    pub(super) fn check(&self, pointer: &str) -> Result<(), Fault> {
        for (field, value, high) in [
            ("broadcast_above", self.broadcast_above, 1.0),
            ("hold_above", self.hold_above, 1.0),
            ("adapted_by", self.adapted_by, 0.5),
        ] {
            if !(0.0..=high).contains(&value) {
                let (value, range) = (value.to_string(), format!("0 to {high}"));
                return Err(out_of_range(pointer, field, &value, &range));
            }
        }
        if self.synthesis_every_ms > EVERY_MS_MAX {
            let (value, range) = (
                self.synthesis_every_ms.to_string(),
                format!("0 to {EVERY_MS_MAX}"),
            );
            return Err(out_of_range(pointer, "synthesis_every_ms", &value, &range));
        }
        if self.hold_above <= self.broadcast_above {
            return Ok(());
        }
        Err(Fault::invalid(
            format!("{pointer}/hold_above"),
            format!(
                "Entries would be held back above {}, and told at once above {} already.",
                self.hold_above, self.broadcast_above
            ),
            "Give a hold_above that is not greater than broadcast_above.",
        ))
    }
}
