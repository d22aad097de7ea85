//! Agents are asked what becomes of figures.

use concord_events::{AskedEstimate, EstimateOutcome, ImpactEstimated};
use concord_wire::payload::{AnalysisImpact, EstimateBasis, Figure};

use super::*;
use crate::rules::impact::estimate::Standing;
use crate::rules::impact::graph::Source;

/// The price is estimated by quant, and so is the limit, which uses the price; the memo has no figures and uses the limit.
fn asked_about() -> Story<ImpactMachine> {
    let mut story = Story::of("c-1");
    let agent = |metric: &str| json!([{ "model": "agent", "metric": metric, "agent": "quant" }]);
    let margin = json!([{ "kind": "assumption", "id": "margin", "value": 25 }]);
    let price = json!([{ "kind": "analysis", "id": "dcf", "metric": "price" }]);
    let limit = json!([{ "kind": "analysis", "id": "limits", "metric": "limit" }]);
    for (id, fields) in [
        (
            "m-1",
            json!({ "analysis_id": "dcf", "figures": { "price": 100 }, "depends_on": margin, "models": agent("price") }),
        ),
        (
            "m-2",
            json!({ "analysis_id": "limits", "figures": { "limit": 50 }, "depends_on": price, "models": agent("limit") }),
        ),
        ("m-3", json!({ "analysis_id": "memo", "depends_on": limit })),
    ] {
        assert_eq!(
            hears(&mut story, id, &publish("ann", id, fields)),
            "published"
        );
    }
    story
}

fn moved(story: &mut Story<ImpactMachine>, id: &str, to: f64) -> String {
    let standing = Standing::of(Some(Figure::Number(to)), None);
    let moved = ImpactInput::Moved(Box::new(DecisionMoved {
        case_id: case_id(),
        opened_by: agent("olga"),
        debate_id: None,
        status: None,
        by: None,
        standings: BTreeMap::from([(Source::assumption("margin"), standing)]),
        late: BTreeMap::new(),
    }));
    story.hears(&happened(id, 9), &moved)
}

fn answer(
    story: &mut Story<ImpactMachine>,
    id: &str,
    estimate: u32,
    result: Result<Value, &str>,
) -> String {
    let result = EstimateResult {
        estimate,
        result: result.map_err(str::to_owned),
    };
    story.hears(&happened(id, 10), &ImpactInput::Estimated(result))
}

fn asks(story: &Story<ImpactMachine>) -> Vec<(u32, String, Figure)> {
    let asked: &[AskedEstimate] = match &story.last().event {
        ImpactEvent::Assessed(assessed) => &assessed.ask,
        ImpactEvent::Estimated(estimated) => &estimated.assessed.ask,
        other => panic!("it is a report, not {other:?}"),
    };
    let one = |one: &AskedEstimate| {
        let value = one.uses[0].value.clone().unwrap();
        (one.estimate, one.analysis_id.to_string(), value)
    };
    asked.iter().map(one).collect()
}

fn last(story: &Story<ImpactMachine>) -> &ImpactEstimated {
    match &story.last().event {
        ImpactEvent::Estimated(estimated) => estimated,
        other => panic!("it is an estimate, not {other:?}"),
    }
}

fn impact_of(story: &Story<ImpactMachine>, id: &str) -> AnalysisImpact {
    let mut impacts = last(story).assessed.report.impacts.iter();
    impacts
        .find(|one| one.analysis_id.as_str() == id)
        .unwrap()
        .clone()
}

/// A story with every event of the analyses of a case.
pub(crate) fn story() -> Story<ImpactMachine> {
    let mut story = asked_about();
    moved(&mut story, "e-1", 28.0);
    answer(&mut story, "e-2", 1, Err("It has not answered in time."));
    let start = StartRerun {
        case_id: case_id(),
        by: agent("olga"),
        opened_by: agent("olga"),
        standings: BTreeMap::from([(
            Source::assumption("margin"),
            Standing::of(Some(Figure::Number(28.0)), None),
        )]),
    };
    let standings = start.standings.clone();
    let start = ImpactInput::Start(Box::new(start));
    assert_eq!(story.hears(&happened("e-3", 11), &start), "rerun_started");
    let ended = ImpactInput::StepEnded(Box::new(StepResult {
        run: 1,
        step: 0,
        result: Ok(json!({ "figures": { "price": 120 } })),
        standings,
    }));
    assert_eq!(
        story.hears(&happened("e-4", 12), &ended),
        "rerun_step_ended"
    );
    story
}

#[test]
fn a_report_is_completed_by_the_answers_one_level_after_the_other() {
    let mut story = asked_about();
    assert_eq!(moved(&mut story, "e-1", 28.0), "assessed");
    // What becomes of the price is not known yet, so nobody can say what becomes of the limit.
    assert_eq!(asks(&story), [(1, "dcf".into(), Figure::Number(28.0))]);
    assert_eq!(
        answer(
            &mut story,
            "e-2",
            1,
            Ok(json!({ "estimate": 104, "confidence": 0.5 }))
        ),
        "estimated"
    );
    assert_eq!(asks(&story), [(2, "limits".into(), Figure::Number(104.0))]);
    assert!(!last(&story).is_complete);
    assert_eq!(
        ImpactMachine::effects(story.last()),
        [],
        "it is told when it is complete"
    );
    let dcf = impact_of(&story, "dcf");
    assert_eq!(
        (dcf.basis, dcf.confidence, dcf.requires_rerun),
        (EstimateBasis::Agent, 0.5, false)
    );
    assert_eq!(
        impact_of(&story, "limits").reason.as_deref(),
        Some("quant is asked")
    );
    assert_eq!(
        answer(&mut story, "e-3", 2, Ok(json!({ "estimate": 51 }))),
        "estimated"
    );
    assert!(last(&story).is_complete && asks(&story).is_empty());
    assert_eq!(
        ImpactMachine::effects(story.last()).len(),
        2,
        "ann and olga"
    );
    let limits = impact_of(&story, "limits");
    assert_eq!(
        (limits.estimated_new_value, limits.requires_rerun),
        (Some(Figure::Number(51.0)), false)
    );
    // How sure it is of what it uses counts.
    assert_eq!(limits.confidence, 0.5);
    assert!(impact_of(&story, "memo").requires_rerun);
    assert!(ImpactMachine::recount(story.state(), story.last()).is_empty());
    // Each question ends once, and another has never been asked.
    for number in [1, 2, 3] {
        let again = answer(&mut story, "e-9", number, Ok(json!({ "estimate": 1 })));
        assert_eq!(again, "ignored: already_done");
    }
    // The same values are known already; others are asked for.
    assert_eq!(moved(&mut story, "e-4", 28.0), "assessed");
    assert_eq!(asks(&story), []);
    assert_eq!(moved(&mut story, "e-5", 30.0), "assessed");
    assert_eq!(asks(&story), [(3, "dcf".into(), Figure::Number(30.0))]);
    let again = replay::rebuild::<ImpactMachine>(&story.records).0;
    assert_eq!(*again.state, *story.state());
}

#[test]
fn who_says_nothing_or_nonsense_leaves_it_unknown_with_the_reason() {
    for (given, reason) in [
        (
            Err("Nobody has answered in time."),
            "Nobody has answered in time.",
        ),
        (Ok(json!({ "figures": { "price": 1 } })), "no estimate"),
        (Ok(json!("28")), "no estimate"),
        (Ok(json!({ "estimate": "plenty" })), "plenty is no number"),
        (
            Ok(json!({ "estimate": 100, "confidence": 3 })),
            "not between 0 and 1",
        ),
    ] {
        let mut story = asked_about();
        moved(&mut story, "e-1", 28.0);
        assert_eq!(answer(&mut story, "e-2", 1, given), "estimated");
        let estimated = last(&story);
        assert!(matches!(estimated.outcome, EstimateOutcome::Failed { .. }));
        assert!(estimated.is_complete, "nothing else can be asked");
        let dcf = impact_of(&story, "dcf");
        assert!(dcf.requires_rerun && dcf.estimated_new_value.is_none());
        let said = dcf.reason.unwrap();
        assert!(
            said.starts_with("quant: ") && said.contains(reason),
            "{said}"
        );
        let limits = impact_of(&story, "limits");
        assert_eq!(
            limits.reason.as_deref(),
            Some("what becomes of price is not known")
        );
    }
}

#[test]
fn an_answer_about_a_version_that_does_not_stand_any_more_estimates_nothing() {
    let mut story = asked_about();
    moved(&mut story, "e-1", 28.0);
    let margin = json!([{ "kind": "assumption", "id": "margin", "value": 25 }]);
    let models = json!([{ "model": "agent", "metric": "price", "agent": "quant" }]);
    let newer = json!({ "analysis_id": "dcf", "figures": { "price": 90 }, "depends_on": margin, "models": models });
    hears(&mut story, "m-4", &publish("ann", "m-4", newer));
    assert_eq!(
        answer(&mut story, "e-2", 1, Ok(json!({ "estimate": 104 }))),
        "estimated"
    );
    // The newer version is asked about instead.
    assert_eq!(asks(&story), [(2, "dcf".into(), Figure::Number(28.0))]);
}

#[test]
fn a_figure_that_an_agent_estimates_has_no_other_model() {
    let story = asked_about();
    for (models, place) in [
        (
            json!([{ "model": "agent", "metric": "x", "agent": "quant", "within_ms": 0 }]),
            "models/0/within_ms",
        ),
        (
            json!([{ "model": "agent", "metric": "y", "agent": "quant" }]),
            "models/0/metric",
        ),
        (
            json!([{ "model": "agent", "metric": "x", "agent": "quant" }, { "model": "formula", "metric": "x", "formula": "1" }]),
            "models/0/agent",
        ),
    ] {
        let bad = json!({ "analysis_id": "new", "figures": { "x": 1 }, "models": models });
        let fault = refusal(&story, &publish("ann", "m-9", bad));
        assert!(fault.pointer.ends_with(place), "{fault:?}");
    }
}

#[test]
fn only_who_is_in_the_case_is_asked() {
    let case = case();
    let with = |agent: &str| {
        let models = json!([{ "model": "agent", "metric": "x", "agent": agent }]);
        with_decisions(
            &case,
            analysis(json!({ "analysis_id": "new", "figures": { "x": 1 }, "models": models })),
        )
    };
    assert!(with("ben").is_ok());
    let fault = with("mallory").unwrap_err();
    assert!(
        fault.pointer.ends_with("models/0/agent") && fault.advice.contains("ben"),
        "{fault}"
    );
}
