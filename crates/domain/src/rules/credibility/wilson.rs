//! Wilson's score interval (Wilson 1927, JASA 22:209).

use concord_wire::payload::track_record::Interval;

/// The normal quantile of a two-sided interval of 95%.
pub const Z: f64 = 1.959_963_984_540_054;

/// The interval of a proportion `p` seen in `n` trials, at the normal quantile `z`. `n` may be an
/// effective size and so any real number. Where it is not positive, the interval is 0 to 1.
///
/// Centre (p + z²/2n) / (1 + z²/n), half-width z / (1 + z²/n) · sqrt(p(1-p)/n + z²/4n²); here both
/// fractions are expanded by n, which stays finite for the smallest n.
pub fn wilson(p: f64, n: f64, z: f64) -> Interval {
    if p.is_nan() || !n.is_finite() || n <= 0.0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let p = p.clamp(0.0, 1.0);
    let z_squared = z * z;
    let centre = (n * p + z_squared / 2.0) / (n + z_squared);
    let half = z / (n + z_squared) * (n * p * (1.0 - p) + z_squared / 4.0).sqrt();
    Interval {
        low: (centre - half).clamp(0.0, 1.0),
        high: (centre + half).clamp(0.0, 1.0),
    }
}
