//! What is delivered again to a hosted agent: what it has answered is not asked again, since a call of a model costs money, and what a
//! case waits for comes again where there was no room.

use std::time::{Duration, Instant};

use concord_testkit::{command, finish, programs_of, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::json;
use tokio::sync::watch;

use crate::hosted::stage::{PATIENCE, Server, Stage};

/// That of `work.ack_wait_ms`, where nothing else is said.
const ACK_WAIT: Duration = Duration::from_secs(5);
const RESPONSE: &str = r#"{"message_type":"response","payload":{"status":"success","result":{}}}"#;
const FINDING: &str =
    r#"{"message_type":"finding","confidence":0.8,"payload":{"summary":"Read.","risk_score":20}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_out_again_is_not_asked_again_where_it_was_answered() {
    let server = Server::start(|_| async { (200, FINDING.to_owned()) }).await;
    let agent = unique("paid");
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{agent}\"\nhttp = {{ url = \"{}/x\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let case = json!({ "participants": [agent], "task": { "type": "test" } });
    let case = stage.installation.open_case(&case).await;
    let decided = stage.installation.decision(&case, PATIENCE).await;
    stage.wait_until_done(&agent).await;
    let asked = |kind: &str| {
        let received = server.received().into_iter();
        received
            .filter(|call| call.body["message_type"] == kind)
            .count()
    };
    assert_eq!(asked("task_assignment"), 1, "{decided}");
    // By its age the adapter knows that it may have been delivered before.
    let stored = Instant::now();
    wait_for("the assignment to be old", PATIENCE, async || {
        let age = stored.elapsed();
        (age > ACK_WAIT).then_some(()).ok_or(format!("{age:?}"))
    })
    .await;

    let told = asked("notification");
    let program = programs_of(&["concord-cli"]).join("concord");
    let mut redeliver = command(&program);
    let url = stage.installation.server_url();
    redeliver.args(["--server", url, "redeliver", "--since", "1h"]);
    let said = finish(&mut redeliver).await.good();
    assert!(said.contains(&format!("agent-{agent}")), "{said}");
    // What it was told comes after what it was asked, and it is told again.
    wait_for("the agent to be told again", PATIENCE, async || {
        let again = asked("notification");
        (again > told).then_some(()).ok_or(again.to_string())
    })
    .await;
    stage.wait_until_done(&agent).await;
    assert_eq!(asked("task_assignment"), 1);
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_case_waits_for_finds_room_later_where_there_is_none() {
    let (release, released) = watch::channel(false);
    let server = Server::start(move |call| {
        let mut released = released.clone();
        async move {
            let _ = released.wait_for(|released| *released).await;
            match call.body["message_type"] == "task_assignment" {
                true => (200, FINDING.to_owned()),
                false => (200, RESPONSE.to_owned()),
            }
        }
    })
    .await;
    let agent = unique("busy");
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{agent}\"\ninstances = 1\nqueue_max = 1\ntimeout_ms = 120000\nhttp = {{ url = \"{}/x\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    // One is worked on and one waits, in whatever order they come; another is refused.
    for _ in 0..3 {
        stage.ask(&agent, Some(120_000), "normal").await;
    }
    let refused = stage.all_answers(1).await;
    assert_eq!(
        refused[0]["payload"]["error_code"], "CAPACITY_EXCEEDED",
        "{refused:?}"
    );

    let case = json!({
        "participants": [agent], "task": { "type": "test" }, "policy": { "finding_timeout_ms": 600_000 },
    });
    let case = stage.installation.open_case(&case).await;
    let log = stage.installation.log(Service::AgentAdapter, 0);
    let log = log.expect("a log");
    wait_for("the assignment to find no room", PATIENCE, async || {
        let log = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
        let line = log
            .lines()
            .find(|line| line.contains("it will be tried again"));
        let is_it = line.is_some_and(|line| line.contains("task_assignment"));
        is_it.then_some(()).ok_or(log)
    })
    .await;
    release.send_replace(true);
    let decided = stage.installation.decision(&case, PATIENCE).await;
    assert_eq!(
        decided["decision"]["findings"][0]["agent_id"], agent,
        "{decided}"
    );
}
