//! What an agent has answered and an operator has handed out again is not asked again: a call of a model costs money, and who asks
//! something new waits behind it.

use std::time::{Duration, Instant};

use concord_testkit::{command, finish, programs_of, unique, wait_for};
use serde_json::json;

use crate::hosted::stage::{PATIENCE, Server, Stage};

const ACK_WAIT: Duration = Duration::from_secs(1);
const FINDING: &str =
    r#"{"message_type":"finding","confidence":0.8,"payload":{"summary":"Read.","risk_score":20}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_out_again_is_not_asked_again_where_it_was_answered() {
    let server = Server::start(|_| async { (200, FINDING.to_owned()) }).await;
    let agent = unique("paid");
    let settings = format!(
        "[work]\nack_wait_ms = {}\n[[service.agents]]\nagent_id = \"{agent}\"\nhttp = {{ url = \"{}/x\" }}\n",
        ACK_WAIT.as_millis(),
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
