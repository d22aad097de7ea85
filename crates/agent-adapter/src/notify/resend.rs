//! The verb `notify`: an operator has people told of a fact again, as after the cause of a failure was mended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concord_events::StoredEvent;
use concord_events::subject::SystemSubject;
use concord_events::topology::{Channel, StreamKind};
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::api::{Answer, Verb, answer};
use concord_wire::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::json;

use super::notice::Notice;
use super::{Notifier, shown};

/// Whoever asks waits a little longer for the answer.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// What is asked.
#[derive(Deserialize)]
struct Request {
    /// By which channel.
    channel: Channel,
    /// Of which fact: its position in the stream of events.
    sequence: u64,
}

pub(super) fn verb(shell: &ServiceRunner, notifiers: Vec<Arc<Notifier>>) -> Verb {
    let shell = shell.clone();
    Arc::new(move |request: Bytes| {
        let (shell, notifiers) = (shell.clone(), notifiers.clone());
        let done: Answer = Box::pin(async move {
            let request: Request = concord_wire::envelope::from_json(&request, "")?;
            let of_channel = |notifier: &&Arc<Notifier>| notifier.channel == request.channel;
            let notifier = notifiers
                .iter()
                .find(of_channel)
                .ok_or_else(|| off(request.channel))?;
            let told =
                tokio::time::timeout(ANSWER_MAX, again(&shell, notifier, request.sequence)).await;
            told.unwrap_or_else(|_| {
                Err(failed(format!("no end within {} s", ANSWER_MAX.as_secs())))
            })
        });
        done
    })
}

fn off(channel: Channel) -> Fault {
    let channel = channel.as_str();
    Fault::invalid(
        "/channel",
        format!("Nobody is notified by {channel}: it is off."),
        "See docs/configuration.md.",
    )
}

fn failed(why: impl std::fmt::Display) -> Fault {
    let advice = "See the log of the agent-adapter; mend the cause and ask again.";
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!("Nobody was notified: {why}."),
        advice,
    )
}

async fn again(shell: &ServiceRunner, notifier: &Notifier, sequence: u64) -> Result<Bytes, Fault> {
    let sender = notifier
        .sender
        .as_ref()
        .ok_or_else(|| off(notifier.channel))?;
    let none = || {
        Fault::invalid(
            "/sequence",
            format!("{sequence} is no fact that people are told of."),
            "Name another.",
        )
    };
    let stream = shell
        .broker
        .stream(StreamKind::Events)
        .await
        .map_err(|error| failed(ErrorChain(&error)))?;
    let stored = stream
        .get_raw_message(sequence)
        .await
        .map_err(|error| failed(ErrorChain(&error)))?;
    let Ok(SystemSubject::Event {
        aggregate,
        event: fact,
        ..
    }) = shell.broker.subjects().parse(&stored.subject)
    else {
        return Err(none());
    };
    if !aggregate.notifies(fact.as_str()) {
        return Err(none());
    }
    let record = StoredEvent::decode(&stored.payload, sequence)
        .map_err(|error| failed(ErrorChain(&error)))?;
    let notice = Notice::of(record).ok_or_else(none)?;
    let recipients = sender.recipients(&notice);
    for recipient in &recipients {
        if notifier.known(&notice, recipient) == Some(Ok(())) {
            continue;
        }
        // Whoever asks knows of the earlier tries, and of the time that is over.
        let told = notifier.tell_one(sender, &notice, recipient).await;
        told.map_err(|failure| {
            failed(format!("{}: {failure}", shown(notifier.channel, recipient)))
        })?;
    }
    let shown: Vec<String> = recipients
        .iter()
        .map(|recipient| shown(notifier.channel, recipient))
        .collect();
    answer(&json!({ "notified": shown }))
}
