//! Deadlines fire once while the escalation timer is killed and the broker is away.

use std::time::Duration;

use async_nats::jetstream;
use concord_events::topology::StreamKind;
use concord_testkit::{Message, Random, TestInstallation, event_data, stored, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::cases::wait_for_decisions;

const CASES: usize = 40;
const PATIENCE: Duration = Duration::from_secs(60);

/// The contents of the events of all deadlines that have elapsed.
async fn elapsed(client: &async_nats::Client) -> Result<Vec<Value>, String> {
    event_data(client, "deadline.*.*").await
}

async fn wait_for_elapsed(client: &async_nats::Client, count: usize) {
    wait_for(
        format!("{count} deadlines to elapse"),
        PATIENCE,
        async || {
            let found = elapsed(client).await?.len();
            if found >= count {
                Ok(())
            } else {
                Err(format!("{found} have"))
            }
        },
    )
    .await;
}

/// Opens a case. Half of the cases get no finding, the others conflicting ones about which no agent answers.
async fn open(installation: &TestInstallation, random: &mut Random, number: usize) {
    let case = format!("case-{number}");
    let policy = json!({
        "finding_timeout_ms": random.between(1_500, 4_000), "answer_timeout_ms": random.between(500, 1_500),
        "case_timeout_ms": 3_600_000,
    });
    let parameters = json!({
        "case_id": case, "participants": ["ann", "ben"], "policy": policy, "task": { "type": "test" },
    });
    installation.open_case(&parameters).await;
    if number.is_multiple_of(2) {
        for (agent, score) in [("ann", 10), ("ben", 90)] {
            let finding = json!({ "summary": "What was found.", "risk_score": score });
            Message::finding(&case, agent, finding, 0.8)
                .publish(installation.client())
                .await;
        }
    }
}

/// Kills both processes of the timer and starts them again; in between, the broker too if `with_broker`.
async fn kill_timers(installation: &TestInstallation, with_broker: bool) {
    for replica in 0..2 {
        installation
            .kill(Service::EscalationTimer, replica)
            .expect("a process");
    }
    if with_broker {
        installation.stop_broker().await.expect("the broker stops");
        installation
            .start_broker()
            .await
            .expect("the broker starts again");
    }
    for replica in 0..2 {
        installation
            .launch(Service::EscalationTimer, replica)
            .expect("it starts again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_that_fall_due_while_their_keeper_is_dead_fire_once() {
    let mut random = Random::seeded();
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan
            .with_setting("work.ack_wait_ms=1000")
            .with_replicas(Service::AgentAdapter, 0);
        plan.with_replicas(Service::EscalationTimer, 2)
    })
    .await;
    let client = installation.client();
    for number in 0..CASES {
        open(&installation, &mut random, number).await;
    }
    for count in [
        random.between(1, 5),
        random.between(5, 20),
        random.between(20, 30),
    ] {
        wait_for_elapsed(client, usize::try_from(count).unwrap_or(1)).await;
        kill_timers(&installation, (5..20).contains(&count)).await;
    }
    let decisions = wait_for_decisions(client, CASES, PATIENCE).await;
    for (case, decision) in &decisions {
        let number: usize = case.trim_start_matches("case-").parse().expect("a number");
        let expected = if number.is_multiple_of(2) {
            "settled"
        } else {
            "no_finding"
        };
        assert_eq!(decision["reason"], expected, "{case}");
    }
    // The audit also checks that no deadline has fired twice or before it was due.
    installation.holds(PATIENCE).await;
    let fired = elapsed(client).await.expect("the stream can be read");
    // Each case without findings has one such deadline, and each other case one in each of its two rounds.
    assert_eq!(fired.len(), CASES / 2 + 2 * (CASES / 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_fires_a_deadline_whose_schedule_is_lost() {
    let installation = TestInstallation::start_with(|plan| {
        let timer = Service::EscalationTimer;
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_service_setting(timer, "service.watchdog_interval_ms=200")
            .with_service_setting(timer, "service.watchdog_grace_ms=100")
    })
    .await;
    let policy = json!({ "finding_timeout_ms": 3_000, "case_timeout_ms": 3_600_000 });
    let parameters =
        json!({ "participants": ["ann"], "policy": policy, "task": { "type": "test" } });
    let case = installation.open_case(&parameters).await;
    // Only the near deadline: a far one is not armed in the broker as long as it may be closed soon.
    let armed = format!("concord.v1.timer.armed.case.{case}.findings");
    wait_for("the deadline to be armed", PATIENCE, async || {
        let armed = stored(installation.client(), StreamKind::Timers, &armed).await?;
        if armed.is_empty() {
            Err("it is not".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
    let timers = jetstream::new(installation.client().clone())
        .get_stream_no_info("CONCORD_TIMERS")
        .await;
    timers
        .expect("a handle")
        .purge()
        .await
        .expect("the stream is purged");
    let decided = installation.decision(&case, PATIENCE).await;
    assert_eq!(decided["decision"]["reason"], "no_finding");
    let fired = elapsed(installation.client())
        .await
        .expect("the stream can be read");
    let names: Vec<_> = fired
        .iter()
        .map(|event| (&event["name"], &event["fired_by"]))
        .collect();
    assert_eq!(names, [(&json!("findings"), &json!("watchdog"))]);
    installation.holds(PATIENCE).await;
}
