//! Coordinators are killed while findings are confirmed and entries are held back: each confirmation counts once, and each entry is told at
//! one checkpoint.

use std::collections::BTreeSet;

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, event_data, message_bodies, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::together::PATIENCE;

const AGENTS: [&str; 6] = ["ann", "ben", "cyd", "dan", "eve", "fay"];
/// Entries of each agent.
const ENTRIES: usize = 4;

/// Waits until there are so many of these events.
async fn stored(client: &Client, filter: &str, count: usize) -> Vec<Value> {
    wait_for(format!("{count} of {filter}"), PATIENCE, async || {
        let all = event_data(client, filter).await?;
        match all.len() >= count {
            true => Ok(all),
            false => Err(format!("{} are", all.len())),
        }
    })
    .await
}

async fn restart(installation: &TestInstallation, replica: usize) {
    let coordinator = Service::Coordinator;
    installation.kill(coordinator, replica).unwrap();
    installation.restart(coordinator, replica).await.unwrap();
}

/// Everybody confirms the findings of all others; coordinators are killed when some are counted: the ids of the findings.
async fn confirm(installation: &TestInstallation, case: &str) -> BTreeSet<String> {
    let client = installation.client();
    let mut findings = Vec::new();
    // The last agent gives its finding in the end, so that the case stays open.
    for agent in &AGENTS[..AGENTS.len() - 1] {
        let seen = json!({ "summary": "Seen.", "risk_score": 10 });
        let finding = Message::finding(case, agent, seen, 0.5);
        finding.publish(client).await;
        findings.push((*agent, finding.id().to_owned()));
    }
    stored(
        client,
        &format!("case.{case}.finding_recorded"),
        findings.len(),
    )
    .await;
    let mut sent = 0;
    for (author, finding) in &findings {
        for agent in AGENTS.iter().filter(|agent| *agent != author) {
            Message::new(
                case,
                agent,
                "coordinator",
                "confirmation",
                json!({ "confirms": finding }),
            )
            .with("/metadata/confidence", 0.5)
            .publish(client)
            .await;
            sent += 1;
        }
        match sent {
            10 => restart(installation, 0).await,
            20 => restart(installation, 1).await,
            _ => {}
        }
    }
    let confirmed = stored(client, &format!("case.{case}.confirmed"), sent).await;
    assert_eq!(confirmed.len(), sent, "each counts once");
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Everybody writes what is held back, told every half second; coordinators are killed meanwhile.
async fn write(installation: &TestInstallation, case: &str) {
    let client = installation.client();
    for entry in 0..ENTRIES {
        for agent in AGENTS {
            let parameters =
                json!({ "topic": format!("t{entry}"), "value": entry, "importance": 0.6 });
            let payload = json!({ "action": "memory_put", "parameters": parameters });
            Message::new(case, agent, "coordinator", "request", payload)
                .publish(client)
                .await;
        }
        if entry % 2 == 1 {
            stored(
                client,
                &format!("synthesis.{case}.consolidated"),
                entry / 2 + 1,
            )
            .await;
            restart(installation, entry / 2).await;
        }
    }
    stored(client, "memory.*.put", AGENTS.len() * ENTRIES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_confirmation_counts_once_and_each_entry_is_told_once_when_coordinators_are_killed() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_replicas(Service::Coordinator, 2)
    })
    .await;
    let client = installation.client();
    let case = concord_testkit::unique("case");
    let opening = json!({
        "case_id": case, "participants": AGENTS, "task": { "type": "test" },
        "policy": {
            "importance": { "filtered": true, "synthesis_every_ms": 500 }, "finding_timeout_ms": 600_000,
        },
    });
    installation.open_case(&opening).await;
    let findings = confirm(&installation, &case).await;
    write(&installation, &case).await;
    let last = json!({ "summary": "Seen.", "risk_score": 12 });
    Message::finding(&case, AGENTS[AGENTS.len() - 1], last, 0.5)
        .publish(client)
        .await;
    stored(client, &format!("case.{case}.decided"), 1).await;
    installation.holds(PATIENCE).await;

    let confirmed = event_data(client, &format!("case.{case}.confirmed"))
        .await
        .unwrap();
    let of_each = findings.iter().map(|finding| {
        let of_it = confirmed.iter().filter(|one| one["finding"] == *finding);
        let strongest = of_it.clone().filter_map(|one| one["strengthened"].as_f64());
        (of_it.count(), strongest.fold(0.0, f64::max))
    });
    for (count, strongest) in of_each {
        assert_eq!(count, AGENTS.len() - 1);
        // 1 - 0.5 x 0.75 to the fifth
        assert!((strongest - 0.881_348).abs() < 1e-5, "{strongest}");
    }
    told_once(client, &case).await;
}

/// Each entry is told at one checkpoint, and everybody hears of each checkpoint once.
async fn told_once(client: &Client, case: &str) {
    let checkpoints = event_data(client, &format!("synthesis.{case}.consolidated")).await;
    let checkpoints = checkpoints.expect("they are read");
    let insights = checkpoints
        .iter()
        .flat_map(|one| one["insights"].as_array());
    let mut places: Vec<String> = insights
        .flatten()
        .map(|one| format!("{} {} {}", one["agent"], one["topic"], one["version"]))
        .collect();
    let told = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!((told, places.len()), (AGENTS.len() * ENTRIES, told));
    let heard = |one: &&Value| !one["insights"].as_array().is_none_or(Vec::is_empty);
    let expected = checkpoints.iter().filter(heard).count();
    for agent in AGENTS {
        let filter = format!("concord.v1.msg.{case}.coordinator.{agent}.notification");
        let bodies = message_bodies(client, &filter)
            .await
            .expect("they are read");
        let consolidated = |body: &&Value| body["payload"]["event"] == "insights_consolidated";
        assert_eq!(
            bodies.iter().filter(consolidated).count(),
            expected,
            "{agent}"
        );
    }
}
