//! Numbers with units: what was used and what stands now, in one scale.
//!
//! A number without a unit says nothing about its scale. Beside percent or a share it is evident: below 1 it is a share,
//! as it is in an estimate without a unit, and above 1 it is percent; beside a ratio above 1 it is one. 0 and 1 may be either.

use concord_wire::payload::Figure;
use serde_json::json;

use super::number;
use crate::rules::canonical::digits;
use crate::rules::canonical::{Canonical, canonical_estimate, normalise, rounded};

const SIGNS: [char; 3] = ['$', '€', '£'];
const CURRENCIES: [&str; 3] = ["usd", "eur", "gbp"];
const PERCENT: f64 = 0.01;
const SHARE: f64 = 1.0;

/// What was used and what stands now, in the scale of what was used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Both {
    pub(super) used: f64,
    pub(super) now: f64,
    /// By how many points it changes: hundredths of a share, else what it counts.
    pub(super) points: f64,
}

/// What a number counts: the dimension of its unit, and the factor to the base unit of that.
#[derive(Debug, PartialEq)]
struct Unit {
    dimension: String,
    factor: f64,
}

impl Unit {
    /// The unit of this name; none for a plain number.
    fn of(name: &str) -> Option<Self> {
        if matches!(normalise(name).as_str(), "" | "x" | "times") {
            return None;
        }
        match canonical_estimate(&json!(1.0), Some(name)) {
            Canonical::Number { value, dimension } => Some(Self {
                dimension,
                factor: value,
            }),
            _ => None,
        }
    }

    fn is(&self, factor: f64) -> bool {
        self.dimension.is_empty() && self.factor == factor
    }

    /// By what `number` of this unit is multiplied to be in the scale of a plain number; none where that is not evident.
    fn beside(&self, number: f64, plain: f64) -> Option<f64> {
        let is_currency = CURRENCIES.contains(&self.dimension.as_str());
        if is_currency && self.factor == 1.0 {
            return Some(1.0);
        }
        if !self.is(PERCENT) && !self.is(SHARE) {
            return None;
        }
        let plain = plain.abs();
        if plain > 0.0 && plain < 1.0 {
            return Some(self.factor);
        }
        let is_share = self.is(SHARE) && number.abs() <= 1.0;
        (plain > 1.0).then_some(if is_share { 100.0 } else { 1.0 })
    }
}

/// A figure as a number and its unit.
fn read(figure: &Figure) -> Option<(f64, Option<Unit>)> {
    let Figure::Text(text) = figure else {
        return number(figure).map(|number| (number, None));
    };
    if let Some(number) = number(figure) {
        let unit = text.trim().ends_with('%').then(|| Unit::of("%"));
        return Some((number, unit.flatten()));
    }
    let sign = text.trim().chars().next().filter(|c| SIGNS.contains(c));
    let rest = text.trim().trim_start_matches(SIGNS).trim_start();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ',');
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at_checked(end)?;
    let number = digits::number(digits)?;
    let sign = sign.map(String::from).unwrap_or_default();
    Some((number, Unit::of(&format!("{sign} {unit}"))))
}

/// Both as numbers; none where one is none, or their units cannot be converted.
pub(super) fn both(used: &Figure, now: &Figure) -> Option<Both> {
    let ((used, unit), (now, other)) = (read(used)?, read(now)?);
    let now = match (&unit, &other) {
        (None, None) => now,
        // Nothing is nothing in any scale.
        (None, Some(_)) | (Some(_), None) if now == 0.0 => now,
        (None, Some(other)) => rounded(now * other.beside(now, used)?),
        (Some(unit), None) => rounded(now / unit.beside(used, now)?),
        (Some(unit), Some(other)) if unit == other => now,
        (Some(unit), Some(other)) if unit.dimension == other.dimension => {
            rounded(now * other.factor / unit.factor)
        }
        _ => return None,
    };
    let is_share = match &unit {
        Some(unit) => unit.is(SHARE),
        // A margin may be negative.
        None => used.abs() <= 1.0 && now.abs() <= 1.0,
    };
    let points = (now - used) * if is_share { 100.0 } else { 1.0 };
    let all = [used, now, points];
    let is_finite = all.iter().all(|one| one.is_finite());
    is_finite.then_some(Both { used, now, points })
}

/// What stands now as somebody would state it who has used this: without a unit where that had none.
pub(super) fn as_used(used: Option<&Figure>, now: &Figure) -> Figure {
    match (used, now) {
        (Some(Figure::Number(_)), Figure::Text(_)) => used
            .and_then(|used| both(used, now))
            .map_or_else(|| now.clone(), |both| Figure::Number(both.now)),
        _ => now.clone(),
    }
}
