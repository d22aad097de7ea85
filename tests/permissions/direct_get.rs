//! An agent that may ask for a stored message directly can have any body stored as an event. That copy is no event, whatever it
//! says.

use async_nats::{Client, jetstream};
use concord_events::topology::StreamKind;
use concord_testkit::{Message, Stored, TestInstallation, event_data, events, unique, wait_for};
use concord_wire::AgentId;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::command::printed;
use crate::permissions::replies::{Mallory, message_to};
use crate::permissions::user::agents;

/// Registers an agent that then hides its card: an acknowledgement takes the place of its registration.
async fn register_and_hide_card(installation: &TestInstallation, eva: &AgentId, own: &str) {
    register(installation, &json!({ "agent_id": eva })).await;
    hide_card(installation, eva, own).await;
}

async fn register(installation: &TestInstallation, card: &Value) {
    let register = json!({ "action": "register_agent", "parameters": card });
    let agent: AgentId = serde_json::from_value(card["agent_id"].clone()).expect("an agent");
    Message::new("_", agent.as_str(), "coordinator", "request", register)
        .publish(installation.client())
        .await;
    message_to(installation, "_", &agent, "response").await;
}

async fn hide_card(installation: &TestInstallation, eva: &AgentId, own: &str) {
    let client = installation.client();
    let hers = Mallory {
        installation,
        client: client.clone(),
        own: own.to_owned(),
    };
    let registered = format!("concord.v1.event.agent.{eva}.registered");
    hers.names(StreamKind::Events, &[registered]).await;
}

/// Makes the broker store a copy of the event that opened the case, in the place of its decision.
async fn copy_event(client: &Client, case: &str, own: &str) {
    let opened = events(client, &format!("case.{case}.*"))
        .await
        .expect("the stream can be read");
    let event = opened.first().expect("the case is open").payload.clone();
    let stored = jetstream::new(client.clone())
        .publish(own.to_owned(), event)
        .await
        .expect("sent");
    let sequence = stored.await.expect("stored").sequence;
    let asked = client.publish_with_reply(
        "$JS.API.DIRECT.GET.CONCORD_MESSAGES",
        format!("concord.v1.event.case.{case}.decided"),
        json!({ "seq": sequence }).to_string().into(),
    );
    asked.await.expect("sent");
}

/// Waits until so many messages are stored as decisions of the case.
async fn wait_for_decisions(client: &Client, case: &str, number: usize) -> Vec<Stored> {
    let filter = format!("case.{case}.decided");
    let what = format!("{number} messages on {filter}");
    wait_for(what, PATIENCE, async || {
        let all = events(client, &filter).await?;
        if all.len() == number {
            Ok(all)
        } else {
            Err(format!("{}", all.len()))
        }
    })
    .await
}

/// Restarts the coordinator, which then remembers nothing and still finds the card.
async fn restart_coordinator(installation: &TestInstallation, known: [&AgentId; 2]) {
    // One that runs would not be started again.
    let ended = installation.terminate(Service::Coordinator, 0).await;
    assert!(ended.expect("a process of the plan"));
    let started = installation.restart(Service::Coordinator, 0).await;
    started.expect("it starts");
    installation.ready().await.expect("it is ready");
    wait_for("both cards", PATIENCE, async || {
        let agents = installation
            .ask(Service::Coordinator, "agents", &Value::Null)
            .await?
            .to_string();
        let has_all = known.iter().all(|agent| agents.contains(agent.as_str()));
        has_all.then_some(()).ok_or(agents)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_is_hidden_is_found_and_a_copy_is_no_fact_whatever_it_says() {
    let [eva, sue] = agents(["eva", "sue"]);
    let installation = TestInstallation::start().await;
    let client = installation.client();
    let case = unique("case");
    let own = format!("concord.v1.msg.{case}.{eva}.{eva}.note");
    register_and_hide_card(&installation, &eva, &own).await;
    // Of sue something has happened since, which is stored between her card and what hides it.
    register(
        &installation,
        &json!({ "agent_id": sue, "heartbeat_ms": 200 }),
    )
    .await;
    wait_for("sue to be missed", PATIENCE, async || {
        let changed = event_data(client, &format!("agent.{sue}.status_changed")).await?;
        changed.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
    hide_card(&installation, &sue, &own).await;
    let opening = json!({
        "case_id": case, "participants": [eva], "task": { "type": "test" }, "policy": { "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    copy_event(client, &case, &own).await;
    wait_for_decisions(client, &case, 1).await;

    restart_coordinator(&installation, [&eva, &sue]).await;
    Message::finding(&case, eva.as_str(), json!({ "summary": "Seen." }), 0.8)
        .publish(client)
        .await;
    let decisions = wait_for_decisions(client, &case, 2).await;
    let decided = decisions[1].json();
    assert_eq!(
        decided["data"]["decision"]["findings"][0]["agent_id"],
        eva.as_str(),
        "{decided:#}"
    );
    installation.holds(PATIENCE).await;
    let check = printed(&installation, &["check"]);
    assert_eq!(
        (&check["holds"], &check["foreign"]["number"]),
        (&json!(true), &json!(3)),
        "{check:#}"
    );
    assert_eq!(
        printed(&installation, &["replay", &case])["identical"],
        true
    );
}
