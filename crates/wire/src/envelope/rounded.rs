//! Whole numbers that may be written with a fraction.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A number from 0 on, rounded to a whole one: clocks measure milliseconds with a fraction.
pub(crate) struct Rounded(pub(crate) u64);

impl<'de> Deserialize<'de> for Rounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = serde_json::Number::deserialize(deserializer)?;
        let rounded = || format!("{:.0}", written.as_f64()?.round()).parse().ok();
        written
            .as_u64()
            .or_else(rounded)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("{written} is no number from 0 on")))
    }
}
