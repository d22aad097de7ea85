//! Agents that know one word for all answers, and are called for proposals.

use concord_testkit::TestInstallation;
use serde_json::{Value, json};

use crate::tasks::stage::{Reply, hears, opening, run, work};

/// The payload of a response that has succeeded.
fn success(result: Value) -> Reply {
    let payload = json!({ "status": "success", "result": result, "errors": [], "warnings": [] });
    Some(("response", payload))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_to_a_call_is_a_bid_and_one_that_declines_is_a_refusal() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let mut workers = Vec::new();
    for name in ["ann", "ben", "cyd", "dan"] {
        let answer = move |kind: &str, _: &Value| match (kind, name) {
            ("call_for_proposals", "ann") => {
                success(json!({ "price": 9.0, "time_ms": 1_000, "confidence": 0.9 }))
            }
            // The bid itself, without the form of a response.
            ("call_for_proposals", "ben") => {
                let bid = json!({ "price": 1.0, "time_ms": 1_000, "confidence": 0.9 });
                Some(("response", bid))
            }
            ("call_for_proposals", "cyd") => {
                let payload = json!({ "status": "failure", "errors": ["no time"] });
                Some(("response", payload))
            }
            ("call_for_proposals", _) => success(json!({ "accepted": false })),
            ("award", _) => success(json!("done")),
            _ => None,
        };
        workers.push(work(&installation, name, json!({}), answer).await);
    }
    // Longer than anybody waits here: the task goes on because all have answered.
    let terms = json!({ "bids_ms": 600_000, "deadline_ms": 900_000 });
    let (kind, payload) = run(client, &opening("contract_net", &terms)).await;
    assert_eq!(
        (kind.as_str(), &payload["event"]),
        ("notification", &json!("task_completed"))
    );
    let done = &payload["data"];
    assert_eq!(
        (&done["result"], &done["by"]),
        (&json!("done"), &json!(["ben"])),
        "{payload}"
    );
    let is_rejected = |body: &Value| body["payload"]["event"] == "bid_rejected";
    hears(client, "ann", is_rejected).await;
    installation.holds(crate::tasks::PATIENCE).await;
}
