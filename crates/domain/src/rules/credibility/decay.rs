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
    debug_assert!(age_days >= 0.0, "an age is not {age_days} days");
    (-age_days / HALF_LIFE_DAYS).exp2()
}

/// One of those of which a proportion is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item {
    /// Its weight.
    pub weight: f64,
    /// As what part of an item it counts, 0 to 1.
    pub count: f64,
    /// Whether it is a hit.
    pub hit: bool,
}

impl From<(f64, bool)> for Item {
    fn from((weight, hit): (f64, bool)) -> Self {
        Self {
            weight,
            count: 1.0,
            hit,
        }
    }
}

/// A weighted proportion, and how much data it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The weight of the hits as a share of all weight.
    pub proportion: f64,
    /// The sum of the weights.
    pub weight: f64,
    /// Kish's effective sample size, (sum w)² / sum w² (Kish 1965, Survey Sampling, 11.7). Both sums are over what counts: a
    /// part of an item adds the same part of its weight, and of the square of its weight.
    pub effective_size: f64,
}

impl Sample {
    /// The proportion of hits among weighted items, summed in the order given. `None` where no item
    /// has any weight.
    pub fn of(items: impl Iterator<Item = impl Into<Item>> + Clone) -> Option<Self> {
        let items = items.map(Into::<Item>::into);
        let heaviest = items.clone().map(|item| item.weight).fold(0.0, f64::max);
        if heaviest <= 0.0 {
            return None;
        }
        // Relative to the heaviest: the squares of very old weights would otherwise vanish.
        let (mut sum, mut squares, mut hits) = (0.0, 0.0, 0.0);
        for Item { weight, count, hit } in items {
            debug_assert!(
                weight.is_finite() && weight >= 0.0,
                "an observation has a weight, not {weight}"
            );
            let relative = weight / heaviest;
            let counting = relative * count;
            sum += counting;
            squares += relative * counting;
            hits += if hit { counting } else { 0.0 };
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
