//! The verb `notify`, by which an operator has people told of an event again, for example after the cause of a failure was mended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concord_events::subject::SystemSubject;
use concord_events::topology::{Channel, StreamKind};
use concord_runtime::Ports;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::api::{self, Verb, answer};
use concord_wire::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::json;

use super::{Notifier, shown};

/// How long a request may take. The operator waits a little longer for the answer.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// The request of the operator.
#[derive(Deserialize)]
struct Request {
    /// The channel.
    channel: Channel,
    /// The sequence of the event in the stream of events.
    sequence: u64,
}

pub(super) fn verb<P: Ports>(runner: &ServiceRunner, notifiers: Vec<Arc<Notifier<P>>>) -> Verb {
    api::verb(
        (runner.clone(), notifiers),
        |(runner, notifiers), call| async move {
            let request: Request = concord_wire::envelope::from_json(&call.body, "")?;
            let of_channel = |notifier: &&Arc<Notifier<P>>| notifier.channel == request.channel;
            let notifier = notifiers
                .iter()
                .find(of_channel)
                .ok_or_else(|| off(request.channel))?;
            let told =
                tokio::time::timeout(ANSWER_MAX, resend(&runner, notifier, request.sequence)).await;
            told.unwrap_or_else(|_| {
                Err(failed(format!("no end within {} s", ANSWER_MAX.as_secs())))
            })
        },
    )
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

async fn resend<P: Ports>(
    runner: &ServiceRunner,
    notifier: &Notifier<P>,
    sequence: u64,
) -> Result<Bytes, Fault> {
    let sender = notifier
        .sender
        .as_ref()
        .ok_or_else(|| off(notifier.channel))?;
    let none = || {
        Fault::invalid(
            "/sequence",
            format!("{sequence} is no event that people are told of."),
            "Name another.",
        )
    };
    let stream = runner
        .broker
        .stream(StreamKind::Events)
        .await
        .map_err(|error| failed(ErrorChain(&error)))?;
    let stored = stream
        .get_raw_message(sequence)
        .await
        .map_err(|error| failed(ErrorChain(&error)))?;
    let Ok(SystemSubject::Event {
        aggregate, event, ..
    }) = runner.broker.subjects().parse(&stored.subject)
    else {
        return Err(none());
    };
    if !aggregate.notifies(event.as_str()) {
        return Err(none());
    }
    let notices = notifier
        .concerned
        .notices(aggregate, &stored.payload, sequence);
    let notices = notices
        .await
        .map_err(|error| failed(format!("{error:?}")))?;
    if notices.is_empty() {
        return Err(none());
    }
    let mut recipients = Vec::new();
    for notice in notices {
        let notice = notifier.concerned.at_present_address(notice).await;
        let notice = &notice.map_err(|error| failed(format!("{error:?}")))?;
        for recipient in sender.recipients(notice) {
            if notifier.result(notice, &recipient) != Some(Ok(())) {
                // The operator knows of the earlier tries, so a stale notice is sent all the same.
                let told = notifier.tell(sender, notice, &recipient).await;
                told.map_err(|failure| {
                    failed(format!(
                        "{}: {failure}",
                        shown(notifier.channel, &recipient)
                    ))
                })?;
            }
            recipients.push(recipient);
        }
    }
    let shown: Vec<String> = recipients
        .iter()
        .map(|recipient| shown(notifier.channel, recipient))
        .collect();
    answer(&json!({ "notified": shown }))
}
