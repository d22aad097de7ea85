//! Registers the cards of hosted agents, and sends their heartbeats, as other agents do themselves.

use std::sync::Arc;
use std::time::Duration;

use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Directory, service::clock};
use concord_wire::payload::{AgentStatus, Beat, Card, ErrorReport, REGISTER_AGENT, Request};
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{AgentId, Envelope, MessageId, MessageType, Recipient};
use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::callback::{hear_all, read};

/// The time between two heartbeats of a hosted agent whose settings name none, in milliseconds.
const HEARTBEAT_MS: u64 = 10_000;
/// How long the first request to register a card waits for its answer before it is sent again; each further one waits twice as long.
const WAIT_MIN: Duration = Duration::from_secs(2);
/// How long it waits at most.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// How long one waits that was refused, in whatever words: somebody has to mend that, and each further one leaves a dead letter.
const WAIT_REFUSED: Duration = Duration::from_secs(900);

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
///
/// The request is the same each time, under one id: the broker stores no second one while it knows the first, and to the coordinator it is a
/// repetition. However long there is no coordinator, the agent registers once when one comes.
async fn register(runner: ServiceRunner, card: Card, directory: Arc<Directory>) {
    let Some(request) = registration_request(&card) else {
        return;
    };
    let mut wait = WAIT_MIN;
    let mut changes = directory.changes();
    loop {
        let refusal = tokio::select! {
            biased;
            () = is_known(&directory, &mut changes, &card) => return,
            () = runner.stop.cancelled() => return,
            refusal = ask(&runner, &request, wait) => refusal,
        };
        let pause = match &refusal {
            Some(why) => {
                tracing::warn!(agent = %card.agent_id, %why, "The coordinator refuses to enter a hosted agent; it is asked again in 15 minutes.");
                WAIT_REFUSED
            }
            None => {
                tracing::info!(agent = %card.agent_id, "No coordinator has entered a hosted agent yet; asking again.");
                Duration::ZERO
            }
        };
        wait = next_wait(wait, refusal.is_some());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = is_known(&directory, &mut changes, &card) => return,
            () = runner.stop.cancelled() => return,
        }
    }
}

/// Until the directory has this card of the agent.
async fn is_known(directory: &Directory, changes: &mut watch::Receiver<u64>, card: &Card) {
    loop {
        let known = directory.agent(&card.agent_id);
        if known.is_some_and(|state| state.card.as_ref() == Some(card)) {
            return;
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// How long the next request waits.
fn next_wait(wait: Duration, was_refused: bool) -> Duration {
    match was_refused {
        true => WAIT_MIN,
        false => wait.saturating_mul(2).min(WAIT_MAX),
    }
}

/// Asks, and waits so long for a refusal: its words, if there is one.
async fn ask(runner: &ServiceRunner, request: &Envelope, wait: Duration) -> Option<String> {
    let deadline = tokio::time::Instant::now() + wait;
    let agent = &request.from_agent;
    let errors = MessageType::Error.token();
    let from = Service::Coordinator.agent_id();
    let subjects = runner.broker.subjects();
    let filters = Lane::ALL.map(|lane| subjects.between(lane, Some(&from), agent, &errors));
    let heard = hear_all(runner, filters.to_vec()).await;
    if let Err(error) = runner.broker.publish(request, None).await {
        tracing::warn!(%agent, error = %ErrorChain(&error), "A hosted agent could not be entered.");
    }
    let refusal = async {
        let Ok(mut heard) = heard else { return None };
        while let Some(message) = heard.next().await {
            let refusal = read(runner, &message).and_then(|answer| words(&answer, request));
            if refusal.is_some() {
                return refusal;
            }
        }
        None
    };
    let refusal = tokio::time::timeout_at(deadline, refusal).await;
    let refusal = refusal.unwrap_or_default();
    if refusal.is_none() {
        tokio::time::sleep_until(deadline).await;
    }
    refusal
}

/// The words of an answer that refuses this request.
fn words(answer: &Envelope, request: &Envelope) -> Option<String> {
    if answer.reply_to.as_deref() != Some(request.message_id.as_str()) {
        return None;
    }
    let report: ErrorReport = answer.payload().ok()?;
    let advice = report.recovery_suggestions.join(" ");
    Some(format!("{} {advice}", report.error_message))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_waits_double_up_to_some_minutes_and_begin_anew_after_a_refusal() {
        let mut wait = WAIT_MIN;
        let mut waits = Vec::new();
        for _ in 0..9 {
            waits.push(wait.as_secs());
            wait = next_wait(wait, false);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(next_wait(wait, true), WAIT_MIN);
    }

    #[test]
    fn only_an_error_that_answers_the_request_refuses_it() {
        let request = registration_request(&Card::new(AgentId::fixed("ann"))).unwrap();
        let answer = |reply_to: &str, payload: Value| {
            let payload = serde_json::value::to_raw_value(&payload).unwrap();
            Envelope {
                reply_to: Some(reply_to.to_owned()),
                ..Envelope::new(
                    MessageId::new("m-1").unwrap(),
                    clock::now(),
                    Service::Coordinator.agent_id(),
                    Recipient::Agent(AgentId::fixed("ann")),
                    MessageType::Error,
                    payload,
                )
            }
        };
        let refused = json!({
            "error_code": "INVALID_REQUEST", "error_message": "No.", "recovery_suggestions": ["Say yes.", "Or not."],
        });
        let id = request.message_id.as_str();
        assert_eq!(
            words(&answer(id, refused.clone()), &request).unwrap(),
            "No. Say yes. Or not."
        );
        assert_eq!(words(&answer("m-0", refused), &request), None);
        assert_eq!(words(&answer(id, json!({ "stream": "X" })), &request), None);
    }
}
