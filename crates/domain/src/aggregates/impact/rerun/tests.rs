use serde_json::json;

use super::*;
use crate::aggregates::impact::{ImpactInput, ImpactMachine, ReceivedAnalysis};
use crate::fixtures::*;
use concord_events::{Heard, ImpactEvent};

/// Publishes an analysis of ann without figures, or with the figure `x`, which uses these others; `margin` is an assumption of 25.
fn publish(story: &mut Story<ImpactMachine>, id: &str, figure: Option<f64>, uses: &[&str]) {
    publish_as(story, &format!("m-{id}"), (id, figure), uses);
}

/// The same with this message.
fn publish_as(
    story: &mut Story<ImpactMachine>,
    by: &str,
    (id, figure): (&str, Option<f64>),
    uses: &[&str],
) {
    let depends_on: Vec<Value> = uses
        .iter()
        .map(|used| match *used {
            "margin" => json!({ "kind": "assumption", "id": "margin", "value": 25 }),
            other => json!({ "kind": "analysis", "id": other }),
        })
        .collect();
    let mut analysis =
        json!({ "analysis_id": id, "type": "test", "rerun_minutes": 5, "depends_on": depends_on });
    if let Some(figure) = figure {
        analysis["figures"] = json!({ "x": figure });
    }
    let received = ReceivedAnalysis {
        heard: Heard {
            agent_id: agent("ann"),
            message_id: message(by),
            digest: String::new(),
        },
        case_id: case_id(),
        analysis: serde_json::from_value(analysis).unwrap(),
    };
    let input = ImpactInput::Publish(Box::new(received));
    assert_eq!(story.hears(&said(by, 1), &input), "published");
}

fn standings(margin: f64) -> BTreeMap<Source, Standing> {
    let standing = Standing::of(Some(Figure::Number(margin)), None);
    BTreeMap::from([(Source::assumption("margin"), standing)])
}

fn start(story: &mut Story<ImpactMachine>, id: &str) -> String {
    let asked = StartRerun {
        case_id: case_id(),
        by: agent("eva"),
        opened_by: agent("olga"),
        standings: standings(28.0),
    };
    story.hears(&said(id, 2), &ImpactInput::Start(Box::new(asked)))
}

fn ends(
    story: &mut Story<ImpactMachine>,
    id: &str,
    step: u32,
    result: Result<Value, &str>,
) -> String {
    let ended = StepResult {
        run: story.state().runs,
        step,
        result: result.map_err(str::to_owned),
        standings: standings(28.0),
    };
    story.hears(&happened(id, 3), &ImpactInput::StepEnded(Box::new(ended)))
}

fn steps(story: &Story<ImpactMachine>) -> Vec<(&str, &str)> {
    let run = story.state().run.as_ref().unwrap();
    let steps = run.plan.required.iter().zip(&run.steps);
    steps
        .map(|(step, status)| (step.analysis_id.as_str(), status.as_str()))
        .collect()
}

/// a uses the margin, b uses a, c uses the margin, d uses b and c.
fn four() -> Story<ImpactMachine> {
    let mut story = Story::of("c-1");
    publish(&mut story, "a", Some(100.0), &["margin"]);
    publish(&mut story, "b", Some(10.0), &["a"]);
    publish(&mut story, "c", Some(1.0), &["margin"]);
    publish(&mut story, "d", None, &["b", "c"]);
    story
}

fn figure(value: f64) -> Result<Value, &'static str> {
    Ok(json!({ "figures": { "x": value }, "confidence": 0.9 }))
}

/// What a step has come to would otherwise bring back what its author has taken out, and could close a circle.
#[test]
fn what_is_published_during_a_run_to_be_used_no_more_stays_out() {
    let mut story = four();
    start(&mut story, "run-1");
    ends(&mut story, "t-1", 0, figure(120.0));
    publish_as(&mut story, "m-b-2", ("b", Some(10.0)), &["margin"]);
    publish_as(&mut story, "m-a-2", ("a", Some(120.0)), &["margin", "b"]);
    assert_eq!(ends(&mut story, "t-2", 1, figure(12.0)), "rerun_step_ended");
    let graph = &story.state().graph;
    let b = graph.get(&token("b")).unwrap();
    let uses: Vec<&str> = b
        .published
        .depends_on
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    assert_eq!((b.version, uses), (3, vec!["margin"]));
    let all: Vec<Source> = graph.sources().cloned().collect();
    assert_eq!(graph.affected(&all).len(), 4, "none is in a circle");
}

#[test]
fn what_does_not_wait_is_asked_at_once_and_the_rest_when_it_can_be() {
    let mut story = four();
    assert_eq!(start(&mut story, "run-1"), "rerun_started");
    assert_eq!(
        steps(&story),
        [
            ("a", "asked"),
            ("b", "waiting"),
            ("c", "asked"),
            ("d", "waiting")
        ]
    );
    assert_eq!(start(&mut story, "run-1"), "ignored: repetition");
    assert_eq!(start(&mut story, "run-2"), "refused: ");
    assert_eq!(
        ends(&mut story, "t-1", 1, figure(1.0)),
        "ignored: already_done"
    );
    assert_eq!(
        ends(&mut story, "t-2", 0, figure(120.0)),
        "rerun_step_ended"
    );
    assert_eq!(
        ends(&mut story, "t-2", 0, figure(120.0)),
        "ignored: already_done"
    );
    assert_eq!(
        steps(&story),
        [
            ("a", "changed"),
            ("b", "asked"),
            ("c", "asked"),
            ("d", "waiting")
        ]
    );
    ends(&mut story, "t-3", 2, figure(2.0));
    ends(&mut story, "t-4", 1, figure(12.0));
    assert_eq!(
        ends(&mut story, "t-5", 3, Ok(json!({}))),
        "rerun_step_ended"
    );
    let ImpactEvent::RerunStepEnded(last) = &story.last().event else {
        panic!("it is the end of a step");
    };
    let end = last.next.end.as_ref().unwrap();
    assert_eq!(end.with_other_figures.len(), 4);
    assert_eq!((last.done, last.of), (4, 4));
    // d has no figures, so that nobody knows whether it is the same.
    assert_eq!((end.changed, end.unchanged, end.failed), (4, 0, 0));
    assert_eq!(start(&mut story, "run-3"), "refused: ", "nothing is left");
    let b = story.state().graph.get(&token("b")).unwrap();
    assert_eq!((b.version, b.published.depends_on[0].version), (2, Some(2)));
}

#[test]
fn a_result_that_did_not_change_stops_the_wave() {
    let mut story = four();
    start(&mut story, "run-1");
    let same = Ok(json!({ "figures": { "x": 100.0 } }));
    ends(&mut story, "t-1", 0, same);
    assert_eq!(
        steps(&story),
        [
            ("a", "unchanged"),
            ("b", "not needed"),
            ("c", "asked"),
            ("d", "waiting")
        ]
    );
    ends(&mut story, "t-2", 2, Ok(json!({ "figures": { "x": 1 } })));
    assert_eq!(
        steps(&story),
        [
            ("a", "unchanged"),
            ("b", "not needed"),
            ("c", "unchanged"),
            ("d", "not needed")
        ]
    );
    assert!(!story.state().is_under_way());
    assert_eq!(start(&mut story, "run-2"), "refused: ");
}

#[test]
fn what_fails_blocks_what_uses_it_and_is_tried_by_the_next_run() {
    let mut story = four();
    start(&mut story, "run-1");
    assert_eq!(
        ends(&mut story, "t-1", 0, Err("It is unavailable.")),
        "rerun_step_ended"
    );
    ends(&mut story, "t-2", 2, figure(2.0));
    assert_eq!(
        steps(&story),
        [
            ("a", "failed"),
            ("b", "blocked"),
            ("c", "changed"),
            ("d", "blocked")
        ]
    );
    assert!(!story.state().is_under_way());
    assert_eq!(start(&mut story, "run-2"), "rerun_started");
    assert_eq!(
        steps(&story),
        [("a", "asked"), ("b", "waiting"), ("d", "waiting")]
    );
}

#[test]
fn what_is_no_result_fails_and_is_said() {
    for (result, why) in [
        (json!("done"), "no result of an analysis"),
        (
            json!({ "figures": { "x": true } }),
            "a text such as a rating",
        ),
        (json!({ "figures": { "y": 1 } }), "no figure \"x\""),
        (
            json!({ "figures": { "x": 1 }, "confidence": 3 }),
            "Confidence is 3",
        ),
    ] {
        let mut story = four();
        start(&mut story, "run-1");
        ends(&mut story, "t-1", 0, Ok(result));
        let ImpactEvent::RerunStepEnded(ended) = &story.last().event else {
            panic!("it is the end of a step");
        };
        let RerunOutcome::Failed { why: said } = &ended.outcome else {
            panic!("it fails, {why}");
        };
        assert!(said.contains(why), "{said}");
    }
}
