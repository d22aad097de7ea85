//! Figures of analyses that were done again make a new version of the decision.

use std::collections::BTreeMap;

use concord_wire::payload::RecordedFigures;

use super::*;

fn figures(run: u32, analysis: &str, price: f64) -> CaseInput {
    let figures = json!({ "version": run + 1, "figures": { "target_price": price } });
    let figures: RecordedFigures = serde_json::from_value(figures).unwrap();
    let id = crate::fixtures::token(analysis);
    CaseInput::Figures {
        run,
        figures: BTreeMap::from([(id, figures)]),
    }
}

/// A decided case whose analyses were done again.
pub(crate) fn story() -> Story<CaseMachine> {
    let (mut story, _) = at_gate(policy());
    story.hears(&happened("run-1", 70), &figures(1, "dcf", 95.0));
    story
}

#[test]
fn each_run_makes_one_version_and_an_earlier_one_none() {
    let mut story = story();
    let version = |story: &Story<CaseMachine>| story.state().decision.as_ref().unwrap().version;
    let CaseEvent::FiguresRecorded(recorded) = &story.last().event else {
        panic!("{:?}", story.last());
    };
    assert_eq!(recorded.decision.version, recorded.replaces + 1);
    assert!(!recorded.told.is_empty(), "everybody is told");
    let first = version(&story);
    for (id, run) in [("run-1-again", 1), ("run-0", 0)] {
        let heard = story.hears(&happened(id, 71), &figures(run, "dcf", 1.0));
        assert_eq!(heard, "ignored: already_done");
    }
    assert_eq!(version(&story), first);
    assert_eq!(
        story.hears(&happened("run-2", 72), &figures(2, "memo", 3.0)),
        "figures_recorded"
    );
    assert_eq!(version(&story), first + 1);
    let kept = &story.state().decision.as_ref().unwrap().figures;
    let names: Vec<&str> = kept.keys().map(AsRef::as_ref).collect();
    assert_eq!(names, ["dcf", "memo"], "what was not done again stays");
}

#[test]
fn a_case_that_is_not_decided_takes_none() {
    let mut story = opened(&[], policy());
    let heard = story.hears(&happened("run-1", 70), &figures(1, "dcf", 95.0));
    assert_eq!(heard, "ignored: already_done");
}
