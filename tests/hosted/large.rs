//! A hosted agent that works on a large message for long holds up no large message to another, nor the waking.

use std::path::Path;
use std::time::Duration;

use concord_agent::{Agent, AgentId, MessageType, Recipient};
use concord_testkit::{event_data, unique, wait_for};
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Stage};

/// A program that says in a file that it has a message, waits for another file, and answers with the size of what it was sent.
const SLOW: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    text = json.loads(line)["payload"]["parameters"]["text"]
    open(sys.argv[1], "w").close()
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    print(json.dumps({"message_type": "response", "payload": {"status": "success", "result": {"size": len(text)}}}), flush=True)
"#;

/// Two payloads of this size have no room at once beside each other.
const BY_REFERENCE: usize = 7 << 20;

/// So much comes in the message itself, and keeps a processor busy for a while.
const INLINE: usize = 200 << 10;

/// The settings of an agent that writes the first file and waits for the second.
fn slow(name: &str, taken: &Path, go: &Path) -> String {
    format!(
        "[[service.agents]]\nagent_id = {name:?}\ntimeout_ms = 120000\ncommand = [\"python3\", \"-c\", {SLOW:?}, {taken:?}, {go:?}]\n"
    )
}

async fn connect(stage: &Stage, name: &str) -> Agent {
    let connected = Agent::builder(unique(name).as_str())
        .connect(stage.installation.server_url())
        .await;
    connected.expect("it connects")
}

/// As long as the slow agent is held up, at most: what the others do meanwhile is waited for several times.
const HELD_UP: Duration = Duration::from_secs(110);

/// What an agent answers to a large request of this one.
async fn ask(asker: Agent, name: &str, bytes: usize) -> Value {
    let text = json!({ "text": "x".repeat(bytes) });
    let agent = AgentId::new(name).expect("a name");
    let asked = json!({ "action": "count", "parameters": text });
    let message = asker.message(Recipient::Agent(agent), MessageType::Request, &asked);
    let answer = asker.ask(message.expect("a message"), HELD_UP).await;
    answer.expect("an answer")
}

async fn exists(file: &Path) {
    wait_for("the agent to be given its message", PATIENCE, async || {
        file.exists()
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_agent_with_a_large_payload_holds_up_no_other_and_no_waking() {
    holds_up_nothing(BY_REFERENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_agent_with_a_large_message_holds_up_no_other_and_no_waking() {
    holds_up_nothing(INLINE).await;
}

async fn holds_up_nothing(bytes: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let (taken, go, done) = (file("taken"), file("go"), file("done"));
    let [held, quick] = ["held", "quick"].map(unique);
    std::fs::write(&done, "").expect("the file is written");
    let settings = slow(&held, &taken, &go) + &slow(&quick, &file("read"), &done);
    let stage = Stage::start(1, &settings).await;
    let [first, second, third] = [
        connect(&stage, "ann").await,
        connect(&stage, "ben").await,
        connect(&stage, "cyd").await,
    ];
    let waiting = tokio::spawn({
        let held = held.clone();
        async move { ask(first, &held, bytes).await }
    });
    exists(&taken).await;

    let size = json!({ "size": bytes });
    assert_eq!(ask(second, &quick, bytes).await, size);
    let news = json!({ "content": "x".repeat(bytes) });
    let news = third.message(Recipient::All, MessageType::InfoUpdate, &news);
    let news = news.expect("a message");
    third.publish(&news).await.expect("it is sent");
    wait_for("it to be decided whom it wakes", PATIENCE, async || {
        let decided = event_data(stage.installation.client(), "wake.*.decided").await?;
        let count = decided.len();
        (count == 1).then_some(()).ok_or_else(|| format!("{count}"))
    })
    .await;
    assert!(!waiting.is_finished(), "the slow one works on");
    std::fs::write(&go, "").expect("the file is written");
    assert_eq!(waiting.await.expect("no panic"), size);
    stage.installation.holds(PATIENCE).await;
}
