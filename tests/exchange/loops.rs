//! Two agents that wake each other without end: stopped, and told so once; everybody else goes on.

use concord_events::topology::StreamKind;
use concord_testkit::{Agent, Heard, Message, TestInstallation, settled, stored, until};
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{becomes, card, facts, names, to_coordinator};

const DEPTH: usize = 8;

/// Says something to the group that wakes whoever it mentions.
fn mention(from: &str, whom: &str, thread: &str) -> Message {
    Message::new(
        "_",
        from,
        "_any",
        "group_query",
        json!({ "content": format!("@{whom} and what do you say?") }),
    )
    .with("/correlation_id", thread)
}

/// Answers what wakes it by mentioning whoever said it.
fn answers(heard: &Heard) -> Vec<Message> {
    let woken = &heard.payload()["data"]["message"];
    let (Some(from), Some(thread)) = (
        woken["from_agent"].as_str(),
        woken["correlation_id"].as_str(),
    ) else {
        return Vec::new();
    };
    vec![mention(&heard.agent, from, thread).with("/reply_to", woken["message_id"].clone())]
}

/// The notifications of one event that an agent was given.
async fn told(installation: &TestInstallation, agent: &str, event: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.*.{agent}.notification");
    let said = stored(installation.client(), StreamKind::Messages, &filter)
        .await
        .unwrap();
    said.iter()
        .map(|one| one.json())
        .filter(|one| one["payload"]["event"] == event)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_wake_each_other_are_stopped_and_told_once() {
    let installation = TestInstallation::start_with(|mut plan| {
        let config = plan.directory.join("adapter.toml");
        let loops = format!(
            "[service.loops]\ndepth_max = {DEPTH}\nwindow_ms = 600000\npause_ms = 600000\n"
        );
        std::fs::write(&config, loops).unwrap();
        plan.adapter_config = Some(config);
        plan
    })
    .await;
    let client = installation.client();
    let [ann, ben, zoe] = names(["ann", "ben", "zoe"]);
    for agent in [&ann, &ben] {
        to_coordinator(agent, "register_agent", card(agent, &json!({})))
            .publish(client)
            .await;
        becomes(&installation, agent, Some("available")).await;
    }
    let (_ann, _ben) = (
        Agent::start(client, &ann, answers).await,
        Agent::start(client, &ben, answers).await,
    );
    // Whom a message wakes is known to the adapter once it has read the cards: until then nobody is mentioned.
    let begun = until("the exchange to begin", PATIENCE, async || {
        mention(&ann, &ben, "thread-1").publish(client).await;
        if told(&installation, &ben, "woken").await.is_empty() {
            Err("it has not".into())
        } else {
            Ok(())
        }
    });
    begun.await.unwrap_or_else(|error| panic!("{error}"));
    let broken = until("both to be told", PATIENCE, async || {
        let both = (
            told(&installation, &ann, "loop_broken").await,
            told(&installation, &ben, "loop_broken").await,
        );
        if both.0.is_empty() || both.1.is_empty() {
            Err(format!("{both:?}"))
        } else {
            Ok(both)
        }
    });
    let (to_ann, _) = broken.await.unwrap_or_else(|error| panic!("{error}"));
    let data = &to_ann[0]["payload"]["data"];
    assert_eq!(
        (&data["thread"], &data["with"], &data["depth"]),
        (&json!("thread-1"), &json!(ben), &json!(DEPTH + 1))
    );
    assert!(
        data["what_to_do"]
            .as_str()
            .unwrap()
            .contains("end the thread"),
        "{data}"
    );
    settled(client, PATIENCE).await.unwrap();

    // What they go on to say in the thread wakes neither; what another says does, and so does another thread.
    let more = mention(&ann, &ben, "thread-1");
    more.publish(client).await;
    let others = [
        mention(&zoe, &ben, "thread-1"),
        mention(&ann, &ben, "thread-2"),
    ];
    for message in &others {
        message.publish(client).await;
    }
    let woken = until("the others to be heard", PATIENCE, async || {
        let decided = facts(client, "wake", "decided").await;
        let found = |message: &Message| {
            decided
                .iter()
                .find(|one| one["said"]["message_id"] == message.id())
                .cloned()
        };
        match (found(&more), found(&others[0]), found(&others[1])) {
            (Some(more), Some(zoes), Some(anns)) => Ok((more, zoes, anns)),
            _ => Err("not all are".into()),
        }
    });
    let (more, zoes, anns) = woken.await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (&more["woken"], &more["others"][0]["reason"]),
        (&Value::Null, &json!("loop_broken")),
        "{more}"
    );
    for decided in [zoes, anns] {
        assert_eq!(decided["woken"][0]["agent_id"], json!(ben), "{decided}");
    }
    installation.holds(PATIENCE).await;
    let of_first = |told: Vec<Value>| {
        told.iter()
            .filter(|one| one["correlation_id"] == "thread-1")
            .count()
    };
    for agent in [&ann, &ben] {
        assert_eq!(
            of_first(told(&installation, agent, "loop_broken").await),
            1,
            "{agent} is told once"
        );
    }
}
