//! Two agents that wake each other without end are stopped and are told so once; everybody else goes on.

use concord_testkit::{
    Agent, Message, ReceivedMessage, TestInstallation, event_data, message_bodies, settled,
    wait_for, with_adapter_settings,
};
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{names, register};

/// How many messages may answer each other before the thread is stopped.
const DEPTH: usize = 8;

/// A message to the group that wakes the agent it mentions.
fn mention(from: &str, whom: &str, thread: &str) -> Message {
    let payload = json!({ "content": format!("@{whom} and what do you say?") });
    Message::new("_", from, "_any", "group_query", payload).with("/correlation_id", thread)
}

/// The answer of an agent to the message that wakes it: a mention of the sender.
fn mention_back(heard: &ReceivedMessage) -> Vec<Message> {
    let woken = &heard.payload()["data"]["message"];
    let (Some(from), Some(thread)) = (
        woken["from_agent"].as_str(),
        woken["correlation_id"].as_str(),
    ) else {
        return Vec::new();
    };
    vec![mention(&heard.agent, from, thread).with("/reply_to", woken["message_id"].clone())]
}

/// The notifications of one event that an agent was sent.
async fn notifications(installation: &TestInstallation, agent: &str, event: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.*.{agent}.notification");
    let mut notifications = message_bodies(installation.client(), &filter)
        .await
        .unwrap();
    notifications.retain(|one| one["payload"]["event"] == event);
    notifications
}

async fn start() -> TestInstallation {
    TestInstallation::start_with(|plan| {
        let loops = format!(
            "[service.loops]\ndepth_max = {DEPTH}\nwindow_ms = 600000\npause_ms = 600000\n"
        );
        with_adapter_settings(plan, &loops)
    })
    .await
}

/// Lets ann mention ben until he is woken: the adapter knows whom a message wakes only when it has read the cards.
async fn begin_exchange(installation: &TestInstallation, ann: &str, ben: &str) {
    wait_for("the exchange to begin", PATIENCE, async || {
        mention(ann, ben, "thread-1")
            .publish(installation.client())
            .await;
        if notifications(installation, ben, "woken").await.is_empty() {
            Err("it has not".into())
        } else {
            Ok(())
        }
    })
    .await;
}

/// Waits until both are told that the loop is broken: what ann is told.
async fn wait_until_both_are_told(installation: &TestInstallation, ann: &str, ben: &str) -> Value {
    wait_for("both to be told", PATIENCE, async || {
        let to_ann = notifications(installation, ann, "loop_broken").await;
        let to_ben = notifications(installation, ben, "loop_broken").await;
        match (to_ann.first(), to_ben.first()) {
            (Some(first), Some(_)) => Ok(first["payload"]["data"].clone()),
            _ => Err(format!("{to_ann:?} {to_ben:?}")),
        }
    })
    .await
}

/// Waits until the adapter has decided about all these messages: its decisions.
async fn decisions<const N: usize>(
    installation: &TestInstallation,
    about: [&Message; N],
) -> [Value; N] {
    wait_for("the others to be heard", PATIENCE, async || {
        let decided = event_data(installation.client(), "wake.*.decided").await?;
        let found = about.map(|message| {
            decided
                .iter()
                .find(|one| one["said"]["message_id"] == message.id())
                .cloned()
        });
        if found.iter().all(Option::is_some) {
            Ok(found.map(Option::unwrap))
        } else {
            Err("not all are".into())
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_wake_each_other_are_stopped_and_told_once() {
    let installation = start().await;
    let client = installation.client();
    let [ann, ben, zoe] = names(["ann", "ben", "zoe"]);
    for agent in [&ann, &ben] {
        register(&installation, agent, &json!({})).await;
    }
    let _ann = Agent::start(client, &ann, mention_back).await;
    let _ben = Agent::start(client, &ben, mention_back).await;
    begin_exchange(&installation, &ann, &ben).await;
    let data = wait_until_both_are_told(&installation, &ann, &ben).await;
    assert_eq!(
        (&data["thread"], &data["with"], &data["depth"]),
        (&json!("thread-1"), &json!(ben), &json!(DEPTH + 1))
    );
    let advice = data["what_to_do"].as_str().unwrap();
    assert!(advice.contains("end the thread"), "{data}");
    settled(client, PATIENCE).await.unwrap();

    // In the stopped thread neither wakes the other; another agent does, and so does a message of another thread.
    let more = mention(&ann, &ben, "thread-1");
    let of_other = mention(&zoe, &ben, "thread-1");
    let elsewhere = mention(&ann, &ben, "thread-2");
    for message in [&more, &of_other, &elsewhere] {
        message.publish(client).await;
    }
    let [more, of_other, elsewhere] =
        decisions(&installation, [&more, &of_other, &elsewhere]).await;
    assert_eq!(
        (&more["woken"], &more["others"][0]["reason"]),
        (&Value::Null, &json!("loop_broken")),
        "{more}"
    );
    for decided in [of_other, elsewhere] {
        assert_eq!(decided["woken"][0]["agent_id"], json!(ben), "{decided}");
    }
    installation.holds(PATIENCE).await;
    for agent in [&ann, &ben] {
        let mut told = notifications(&installation, agent, "loop_broken").await;
        told.retain(|one| one["correlation_id"] == "thread-1");
        assert_eq!(told.len(), 1, "{agent} is told once");
    }
}
