//! A deadline that Concord keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::Token;
use crate::timestamp::Timestamp;

/// A point in time that an aggregate waits for.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Deadline {
    /// Its name inside the aggregate.
    pub name: Token,
    /// The time at which it is due.
    pub due: Timestamp,
}
