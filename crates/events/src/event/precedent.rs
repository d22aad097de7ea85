//! Events of a precedent: how debates of one kind about one subject turned out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::payload::Precedent;

events! {
    /// What can happen to a precedent.
    PrecedentEvent of Aggregate::Precedent;
    Recorded(PrecedentRecorded) = "recorded", effects: false, deadlines: false,
        "A debate has turned out in some way; of the same debate a later entry replaces an earlier one.";
}

/// Contents of `recorded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrecedentRecorded {
    /// How the debate turned out.
    pub precedent: Precedent,
}
