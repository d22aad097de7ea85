//! Sending a message as a person or an agent, and waiting for what the service makes of it.

use std::time::Duration;

use clap::Args;
use concord_events::Aggregate;
use concord_runtime::{Broker, service::clock};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::Service;
use concord_wire::{
    AgentId, CaseId, Envelope, Extensions, MessageId, MessageType, Metadata, Priority, Recipient,
    Timestamp, Token,
};
use futures::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::connection::refusal;
use crate::shared::event_source::{EventQuery, EventSource, either};
use crate::shared::failure::Failure;
use crate::shared::stream_reader::StreamMessage;

/// How long the sender waits for an event or an error that answers its message.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether the sender waits for an answer.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// Do not wait until the service has handled the message.
    #[arg(long)]
    pub no_wait: bool,
}

/// A message to a service.
pub struct OutgoingMessage<'a, P> {
    /// The agent or person in whose name it is sent.
    pub from: &'a AgentId,
    /// The service that handles it.
    pub to: Service,
    /// The type of the message.
    pub kind: MessageType,
    /// Its priority.
    pub priority: Priority,
    /// The case that it belongs to, if to one.
    pub case: Option<&'a CaseId>,
    /// The id of the debate, where the message is about one.
    pub correlation_id: Option<String>,
    /// The payload; it is written as JSON.
    pub payload: &'a P,
    /// The aggregate that records an event when the message has been handled.
    pub watched: (Aggregate, Token),
}

/// A sent message and its result.
#[derive(Debug, Serialize)]
pub struct Receipt {
    /// The id of the sent message.
    pub message_id: MessageId,
    /// What the service has made of it.
    #[serde(flatten)]
    pub result: SendResult,
}

/// What a service makes of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "became", rename_all = "snake_case")]
pub enum SendResult {
    /// The message is stored; the sender did not wait for more.
    Sent,
    /// The message has led to an event.
    Recorded(RecordedEvent),
    /// The service has refused the message; nothing has changed.
    Refused {
        /// The reason, and advice.
        error: ErrorReport,
    },
    /// The message is stored; the service has not handled it yet.
    Unanswered,
}

/// The event that a message has led to.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// The name of the event.
    #[serde(rename = "fact")]
    pub name: String,
    /// The time of the event.
    pub at: Timestamp,
    /// The id of the message that caused it.
    #[serde(skip_serializing)]
    cause: MessageId,
    /// The contents of the event, as JSON.
    pub data: Value,
}

impl RecordedEvent {
    /// Reads the contents as a type.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        let what =
            |error| Failure::failed(format!("the event {} cannot be read: {error}", self.name));
        T::deserialize(&self.data).map_err(what)
    }
}

impl Receipt {
    /// The failure to report: none where the message was sent without waiting, or has led to an event.
    pub fn failure(&self, service: Service) -> Option<Failure> {
        match &self.result {
            SendResult::Sent | SendResult::Recorded(_) => None,
            SendResult::Refused { error } => Some(Failure::failed(refusal(error))),
            SendResult::Unanswered => Some(Failure::failed(format!(
                "the message {} is stored, and the {service} has not taken it within {} s; it will when it runs, see \
                 `concord doctor`",
                self.message_id,
                PATIENCE.as_secs()
            ))),
        }
    }
}

/// Sends a message. Waits for the event that it leads to, or for an error, unless `wait` says not to.
pub async fn send<P: Serialize>(
    broker: &Broker,
    message: &OutgoingMessage<'_, P>,
    wait: WaitArgs,
) -> Result<Receipt, Failure> {
    let message_id = fresh_id(broker)?;
    send_under(broker, message_id, message, wait).await
}

/// Sends a message under an id that its sender knows before, for a signature covers it.
pub async fn send_under<P: Serialize>(
    broker: &Broker,
    message_id: MessageId,
    message: &OutgoingMessage<'_, P>,
    wait: WaitArgs,
) -> Result<Receipt, Failure> {
    check_sender(broker, message.from)?;
    let envelope = envelope(message_id.clone(), message)?;
    if wait.no_wait {
        publish(broker, &envelope).await?;
        return Ok(Receipt {
            message_id,
            result: SendResult::Sent,
        });
    }
    let (aggregate, id) = &message.watched;
    let source = EventSource::new(broker).await?;
    let events = EventQuery::of(*aggregate, id);
    // The reader listens before the message is sent, so that no answer comes too early.
    let arriving = source.follow_new(&events).await?;
    let answered = source.follow_inbox(message.from).await?;
    publish(broker, &envelope).await?;
    let mut arriving = either(arriving, answered);
    let first = tokio::time::timeout(PATIENCE, result_of(&mut arriving, &message_id));
    let result = match first.await {
        Ok(result) => result?,
        Err(_) => SendResult::Unanswered,
    };
    // A message can lead to an event and to an error message; the two come on different streams.
    let result = match result {
        SendResult::Refused { error } => match recorded(&source, &events, &message_id).await? {
            Some(event) => SendResult::Recorded(event),
            None => SendResult::Refused { error },
        },
        result => result,
    };
    Ok(Receipt { message_id, result })
}

/// Whoever works under a name speaks under no other: the broker would not let them.
pub(crate) fn check_sender(broker: &Broker, from: &AgentId) -> Result<(), Failure> {
    match &broker.caller {
        Some(caller) if caller != from => Err(Failure::usage(format!(
            "you are {caller} (--as), and this would be said by {from}; name {caller}, or leave --as out as an operator of the \
             installation"
        ))),
        _ => Ok(()),
    }
}

/// Publishes a message; where the broker does not let the sender, the failure says what to do.
pub(crate) async fn publish(broker: &Broker, envelope: &Envelope) -> Result<(), Failure> {
    let sent = broker.publish(envelope, None).await.map_err(Failure::from);
    let Some(caller) = &broker.caller else {
        return sent;
    };
    // What its user may not send the broker drops, and says nothing to whoever waits for the acknowledgement.
    sent.map_err(|failure| {
        Failure::failed(format!(
            "{failure}; if the broker does not let {caller} send a {kind}, ask an operator, who registers people (concord person \
             register {caller} --role ROLE) and prints what their user may do (concord permissions --role ROLE {caller})",
            kind = envelope.message_type
        ))
    })
}

/// The first that answers the message, of events and of messages to its sender.
async fn result_of(
    arriving: &mut (impl Stream<Item = (bool, Result<StreamMessage, Failure>)> + Unpin),
    message_id: &MessageId,
) -> Result<SendResult, Failure> {
    while let Some((is_event, stored)) = arriving.next().await {
        let stored = stored.map_err(|failure| {
            Failure::failed(format!(
                "the message {message_id} is stored, and what came of it is not known: {failure}"
            ))
        })?;
        let result = if is_event {
            event_of(&stored, message_id).map(SendResult::Recorded)
        } else {
            error_for(&stored, message_id).map(|error| SendResult::Refused { error })
        };
        if let Some(result) = result {
            return Ok(result);
        }
    }
    Err(Failure::unavailable(
        "the broker has gone; see `concord doctor`",
    ))
}

/// An id that no message has.
pub fn fresh_id(broker: &Broker) -> Result<MessageId, Failure> {
    // An inbox is a name that the client gives to nothing else.
    let inbox = broker.client.new_inbox();
    let unique = inbox.rsplit('.').next().unwrap_or_default();
    MessageId::new(format!("cli-{unique}"))
        .map_err(|error| Failure::failed(format!("the message cannot be written: {error}")))
}

fn envelope<P: Serialize>(
    message_id: MessageId,
    message: &OutgoingMessage<'_, P>,
) -> Result<Envelope, Failure> {
    let unusable = |error: &dyn std::error::Error| {
        Failure::failed(format!("the message cannot be written: {error}"))
    };
    Ok(Envelope {
        message_id,
        timestamp: clock::now(),
        from_agent: message.from.clone(),
        to_agent: Recipient::from(message.to.agent_id()),
        message_type: message.kind.clone(),
        case_id: message.case.cloned(),
        correlation_id: message.correlation_id.clone(),
        reply_to: None,
        round: None,
        priority: message.priority,
        requires_response: false,
        deadline: None,
        payload: serde_json::value::to_raw_value(message.payload)
            .map_err(|error| unusable(&error))?,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..Metadata::default()
        },
        extensions: Extensions::default(),
    })
}

/// The event, if the message has caused it.
fn event_of(stored: &StreamMessage, message_id: &MessageId) -> Option<RecordedEvent> {
    let event: RecordedEvent = serde_json::from_slice(&stored.payload).ok()?;
    (event.cause == *message_id).then_some(event)
}

/// The error, if it answers the message.
fn error_for(stored: &StreamMessage, message_id: &MessageId) -> Option<ErrorReport> {
    let envelope: Envelope = serde_json::from_slice(&stored.payload).ok()?;
    let answers = stored.is_by_its_sender()
        && envelope.message_type == MessageType::Error
        && envelope.reply_to.as_deref() == Some(message_id.as_str());
    answers.then(|| envelope.payload().ok())?
}

/// The event that the message has caused, if it is stored.
async fn recorded(
    source: &EventSource,
    events: &EventQuery,
    message_id: &MessageId,
) -> Result<Option<RecordedEvent>, Failure> {
    let mut result = None;
    let read = source.for_each(events, "reading events", |stored| {
        result = event_of(&stored, message_id).or(result.take());
        Ok(())
    });
    read.await?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(body: &Value) -> StreamMessage {
        StreamMessage {
            sequence: 1,
            subject: "concord.v1.msg._.coordinator.eva.error".into(),
            at: clock::now(),
            headers: async_nats::HeaderMap::new(),
            payload: body.to_string().into(),
            raw: body.to_string().into(),
            non_event: None,
            is_archived: false,
        }
    }

    #[test]
    fn only_what_follows_from_the_message_is_its_answer() {
        let id = MessageId::new("m-1").unwrap();
        let event = json!({ "fact": "resolved", "at": clock::now(), "cause": "m-1", "data": { "n": 1 }, "id": "d-1" });
        assert_eq!(event_of(&stored(&event), &id).unwrap().name, "resolved");
        assert!(event_of(&stored(&event), &MessageId::new("m-2").unwrap()).is_none());
        let mut error = json!({
            "message_id": "e-1", "timestamp": clock::now(), "from_agent": "coordinator", "to_agent": "eva",
            "message_type": "error", "reply_to": "m-1",
            "payload": { "error_code": "INVALID_REQUEST", "error_message": "No.", "recovery_suggestions": ["Try."] },
        });
        let report = error_for(&stored(&error), &id).unwrap();
        let arriving = Receipt {
            message_id: id.clone(),
            result: SendResult::Refused { error: report },
        };
        let failure = arriving.failure(Service::Coordinator).unwrap();
        assert_eq!(
            (failure.code(), failure.to_string().as_str()),
            (1, "INVALID_REQUEST: No. Try.")
        );
        assert_eq!(
            serde_json::to_value(&arriving).unwrap()["became"],
            "refused"
        );
        let forged = StreamMessage {
            subject: "concord.v1.msg._.mallory.eva.error".into(),
            ..stored(&error)
        };
        assert!(error_for(&forged, &id).is_none());
        error["message_type"] = json!("notification");
        assert!(error_for(&stored(&error), &id).is_none());
        assert!(error_for(&stored(&json!("text")), &id).is_none());
    }

    #[test]
    fn what_is_recorded_is_printed_with_its_event() {
        let event = json!({ "fact": "resolved", "at": clock::now(), "cause": "m-1", "data": {} });
        let result = SendResult::Recorded(serde_json::from_value(event).unwrap());
        let printed = serde_json::to_value(Receipt {
            message_id: MessageId::new("m-1").unwrap(),
            result,
        })
        .unwrap();
        assert_eq!(
            (&printed["became"], &printed["fact"]),
            (&json!("recorded"), &json!("resolved"))
        );
    }
}
