//! The weight of an observation by its age, and proportions of weighted observations.

use concord_wire::Timestamp;

/// The age at which an observation has half of its weight: two years.
pub const HALF_LIFE_DAYS: f64 = 730.0;

const DAY_MS: f64 = 86_400_000.0;

/// The whole days from `at` to `now`: 15 observations of today are 15 data points, whatever their
/// seconds. Clocks differ a little, so a time after `now` has the age 0.
pub fn age_days(at: Timestamp, now: Timestamp) -> f64 {
    (now.millis_since(at) as f64 / DAY_MS).floor()
}

/// The weight of an observation of this age: 0.5^(age / 730 days).
pub fn decay_weight(age_days: f64) -> f64 {
    (-age_days / HALF_LIFE_DAYS).exp2()
}

/// A weighted proportion, and how much data it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The weight of the hits as a share of all weight.
    pub proportion: f64,
    /// The sum of the weights.
    pub weight: f64,
    /// Kish's effective sample size, (sum w)² / sum w² (Kish 1965, Survey Sampling, 11.7).
    pub effective_size: f64,
}

impl Sample {
    /// The proportion of hits among weighted items, summed in the order given. `None` where no item
    /// has any weight.
    pub fn of(items: impl Iterator<Item = (f64, bool)> + Clone) -> Option<Self> {
        let heaviest = items.clone().map(|(weight, _)| weight).fold(0.0, f64::max);
        if heaviest <= 0.0 {
            return None;
        }
        // Relative to the heaviest: the squares of very old weights would otherwise vanish.
        let (mut sum, mut squares, mut hits) = (0.0, 0.0, 0.0);
        for (weight, hit) in items {
            let relative = weight / heaviest;
            sum += relative;
            squares += relative * relative;
            hits += if hit { relative } else { 0.0 };
        }
        Some(Self {
            proportion: hits / sum,
            weight: sum * heaviest,
            effective_size: sum * sum / squares,
        })
    }

    /// The number that is compared with a required minimum of data points: the smaller of the sum
    /// of weights and the effective size.
    pub fn data_points(&self) -> f64 {
        self.weight.min(self.effective_size)
    }
}
