//! What two of the dialects cannot say: who a message is. The same words may be said twice.

use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_testkit::{Stored, TestInstallation, stored, unique, until};
use concord_wire::header::DIALECT;
use concord_wire::subject::Service;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::speech::{Heard, Said};

const PATIENCE: Duration = Duration::from_secs(30);

/// A request in the format of specification 4, which has neither id nor time.
fn request<'a>(from: &'a str, to: &'a str, action: &str, parameters: Value) -> Said<'a> {
    let content = json!({ "action": action, "parameters": parameters });
    Said {
        dialect: "session",
        case: "_",
        from,
        to,
        kind: "request",
        content,
        confidence: None,
        reply_to: None,
    }
}

/// What an agent was told, once it was told so many things of a type.
async fn told(
    installation: &TestInstallation,
    agent: &str,
    kind: &str,
    count: usize,
) -> Vec<Stored> {
    let told = until(
        format!("{count} times {kind} to {agent}"),
        PATIENCE,
        async || {
            let filter = format!("concord.v1.msg.*.*.{agent}.{kind}");
            let found = stored(installation.client(), StreamKind::Messages, &filter).await?;
            if found.len() == count {
                Ok(found)
            } else {
                Err(format!("{}", found.len()))
            }
        },
    );
    told.await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_again_in_the_same_words_is_answered_again() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let client = installation.client();
    let ann = unique("ann");
    let card = json!({ "agent_id": ann, "dialect": "session" });
    let register = request(&ann, "coordinator", "register_agent", card);
    // It comes, leaves and comes back, as an agent does that is started again.
    register.publish(client).await;
    told(&installation, &ann, "response", 1).await;
    request(
        &ann,
        "coordinator",
        "deregister_agent",
        json!({ "agent_id": ann }),
    )
    .publish(client)
    .await;
    told(&installation, &ann, "response", 2).await;
    register.publish(client).await;
    told(&installation, &ann, "response", 3).await;

    // A request to another agent that cannot be carried out: each is told so.
    let wrong = request(&ann, "bob", "run_tests", json!({}));
    wrong.publish(client).await;
    told(&installation, &ann, "error", 1).await;
    wrong.publish(client).await;
    let errors = told(&installation, &ann, "error", 2).await;
    assert_ne!(errors[0].payload, errors[1].payload);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_card_is_answered_as_it_speaks() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let client = installation.client();
    for dialect in crate::speech::DIALECTS {
        let (ann, case) = (unique("ann"), unique("case"));
        let mut inbox = client
            .subscribe(format!("concord.v1.msg.*.*.{ann}.*"))
            .await
            .expect("a subscription");
        client.flush().await.expect("the broker has it");
        let parameters =
            json!({ "case_id": case, "participants": [ann], "task": { "type": "test" } });
        let said = Said {
            dialect,
            ..request(&ann, "coordinator", "open_case", parameters)
        };
        // By its shape alone a request of specification 5 may be the canonical form, so it declares what it is.
        let mut headers = async_nats::HeaderMap::new();
        if dialect == "exchange" {
            headers.insert(DIALECT, dialect);
        }
        let sent = client
            .publish_with_headers(said.subject(), headers, said.body().to_string().into())
            .await;
        sent.expect("the message is sent");
        for _ in ["response", "task_assignment"] {
            let heard = tokio::time::timeout(PATIENCE, inbox.next()).await;
            let message = heard.expect("in time").expect("the broker is there");
            let declared = message
                .headers
                .as_ref()
                .and_then(|headers| headers.get(DIALECT));
            assert_eq!(
                declared.map(|name| name.as_str()),
                Some(dialect),
                "{}",
                message.subject
            );
            Heard::new(dialect, &message);
        }
    }
}
