//! A hosted agent is told what another agent says without waiting for an answer, to it or to everybody, and nothing that it answers is
//! published.

use concord_testkit::{Message, message_bodies, unique, wait_for};
use serde_json::{Value, json};

use crate::hosted::dialects::program;
use crate::hosted::stage::{PATIENCE, Received, Server, Stage, callback_settings};

/// A program that answers whatever it is given, and keeps it in a file.
const KEEPS: &str = r#"
import json, os, sys
for line in sys.stdin:
    with open(os.environ["KEPT"], "a") as kept:
        kept.write(line)
    message = json.loads(line)
    print(json.dumps({"message_type": "RESPONSE", "sender_id": message["receiver_id"] or "", "content": {"heard": True}}), flush=True)
"#;

fn answers(_: &Received) -> String {
    json!({ "message_type": "notification", "payload": { "event": "heard" } }).to_string()
}

/// What every agent is told here, by type and payload.
fn said() -> [(&'static str, Value); 5] {
    [
        ("notification", json!({ "event": "release", "data": {} })),
        ("info_update", json!({ "content": "The build is green." })),
        (
            "handoff",
            json!({ "context": { "step": 2 }, "reason": "Yours." }),
        ),
        ("status", json!({ "progress": 0.5 })),
        (
            "error",
            json!({ "error_code": "INTERNAL_ERROR", "error_message": "Out of order." }),
        ),
    ]
}

/// The ids of the messages that the server was given, in order.
fn given(server: &Server) -> Vec<String> {
    let mut ids: Vec<_> = server
        .received()
        .iter()
        .map(|call| {
            call.body["message_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    ids.sort();
    ids
}

/// Waits until the server has been given exactly these messages.
async fn is_given(server: &Server, expected: &[&Message]) {
    let mut expected: Vec<String> = expected.iter().map(|one| one.id().to_owned()).collect();
    expected.sort();
    wait_for("the server to be given them", PATIENCE, async || {
        let given = given(server);
        if given == expected {
            Ok(())
        } else {
            Err(format!("{given:?}, not {expected:?}"))
        }
    })
    .await;
}

/// The messages that an agent has published, but its registration.
async fn published(stage: &Stage, agent: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.{agent}.*.*");
    let all = message_bodies(stage.installation.client(), &filter).await;
    let mut all = all.expect("the stream can be read");
    all.retain(|message| message["payload"]["action"] != "register_agent");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_agent_is_told_what_another_says_to_it_or_to_everybody() {
    let server = Server::start(|received| async move { (200, answers(&received)) }).await;
    let model = Server::model("{}").await;
    let directory = tempfile::tempdir().expect("a directory");
    let kept = directory.path().join("kept");
    let [hosted, thinks, other] = ["hosted", "thinks", "other"].map(unique);
    let settings = [
        // What a slow machine has not acknowledged yet is not to be told again.
        "[work]\nack_wait_ms = 60000\n".to_owned(),
        callback_settings(),
        format!(
            "[[service.agents]]\nagent_id = {hosted:?}\nhttp = {{ url = \"{}/x\" }}\n\
             [[service.agents]]\nagent_id = {thinks:?}\nopenai = {{ base_url = \"{}/v1\", model = \"m\" }}\n",
            server.url, model.url
        ),
        program(&other, "collaboration", KEEPS),
        format!("environment = {{ KEPT = {kept:?} }}\n"),
    ];
    let stage = Stage::start(1, &settings.concat()).await;
    let client = stage.installation.client();
    let to = |agent: &str, kind: &str, payload: &Value| {
        Message::new("_", &stage.asker, agent, kind, payload.clone())
    };
    let direct = said().map(|(kind, payload)| to(&hosted, kind, &payload));
    for message in &direct {
        message.publish(client).await;
    }
    is_given(&server, &direct.each_ref()).await;

    // To everybody: also with an event that services use, which is believed of nobody else.
    let all = ["release", "woken", "debate_resolved"].map(|event| {
        let payload = json!({ "event": event, "data": { "message": {} }, "severity": "warning" });
        to("_all", "notification", &payload)
    });
    for message in &all {
        message.publish(client).await;
    }
    let expected: Vec<&Message> = direct.iter().chain(&all).collect();
    is_given(&server, &expected).await;
    let told = server.received();
    let last = &told.last().expect("a call").body;
    assert_eq!(
        (&last["from_agent"], &last["to_agent"]),
        (&json!(stage.asker), &json!("_all"))
    );
    let callback = told
        .iter()
        .find(|call| call.headers.contains_key("concord-callback-url"));
    assert!(callback.is_none(), "nothing is to be answered later");
    wait_for("the program to be told each once", PATIENCE, async || {
        let text = std::fs::read_to_string(&kept).unwrap_or_default();
        let told = text.lines().filter(|line| line.contains("\"BROADCAST\""));
        (told.count() == all.len()).then_some(()).ok_or(text)
    })
    .await;

    for agent in [&hosted, &thinks, &other] {
        stage.wait_until_done(agent).await;
        assert_eq!(published(&stage, agent).await, Vec::<Value>::new());
    }
    assert_eq!(model.received().len(), 0, "a model would forget it");
    stage.installation.holds(PATIENCE).await;
}
