//! How far estimates of one quantity may differ before they are a conflict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::out_of_range;
use crate::fault::Fault;
use crate::payload::check_name;

/// How the estimates of different agents are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EstimatePolicy {
    /// Whether they are compared. Not in cases from before they were.
    pub compared: bool,
    /// How far they may differ and still be the same.
    pub tolerance: Tolerance,
    /// The same for single metrics, in place of `tolerance`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_metric: BTreeMap<String, Tolerance>,
}

/// How far two numbers may differ and still be the same: by whichever of the two allows more.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tolerance {
    /// A share of the larger number, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub relative: f64,
    /// A difference, in `unit`.
    #[schemars(range(min = 0.0))]
    pub absolute: f64,
    /// The unit of `absolute`; none for plain numbers. It does not hold for numbers in units that cannot be converted to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Default for EstimatePolicy {
    fn default() -> Self {
        Self {
            compared: false,
            tolerance: Tolerance {
                relative: 0.1,
                ..Tolerance::default()
            },
            by_metric: BTreeMap::new(),
        }
    }
}

impl EstimatePolicy {
    /// Most metrics with a tolerance of their own.
    const METRICS_MAX: usize = 64;

    /// Whether they are not compared and every tolerance is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// That of the presets: estimates further apart than a tenth of the larger one are a conflict. It is the share from which on a
    /// changed figure makes the analyses that rest on it be done again.
    pub(super) fn compared() -> Self {
        Self {
            compared: true,
            ..Self::default()
        }
    }

    /// Checks ranges; `pointer` is where this stands, for the fault.
    pub(super) fn check(&self, pointer: &str) -> Result<(), Fault> {
        self.tolerance.check(&format!("{pointer}/tolerance"))?;
        if self.by_metric.len() > Self::METRICS_MAX {
            return Err(out_of_range(
                pointer,
                "by_metric",
                &format!("{} metrics", self.by_metric.len()),
                &format!("0 to {}", Self::METRICS_MAX),
            ));
        }
        for (metric, tolerance) in &self.by_metric {
            let at = format!("{pointer}/by_metric/{metric}");
            check_name(&at, metric)?;
            tolerance.check(&at)?;
        }
        Ok(())
    }
}

impl Tolerance {
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        if !(0.0..=1.0).contains(&self.relative) {
            let relative = self.relative.to_string();
            return Err(out_of_range(pointer, "relative", &relative, "0 to 1"));
        }
        if !(self.absolute.is_finite() && self.absolute >= 0.0) {
            let absolute = self.absolute.to_string();
            return Err(out_of_range(pointer, "absolute", &absolute, "0 upwards"));
        }
        self.unit
            .iter()
            .try_for_each(|unit| check_name(&format!("{pointer}/unit"), unit))
    }
}
