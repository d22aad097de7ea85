//! Credibility: how reliable an agent is, from its track record.
//!
//! The formulas are those of the specification's "Auto-Resolution Criteria". Where it is ambiguous,
//! this was decided:
//!
//! - *Temporal weight.* A weight that belongs to each observation cannot be multiplied onto an average. So the factor is
//!   the weighted accuracy over the plain one, and the product of the two is the weighted accuracy. Only observations of
//!   the queried domain count; its name is the subject of a debate where nobody has given one, and is compared as those are ([`name_of`]).
//! - *Data points.* The effective size does not shrink when everything is equally old, and the sum of weights does not
//!   when one observation outweighs the rest. So data points are the smaller of the two, wherever a minimum is stated.
//!   Fifteen observations therefore suffice on the day they are made; a year later it takes 22.
//! - *Regime and context* each blend 30% of their own accuracy with 70% of the overall accuracy, written as a factor of
//!   the overall accuracy: the specification's text blends and its formula multiplies. An observation counts for the
//!   context by the share of the queried dimensions in which it is the same; a dimension that it does not state differs.
//! - *Domain expertise.* The specification lists the "relevance of agent specialization" without a formula. Domains have
//!   sub-domains ([`domain`](self::domain)): in the specialised version observations of a wider domain count a share, and
//!   the accuracy in the domain itself is blended in as regime and context are. In the other versions each domain stands
//!   for itself, as in the debates that were decided by them.
//! - *Trend.* One line through the accuracies of past quarters of a year, counted back from now rather than by calendar,
//!   so that the present quarter is never a short one; the weight of a quarter is that of its observations. R² above 0.3 is no test
//!   of significance: within a year it finds a trend in almost every second agent that has none. The present lies
//!   outside the data, so the interval is that of the smaller effective size which an extrapolation rests on
//!   ([`Line::size_share`]): noise may move a score, but seldom settles a dispute.
//! - *Overrides* are weighted by age too, so that they lose their effect. There is a penalty when the lower bound of the
//!   rate's interval is above 20%: at 15 points the rate itself passes 20% by chance. The penalty follows from the rate.
//! - *Ends.* No factor carries the product above 1. The interval is Wilson's of the weighted accuracy, moved with the
//!   score by the factor by which the adjustments changed it, and widened by that factor when it is above 1, never
//!   narrowed when it is below: adjusting makes nobody more certain. For the same reason an interval that would pass 0
//!   or 1 is moved back, not cut.
//! - *Openers.* The cases of one opener weigh at most as much as all others together, once they weigh more than 20 points
//!   ([`opener`](self::opener)). Whatever counts data points counts what is left. Besides the whole, this holds in each
//!   part that is blended in: the domain itself, the regime, the context. Otherwise an opener with half of the record could
//!   be all of a part.
//! - *No record.* An agent without observations has the score one half, with the interval from 0 to 1 and no data points.
//!
//! Sums run over the observations in their own order ([`Observation`]: oldest first), whatever the
//! order in which they are given. Results are rounded to 1e-12: the last bits of powers and
//! logarithms differ between machines, and a replay must give the same results.

mod decay;
mod domain;
mod factors;
mod log_odds;
mod opener;
mod settle;
mod trend;
mod wilson;

use concord_wire::AgentId;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{
    Credibility, Factor, HeldBack, Interval, Query, Version,
};

use crate::rules::impact::graph::name_of;

pub use domain::{SEPARATOR, SHARE_PER_LEVEL, share_for};

pub use decay::{HALF_LIFE_DAYS, Item, Sample, age_days, decay_weight};
pub use factors::{
    BLEND, CONTEXT_POINTS_MIN, EXPERTISE_POINTS_MIN, OVERRIDE_RATE_MAX, REGIME_POINTS_MIN,
    override_penalty, similarity,
};
pub use log_odds::{LOG_ODDS_P_MAX, log_odds};
pub use opener::{Attributed, FREE_POINTS};
pub use settle::{DATA_POINTS_MIN, GAP_MIN, settle};
pub use trend::{Line, Point, QUARTER_DAYS, R_SQUARED_MIN, fit};
pub use wilson::{Z, wilson};

/// An observation with its age in days and the weight that this gives it.
#[derive(Debug, Clone, Copy)]
struct Weighed<'a> {
    observation: &'a Observation,
    opened_by: Option<&'a AgentId>,
    age_days: f64,
    /// How much an observation of its domain counts for the queried one, 0 to 1.
    share: f64,
    /// By age and share.
    weight: f64,
    /// As what part of an observation it counts: less than 1 where its opener is held back.
    count: f64,
}

impl Weighed<'_> {
    /// An item of a sample: whether the observation is a hit.
    fn item(&self, hit: bool) -> Item {
        Item {
            weight: self.weight,
            count: self.count,
            hit,
        }
    }
}

/// The credibility of an agent without observations: that of a coin.
pub fn unknown() -> Credibility {
    Credibility {
        score: 0.5,
        interval: Interval {
            low: 0.0,
            high: 1.0,
        },
        data_points: 0.0,
        effective_size: 0.0,
        observations: 0,
        factors: Vec::new(),
        held_back: None,
    }
}

/// The credibility that follows from observations for a query, by one version of the formula.
pub fn score<'a>(
    version: Version,
    record: impl IntoIterator<Item = impl Into<Attributed<'a>>>,
    query: &Query,
) -> Credibility {
    let mut weighed = in_domain(version, record, query);
    let held_back = opener::hold_back(&mut weighed);
    let overall = Sample::of(weighed.iter().map(|w| w.item(w.observation.correct)));
    let mut product = Product::default();
    let mut size_share = 1.0;
    product.multiply(factors::base(&weighed));
    product.multiply(factors::temporal(&weighed, overall.as_ref()));
    if version == Version::Specialised {
        product.multiply(factors::expertise(&weighed, overall.as_ref()));
    }
    if version != Version::Simple {
        product.multiply(factors::regime(&weighed, overall.as_ref(), query));
        product.multiply(factors::context(&weighed, overall.as_ref(), query));
        let (trend, share) = factors::trend(&weighed, overall.as_ref());
        product.multiply(trend);
        size_share = share;
        // Last, so that the limit of 1 does not reduce the penalty.
        product.multiply(factors::overrides(&weighed));
    }
    let score = product.value.clamp(0.0, 1.0);
    let interval = overall.as_ref().map_or(
        Interval {
            low: 0.0,
            high: 1.0,
        },
        |sample| {
            let interval = wilson(sample.proportion, sample.effective_size * size_share, Z);
            scaled(
                interval,
                if sample.proportion > 0.0 {
                    score / sample.proportion
                } else {
                    1.0
                },
            )
        },
    );
    debug_assert!(
        interval.low <= interval.high,
        "the interval of {score} is {} to {}",
        interval.low,
        interval.high
    );
    Credibility {
        score: rounded(score),
        interval: Interval {
            low: rounded(interval.low),
            high: rounded(interval.high),
        },
        data_points: rounded(overall.as_ref().map_or(0.0, Sample::data_points)),
        effective_size: rounded(overall.as_ref().map_or(0.0, |sample| sample.effective_size)),
        observations: u32::try_from(weighed.len()).unwrap_or(u32::MAX),
        factors: product.factors,
        held_back: held_back.map(|one| HeldBack {
            points: rounded(one.points),
            held: rounded(one.held),
            ..one
        }),
    }
}

/// The observations that count for the queried domain, oldest first.
fn in_domain<'a>(
    version: Version,
    record: impl IntoIterator<Item = impl Into<Attributed<'a>>>,
    query: &Query,
) -> Vec<Weighed<'a>> {
    let asked = name_of(&query.domain);
    let share = |observation: &Observation| {
        let seen = name_of(&observation.domain);
        if version == Version::Specialised {
            share_for(&asked, &seen)
        } else {
            (seen == asked).then_some(1.0)
        }
    };
    let mut observations: Vec<(Attributed<'a>, f64)> = record
        .into_iter()
        .map(Into::into)
        .filter_map(|one| Some((one, share(one.observation)?)))
        .collect();
    observations.sort_by_key(|(one, _)| *one);
    let weigh = |(one, share): (Attributed<'a>, f64)| {
        let age_days = age_days(one.observation.at, query.now);
        Weighed {
            observation: one.observation,
            opened_by: one.opened_by,
            age_days,
            share,
            weight: decay_weight(age_days) * share,
            count: 1.0,
        }
    };
    observations.into_iter().map(weigh).collect()
}

/// The factors so far, and their product.
#[derive(Debug)]
struct Product {
    value: f64,
    factors: Vec<Factor>,
}

impl Default for Product {
    fn default() -> Self {
        Self {
            value: 1.0,
            factors: Vec::new(),
        }
    }
}

impl Product {
    /// Multiplies by a factor. Its explanation gets its full stop here.
    fn multiply(&mut self, mut factor: Factor) {
        // Rounding makes a little more than 1 of 1.
        if self.value * factor.value > 1.0 + 1e-12 {
            factor.value = 1.0 / self.value;
            factor
                .explanation
                .push_str(", limited so that the score does not pass 1");
        }
        factor.explanation.push('.');
        self.value *= factor.value;
        factor.value = rounded(factor.value);
        factor.basis = factor.basis.map(rounded);
        factor.data_points = rounded(factor.data_points);
        self.factors.push(factor);
    }
}

/// The interval after its score was multiplied by `factor`; see "ends" in the documentation of the
/// module.
fn scaled(interval: Interval, factor: f64) -> Interval {
    let half = interval.half_width() * factor.max(1.0);
    let centre = interval.centre() * factor;
    let (low, high) = (centre - half, centre + half);
    let back = if low < 0.0 {
        -low
    } else {
        (1.0 - high).min(0.0)
    };
    Interval {
        low: (low + back).clamp(0.0, 1.0),
        high: (high + back).clamp(0.0, 1.0),
    }
}

/// Rounds to twelve decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e12).round() / 1e12
}

#[cfg(test)]
mod tests;
