//! Agents are asked what becomes of analyses when a decision changes, and what must be done again is begun by itself where the policy
//! says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use concord_testkit::{TestInstallation, event_data, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::tasks::PATIENCE;
use crate::tasks::reruns::{asked, decide, figures, impact, steps_ended};
use crate::tasks::stage::{Reply, ask, result, work};

/// What quant says of the figure of an analysis: of the price a little more, of the memo nonsense.
fn estimate(kind: &str, body: &Value) -> Reply {
    let task = &body["payload"]["task"];
    if kind != "task_assignment" || task["type"] != "estimate_change" {
        return None;
    }
    match task["input"]["analysis_id"].as_str() {
        Some("dcf") => {
            assert_eq!(task["input"]["figure"], 85.0);
            let stands = task["input"]["uses"][0]["value"].as_f64();
            assert!(
                stands.is_some_and(|score| (score - 40.0).abs() < 1e-9),
                "{task}"
            );
            result(json!({ "estimate": 86, "confidence": 0.6 }))
        }
        _ => result(json!({ "estimate": "plenty" })),
    }
}

/// An analysis with a figure that quant estimates, and that rests on a risk score of 10.
async fn publish(
    installation: &TestInstallation,
    case: &str,
    from: &str,
    id: &str,
    agent: &str,
) -> (String, Value) {
    let parameters = json!({
        "analysis_id": id, "type": "test", "figures": { "x": 85 }, "rerun_minutes": 5,
        "depends_on": [{ "kind": "decision", "id": case, "metric": "risk_score", "value": 10 }],
        "models": [{ "model": "agent", "metric": "x", "agent": agent, "within_ms": 600_000 }],
    });
    let payload = json!({ "action": "publish_analysis", "parameters": parameters });
    let message = concord_testkit::Message::new(case, from, "coordinator", "request", payload);
    ask(installation.client(), &message).await
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_estimate_what_a_decision_changes_and_what_must_be_is_done_again_by_itself() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let _quant = work(&installation, "quant", json!({}), estimate).await;
    let of_ben = |kind: &str, body: &Value| asked(kind, body).and_then(|_| figures(99));
    let _ben = work(&installation, "ben", json!({}), of_ben).await;
    let case = unique("case");
    let opening = json!({
        "case_id": case, "participants": ["ann", "ben", "quant"], "task": { "type": "test" },
        "policy": { "impact": { "reruns": "automatic" } },
    });
    installation.open_case(&opening).await;
    let (kind, error) = publish(&installation, &case, "ann", "dcf", "mallory").await;
    assert_eq!(
        (kind.as_str(), &error["details"]["pointer"]),
        ("error", &json!("/payload/parameters/models/0/agent"))
    );
    for (from, id) in [("ann", "dcf"), ("ben", "memo")] {
        let (kind, answer) = publish(&installation, &case, from, id, "quant").await;
        assert_eq!(kind, "response", "{answer}");
    }
    decide(client, &case, &["ann", "ben", "quant"]).await;

    let filter = format!("impact.{case}.rerun_step_ended");
    let ended = wait_for("the run to end", PATIENCE, async || {
        let ended = event_data(client, &filter).await?;
        ended.into_iter().next().ok_or_else(|| "not yet".to_owned())
    })
    .await;
    // Of the price the change is small; of the memo nobody knows.
    assert_eq!(
        (&ended["analysis_id"], &ended["of"]),
        (&json!("memo"), &json!(1))
    );
    let started = event_data(client, &format!("impact.{case}.rerun_started"))
        .await
        .unwrap();
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0]["by"], "coordinator");
    check_report(&installation, &case);
    installation.holds(PATIENCE).await;
}

fn check_report(installation: &TestInstallation, case: &str) {
    let (_, shown) = impact(installation, &["show", case, "--last", "--json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let impacts = shown[0]["report"]["impacts"]
        .as_array()
        .expect("a list")
        .clone();
    let of = |id: &str| {
        impacts
            .iter()
            .find(|one| one["analysis_id"] == id)
            .expect("it is affected")
    };
    let dcf = of("dcf");
    assert_eq!(
        (
            &dcf["estimated_new_value"],
            &dcf["basis"],
            &dcf["confidence"],
            &dcf["requires_rerun"]
        ),
        (&json!(86.0), &json!("agent"), &json!(0.6), &json!(false))
    );
    assert!(
        of("memo")["reason"]
            .as_str()
            .expect("why")
            .contains("plenty is no number")
    );
    let (_, text) = impact(installation, &["show", case, "--last"]);
    assert!(
        text.contains("memo: no estimate, quant: plenty is no number"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_estimate_is_asked_for_and_counts_once_when_coordinators_are_killed() {
    const ANALYSES: usize = 10;
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_replicas(Service::Coordinator, 2)
    })
    .await;
    let client = installation.client().clone();
    let given = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&given);
    let counting = move |kind: &str, body: &Value| {
        let answer = match body["payload"]["task"]["type"].as_str() {
            Some("estimate_change") => result(json!({ "estimate": 86 })),
            _ => None,
        }?;
        let is_task = kind == "task_assignment";
        counted.fetch_add(usize::from(is_task), Ordering::SeqCst);
        is_task.then_some(answer)
    };
    let _quant = work(&installation, "quant", json!({ "capacity": 2 }), counting).await;
    let case = unique("case");
    let opening =
        json!({ "case_id": case, "participants": ["ann", "quant"], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    for n in 0..ANALYSES {
        let (kind, answer) =
            publish(&installation, &case, "ann", &format!("a{n:02}"), "quant").await;
        assert_eq!(kind, "response", "{answer}");
    }
    decide(&client, &case, &["ann", "quant"]).await;
    let filter = format!("impact.{case}.estimated");
    for (replica, after) in [(0, 2), (1, 5)] {
        steps_ended(&client, &filter, after).await;
        installation.kill(Service::Coordinator, replica).unwrap();
        installation
            .restart(Service::Coordinator, replica)
            .await
            .unwrap();
    }
    let all = steps_ended(&client, &filter, ANALYSES).await;
    let is_last = |one: &&Value| one["is_complete"] == true;
    assert_eq!(
        all.iter().filter(is_last).count(),
        1,
        "the report is completed once"
    );
    assert!(
        all.iter()
            .all(|one| one["outcome"]["given"]["figure"] == 86.0),
        "{all:?}"
    );
    installation.holds(PATIENCE).await;
    assert_eq!(
        steps_ended(&client, &filter, ANALYSES).await.len(),
        ANALYSES
    );
    assert_eq!(
        given.load(Ordering::SeqCst),
        ANALYSES,
        "each was asked for once"
    );
}
