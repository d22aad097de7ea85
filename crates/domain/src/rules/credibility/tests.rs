//! Values of the specification and of the literature; every number is derived in its comment or by
//! hand.

mod factors;
mod openers;
mod properties;

use concord_wire::Timestamp;
use concord_wire::payload::track_record::{Context, FactorName, SettlementReason, Side, Source};

use super::*;

const DAY_MS: u64 = 86_400_000;

fn start() -> Timestamp {
    Timestamp::parse("2000-01-01T00:00:00Z").unwrap()
}

/// The present of these tests: 10,000 days after the start.
fn now() -> Timestamp {
    start().plus_millis(10_000 * DAY_MS)
}

fn observed(age_days: u64, correct: bool) -> Observation {
    Observation {
        at: start().plus_millis((10_000 - age_days) * DAY_MS),
        correct,
        domain: "valuation".into(),
        regime: None,
        context: Context::default(),
        source: Source::Outcome,
        overridden: false,
    }
}

/// `correct` of `all` observations, all made now.
fn fresh(correct: usize, all: usize) -> Vec<Observation> {
    (0..all).map(|n| observed(0, n < correct)).collect()
}

fn query() -> Query {
    Query {
        now: now(),
        domain: "valuation".into(),
        regime: None,
        context: Context::default(),
    }
}

fn factor(credibility: &Credibility, name: FactorName) -> &Factor {
    credibility
        .factors
        .iter()
        .find(|factor| factor.name == name)
        .unwrap()
}

#[test]
fn a_domain_is_one_however_it_is_spelled() {
    let spelled = ["operating_margin", "operating margin", "Operating-Margin"];
    let record: Vec<Observation> = spelled
        .map(|domain| Observation {
            domain: domain.into(),
            ..observed(0, true)
        })
        .into();
    for (version, asked) in [
        (Version::Simple, "operating margin"),
        (Version::Comprehensive, "OPERATING_MARGIN"),
        (Version::Specialised, "operating-margin.acme"),
    ] {
        let query = Query {
            domain: asked.into(),
            ..query()
        };
        assert_eq!(score(version, &record, &query).observations, 3, "{asked}");
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn wilson_has_the_values_of_the_literature() {
    // 12 of 15: the example of the design. Nothing and everything: the bounds have closed forms.
    let z2 = Z * Z;
    for (k, n, low, high) in [
        (12.0, 15.0, 0.548145512848, 0.929524506530),
        (0.0, 15.0, 0.0, z2 / (15.0 + z2)),
        (15.0, 15.0, 15.0 / (15.0 + z2), 1.0),
        (
            50.0,
            100.0,
            0.5 - Z / (2.0 * (100.0 + z2).sqrt()),
            0.5 + Z / (2.0 * (100.0 + z2).sqrt()),
        ),
    ] {
        let interval = wilson(k / n, n, Z);
        assert!(
            (interval.low - low).abs() < 1e-11 && (interval.high - high).abs() < 1e-11,
            "{k} of {n}: {interval:?}"
        );
    }
}

#[test]
fn of_nothing_the_interval_is_everything() {
    for (p, n) in [
        (0.8, 0.0),
        (0.0, -1.0),
        (f64::NAN, 15.0),
        (0.5, f64::NAN),
        (0.5, f64::INFINITY),
    ] {
        let interval = wilson(p, n, Z);
        assert_eq!((interval.low, interval.high), (0.0, 1.0), "{p} {n}");
        assert_eq!((interval.centre(), interval.half_width()), (0.5, 0.5));
    }
}

#[test]
fn an_observation_weighs_half_after_two_years() {
    for (days, weight) in [
        (0.0, 1.0),
        (365.0, 0.5_f64.sqrt()),
        (730.0, 0.5),
        (1460.0, 0.25),
        (2190.0, 0.125),
        (3650.0, 0.03125),
    ] {
        assert!((decay_weight(days) - weight).abs() < 1e-15, "{days}");
    }
    assert_eq!(age_days(now(), now()), 0.0);
    assert_eq!(
        age_days(now().plus_millis(DAY_MS), now()),
        0.0,
        "later than now is now"
    );
    assert_eq!(age_days(observed(365, true).at, now()), 365.0);
}

#[test]
fn the_effective_size_is_that_of_kish() {
    let sample = |items: &[(f64, bool)]| Sample::of(items.iter().copied());
    // (2 + 1 + 1)² / (4 + 1 + 1) = 16 / 6, though the weights add up to 4.
    let mixed = sample(&[(2.0, true), (1.0, false), (1.0, true)]).unwrap();
    assert!(
        near(mixed.effective_size, 16.0 / 6.0)
            && near(mixed.weight, 4.0)
            && near(mixed.proportion, 0.75)
    );
    assert!(near(mixed.data_points(), 16.0 / 6.0));
    // Equally old: the size stays 20, the data points do not.
    let old = sample(&[(0.25, true); 20]).unwrap();
    assert!(near(old.effective_size, 20.0) && near(old.data_points(), 5.0));
    // Weights whose squares are too small to be written.
    let ancient = sample(&[(1e-200, true), (1e-200, false)]).unwrap();
    assert!(near(ancient.effective_size, 2.0) && near(ancient.proportion, 0.5));
    assert_eq!(sample(&[]), None);
    assert_eq!(sample(&[(0.0, true)]), None);
}

#[test]
fn a_line_is_found_where_there_is_one() {
    let points = |ys: &[f64], weights: &[f64]| -> Vec<Point> {
        let xs = (0..ys.len()).map(|x| x as f64);
        xs.zip(ys)
            .zip(weights)
            .map(|((x, y), weight)| Point {
                x,
                y: *y,
                weight: *weight,
            })
            .collect()
    };
    let exact = fit(&points(&[0.5, 0.6, 0.7], &[1.0, 0.3, 0.7])).unwrap();
    assert!(near(exact.slope, 0.1) && near(exact.intercept, 0.5) && near(exact.r_squared, 1.0));
    // y = 0, 1, 0 with weights 1, 2, 1: means 1 and 1/2, no covariance.
    let none = fit(&points(&[0.0, 1.0, 0.0], &[1.0, 2.0, 1.0])).unwrap();
    assert!(near(none.slope, 0.0) && near(none.intercept, 0.5) && near(none.r_squared, 0.0));
    assert_eq!(fit(&points(&[0.5, 0.6], &[1.0, 1.0])), None, "two points");
    assert_eq!(
        fit(&points(&[0.7, 0.7, 0.7, 0.7], &[1.0, 0.5, 0.2, 0.1])),
        None,
        "one accuracy"
    );
    assert_eq!(
        fit(&points(&[0.5, 0.6, 0.7], &[1.0, 1.0, 0.0])),
        None,
        "the third has no weight"
    );
    let same_time = [0.1, 0.2, 0.3].map(|y| Point {
        x: 1.0,
        y,
        weight: 1.0,
    });
    assert_eq!(fit(&same_time), None, "one time");
}

#[test]
fn simple_credibility_is_the_weighted_accuracy() {
    // Weights 1, 1/√2, 1/2, 1/4, the third wrong.
    let record = [(0, true), (365, true), (730, false), (1460, true)]
        .map(|(age, correct)| observed(age, correct));
    let credibility = score(Version::Simple, &record, &query());
    let all = 1.75 + 0.5_f64.sqrt();
    assert!(near(credibility.score, (all - 0.5) / all));
    assert!(near(
        credibility.effective_size,
        all * all / (1.0 + 0.5 + 0.25 + 0.0625)
    ));
    assert!(near(credibility.data_points, all));
    assert_eq!(credibility.observations, 4);
    let [base, temporal] = credibility.factors.as_slice() else {
        panic!("{:?}", credibility.factors)
    };
    assert!(near(base.value, 0.75) && near(base.value * temporal.value, credibility.score));
    assert_eq!(
        base.explanation,
        "3 of 4 observations in the domain were correct: 0.750."
    );
    assert_eq!(
        temporal.explanation,
        "Weighted by age with a half-life of 730 days, the accuracy is 0.797 from 2.5 data points."
    );
    assert_eq!(
        credibility.interval.low,
        rounded(wilson((all - 0.5) / all, credibility.effective_size, Z).low)
    );
}

#[test]
fn who_was_never_right_was_so_in_0_of_all() {
    let known = score(Version::Simple, &fresh(0, 2), &query());
    assert_eq!(
        known.factors[0].explanation,
        "0 of 2 observations in the domain were correct: 0.000."
    );
}

#[test]
fn only_the_domain_counts_and_names_are_compared_as_everywhere() {
    let mut record = fresh(12, 15);
    record[0].domain = " VALUATION ".into();
    record.extend(fresh(0, 30).into_iter().map(|o| Observation {
        domain: "legal".into(),
        ..o
    }));
    let credibility = score(Version::Simple, &record, &query());
    assert_eq!(
        (
            credibility.score,
            credibility.data_points,
            credibility.observations
        ),
        (0.8, 15.0, 15)
    );
}

#[test]
fn who_has_no_record_has_no_credibility_and_no_discredit() {
    let ancient = Observation {
        at: Timestamp::parse("0001-01-01T00:00:00Z").unwrap(),
        ..observed(0, true)
    };
    let late = Query {
        now: Timestamp::parse("9999-01-01T00:00:00Z").unwrap(),
        ..query()
    };
    for version in [Version::Simple, Version::Comprehensive] {
        for (record, query) in [(vec![], query()), (vec![ancient.clone()], late.clone())] {
            let credibility = score(version, &record, &query);
            assert_eq!(
                (
                    credibility.score,
                    credibility.data_points,
                    credibility.effective_size
                ),
                (0.5, 0.0, 0.0)
            );
            assert_eq!(
                (credibility.interval.low, credibility.interval.high),
                (0.0, 1.0)
            );
            assert!(credibility.factors.iter().all(|factor| !factor.applied));
            assert_eq!(
                settle(&credibility, &credibility).reason,
                SettlementReason::InsufficientData
            );
        }
    }
}

#[test]
fn credibility_settles_only_what_it_is_sure_of() {
    use SettlementReason as R;
    for (a, b, winner, reason) in [
        ((95, 100), (60, 100), Some(Side::A), R::GapExceedsThreshold),
        ((60, 100), (95, 100), Some(Side::B), R::GapExceedsThreshold),
        ((14, 15), (9, 15), None, R::GapTooSmall),
        ((90, 100), (70, 100), None, R::GapTooSmall),
        // A gap of exactly 0.25, where 0.25 is the threshold; and a little more.
        ((95, 100), (70, 100), None, R::GapTooSmall),
        ((96, 100), (70, 100), Some(Side::A), R::GapExceedsThreshold),
        ((14, 14), (0, 1000), None, R::InsufficientData),
        ((1000, 1000), (0, 14), None, R::InsufficientData),
        ((15, 15), (0, 15), Some(Side::A), R::GapExceedsThreshold),
    ] {
        let credibility = |(correct, all)| score(Version::Simple, &fresh(correct, all), &query());
        let settlement = settle(&credibility(a), &credibility(b));
        assert_eq!(
            (settlement.winner, settlement.reason),
            (winner, reason),
            "{a:?} against {b:?}: {settlement:?}"
        );
    }
}

#[test]
fn fifteen_observations_are_enough_only_while_they_are_new() {
    let aged = |age: u64, all: usize| -> Credibility {
        let record: Vec<Observation> = (0..all).map(|_| observed(age, true)).collect();
        score(Version::Simple, &record, &query())
    };
    let against = score(Version::Simple, &fresh(0, 100), &query());
    for (age, all, enough) in [
        (0, 14, false),
        (0, 15, true),
        (1, 15, false),
        (365, 21, false),
        (365, 22, true),
    ] {
        let settlement = settle(&aged(age, all), &against);
        assert_eq!(
            settlement.reason != SettlementReason::InsufficientData,
            enough,
            "{all} of {age} days"
        );
    }
}

#[test]
fn a_gap_of_three_tenths_needs_more_than_the_minimum_of_data() {
    // Accuracies 0.3 apart, the better one from 0.8 to 0.95, and the sum of the half-widths of
    // their intervals.
    let halves = |n: u32, percent: u32| -> f64 {
        let accuracies = [percent, percent - 30].map(|percent| f64::from(percent) / 100.0);
        accuracies
            .iter()
            .map(|p| wilson(*p, f64::from(n), Z).half_width())
            .sum()
    };
    assert!((80..=95).all(|percent| (0.35..0.42).contains(&halves(15, percent))));
    let first: Vec<u32> = (80..=95)
        .map(|percent| (15..100).find(|n| halves(*n, percent) < 0.3).unwrap())
        .collect();
    assert_eq!(
        (first.iter().min(), first.iter().max()),
        (Some(&21), Some(&32)),
        "{first:?}"
    );
}

#[test]
fn log_odds_reward_the_able_and_ignore_the_rest() {
    for (p, options, weight) in [
        (0.9, 2, 9.0_f64.ln()),
        (0.6, 2, 1.5_f64.ln()),
        (0.5, 2, 0.0),
        (0.2, 2, 0.0),
        (0.5, 4, 3.0_f64.ln()),
        (0.25, 4, 0.0),
        (0.9, 1, 9.0_f64.ln()),
        (1.0, 2, 99.0_f64.ln()),
        (0.0, 1000, (999.0_f64 / 99.0).ln()),
        (f64::NAN, 2, 0.0),
    ] {
        assert!(
            near(log_odds(p, options), weight),
            "{p} of {options}: {}",
            log_odds(p, options)
        );
    }
}
