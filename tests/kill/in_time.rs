//! What was found before its deadline counts, also where the coordinator was dead when it was found and when the deadline passed.

use std::time::{Duration, Instant};

use concord_testkit::{Message, TestInstallation, event_data, wait_for};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use serde_json::json;

const CASES: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until so many events of a kind are stored.
async fn wait_for_events(installation: &TestInstallation, filter: &str, count: usize) {
    wait_for(filter, PATIENCE, async || {
        match event_data(installation.client(), filter).await?.len() {
            found if found >= count => Ok(()),
            found => Err(format!("{found} of {count}")),
        }
    })
    .await;
}

async fn find(installation: &TestInstallation, case: &CaseId, agent: &str) {
    let finding = json!({ "summary": "What was found.", "risk_score": 10 });
    let finding = Message::finding(case.as_str(), agent, finding, 0.8);
    finding.store(installation.client()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_found_in_time_counts_although_the_coordinator_was_dead() {
    // A slow machine may need longer to find it all.
    for timeout in [5, 40].map(Duration::from_secs) {
        if found_in_time(timeout).await {
            return;
        }
    }
    panic!("it was never found in time")
}

/// Has everything found within this time, while the coordinator is dead; false where that took longer.
async fn found_in_time(timeout: Duration) -> bool {
    let installation = TestInstallation::start_without_adapter().await;
    let mut cases = Vec::new();
    let timeout_ms = u64::try_from(timeout.as_millis()).expect("a number");
    let begun = Instant::now();
    for number in 0..CASES {
        let opening = json!({
            "case_id": format!("case-{number}"), "participants": ["ann", "ben", "cal"], "task": { "type": "test" },
            "policy": { "finding_timeout_ms": timeout_ms, "case_timeout_ms": 3_600_000 },
        });
        cases.push(installation.open_case(&opening).await);
    }
    installation.kill(Service::Coordinator, 0).expect("it dies");
    for case in &cases {
        for agent in ["ann", "ben"] {
            find(&installation, case, agent).await;
        }
    }
    if begun.elapsed() >= timeout {
        return false;
    }
    wait_for_events(&installation, "deadline.*.case_elapsed", CASES).await;
    installation
        .launch(Service::Coordinator, 0)
        .expect("it starts again");
    for case in &cases {
        let decision = installation.decision(case, PATIENCE).await;
        assert_ne!(decision["decision"]["reason"], "no_finding", "{decision}");
        // What comes when the deadline was applied is late.
        find(&installation, case, "cal").await;
    }
    wait_for_events(&installation, "case.*.finding_set_aside", CASES).await;
    let client = installation.client();
    for data in event_data(client, "case.*.finding_set_aside")
        .await
        .expect("the events")
    {
        assert_eq!(
            (&data["received"]["agent_id"], &data["reason"]),
            (&json!("cal"), &json!("late")),
            "{data}"
        );
    }
    for data in event_data(client, "case.*.findings_closed")
        .await
        .expect("the events")
    {
        assert_eq!(data["missing"], json!(["cal"]), "{data}");
    }
    installation.holds(PATIENCE).await;
    true
}
