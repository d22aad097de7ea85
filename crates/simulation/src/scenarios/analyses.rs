//! What is told of analyses, and what becomes of their figures, in whatever order things are heard of.

use concord_events::{CaseEvent, ImpactEvent};
use concord_wire::Token;
use concord_wire::payload::Figure;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{COORDINATOR, Stage};
use crate::policies::SIMULATED;

const CASE: &str = "c-1";

fn token(id: &str) -> Token {
    Token::new(id).unwrap()
}

/// A case of ada and ben that olga has opened, and that is not over when it is decided.
fn opened(services: &[Service]) -> Stage {
    let mut stage = Stage::of(services);
    let policy = json!({
        "preset": SIMULATED, "finding_timeout_ms": 3_600_000, "case_timeout_ms": 7_200_000,
        "answer_timeout_ms": 3_600_000, "impact": { "reruns": "automatic" },
    });
    let parameters = json!({
        "case_id": CASE, "policy": policy, "participants": ["ada", "ben"], "gates": ["signing"],
        "task": { "type": "review", "title": "x" },
    });
    stage.ask("olga", "open_case", &parameters, &json!({}));
    assert!(matches!(last_of_case(&stage), CaseEvent::Opened(_)));
    stage
}

fn last_of_case(stage: &Stage) -> CaseEvent {
    let mut events = stage.events(&token(CASE));
    events.pop().expect("an event of the case").event
}

fn analyses(stage: &Stage) -> Vec<ImpactEvent> {
    let events = stage.events(&token(CASE)).into_iter();
    events.map(|one| one.event).collect()
}

/// ada publishes a version of the analysis dcf.
fn publish(stage: &mut Stage, figure: u32, used: &Value, models: &Value) {
    publish_under("dcf", stage, figure, used, models);
}

fn publish_under(id: &str, stage: &mut Stage, figure: u32, used: &Value, models: &Value) {
    let analysis = json!({
        "analysis_id": id, "type": "valuation", "figures": { "x": figure }, "depends_on": [used], "models": models,
    });
    stage.ask(
        "ada",
        "publish_analysis",
        &analysis,
        &json!({ "case_id": CASE }),
    );
    let last = analyses(stage).pop();
    assert!(matches!(last, Some(ImpactEvent::Published(_))));
}

fn find(stage: &mut Stage, (who, risk): (&str, u32), recommendation: &str) {
    let finding = json!({ "summary": "x", "risk_score": risk, "recommendation": recommendation });
    let more = json!({ "case_id": CASE });
    stage.say((who, COORDINATOR), "finding", &finding, &more);
}

/// A debate may end before its case knows what it is about, and the case be cancelled before it is decided.
#[test]
fn what_a_debate_was_about_is_told_as_soon_as_its_case_knows_it() {
    let services = [
        Service::Coordinator,
        Service::ConflictDetector,
        Service::DebateFacilitator,
    ];
    let mut stage = opened(&services);
    let used = json!({ "kind": "assumption", "id": "risk_score", "value": 3 });
    publish(&mut stage, 1, &used, &json!([]));
    stage.keep_back("coordinator-facts-detection-completed");
    find(&mut stage, ("ada", 20), "sign");
    find(&mut stage, ("ben", 80), "reject");
    // They agree about the risk. The debate about the recommendation goes on, so that the case is not decided.
    for (who, kind) in [("ada", "disagreement"), ("ben", "agreement")] {
        let mut questions = stage.told(who, "question").into_iter();
        let question = questions.find(|one| one["payload"]["conflict"]["subject"] == "risk_score");
        let question = question.expect("a question about the risk");
        let more = json!({ "case_id": CASE, "reply_to": question["message_id"] });
        let answer = json!({ "reasoning": "so it seems" });
        stage.say(
            (who, Service::DebateFacilitator.as_str()),
            kind,
            &answer,
            &more,
        );
    }
    assert!(matches!(last_of_case(&stage), CaseEvent::DebateSettled(_)));
    assert_eq!(analyses(&stage).len(), 1, "nobody knows what it was about");

    stage.let_go();
    let last = last_of_case(&stage);
    assert!(matches!(last, CaseEvent::ConflictsReceived(_)));
    let events = analyses(&stage);
    let [_, ImpactEvent::Assessed(assessed), ..] = events.as_slice() else {
        panic!("nobody was told that dcf rests on a value that does not stand");
    };
    assert_eq!(assessed.report.impacts[0].analysis_id, token("dcf"));
    let changed = &assessed.report.changed_assumption;
    assert_eq!(changed.new_value, Some(Figure::Number(20.0)));
    let is_report = |one: &&ImpactEvent| matches!(one, ImpactEvent::Assessed(_));
    assert_eq!(events.iter().filter(is_report).count(), 1);
}

/// An author may publish again before its case is given the figures of the run in which its analysis was done again.
#[test]
fn a_case_is_given_the_figures_that_a_run_has_come_to_and_no_later_ones() {
    let mut stage = opened(&[Service::Coordinator, Service::ConflictDetector]);
    let card = json!({ "agent_id": "ada" });
    stage.ask("ada", "register_agent", &card, &json!({}));
    let used = json!({ "kind": "decision", "id": CASE, "metric": "risk_score", "value": 3 });
    publish(&mut stage, 1, &used, &json!([]));
    find(&mut stage, ("ada", 20), "sign");
    find(&mut stage, ("ben", 20), "sign");
    assert!(matches!(last_of_case(&stage), CaseEvent::Decided(_)));
    let asked = stage.told("ada", "task_assignment").pop();
    let asked = asked.expect("a task");
    assert_eq!(asked["payload"]["task"]["type"], "rerun_analysis");

    stage.keep_back("coordinator-effects-impact-rerun_step_ended");
    let done = json!({ "result": { "figures": { "x": 2 } } });
    let more = json!({ "reply_to": asked["message_id"] });
    stage.say(("ada", COORDINATOR), "task_result", &done, &more);
    publish(&mut stage, 3, &used, &json!([]));
    let events = analyses(&stage);
    let [
        ..,
        ImpactEvent::RerunStepEnded(_),
        ImpactEvent::Published(_),
    ] = events.as_slice()
    else {
        panic!("the run has ended, and ada has published since");
    };

    stage.let_go();
    let CaseEvent::FiguresRecorded(recorded) = last_of_case(&stage) else {
        panic!("the case has the figures");
    };
    let figures = &recorded.decision.figures[&token("dcf")];
    let recorded = (figures.version, &figures.figures["x"]);
    assert_eq!(recorded, (2, &Figure::Number(2.0)));
}

/// The ends of two runs may be heard of in either order.
#[test]
fn the_end_of_a_run_that_is_heard_of_first_brings_the_figures_of_the_one_before() {
    let mut stage = opened(&[Service::Coordinator, Service::ConflictDetector]);
    stage.ask(
        "ada",
        "register_agent",
        &json!({ "agent_id": "ada" }),
        &json!({}),
    );
    let used = json!({ "kind": "decision", "id": CASE, "metric": "risk_score", "value": 3 });
    publish(&mut stage, 1, &used, &json!([]));
    find(&mut stage, ("ada", 20), "sign");
    find(&mut stage, ("ben", 20), "sign");
    stage.keep_back("coordinator-effects-impact-rerun_step_ended");
    do_again(&mut stage, 2);
    publish_under("memo", &mut stage, 1, &used, &json!([]));
    let request = json!({ "case_id": CASE });
    stage.order(Service::Coordinator, "rerun_analyses", &request);
    do_again(&mut stage, 4);
    assert!(matches!(last_of_case(&stage), CaseEvent::Decided(_)));

    stage.let_go_from_the_last();
    let CaseEvent::FiguresRecorded(recorded) = last_of_case(&stage) else {
        panic!("the case has the figures");
    };
    assert_eq!(recorded.run, 2);
    let of_both = [("dcf", 2.0), ("memo", 4.0)].map(|(id, figure)| (token(id), figure));
    for (id, figure) in of_both {
        let recorded = &recorded.decision.figures[&id].figures;
        assert_eq!(recorded["x"], Figure::Number(figure), "{id}");
    }
}

/// ada does what she was asked for last, and comes to this figure.
fn do_again(stage: &mut Stage, figure: u32) {
    let asked = stage.told("ada", "task_assignment").pop();
    let asked = asked.expect("a task");
    let done = json!({ "result": { "figures": { "x": figure } } });
    let more = json!({ "reply_to": asked["message_id"] });
    stage.say(("ada", COORDINATOR), "task_result", &done, &more);
    let last = analyses(stage).pop();
    assert!(matches!(last, Some(ImpactEvent::RerunStepEnded(_))));
}

/// An agent says what becomes of a figure of the version about which it was asked; the author may have published another one since.
#[test]
fn who_is_asked_what_becomes_of_a_figure_is_told_the_figure_of_that_version() {
    let mut stage = opened(&[Service::Coordinator, Service::ConflictDetector]);
    let card = json!({ "agent_id": "ben" });
    stage.ask("ben", "register_agent", &card, &json!({}));
    let used = json!({ "kind": "decision", "id": CASE, "metric": "risk_score", "value": 3 });
    let models = json!([{ "model": "agent", "metric": "x", "agent": "ben" }]);
    publish(&mut stage, 1, &used, &models);
    stage.keep_back("coordinator-effects-impact-assessed");
    find(&mut stage, ("ada", 20), "sign");
    find(&mut stage, ("ben", 20), "sign");
    publish(&mut stage, 3, &used, &models);

    stage.let_go();
    let asked = stage.told("ben", "task_assignment").pop();
    let asked = asked.expect("a task");
    assert_eq!(asked["payload"]["task"]["type"], "estimate_change");
    assert_eq!(asked["payload"]["task"]["input"]["figure"], json!(1.0));
}
