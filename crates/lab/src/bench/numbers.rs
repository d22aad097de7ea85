//! Percentiles, medians and slopes.

use std::time::Duration;

/// With two decimal places.
pub(super) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The middle of some values; the upper of two; 0 of none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The value below which a share of the sorted values lies, in milliseconds; 0 of none.
pub(super) fn percentile_ms(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    let value = sorted
        .get(place.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default();
    round(value.as_secs_f64() * 1_000.0)
}

/// The slope of the straight line with the least squares through points; 0 of fewer than two different places.
pub(super) fn slope(points: &[(f64, f64)]) -> f64 {
    let all = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / all, y / all);
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
        let from = point.0 - x;
        (above + from * (point.1 - y), below + from * from)
    });
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let measured: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile_ms(&measured, 0.5), 101.0);
        assert_eq!(percentile_ms(&measured, 0.99), 199.0);
        assert_eq!(percentile_ms(&measured, 1.0), 200.0);
        assert_eq!(percentile_ms(&[], 0.5), 0.0);
    }

    #[test]
    fn a_slope_is_found_through_noise() {
        let points = [(0.0, 10.0), (1.0, 13.0), (2.0, 13.0), (3.0, 16.0)];
        assert!((slope(&points) - 1.8).abs() < 1e-9);
        assert_eq!(slope(&[(1.0, 5.0)]), 0.0);
        assert_eq!(slope(&[]), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
    }
}
