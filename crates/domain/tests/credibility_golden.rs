//! The formulas of credibility against reference values computed with statsmodels and scipy.
//!
//! The values are data and not part of the project: `golden/credibility.json` in the folder that `CONCORD_DATA` names, or
//! in `../shared/data` beside the workspace. Where it is absent, that is said and there is nothing to compare.

// Clippy knows helpers of tests only inside `#[test]`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};

use concord_domain::rules::credibility::{
    GAP_MIN, HALF_LIFE_DAYS, Line, Point, R_SQUARED_MIN, Sample, Z, age_days, decay_weight, fit,
    log_odds, override_penalty, score, settle, wilson,
};
use concord_domain::rules::vote;
use concord_wire::Timestamp;
use concord_wire::payload::track_record::{
    Context, Credibility, Interval, Observation, Query, Source, Version,
};
use concord_wire::policy::VoteRule;
use serde_json::Value;

/// Compares one section.
type Compare = fn(&Value);

const DAY_MS: u64 = 86_400_000;

#[allow(clippy::disallowed_methods)] // The rule is for the domain; this test looks at it from outside.
fn golden() -> Option<Value> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("CONCORD_DATA").map_or_else(usual, PathBuf::from);
    let path = folder.join("golden/credibility.json");
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(error) => {
            // Not by `eprintln!`, which the test harness keeps to itself when a test passes.
            let path = path.display();
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the golden values of credibility are not at {path} ({error}); CONCORD_DATA names their folder"
            );
            None
        }
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .map_or_else(|| panic!("{value} is no list"), Vec::as_slice)
}

#[track_caller]
fn same(ours: f64, golden: &Value, of: &dyn Debug) {
    assert!(
        (ours - number(golden)).abs() <= 1e-9,
        "{ours} is not {golden}, of {of:?}"
    );
}

fn now() -> Timestamp {
    Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
}

fn observed(age_days: u64, correct: bool) -> Observation {
    let at = Timestamp::from_unix_millis(
        now().unix_millis() - i64::try_from(age_days * DAY_MS).unwrap(),
    );
    Observation {
        at,
        correct,
        domain: "valuation".into(),
        regime: None,
        context: Context::default(),
        source: Source::Outcome,
        overridden: false,
    }
}

fn simple(record: &[Observation]) -> Credibility {
    let query = Query {
        now: now(),
        domain: "valuation".into(),
        regime: None,
        context: Context::default(),
    };
    score(Version::Simple, record, &query)
}

#[test]
fn every_formula_has_the_reference_values() {
    let Some(golden) = golden() else { return };
    let sections: BTreeSet<&str> = golden
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let known: [(&str, Compare); 11] = [
        ("z_0.975", |golden| same(Z, golden, &"the quantile")),
        ("wilson_95", |golden| wilson_intervals(golden, Z)),
        // The quantile of a two-sided interval of 90%.
        ("wilson_90", |golden| {
            wilson_intervals(golden, 1.644_853_626_951_472_7)
        }),
        ("override_wilson", overrides),
        ("decay_weights", weights),
        ("decay_case_4", |golden| decay(golden, &four(golden))),
        ("decay_case_20_monthly", |golden| {
            decay(
                golden,
                &(0..20).map(|i| (30 * i, i % 5 != 0)).collect::<Vec<_>>(),
            )
        }),
        ("decay_case_15_now", |golden| {
            decay(golden, &(0..15).map(|i| (0, i < 12)).collect::<Vec<_>>())
        }),
        ("auto_resolve", auto_resolve),
        ("jury", juries),
        ("reconcile_rescale", reconcile),
    ];
    let names: BTreeSet<&str> = known.iter().map(|(name, _)| *name).chain(TRENDS).collect();
    assert_eq!(sections, names, "every section is compared");
    for (name, compare) in known {
        compare(&golden[name]);
    }
    trends(&golden);
}

fn wilson_intervals(golden: &Value, z: f64) {
    for case in list(golden) {
        let (k, n) = (number(&case["k"]), number(&case["n"]));
        let interval = wilson(k / n, n, z);
        same(interval.low, &case["lo"], case);
        same(interval.high, &case["hi"], case);
    }
}

fn overrides(golden: &Value) {
    wilson_intervals(golden, Z);
    for case in list(golden) {
        let (k, n) = (number(&case["k"]), number(&case["n"]));
        same(k / n, &case["rate"], case);
        assert_eq!(
            override_penalty(k / n, n).is_some(),
            number(&case["lo"]) > 0.2,
            "{case}"
        );
    }
}

fn weights(golden: &Value) {
    for (days, weight) in golden.as_object().unwrap() {
        same(decay_weight(days.parse().unwrap()), weight, days);
    }
}

fn four(golden: &Value) -> Vec<(u64, bool)> {
    let pair = |pair: &Value| (pair[0].as_u64().unwrap(), pair[1] == 1);
    list(&golden["obs_age_days_outcome"])
        .iter()
        .map(pair)
        .collect()
}

fn decay(golden: &Value, observations: &[(u64, bool)]) {
    if let Some(half_life) = golden.get("half_life_days") {
        same(HALF_LIFE_DAYS, half_life, golden);
    }
    let record: Vec<Observation> = observations
        .iter()
        .map(|(age, correct)| observed(*age, *correct))
        .collect();
    let weight = |o: &Observation| decay_weight(age_days(o.at, now()));
    for (observation, expected) in record
        .iter()
        .zip(golden.get("weights").map(list).unwrap_or_default())
    {
        same(weight(observation), expected, observation);
    }
    let sample = Sample::of(record.iter().map(|o| (weight(o), o.correct))).unwrap();
    same(sample.weight, &golden["sum_w"], golden);
    let credibility = simple(&record);
    same(credibility.score, &golden["p"], golden);
    same(credibility.effective_size, &golden["kish_neff"], golden);
    assert!(
        (credibility.data_points - number(&golden["sum_w"]).min(number(&golden["kish_neff"])))
            .abs()
            <= 1e-9
    );
    let Interval { low, high } = credibility.interval;
    same(low, &golden["wilson_lo"], golden);
    same(high, &golden["wilson_hi"], golden);
    same(credibility.interval.centre(), &golden["center"], golden);
    same(credibility.interval.half_width(), &golden["half"], golden);
}

fn line(golden: &Value, weights: &[f64]) -> Line {
    let points = numbers(&golden["x"])
        .into_iter()
        .zip(numbers(&golden["y"]))
        .zip(weights);
    fit(&points
        .map(|((x, y), weight)| Point {
            x,
            y,
            weight: *weight,
        })
        .collect::<Vec<_>>())
    .unwrap()
}

const TRENDS: [&str; 3] = ["wls_trend_up", "wls_trend_flat", "wls_trend_down"];

fn trends(golden: &Value) {
    // The other two say "same".
    let up = &golden["wls_trend_up"];
    let weights = numbers(&up["weights"]);
    for name in TRENDS {
        let golden = &golden[name];
        let line = line(golden, &weights);
        same(line.intercept, &golden["intercept"], golden);
        same(line.slope, &golden["slope"], golden);
        same(line.r_squared, &golden["r2"], golden);
        assert_eq!(
            line.r_squared > R_SQUARED_MIN,
            golden.get("gate").is_none(),
            "{golden}"
        );
    }
    let plain = line(up, &vec![1.0; weights.len()]);
    same(plain.intercept, &up["ols_intercept"], up);
    same(plain.slope, &up["ols_slope"], up);
    same(plain.r_squared, &up["ols_r2"], up);
}

fn auto_resolve(golden: &Value) {
    for case in list(golden) {
        let side = |name: &str| {
            let (correct, all) = (
                case[name][0].as_u64().unwrap(),
                case[name][1].as_u64().unwrap(),
            );
            simple(
                &(0..all)
                    .map(|n| observed(0, n < correct))
                    .collect::<Vec<_>>(),
            )
        };
        let (a, b) = (side("a"), side("b"));
        let (half_a, half_b) = (a.interval.half_width(), b.interval.half_width());
        let settlement = settle(&a, &b);
        same(settlement.gap, &case["gap"], case);
        same(half_a, &case["half_a"], case);
        same(half_b, &case["half_b"], case);
        same(half_a + half_b, &case["sum_half"], case);
        same(settlement.threshold, &case["threshold"], case);
        assert!(settlement.threshold >= GAP_MIN);
        assert_eq!(
            settlement.winner.is_some(),
            case["auto"].as_bool().unwrap(),
            "{case}"
        );
    }
}

/// How often a vote of these weights is right, when each voter is right with the given probability and on its own: the
/// sum over who is right. A tie is right half of the time.
fn right(accuracies: &[f64], weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    for who in 0..1u32 << accuracies.len() {
        let (mut probability, mut lead) = (1.0, 0.0);
        for (voter, (p, weight)) in accuracies.iter().zip(weights).enumerate() {
            let right = who >> voter & 1 == 1;
            probability *= if right { *p } else { 1.0 - p };
            lead += if right { *weight } else { -weight };
        }
        sum += if lead.abs() < 1e-9 {
            probability / 2.0
        } else if lead > 0.0 {
            probability
        } else {
            0.0
        };
    }
    sum
}

/// A panel is named by its accuracies: `3x0.7`, or `.9,.6,.6`.
fn panel(name: &str) -> Vec<f64> {
    match name.split_once('x') {
        Some((count, accuracy)) => vec![accuracy.parse().unwrap(); count.parse().unwrap()],
        None => name
            .split(',')
            .map(|accuracy| accuracy.parse().unwrap())
            .collect(),
    }
}

fn juries(golden: &Value) {
    for (name, expected) in golden.as_object().unwrap() {
        let accuracies = panel(name);
        let weights: Vec<f64> = accuracies.iter().map(|p| log_odds(*p, 2)).collect();
        let majority: Vec<f64> = accuracies
            .iter()
            .map(|p| vote::weight(VoteRule::Majority, *p))
            .collect();
        let linear: Vec<f64> = accuracies
            .iter()
            .map(|p| vote::weight(VoteRule::Confidence, *p))
            .collect();
        let golden_weights = list(&expected["log_odds_weights"]);
        assert_eq!(weights.len(), golden_weights.len());
        for (weight, golden) in weights.iter().zip(golden_weights) {
            same(*weight, golden, name);
        }
        same(right(&accuracies, &majority), &expected["majority"], name);
        same(
            right(&accuracies, &linear),
            &expected["linear_weight_p"],
            name,
        );
        same(right(&accuracies, &weights), &expected["log_odds"], name);
    }
}

fn reconcile(golden: &Value) {
    for (confidence, weight) in golden.as_object().unwrap() {
        same(
            vote::weight(VoteRule::Reconcile, confidence.parse().unwrap()),
            weight,
            confidence,
        );
    }
}

#[test]
fn the_enumeration_knows_the_panel_of_the_design() {
    // Accuracies 0.9, 0.6, 0.6: a majority is right 79.2% of the time, log-odds as often as the best, 90%.
    let accuracies = [0.9, 0.6, 0.6];
    assert!((right(&accuracies, &[1.0; 3]) - 0.792).abs() < 1e-12);
    assert!((right(&accuracies, &accuracies.map(|p| log_odds(p, 2))) - 0.9).abs() < 1e-12);
    assert!(
        (right(&[0.7, 0.7], &[1.0; 2]) - 0.7).abs() < 1e-12,
        "ties are halved"
    );
}
