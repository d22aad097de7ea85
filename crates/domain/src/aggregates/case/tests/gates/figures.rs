//! Figures of analyses that were done again make a new version of the decision.

use concord_wire::payload::RecordedFigures;

use super::*;
use crate::aggregates::impact::RunFigures;

fn figures(run: u32, analysis: &str, price: f64) -> CaseInput {
    all_figures(&[(run, analysis, price)])
}

/// The end of the last of these runs, with what each of them has come to.
fn all_figures(of_runs: &[(u32, &str, f64)]) -> CaseInput {
    let figures = of_runs.iter().map(|(run, analysis, price)| {
        let recorded = json!({ "version": run + 1, "figures": { "target_price": price } });
        let recorded: RecordedFigures = serde_json::from_value(recorded).unwrap();
        let id = crate::fixtures::token(analysis);
        (
            id,
            RunFigures {
                run: *run,
                recorded,
            },
        )
    });
    CaseInput::Figures {
        run: of_runs.last().unwrap().0,
        figures: figures.collect(),
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
fn the_end_of_a_later_run_brings_what_an_earlier_one_has_come_to() {
    let mut story = story();
    let both = all_figures(&[(1, "dcf", 95.0), (2, "memo", 3.0), (3, "comps", 7.0)]);
    assert_eq!(
        story.hears(&happened("run-3", 71), &both),
        "figures_recorded"
    );
    let CaseEvent::FiguresRecorded(recorded) = &story.last().event else {
        panic!("{:?}", story.last());
    };
    let changed: Vec<&str> = recorded.changed.iter().map(AsRef::as_ref).collect();
    assert_eq!(changed, ["comps", "memo"], "it had those of run 1");
    let before = story.state().clone();
    let first = all_figures(&[(1, "dcf", 95.0), (2, "memo", 3.0)]);
    assert_eq!(
        story.hears(&happened("run-2", 72), &first),
        "ignored: already_done"
    );
    assert_eq!(*story.state(), before);
}

#[test]
fn a_case_that_is_not_decided_takes_none() {
    let mut story = opened(&[], policy());
    let heard = story.hears(&happened("run-1", 70), &figures(1, "dcf", 95.0));
    assert_eq!(heard, "ignored: already_done");
}
