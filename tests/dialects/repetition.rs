//! Two dialects have no message id: the same words may be sent twice, and are then two messages.

use concord_testkit::{Stored, TestInstallation, messages, unique, wait_for};
use concord_wire::header::DIALECT;
use futures::StreamExt;
use serde_json::json;
use tokio::time::timeout;

use crate::dialects::PATIENCE;
use crate::dialects::dialect_message::{DIALECTS, Incoming, Outgoing};

/// Waits until an agent was sent exactly so many messages of a type.
async fn messages_to(
    installation: &TestInstallation,
    agent: &str,
    kind: &str,
    count: usize,
) -> Vec<Stored> {
    let filter = format!("concord.v1.msg.*.*.{agent}.{kind}");
    let what = format!("{count} times {kind} to {agent}");
    wait_for(what, PATIENCE, async || {
        let found = messages(installation.client(), &filter).await?;
        if found.len() == count {
            Ok(found)
        } else {
            Err(format!("{}", found.len()))
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_again_in_the_same_words_is_answered_again() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let ann = unique("ann");
    let to_coordinator = (ann.as_str(), "coordinator");
    let card = json!({ "agent_id": ann, "dialect": "session" });
    let register = Outgoing::request("session", to_coordinator, "register_agent", card);
    let id = json!({ "agent_id": ann });
    let leave = Outgoing::request("session", to_coordinator, "deregister_agent", id);
    // The agent comes, leaves and comes back, as one that is restarted.
    for (number, message) in (1..).zip([&register, &leave, &register]) {
        message.publish(client).await;
        messages_to(&installation, &ann, "response", number).await;
    }

    // The same request to another agent, which cannot be carried out, has an error each time.
    let wrong = Outgoing::request("session", (&ann, "bob"), "run_tests", json!({}));
    wrong.publish(client).await;
    messages_to(&installation, &ann, "error", 1).await;
    wrong.publish(client).await;
    let errors = messages_to(&installation, &ann, "error", 2).await;
    assert_ne!(errors[0].payload, errors[1].payload);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_card_is_answered_as_it_speaks() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    for dialect in DIALECTS {
        let [ann, case] = ["ann", "case"].map(unique);
        let mut inbox = client
            .subscribe(format!("concord.v1.msg.*.*.{ann}.*"))
            .await
            .expect("a subscription");
        client.flush().await.expect("the broker has it");
        let parameters =
            json!({ "case_id": case, "participants": [ann], "task": { "type": "test" } });
        let opening = Outgoing::request(dialect, (&ann, "coordinator"), "open_case", parameters);
        // A request of specification 5 may look like the canonical form, so it declares its dialect.
        let mut headers = async_nats::HeaderMap::new();
        if dialect == "exchange" {
            headers.insert(DIALECT, dialect);
        }
        let body = opening.body().to_string();
        client
            .publish_with_headers(opening.subject(), headers, body.into())
            .await
            .expect("the message is sent");
        for _ in ["response", "task_assignment"] {
            let message = timeout(PATIENCE, inbox.next()).await;
            let message = message.expect("in time").expect("the broker is there");
            let headers = message.headers.as_ref();
            let declared = headers.and_then(|headers| headers.get(DIALECT));
            assert_eq!(
                declared.map(|name| name.as_str()),
                Some(dialect),
                "{}",
                message.subject
            );
            Incoming::new(dialect, &message);
        }
    }
}
