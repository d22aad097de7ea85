use serde_json::{Value, json};

use super::*;
use crate::fixtures::{agent, start, token};
use crate::rules::impact::models::check_models;

/// A graph of these analyses, all of ann.
pub(crate) fn graph_of(rows: &[Value]) -> Graph {
    let mut graph = Graph::default();
    for row in rows {
        let mut published = json!({ "type": "valuation" });
        for (name, value) in row.as_object().unwrap() {
            published[name] = value.clone();
        }
        let published: concord_wire::payload::PublishAnalysis =
            serde_json::from_value(published).unwrap();
        check_models(&published, "/models").unwrap();
        graph.put(Analysis::new(published, 1, agent("ann"), start()));
    }
    graph
}

/// The change of one assumption.
pub(crate) fn assumed(
    name: &str,
    value: Value,
    confidence: Option<f64>,
) -> BTreeMap<Source, Standing> {
    let value = serde_json::from_value(value).unwrap();
    let standing = Standing::of(Some(value), confidence);
    BTreeMap::from([(Source::assumption(name), standing)])
}

pub(crate) fn uses(name: &str, value: Value) -> Value {
    json!({ "kind": "assumption", "id": name, "value": value })
}

/// What becomes of the figure `f` of an analysis with these models when what it uses goes from `used` to `now`.
fn figure_after(
    old: Value,
    models: Value,
    used: Value,
    now: Value,
) -> Option<(Now, EstimateBasis, f64)> {
    let row = json!({
        "analysis_id": "a", "figures": { "f": old }, "models": models, "depends_on": [uses("growth", used), uses("other", json!(1))],
    });
    let graph = graph_of(&[row]);
    let analysis = graph.get(&token("a")).unwrap();
    let estimated = estimate(
        &graph,
        analysis,
        &assumed("growth", now, None),
        &BTreeMap::new(),
    )?;
    let (now, basis) = estimated.figures["f"].clone();
    Some((now, basis, estimated.confidence))
}

fn known(number: f64) -> Now {
    Now::Known(Figure::Number(number))
}

#[test]
fn each_model_estimates_as_its_formula_says() {
    use EstimateBasis::{Elasticity, Formula, None as Nothing, Sensitivity};
    let one = |model: &str, percent: f64| json!([{ "model": model, "metric": "f", "input": "growth", "percent": percent }]);
    let formula = json!([{ "model": "formula", "metric": "f", "formula": "100 * growth + other" }]);
    for (models, used, now, expected) in [
        // Two points of growth at 4 % each.
        (
            one("sensitivity", 4.0),
            json!(2),
            json!(4),
            (known(108.0), Sensitivity, 0.7),
        ),
        // Growth has doubled; a half percent for each percent.
        (
            one("elasticity", 0.5),
            json!(2),
            json!(4),
            (known(150.0), Elasticity, 0.7),
        ),
        (
            formula.clone(),
            json!(2),
            json!(4),
            (known(401.0), Formula, 1.0),
        ),
        (json!([]), json!(2), json!(4), (Now::Unknown, Nothing, 1.0)),
        // A number with its signs is a number; words are not.
        (
            one("sensitivity", 4.0),
            json!("2%"),
            json!("4 %"),
            (known(108.0), Sensitivity, 0.7),
        ),
        (
            one("sensitivity", 4.0),
            json!(2),
            json!("more"),
            (Now::Unknown, Nothing, 1.0),
        ),
        (
            formula,
            json!(2),
            json!("more"),
            (Now::Unknown, Nothing, 1.0),
        ),
        // No share of nothing.
        (
            one("elasticity", 0.5),
            json!(0),
            json!(4),
            (Now::Unknown, Nothing, 1.0),
        ),
        // What the model is about has not changed, and nothing says what the other does.
        (
            json!([{ "model": "sensitivity", "metric": "f", "input": "other", "percent": 4 }]),
            json!(2),
            json!(4),
            (Now::Unknown, Nothing, 1.0),
        ),
    ] {
        let found = figure_after(json!(100), models.clone(), used, now);
        assert_eq!(found, Some(expected), "{models}");
    }
}

#[test]
fn a_change_is_in_the_scale_of_what_was_used() {
    let models = json!([{ "model": "elasticity", "metric": "f", "input": "growth", "percent": 1 }]);
    for (used, now, expected) in [
        (json!(25), json!("30 %"), Some(120.0)),
        (json!(25), json!("0.3 fraction"), Some(120.0)),
        (json!(0.25), json!("30%"), Some(120.0)),
        (json!(0.25), json!("0.3 share"), Some(120.0)),
        (json!("25 percent"), json!(0.3), Some(120.0)),
        (json!("25 %"), json!(30), Some(120.0)),
        (json!("0.25 fraction"), json!("30 %"), Some(120.0)),
        (json!("0.25 fraction"), json!(30), Some(120.0)),
        (json!("10 days"), json!("12 days"), Some(120.0)),
        (
            json!("$10 million"),
            json!("12,000 USD thousand"),
            Some(120.0),
        ),
        (json!(10), json!("12 USD"), Some(120.0)),
        (json!(10), json!("12 x"), Some(120.0)),
        (json!(2), json!("1.5 ratio"), Some(75.0)),
        (json!(10), json!("0 %"), Some(0.0)),
        (json!("10 days"), json!(0), Some(0.0)),
        // Nobody knows whether 1 is a percent or the whole, or what a plain number counts beside days and millions.
        (json!(1), json!("2 %"), None),
        (json!(0), json!("2 %"), None),
        (json!(10), json!("12 days"), None),
        (json!(10), json!("12 USD million"), None),
        (json!("10 USD"), json!("12 EUR"), None),
        (json!(10), json!("12 bp"), None),
    ] {
        let found = figure_after(json!(100), models.clone(), used.clone(), now.clone());
        let found = match found.map(|(now, ..)| now) {
            Some(Now::Known(figure)) => number(&figure),
            _ => None,
        };
        let is_it = found.zip(expected).map(|(a, b)| (a - b).abs() < 1e-9);
        assert_eq!(
            (is_it, found.is_some()),
            (expected.map(|_| true), expected.is_some()),
            "{used} {now}: {found:?}"
        );
    }
    for (used, same) in [
        (json!(0.25), json!("25 %")),
        (json!(30), json!("0.3 fraction")),
    ] {
        assert_eq!(figure_after(json!(100), json!([]), used, same), None);
    }
}

#[test]
fn what_stands_is_told_in_the_scale_of_what_was_used() {
    let row = json!({ "analysis_id": "a", "depends_on": [uses("growth", json!(25))] });
    let graph = graph_of(&[row]);
    let used = &graph.get(&token("a")).unwrap().published.depends_on[0];
    for (now, expected) in [
        (json!("0.28 fraction"), json!(28.0)),
        (json!("28 %"), json!(28.0)),
        (json!("28 days"), json!("28 days")),
    ] {
        let now = refreshed(&graph, used, &assumed("growth", now, None));
        assert_eq!(json!(now.value), expected);
    }
}

#[test]
fn what_does_not_depend_or_has_not_changed_stays() {
    let nothing =
        json!([{ "model": "sensitivity", "metric": "f", "input": "growth", "percent": 0 }]);
    assert_eq!(
        figure_after(json!(100), nothing.clone(), json!(2), json!(4)),
        None
    );
    assert_eq!(
        figure_after(json!("hold"), nothing, json!(2), json!(4)),
        None
    );
    for same in [json!(2), json!(2.000_000_000_000_1), json!("2")] {
        assert_eq!(figure_after(json!(100), json!([]), json!(2), same), None);
    }
    let rating = figure_after(json!("hold"), json!([]), json!(2), json!(4));
    assert_eq!(rating, Some((Now::Unknown, EstimateBasis::None, 1.0)));
}

/// Whoever uses the figure reads it with its unit: 0.55 without one beside `0.5 %` is a share.
#[test]
fn a_figure_in_percent_stays_one() {
    for (old, by, expected) in [
        ("0.5 %", 0, None),
        ("1 %", 0, None),
        ("0.5 %", 10, Some(json!("0.55 %"))),
        ("1%", 10, Some(json!("1.1 %"))),
        ("-28 %", 10, Some(json!("-30.8 %"))),
        ("$80", 25, Some(json!(100.0))),
    ] {
        let model =
            json!([{ "model": "sensitivity", "metric": "f", "input": "growth", "percent": by }]);
        let found = figure_after(json!(old), model, json!(2), json!(3));
        let expected = expected.map(|figure| Now::Known(serde_json::from_value(figure).unwrap()));
        assert_eq!(found.map(|(now, ..)| now), expected, "{old} by {by} %");
    }
}

#[test]
fn what_rests_on_a_figure_in_percent_moves_by_its_points() {
    let model = |metric: &str, input: &str| json!([{ "model": "sensitivity", "metric": metric, "input": input, "percent": 10 }]);
    let graph = graph_of(&[
        json!({ "analysis_id": "a", "figures": { "x": "0.5 %" }, "models": model("x", "growth"), "depends_on": [uses("growth", json!(1))] }),
        json!({
            "analysis_id": "b", "figures": { "y": 100 }, "models": model("y", "x"),
            "depends_on": [{ "kind": "analysis", "id": "a", "metric": "x", "value": "0.5 %" }],
        }),
    ]);
    let changed = assumed("growth", json!(2), None);
    let mut before = BTreeMap::new();
    let first = estimate(&graph, graph.get(&token("a")).unwrap(), &changed, &before).unwrap();
    before.insert(token("a"), first);
    let second = estimate(&graph, graph.get(&token("b")).unwrap(), &changed, &before).unwrap();
    let (Now::Known(y), _) = &second.figures["y"] else {
        panic!("it is estimated: {second:?}");
    };
    // 0.55 % are 0.05 points more than 0.5 %, of 10 % each.
    assert!((number(y).unwrap() - 100.5).abs() < 1e-9, "{y:?}");
}

#[test]
fn two_approximations_one_after_the_other_are_less_sure() {
    let model = |metric: &str, input: &str| json!([{ "model": "sensitivity", "metric": metric, "input": input, "percent": 10 }]);
    let graph = graph_of(&[
        json!({ "analysis_id": "a", "figures": { "x": 100 }, "models": model("x", "growth"), "depends_on": [uses("growth", json!(1))] }),
        json!({
            "analysis_id": "b", "figures": { "y": 10 }, "models": model("y", "a.x"),
            "depends_on": [{ "kind": "analysis", "id": "a", "metric": "x", "value": 100 }],
        }),
    ]);
    let changed = assumed("growth", json!(2), None);
    let mut before = BTreeMap::new();
    let first = estimate(&graph, graph.get(&token("a")).unwrap(), &changed, &before).unwrap();
    before.insert(token("a"), first);
    let second = estimate(&graph, graph.get(&token("b")).unwrap(), &changed, &before).unwrap();
    // x goes to 110, ten points more, and y by 100 %.
    let (Now::Known(y), _) = &second.figures["y"] else {
        panic!("it is estimated");
    };
    assert!((number(y).unwrap() - 20.0).abs() < 1e-9);
    assert!((second.confidence - 0.49).abs() < 1e-9);
}

#[test]
fn what_rests_on_something_less_certain_becomes_less_certain() {
    let used = |name: &str, confidence: f64| json!({ "kind": "assumption", "id": name, "value": 1, "confidence": confidence });
    let graph = graph_of(&[
        json!({ "analysis_id": "a", "confidence": 0.8, "depends_on": [used("growth", 0.9), used("other", 0.5)] }),
        json!({ "analysis_id": "b", "confidence": 0.6, "depends_on": [{ "kind": "analysis", "id": "a", "confidence": 0.8 }] }),
    ]);
    let after = |confidence: f64| {
        let changed = assumed("growth", json!(1), Some(confidence));
        let mut before = BTreeMap::new();
        let a = estimate(&graph, graph.get(&token("a")).unwrap(), &changed, &before)?;
        before.insert(token("a"), a.clone());
        let b = estimate(&graph, graph.get(&token("b")).unwrap(), &changed, &before)?;
        Some((a.confidence_after.unwrap(), b.confidence_after.unwrap()))
    };
    // A third of its confidence is left, so a third of theirs.
    let (a, b) = after(0.3).unwrap();
    assert!(
        (a - 0.8 / 3.0).abs() < 1e-9 && (b - 0.2).abs() < 1e-9,
        "{a} {b}"
    );
    assert_eq!(after(0.95), None, "nothing becomes surer");
    assert_eq!(after(0.9), None);
}

#[test]
fn a_newer_version_of_what_was_used_is_a_change() {
    let graph = graph_of(&[
        json!({ "analysis_id": "a", "figures": { "x": 120 } }),
        json!({
            "analysis_id": "b", "figures": { "y": 10 },
            "models": [{ "model": "elasticity", "metric": "y", "input": "x", "percent": 1 }],
            "depends_on": [{ "kind": "analysis", "id": "a", "metric": "x", "value": 100 }],
        }),
    ]);
    let b = graph.get(&token("b")).unwrap();
    let estimated = estimate(&graph, b, &BTreeMap::new(), &BTreeMap::new()).unwrap();
    assert_eq!(
        estimated.figures["y"],
        (known(12.0), EstimateBasis::Elasticity)
    );
}

#[test]
fn a_model_is_about_what_the_analysis_has_and_uses() {
    let check = |model: Value| {
        let published = json!({
            "analysis_id": "a", "type": "test", "figures": { "f": 1, "rating": "hold" }, "models": [model],
            "depends_on": [
                uses("growth", json!(1)), { "kind": "analysis", "id": "b", "metric": "x" }, { "kind": "analysis", "id": "c", "metric": "x" },
            ],
        });
        check_models(&serde_json::from_value(published).unwrap(), "/m")
            .map_err(|fault| fault.pointer)
    };
    let linear = |metric: &str, input: &str| json!({ "model": "elasticity", "metric": metric, "input": input, "percent": 1 });
    let formula =
        |metric: &str, text: &str| json!({ "model": "formula", "metric": metric, "formula": text });
    for (model, expected) in [
        (linear("f", "growth"), Ok(())),
        (linear("f", "Growth "), Ok(())),
        (linear("f", "b.x"), Ok(())),
        (linear("f", "x"), Err("/m/0/input")),
        (linear("f", "price"), Err("/m/0/input")),
        (linear("g", "growth"), Err("/m/0/metric")),
        (formula("f", "growth * b.x + c.x"), Ok(())),
        (formula("f", "growth * x"), Err("/m/0/formula")),
        (formula("f", "growth *"), Err("/m/0/formula")),
        (formula("rating", "growth"), Err("/m/0/formula")),
    ] {
        assert_eq!(
            check(model.clone()),
            expected.map_err(str::to_owned),
            "{model}"
        );
    }
}
