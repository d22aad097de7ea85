use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::rules::impact::estimate::tests::{assumed, graph_of, uses};
use crate::rules::impact::report::assess;

/// An analysis without figures, which must be done again when anything changes that it uses.
fn row(id: &str, minutes: u32, used: &[&str]) -> Value {
    let depends_on: Vec<Value> = used
        .iter()
        .map(|name| match *name {
            "margin" => uses("margin", json!(25)),
            other => json!({ "kind": "analysis", "id": other }),
        })
        .collect();
    json!({ "analysis_id": id, "rerun_minutes": minutes, "depends_on": depends_on })
}

fn planned(rows: &[Value]) -> RerunPlan {
    let graph = graph_of(rows);
    let changed = assumed("margin", json!(28), None);
    plan(&graph, &assess(&graph, &changed, &[]))
}

fn ids(plan: &RerunPlan) -> Vec<&str> {
    let steps = plan.required.iter();
    steps.map(|one| one.analysis_id.as_str()).collect()
}

#[test]
fn two_are_done_one_after_the_other_and_more_at_the_same_time() {
    let two = planned(&[row("a", 5, &["margin"]), row("b", 10, &["margin"])]);
    assert_eq!(
        (two.strategy, two.estimated_minutes),
        (RerunStrategy::Serial, 15)
    );
    assert!(two.blocking);
    let three = planned(&[
        row("a", 5, &["margin"]),
        row("b", 10, &["margin"]),
        row("c", 7, &["a"]),
    ]);
    assert_eq!(
        (three.strategy, three.estimated_minutes),
        (RerunStrategy::Parallel, 12)
    );
    assert_eq!(ids(&three), ["a", "b", "c"]);
    assert_eq!(three.required[2].after, [0]);
    let chain = planned(&[
        row("a", 5, &["margin"]),
        row("b", 10, &["a"]),
        row("c", 7, &["b"]),
    ]);
    assert_eq!(
        (chain.strategy, chain.estimated_minutes),
        (RerunStrategy::Serial, 22)
    );
    let none = planned(&[row("a", 5, &["growth"])]);
    assert!(!none.blocking && none.required.is_empty());
}

fn price(id: &str, percent: f64, from: &str) -> Value {
    let used = match from {
        "margin" => uses("margin", json!(25)),
        other => json!({ "kind": "analysis", "id": other, "metric": "x", "value": 100 }),
    };
    let input = if from == "margin" { "margin" } else { "x" };
    json!({
        "analysis_id": id, "figures": { "x": 100 }, "depends_on": [used], "rerun_minutes": 1,
        "models": [{ "model": "sensitivity", "metric": "x", "input": input, "percent": percent }],
    })
}

#[test]
fn the_largest_change_is_first_within_the_order_of_dependence() {
    // a moves by 15 %, b by 30 %; d rests on a and moves by 150 %.
    let plan = planned(&[
        price("a", 5.0, "margin"),
        price("b", 10.0, "margin"),
        price("c", 1.0, "margin"),
        price("d", 10.0, "a"),
    ]);
    assert_eq!(ids(&plan), ["b", "a", "d"]);
    assert_eq!(plan.optional, ["c".parse().unwrap()]);
}

#[test]
fn what_a_required_analysis_uses_is_required_too() {
    // a moves by 3 %, which is little; b by 30 % because of it.
    let plan = planned(&[price("a", 1.0, "margin"), price("b", 10.0, "a")]);
    assert_eq!(ids(&plan), ["a", "b"]);
    assert!(plan.optional.is_empty());
}

#[test]
fn one_run_has_a_bound() {
    let rows: Vec<Value> = (0..RERUNS_MAX + 3)
        .map(|n| row(&format!("a{n:04}"), 1, &["margin"]))
        .collect();
    let plan = planned(&rows);
    assert_eq!(
        (plan.required.len(), plan.required_omitted),
        (RERUNS_MAX, 3)
    );
}

proptest! {
    #[test]
    fn nothing_is_before_what_it_uses_and_the_time_is_that_of_the_longest_way(
        edges in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 0..3), 0_u32..20), 1..16),
    ) {
        let name = |n: usize| format!("a{n:02}");
        let mut rows = Vec::new();
        let mut ends: Vec<u64> = Vec::new();
        for (n, (chosen, minutes)) in edges.iter().enumerate() {
            let used: BTreeSet<usize> = if n == 0 { BTreeSet::new() } else { chosen.iter().map(|one| one.index(n)).collect() };
            let begin = used.iter().map(|one| ends[*one]).max().unwrap_or(0);
            ends.push(begin + u64::from(*minutes));
            let names: Vec<String> = used.into_iter().map(name).collect();
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.push("margin");
            rows.push(row(&name(n), *minutes, &names));
        }
        let plan = planned(&rows);
        prop_assert_eq!(plan.required.len(), rows.len());
        for (place, step) in plan.required.iter().enumerate() {
            prop_assert!(step.after.iter().all(|before| (*before as usize) < place));
        }
        let sum: u64 = plan.required.iter().map(|one| u64::from(one.rerun_minutes)).sum();
        let expected = match plan.strategy {
            RerunStrategy::Serial => sum,
            RerunStrategy::Parallel => ends.into_iter().max().unwrap_or(0),
        };
        prop_assert_eq!(plan.estimated_minutes, expected);
    }
}
