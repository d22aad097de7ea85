//! Deadlines fire once while the escalation timer is killed and the broker is away.

use std::time::Duration;

use async_nats::jetstream;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_testkit::{
    Message, Random, TestInstallation, consumer_is_done, event_data, layout, settled, stored,
    wait_for,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::kill::cases::wait_for_decisions;

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
    let finds = number.is_multiple_of(2);
    // Where the findings come, their deadline is near enough to be armed at once, and far enough to be closed before it is due.
    let finding_timeout_ms = if finds {
        4_900
    } else {
        random.between(1_500, 4_000)
    };
    let policy = json!({
        "finding_timeout_ms": finding_timeout_ms, "answer_timeout_ms": random.between(500, 1_500),
        "case_timeout_ms": 3_600_000,
    });
    let parameters = json!({
        "case_id": case, "participants": ["ann", "ben"], "policy": policy, "task": { "type": "test" },
    });
    installation.open_case(&parameters).await;
    if finds {
        for (agent, score) in [("ann", 10), ("ben", 90)] {
            let finding = json!({ "summary": "What was found.", "risk_score": score });
            Message::finding(&case, agent, finding, 0.8)
                .publish(installation.client())
                .await;
        }
    }
}

/// Waits until both findings of every case that gets any are recorded: one that is held up by a broker that is away might come after the
/// deadline.
async fn wait_for_findings(client: &async_nats::Client) {
    wait_for("the findings to be recorded", PATIENCE, async || {
        let closed = event_data(client, "case.*.findings_closed").await?;
        let complete = closed.iter().filter(|event| event["last"].is_object());
        match complete.count() {
            found if found == CASES / 2 => Ok(()),
            found => Err(format!("those of {found} cases are")),
        }
    })
    .await;
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
    wait_for_findings(client).await;
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
    // On a slow machine it may have fired before its schedule was lost.
    for _ in 0..5 {
        if fired_although_lost(&installation).await == "watchdog" {
            return installation.holds(PATIENCE).await;
        }
    }
    panic!("no schedule was lost in time")
}

/// Has the schedule of a deadline lost: who has fired it.
async fn fired_although_lost(installation: &TestInstallation) -> Value {
    let client = installation.client();
    // Near enough to be armed at once, and no nearer: its schedule must be lost before it is due.
    let policy = json!({ "finding_timeout_ms": 4_900, "case_timeout_ms": 3_600_000 });
    let parameters =
        json!({ "participants": ["ann"], "policy": policy, "task": { "type": "test" } });
    let case = installation.open_case(&parameters).await;
    let fired = async || {
        let mut fired = elapsed(client).await?;
        fired.retain(|event| event["id"] == case.as_str());
        Ok::<_, String>(fired)
    };
    // Only the near deadline: a far one is not armed in the broker as long as it may be closed soon.
    let armed = format!("concord.v1.timer.armed.case.{case}.findings");
    wait_for("the deadline to be armed", PATIENCE, async || {
        let armed = stored(client, StreamKind::Timers, &armed).await?;
        let is_over = !fired().await?.is_empty();
        (is_over || !armed.is_empty())
            .then_some(())
            .ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let timers = jetstream::new(client.clone())
        .get_stream_no_info("CONCORD_TIMERS")
        .await;
    timers
        .expect("a handle")
        .purge()
        .await
        .expect("the stream is purged");
    let decided = installation.decision(&case, PATIENCE).await;
    assert_eq!(decided["decision"]["reason"], "no_finding");
    let fired = fired().await.expect("the stream can be read");
    let [fired] = &fired[..] else {
        panic!("{fired:?}");
    };
    assert_eq!(fired["name"], "findings");
    fired["fired_by"].clone()
}

/// The escalation timer's list of the deadlines that the broker holds, without their times.
async fn listed(installation: &TestInstallation) -> Result<Vec<(String, String)>, String> {
    let armed = installation
        .ask(Service::EscalationTimer, "armed", &Value::Null)
        .await?;
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let rows = armed.as_array().into_iter().flatten();
    Ok(rows
        .map(|row| (text(row, "id"), text(row, "name")))
        .collect())
}

/// Puts a deadline in the broker that it holds and never delivers, as one may be that comes back with a broker that was killed.
async fn leave_over(installation: &TestInstallation, case: &str, name: &str, due: &str) {
    let subject = format!("concord.v1.timer.armed.case.{case}.{name}");
    let deadline = json!({ "aggregate": "case", "id": case, "name": name, "due": due });
    jetstream::new(installation.client().clone())
        .publish(subject, deadline.to_string().into())
        .await
        .expect("it is sent")
        .await
        .expect("it is stored");
}

/// Waits until the timer has done what every event so far asks for: what it holds back is armed, and what has ended is cancelled.
async fn wait_until_all_are_armed(client: &async_nats::Client) {
    settled(client, PATIENCE).await.expect("nothing goes on");
    for consumer in layout().consumers_of(ConsumerKind::Deadlines) {
        wait_for(&consumer.name, PATIENCE, async || {
            consumer_is_done(client, StreamKind::Events, &consumer.name).await
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_is_over_is_not_listed_though_the_broker_holds_it() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let open = async |finding_timeout_ms: u64| {
        let policy = json!({ "finding_timeout_ms": finding_timeout_ms });
        let parameters =
            json!({ "participants": ["ann"], "policy": policy, "task": { "type": "test" } });
        installation.open_case(&parameters).await.to_string()
    };
    let over = open(500).await;
    installation
        .decision(&over.parse().expect("an id"), PATIENCE)
        .await;
    let going_on = open(600_000).await;
    // What the timer does later would take away or replace what is left over here.
    wait_until_all_are_armed(installation.client()).await;
    let long_ago = "2020-01-01T00:00:00Z";
    leave_over(&installation, &over, "findings", long_ago).await;
    leave_over(&installation, "never-opened", "case", long_ago).await;
    // The scheduler may still deliver this one, which is seen through then.
    leave_over(&installation, &over, "case", "2999-01-01T00:00:00Z").await;
    // This one is open: when it is due is said by its events, and not by what the broker holds.
    leave_over(&installation, &going_on, "findings", long_ago).await;
    let mut found = listed(&installation).await.expect("an answer");
    // Its other deadline is armed, too.
    found.retain(|(id, name)| (id, name.as_str()) != (&going_on, "case"));
    let expected = [(going_on, "findings"), (over.clone(), "case")];
    assert_eq!(found, expected.map(|(id, name)| (id, name.to_owned())));
    let filter = format!("concord.v1.timer.armed.case.{over}.findings");
    let held = stored(installation.client(), StreamKind::Timers, &filter).await;
    assert_eq!(held.expect("the stream can be read").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_more_than_a_thousand_deadlines_those_are_listed_that_are_due_first() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    // Neither the order in which they are stored nor that of the ids is that in which they are due.
    let due: Vec<usize> = (0..1_100).map(|number| number * 7 % 1_100).collect();
    for second in &due {
        let at = format!("2999-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
        leave_over(&installation, &format!("case-{second}"), "findings", &at).await;
    }
    let listed = listed(&installation).await.expect("an answer");
    let expected = (0..1_000).map(|second| (format!("case-{second}"), "findings".to_owned()));
    assert_eq!(listed, expected.collect::<Vec<_>>());
}
