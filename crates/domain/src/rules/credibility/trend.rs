//! The trend of an accuracy: weighted least squares over past quarters.

use std::collections::BTreeMap;

use super::{Item, Sample, Weighed};

/// A trend counts when its weighted R² is above this.
pub const R_SQUARED_MIN: f64 = 0.3;
/// Days in a quarter of a year.
pub const QUARTER_DAYS: f64 = 365.25 / 4.0;

/// Points lighter than this share of the heaviest are thirty half-lives older, and cannot be told
/// from rounding.
const LIGHTEST: f64 = 1e-9;

/// One point of a trend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The position on the time axis.
    pub x: f64,
    /// The value at that time.
    pub y: f64,
    /// The weight of the point.
    pub weight: f64,
}

/// A straight line, and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Its value at 0.
    pub intercept: f64,
    /// Its increase for each unit.
    pub slope: f64,
    /// The weighted share of the variance that it explains, 0 to 1.
    pub r_squared: f64,
    /// The share of the points' effective size on which the value at 0 rests, 0 to 1: 1 / (1 +
    /// mean(x)² / var(x)), the inverse of the factor of an extrapolation's variance.
    pub size_share: f64,
}

/// Fits a line by weighted least squares. `None` for fewer than three points, and where all have
/// the same y or the same x.
pub fn fit(points: &[Point]) -> Option<Line> {
    let heaviest = points.iter().map(|point| point.weight).fold(0.0, f64::max);
    let lightest = heaviest * LIGHTEST;
    let points: Vec<&Point> = points
        .iter()
        .filter(|point| point.weight > lightest)
        .collect();
    let spread = |of: fn(&Point) -> f64| {
        let ends =
            points
                .iter()
                .map(|point| of(point))
                .fold(None, |ends: Option<(f64, f64)>, value| {
                    Some(ends.map_or((value, value), |(low, high)| {
                        (low.min(value), high.max(value))
                    }))
                });
        ends.map_or(0.0, |(low, high)| high - low)
    };
    // Equal values may differ in their last bits, because they are quotients of sums.
    if points.len() < 3 || spread(|point| point.y) < 1e-12 || spread(|point| point.x) <= 0.0 {
        return None;
    }
    let relative = |point: &Point| point.weight / heaviest;
    let total: f64 = points.iter().map(|point| relative(point)).sum();
    let x_mean = points
        .iter()
        .map(|point| relative(point) * point.x)
        .sum::<f64>()
        / total;
    let y_mean = points
        .iter()
        .map(|point| relative(point) * point.y)
        .sum::<f64>()
        / total;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let (weight, x, y) = (relative(point), point.x - x_mean, point.y - y_mean);
        xx += weight * x * x;
        xy += weight * x * y;
        yy += weight * y * y;
    }
    let slope = xy / xx;
    let r_squared = (slope * (xy / yy)).clamp(0.0, 1.0);
    let size_share = xx / (xx + total * x_mean * x_mean);
    debug_assert!(
        slope.is_finite() && (0.0..=1.0).contains(&size_share),
        "a line has a slope and rests on a share of the points: {slope}, {size_share}"
    );
    Some(Line {
        intercept: y_mean - slope * x_mean,
        slope,
        r_squared,
        size_share,
    })
}

/// The accuracy by quarter, oldest first. The time of a quarter is its middle, in quarters from
/// now, so that the present is 0.
pub(super) fn quarters(weighed: &[Weighed<'_>]) -> Vec<Point> {
    let mut quarters: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
    for w in weighed {
        let ago = (w.age_days / QUARTER_DAYS).floor() as u64;
        quarters
            .entry(ago)
            .or_default()
            .push(w.item(w.observation.correct));
    }
    let point = |(ago, items): (&u64, &Vec<Item>)| {
        let sample = Sample::of(items.iter().copied())?;
        Some(Point {
            x: -(*ago as f64 + 0.5),
            y: sample.proportion,
            weight: sample.weight,
        })
    };
    quarters.iter().rev().filter_map(point).collect()
}
