//! Registers the cards of hosted agents, and sends their heartbeats, as other agents do themselves.

use std::sync::Arc;
use std::time::Duration;

use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Directory, service::clock};
use concord_wire::payload::{AgentStatus, Beat, Card, REGISTER_AGENT, Request};
use concord_wire::subject::{Service, Subject};
use concord_wire::{AgentId, Envelope, MessageId, MessageType, Recipient};
use serde_json::{Map, Value};

/// The time between two heartbeats of a hosted agent whose settings name none, in milliseconds.
const HEARTBEAT_MS: u64 = 10_000;
/// The time between two attempts to register a card.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Registers the cards, and sends heartbeats until the service stops.
pub(crate) fn start(runner: &ServiceRunner, cards: Vec<Card>, directory: &Arc<Directory>) {
    for mut card in cards {
        let every = *card.heartbeat_ms.get_or_insert(HEARTBEAT_MS);
        runner.spawn(send_heartbeats(
            runner.clone(),
            card.agent_id.clone(),
            Duration::from_millis(every.max(1)),
        ));
        runner.spawn(register(runner.clone(), card, Arc::clone(directory)));
    }
}

/// Registers a card if the agent has another one or none. An agent that an operator has deregistered is registered again when
/// the adapter starts again, not before.
async fn register(runner: ServiceRunner, card: Card, directory: Arc<Directory>) {
    let mut due = tokio::time::interval(RETRY_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            () = runner.stop.cancelled() => return,
        }
        let known = directory.agent(&card.agent_id);
        if known.is_some_and(|state| state.card.as_ref() == Some(&card)) {
            return;
        }
        let Some(message) = registration_request(&card) else {
            return;
        };
        if let Err(error) = runner.broker.publish(&message, None).await {
            tracing::warn!(agent = %card.agent_id, error = %ErrorChain(&error), "A hosted agent could not be entered.");
        }
    }
}

fn registration_request(card: &Card) -> Option<Envelope> {
    let request = Request {
        action: REGISTER_AGENT.into(),
        parameters: serde_json::to_value(card).ok()?,
        context: Value::Null,
        constraints: Map::new(),
        deadline: None,
        callback_url: None,
    };
    let message_id = MessageId::of_operator_request(&uuid::Uuid::now_v7().to_string());
    let to = Recipient::Agent(Service::Coordinator.agent_id());
    let payload = serde_json::value::to_raw_value(&request).ok()?;
    Some(Envelope::new(
        message_id,
        clock::now(),
        card.agent_id.clone(),
        to,
        MessageType::Request,
        payload,
    ))
}

async fn send_heartbeats(runner: ServiceRunner, agent: AgentId, every: Duration) {
    let subject = runner.broker.subjects().build(&Subject::Beat {
        agent: agent.clone(),
    });
    let beat = serde_json::to_vec(&Beat {
        status: AgentStatus::Available,
    })
    .unwrap_or_default();
    let mut due = tokio::time::interval(every);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            () = runner.stop.cancelled() => return,
        }
        // Not stored and not waited for: one that is lost is followed by the next.
        if let Err(error) = runner
            .broker
            .client
            .publish(subject.clone(), beat.clone().into())
            .await
        {
            tracing::debug!(%agent, %error, "A heartbeat could not be sent.");
        }
    }
}
