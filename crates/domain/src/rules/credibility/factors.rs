//! The factors of a credibility, one function each. An explanation has no full stop here; the
//! product adds it.

use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{Context, Factor, FactorName, Query};

use super::opener::hold_back;
use super::{HALF_LIFE_DAYS, Item, R_SQUARED_MIN, Sample, Weighed, Z, fit, trend, wilson};
use crate::rules::canonical::normalise;

/// The share of the score for which the accuracy in the domain itself stands, the one in the regime, and the one in the
/// context.
pub const BLEND: f64 = 0.3;
/// The data points that the regime needs.
pub const REGIME_POINTS_MIN: f64 = 50.0;
/// The data points that the context needs.
pub const CONTEXT_POINTS_MIN: f64 = 15.0;
/// The data points that domain expertise needs, as the context.
pub const EXPERTISE_POINTS_MIN: f64 = 15.0;
/// The rate of overrides above which there is a penalty.
pub const OVERRIDE_RATE_MAX: f64 = 0.2;

const NOTHING_KNOWN: &str = "nothing is known of the agent in the domain";
const NEVER_CORRECT: &str = "the agent was never correct in the domain, which no factor changes";

fn applied(name: FactorName, value: f64, basis: &Sample, explanation: String) -> Factor {
    let (basis, data_points) = (Some(basis.proportion), basis.data_points());
    Factor {
        name,
        value,
        basis,
        weight: None,
        data_points,
        applied: true,
        explanation,
    }
}

fn not_applied(name: FactorName, basis: Option<&Sample>, reason: &str) -> Factor {
    Factor {
        name,
        value: 1.0,
        basis: basis.map(|sample| sample.proportion),
        weight: None,
        data_points: basis.map_or(0.0, Sample::data_points),
        applied: false,
        explanation: format!("Not applied because {reason}"),
    }
}

/// The plain accuracy; one half where no observation has any weight.
pub(super) fn base(weighed: &[Weighed<'_>]) -> Factor {
    let name = FactorName::BaseAccuracy;
    let living = weighed.iter().filter(|w| w.weight > 0.0);
    let plainly = living.map(|w| Item {
        weight: w.share,
        ..w.item(w.observation.correct)
    });
    match Sample::of(plainly) {
        Some(plain) => {
            let correct: f64 = weighed
                .iter()
                .filter(|w| w.weight > 0.0 && w.observation.correct)
                .map(|w| w.share * w.count)
                // The sum of nothing is minus zero.
                .fold(0.0, |sum, share| sum + share);
            // Parts of observations have many decimals.
            let number = |points: f64| match weighed.iter().all(|w| w.count >= 1.0) {
                true => points.to_string(),
                false => format!("{points:.1}"),
            };
            let explanation = format!(
                "{} of {} observations in the domain were correct: {:.3}",
                number(correct),
                number(plain.weight),
                plain.proportion
            );
            applied(name, plain.proportion, &plain, explanation)
        }
        None => Factor {
            value: 0.5,
            ..not_applied(
                name,
                None,
                "nothing is known of the agent in the domain, which is held to be one half",
            )
        },
    }
}

/// The effect of weighting observations by age.
pub(super) fn temporal(weighed: &[Weighed<'_>], overall: Option<&Sample>) -> Factor {
    let name = FactorName::TemporalWeight;
    let Some(overall) = overall else {
        return not_applied(name, None, NOTHING_KNOWN);
    };
    let base = base(weighed).value;
    // Where every observation was wrong, weights change nothing.
    let value = if base > 0.0 {
        overall.proportion / base
    } else {
        1.0
    };
    let explanation = format!(
        "Weighted by age with a half-life of {HALF_LIFE_DAYS} days, the accuracy is {:.3} from {:.1} data points",
        overall.proportion,
        overall.data_points()
    );
    applied(name, value, overall, explanation)
}

/// Blends the accuracy in the domain itself in, where observations of wider domains count as well.
pub(super) fn expertise(weighed: &[Weighed<'_>], overall: Option<&Sample>) -> Factor {
    let name = FactorName::DomainExpertise;
    if weighed.iter().all(|w| w.share >= 1.0) {
        return not_applied(name, overall, "all observations are from the domain itself");
    }
    let part = part(weighed, |w| if w.share >= 1.0 { 1.0 } else { 0.0 });
    blend(
        name,
        "the domain itself",
        EXPERTISE_POINTS_MIN,
        overall,
        part.as_ref(),
    )
}

/// Blends the accuracy in the present regime in.
pub(super) fn regime(weighed: &[Weighed<'_>], overall: Option<&Sample>, query: &Query) -> Factor {
    let name = FactorName::RegimeAdjustment;
    let Some(regime) = &query.regime else {
        return not_applied(name, None, "no present regime is given");
    };
    let regime = normalise(regime);
    let same = |o: &Observation| {
        o.regime
            .as_deref()
            .is_some_and(|other| normalise(other) == regime)
    };
    let part = part(weighed, |w| if same(w.observation) { 1.0 } else { 0.0 });
    blend(
        name,
        "the present regime",
        REGIME_POINTS_MIN,
        overall,
        part.as_ref(),
    )
}

/// Blends the accuracy in circumstances like the queried ones in.
pub(super) fn context(weighed: &[Weighed<'_>], overall: Option<&Sample>, query: &Query) -> Factor {
    let name = FactorName::ContextMatch;
    if query
        .context
        .dimensions()
        .iter()
        .all(|(_, value)| value.is_none())
    {
        return not_applied(name, None, "no dimension of the context is given");
    }
    let part = part(weighed, |w| {
        similarity(&query.context, &w.observation.context)
    });
    blend(
        name,
        "like circumstances",
        CONTEXT_POINTS_MIN,
        overall,
        part.as_ref(),
    )
}

/// What the observations say to which `share` gives a part of their weight, 0 to 1. Here too nobody's cases outweigh all others.
fn part(weighed: &[Weighed<'_>], share: impl Fn(&Weighed<'_>) -> f64) -> Option<Sample> {
    let shared = weighed.iter().map(|w| Weighed {
        weight: w.weight * share(w),
        ..*w
    });
    let mut shared: Vec<Weighed<'_>> = shared.filter(|w| w.weight > 0.0).collect();
    hold_back(&mut shared);
    Sample::of(shared.iter().map(|w| w.item(w.observation.correct)))
}

/// The share of the dimensions that `asked` states in which `seen` is the same; 0 where none is
/// stated.
pub fn similarity(asked: &Context, seen: &Context) -> f64 {
    let (mut stated, mut matched) = (0.0, 0.0);
    for ((_, asked), (_, seen)) in asked.dimensions().into_iter().zip(seen.dimensions()) {
        let Some(asked) = asked else { continue };
        stated += 1.0;
        if seen.is_some_and(|seen| normalise(seen) == normalise(asked)) {
            matched += 1.0;
        }
    }
    if stated > 0.0 { matched / stated } else { 0.0 }
}

/// (0.7 overall + 0.3 part) / overall, where the part has enough data.
fn blend(
    name: FactorName,
    place: &str,
    points_min: f64,
    overall: Option<&Sample>,
    part: Option<&Sample>,
) -> Factor {
    let Some(overall) = overall else {
        return not_applied(name, None, NOTHING_KNOWN);
    };
    let Some(part) = part.filter(|part| super::rounded(part.data_points()) >= points_min) else {
        let points = part.map_or(0.0, Sample::data_points);
        let reason =
            format!("{points:.1} of the {points_min:.0} data points needed are from {place}");
        return not_applied(name, part, &reason);
    };
    if overall.proportion <= 0.0 {
        return not_applied(name, Some(part), NEVER_CORRECT);
    }
    let value = ((1.0 - BLEND) * overall.proportion + BLEND * part.proportion) / overall.proportion;
    let explanation = format!(
        "{:.0}% is the accuracy in {place}, {:.3} from {:.1} data points, against {:.3} overall",
        BLEND * 100.0,
        part.proportion,
        part.data_points(),
        overall.proportion
    );
    Factor {
        weight: Some(BLEND),
        ..applied(name, value, part, explanation)
    }
}

/// The accuracy that past quarters predict for now, divided by the weighted accuracy. The second
/// value is the share of the effective size on which the prediction rests.
pub(super) fn trend(weighed: &[Weighed<'_>], overall: Option<&Sample>) -> (Factor, f64) {
    let name = FactorName::TrendAdjusted;
    let Some(overall) = overall else {
        return (not_applied(name, None, NOTHING_KNOWN), 1.0);
    };
    let points = trend::quarters(weighed);
    let Some(line) = fit(&points) else {
        let reason = format!(
            "it takes three quarters whose accuracies differ, and {} have observations",
            points.len()
        );
        return (not_applied(name, None, &reason), 1.0);
    };
    let fitted = format!(
        "slope {:.3} a quarter, R² {:.2} over {} quarters",
        line.slope,
        line.r_squared,
        points.len()
    );
    // The value of the line at the present: quarters are counted from now.
    let expected = Sample {
        proportion: line.intercept.clamp(0.0, 1.0),
        weight: overall.weight * line.size_share,
        effective_size: overall.effective_size * line.size_share,
    };
    if super::rounded(line.r_squared) <= R_SQUARED_MIN {
        return (
            not_applied(
                name,
                Some(&expected),
                &format!("the line explains too little: {fitted}"),
            ),
            1.0,
        );
    }
    let value = expected.proportion / overall.proportion;
    let explanation = format!(
        "The accuracy extrapolated to now is {:.3}: {fitted}",
        expected.proportion
    );
    (
        applied(name, value, &expected, explanation),
        line.size_share,
    )
}

/// The penalty for a rate of overrides: 1 - (rate - 0.2), at most 1. `None` when the lower bound of
/// the rate's interval is not above 20%.
pub fn override_penalty(rate: f64, effective_size: f64) -> Option<f64> {
    let low = super::rounded(wilson(rate, effective_size, Z).low);
    (low > OVERRIDE_RATE_MAX).then(|| (1.0 - (rate - OVERRIDE_RATE_MAX)).clamp(0.0, 1.0))
}

/// The penalty for frequent overrides.
pub(super) fn overrides(weighed: &[Weighed<'_>]) -> Factor {
    let name = FactorName::OverridePenalty;
    let Some(rate) = Sample::of(weighed.iter().map(|w| w.item(w.observation.overridden))) else {
        return not_applied(name, None, NOTHING_KNOWN);
    };
    let low = wilson(rate.proportion, rate.effective_size, Z).low;
    let limit = OVERRIDE_RATE_MAX;
    let Some(value) = override_penalty(rate.proportion, rate.effective_size) else {
        let reason = format!(
            "the rate of overrides, {:.3}, is not surely above {limit}: the lower bound of its interval is {low:.3}",
            rate.proportion
        );
        return not_applied(name, Some(&rate), &reason);
    };
    let explanation = format!(
        "People overrode the agent at a rate of {:.3}, surely above {limit}: the lower bound of its interval is {low:.3}",
        rate.proportion
    );
    applied(name, value, &rate, explanation)
}
