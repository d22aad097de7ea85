//! Two agents that answer each other's answers, at least one of them hosted, are stopped and are told so once.

use concord_testkit::{Agent, Message, message_bodies, settled, unique, wait_for};
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Stage};

/// How many messages may answer each other before the thread is stopped.
const DEPTH: usize = 8;

/// A program that answers everything by asking back.
const ASKS_BACK: &str = r#"import json, sys
for line in sys.stdin:
    print(json.dumps({"message_type": "peer_request", "payload": {"content": "And what do you say?"}}), flush=True)
"#;

async fn start(adapters: usize, hosted: &[&String]) -> Stage {
    let agent = |name: &&String| {
        format!(
            "[[service.agents]]\nagent_id = {name:?}\ncommand = [\"python3\", \"-c\", {ASKS_BACK:?}]\n"
        )
    };
    let agents: Vec<String> = hosted.iter().map(agent).collect();
    let loops =
        format!("[service.loops]\ndepth_max = {DEPTH}\nwindow_ms = 600000\npause_ms = 600000\n");
    Stage::start(adapters, &format!("{loops}{}", agents.concat())).await
}

fn ask(from: &str, to: &str) -> Message {
    let payload = json!({ "content": "What do you say?" });
    Message::new("_", from, to, "peer_request", payload)
}

/// The bodies of the messages of one type to an agent.
async fn messages_to(stage: &Stage, agent: &str, kind: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.*.{agent}.{kind}");
    message_bodies(stage.installation.client(), &filter)
        .await
        .unwrap()
}

/// Waits until both agents are told that they are stopped, and nothing is under way; each is told once.
async fn check_stopped(stage: &Stage, ann: &str, ben: &str, thread: &str) {
    wait_for("both to be told", PATIENCE, async || {
        let to_ann = messages_to(stage, ann, "notification").await;
        let to_ben = messages_to(stage, ben, "notification").await;
        if to_ann.is_empty() || to_ben.is_empty() {
            Err(format!("{to_ann:?} {to_ben:?}"))
        } else {
            Ok(())
        }
    })
    .await;
    settled(stage.installation.client(), PATIENCE)
        .await
        .unwrap();
    for (agent, other) in [(ann, ben), (ben, ann)] {
        let told = messages_to(stage, agent, "notification").await;
        let [one] = &told[..] else {
            panic!("{agent} is told once, not {told:?}")
        };
        let data = &one["payload"]["data"];
        assert_eq!(
            (&one["payload"]["event"], &data["thread"]),
            (&json!("loop_broken"), &json!(thread)),
            "{one}"
        );
        assert_eq!(data["with"], json!(other), "{one}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_programs_that_ask_each_other_back_are_stopped_and_answer_others() {
    let [ann, ben] = ["ann", "ben"].map(unique);
    let stage = start(2, &[&ann, &ben]).await;
    let client = stage.installation.client();
    let first = ask(&ann, &ben);
    first.publish(client).await;
    check_stopped(&stage, &ann, &ben, first.id()).await;
    let between = [
        messages_to(&stage, &ann, "peer_request").await,
        messages_to(&stage, &ben, "peer_request").await,
    ]
    .concat();
    assert!(
        between.len() > DEPTH / 2 && between.len() <= 3 * DEPTH,
        "{} messages",
        between.len()
    );
    // The agent that sent the last message waits for an answer, and is told why there is none.
    let errors = [
        messages_to(&stage, &ann, "error").await,
        messages_to(&stage, &ben, "error").await,
    ]
    .concat();
    assert!(!errors.is_empty());
    for error in &errors {
        assert_eq!(
            error["payload"]["error_code"], "CAPACITY_EXCEEDED",
            "{error}"
        );
        assert!(
            error["payload"]["error_message"]
                .as_str()
                .unwrap()
                .contains("without end"),
            "{error}"
        );
    }
    // Another thread and another agent are not affected.
    let other = ask(&stage.asker, &ann);
    other.publish(client).await;
    wait_for("another to be answered", PATIENCE, async || {
        let answers = messages_to(&stage, &stage.asker, "peer_request").await;
        if answers.iter().any(|one| one["reply_to"] == other.id()) {
            Ok(())
        } else {
            Err("it is not".into())
        }
    })
    .await;
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_and_an_agent_of_nats_that_ask_each_other_back_are_stopped() {
    // Its messages name only the message that they answer, and no thread.
    are_stopped(|answer| answer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_calls_the_conversation_another_name_with_each_turn_is_stopped_as_well() {
    are_stopped(|answer| answer.with("/correlation_id", json!(unique("talk")))).await;
}

/// Plays the program against an agent with a NATS client, whose answers go through `named`, and checks that both are
/// stopped.
async fn are_stopped(named: impl Fn(Message) -> Message + Send + Sync + 'static) {
    let [ann, ben] = ["ann", "ben"].map(unique);
    let stage = start(1, &[&ann]).await;
    let client = stage.installation.client();
    let _ben = Agent::start(client, &ben, move |heard| match heard.kind() {
        "peer_request" => {
            let from = heard.body["from_agent"].as_str().unwrap();
            vec![named(
                ask(&heard.agent, from).with("/reply_to", heard.body["message_id"].clone()),
            )]
        }
        _ => Vec::new(),
    })
    .await;
    let first = ask(&ben, &ann);
    first.publish(client).await;
    check_stopped(&stage, &ann, &ben, first.id()).await;
    let between = [
        messages_to(&stage, &ann, "peer_request").await,
        messages_to(&stage, &ben, "peer_request").await,
    ]
    .concat();
    assert!(
        between.len() > DEPTH / 2 && between.len() <= 2 * DEPTH,
        "{} messages",
        between.len()
    );
    let errors = messages_to(&stage, &ben, "error").await;
    assert_eq!(errors.len(), 1, "an error is not answered: {errors:?}");
    stage.installation.holds(PATIENCE).await;
}
