//! What the override of the margin does to the analyses that rest on it: the worked example of specification 3.

use concord_testkit::{Message, concord};
use serde_json::{Value, json};

use crate::ladder::stage::Stage;

/// Publishes an analysis and waits until it is recorded.
async fn published(stage: &Stage, from: &str, analysis: Value) {
    let id = analysis["analysis_id"].clone();
    let payload = json!({ "action": "publish_analysis", "parameters": analysis });
    let message = Message::new(&stage.case, from, "coordinator", "request", payload);
    stage.send(&message).await;
    stage
        .event("impact", "published", |data| {
            data["analysis"]["analysis_id"] == id
        })
        .await;
}

/// Finance has valued the company at $85 with a margin of 25 %, and strategy has written a memo on that price.
pub(crate) async fn publish(stage: &Stage) {
    let margin = json!([{ "kind": "assumption", "id": "operating_margin", "value": 25 }]);
    let dcf = json!({
        "analysis_id": "dcf", "type": "valuation", "figures": { "target_price": 85 }, "depends_on": margin, "rerun_minutes": 5,
    });
    published(stage, &stage.finance, dcf).await;
    let price = json!([{ "kind": "analysis", "id": "dcf", "metric": "target_price" }]);
    let memo =
        json!({ "analysis_id": "memo", "type": "text", "depends_on": price, "rerun_minutes": 10 });
    published(stage, &stage.strategy, memo).await;
}

/// The report names the override and both analyses, those whose analyses they are hear of it, and the command shows it.
pub(crate) async fn check_report(stage: &Stage, by: &str) {
    let assessed = stage
        .event("impact", "assessed", |data| data["status"] == "overridden")
        .await;
    let data = &assessed["data"];
    assert_eq!(data["by"], by);
    let report = &data["report"];
    let changed = &report["changed_assumption"];
    assert_eq!(
        (&changed["id"], &changed["old_value"], &changed["new_value"]),
        (&json!("operating margin"), &json!(25.0), &json!(28.0))
    );
    assert_eq!(
        (
            &report["affected_count"],
            &report["high_impact_count"],
            &report["total_rerun_time"]
        ),
        (&json!(2), &json!(2), &json!(15))
    );
    let impacts = report["impacts"].as_array().expect("a list");
    let dcf = impacts
        .iter()
        .find(|one| one["analysis_id"] == "dcf")
        .expect("it is affected");
    // Ten percent for each point; the specification's text says $95, and its formula this.
    let estimate = dcf["estimated_new_value"].as_f64().expect("a number");
    assert!((estimate - 110.5).abs() < 1e-9, "{dcf}");
    for agent in [&stage.finance, &stage.strategy] {
        stage
            .message_to(agent, "notification", |message| {
                let payload = &message["payload"];
                payload["event"] == "impact_assessed" && payload["data"]["by"] == by
            })
            .await;
    }
    let server = stage.installation.server_url().to_owned();
    let shown = concord(&[
        "impact",
        "show",
        &stage.case,
        "--last",
        "--json",
        "--server",
        &server,
    ]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown[0]["report"], *report);
}
