//! Saying something as a person or an agent, and hearing what becomes of it.

use std::time::Duration;

use clap::Args;
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_runtime::{Broker, service::clock};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::{Lane, Service};
use concord_wire::{
    AgentId, CaseId, Envelope, Extensions, MessageId, MessageType, Metadata, Priority, Recipient,
    Timestamp, Token,
};
use futures::StreamExt;
use futures::stream::select;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connection::refusal;
use crate::failure::Failure;
use crate::stream_reader::{self, Scope, Stored};

/// How long is waited for what becomes of it.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether to wait.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WaitArgs {
    /// Do not wait for what becomes of it.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Something to say in a case.
pub(crate) struct Speech<'a, P> {
    /// Who says it.
    pub(crate) from: &'a AgentId,
    /// To which service.
    pub(crate) to: Service,
    /// As what.
    pub(crate) kind: MessageType,
    /// In which case.
    pub(crate) case: &'a CaseId,
    /// What it is about: the debate, where it is about one.
    pub(crate) correlation_id: Option<String>,
    /// What is said.
    pub(crate) payload: &'a P,
    /// The aggregate whose facts tell what becomes of it.
    pub(crate) about: (Aggregate, Token),
}

/// What has become of something said.
#[derive(Debug, Serialize)]
pub(crate) struct Heard {
    /// The message.
    pub(crate) message_id: MessageId,
    #[serde(flatten)]
    pub(crate) became: Became,
}

/// What can become of it.
#[derive(Debug, Serialize)]
#[serde(tag = "became", rename_all = "snake_case")]
pub(crate) enum Became {
    /// It is stored, and nobody has waited for more.
    Sent,
    /// It has led to a fact.
    Recorded(Fact),
    /// The service has refused it; nothing has changed.
    Refused {
        /// Why, and what to do.
        error: ErrorReport,
    },
    /// It is stored, and the service has not taken it yet.
    Unanswered,
}

/// The fact that something said has led to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fact {
    /// Its name.
    pub(crate) fact: String,
    /// When.
    pub(crate) at: Timestamp,
    /// The message.
    #[serde(skip_serializing)]
    cause: MessageId,
    /// What it says.
    pub(crate) data: Value,
}

impl Fact {
    /// Its contents as they are typed.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        let what =
            |error| Failure::failed(format!("the fact {} cannot be read: {error}", self.fact));
        T::deserialize(&self.data).map_err(what)
    }
}

impl Heard {
    /// Why there is no fact, where there should be one.
    pub(crate) fn failure(&self, service: Service) -> Option<Failure> {
        match &self.became {
            Became::Sent | Became::Recorded(_) => None,
            Became::Refused { error } => Some(Failure::failed(refusal(error))),
            Became::Unanswered => Some(Failure::failed(format!(
                "the message {} is stored, and the {service} has not taken it within {} s; it will when it runs, see \
                 `concord doctor`",
                self.message_id,
                PATIENCE.as_secs()
            ))),
        }
    }
}

/// Says it, and waits for what becomes of it unless it is not to be waited for.
pub(crate) async fn say<P: Serialize>(
    broker: &Broker,
    speech: &Speech<'_, P>,
    wait: WaitArgs,
) -> Result<Heard, Failure> {
    let envelope = envelope(broker, speech)?;
    let message_id = envelope.message_id.clone();
    if wait.no_wait {
        broker.publish(&envelope, None).await?;
        return Ok(Heard {
            message_id,
            became: Became::Sent,
        });
    }
    let (aggregate, id) = &speech.about;
    let facts = Scope::of(
        StreamKind::Events,
        broker.subjects().events_of(*aggregate, id),
    );
    let inbox = broker
        .subjects()
        .inbox(Lane::Normal, &Recipient::from(speech.from.clone()));
    let answers = Scope::of(StreamKind::Messages, inbox);
    // Listening begins before anything is said, so that no answer comes too early.
    let (_, heard) = stream_reader::follow(broker, &facts.clone().new_only()).await?;
    let (_, answered) = stream_reader::follow(broker, &answers.new_only()).await?;
    broker.publish(&envelope, None).await?;
    let mut heard = select(
        heard.map(|stored| (true, stored)),
        answered.map(|stored| (false, stored)),
    );
    let first = tokio::time::timeout(PATIENCE, async {
        while let Some((is_fact, stored)) = heard.next().await {
            let stored = stored?;
            if stored.foreign.is_some() {
                continue;
            }
            let found = if is_fact {
                fact_of(&stored, &message_id).map(Became::Recorded)
            } else {
                error_for(&stored, &message_id).map(|error| Became::Refused { error })
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(Failure::unavailable(
            "the broker has gone; see `concord doctor`",
        ))
    });
    let became = match first.await {
        Ok(became) => became?,
        Err(_) => Became::Unanswered,
    };
    // A fact may be told to its cause by an error message too, and the two come on different streams.
    let became = match became {
        Became::Refused { error } => match recorded(broker, &facts, &message_id).await? {
            Some(fact) => Became::Recorded(fact),
            None => Became::Refused { error },
        },
        became => became,
    };
    Ok(Heard { message_id, became })
}

fn envelope<P: Serialize>(broker: &Broker, speech: &Speech<'_, P>) -> Result<Envelope, Failure> {
    let unusable = |error: &dyn std::error::Error| {
        Failure::failed(format!("the message cannot be written: {error}"))
    };
    // An inbox is a name that the client gives to nothing else.
    let inbox = broker.client.new_inbox();
    let unique = inbox.rsplit('.').next().unwrap_or_default();
    let message_id = MessageId::new(format!("cli-{unique}")).map_err(|error| unusable(&error))?;
    Ok(Envelope {
        message_id,
        timestamp: clock::now(),
        from_agent: speech.from.clone(),
        to_agent: Recipient::from(speech.to.agent_id()),
        message_type: speech.kind.clone(),
        case_id: Some(speech.case.clone()),
        correlation_id: speech.correlation_id.clone(),
        reply_to: None,
        round: None,
        priority: Priority::Normal,
        requires_response: false,
        deadline: None,
        payload: serde_json::value::to_raw_value(speech.payload)
            .map_err(|error| unusable(&error))?,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..Metadata::default()
        },
        extensions: Extensions::default(),
    })
}

/// The fact, if the message has caused it.
fn fact_of(stored: &Stored, message_id: &MessageId) -> Option<Fact> {
    let fact: Fact = serde_json::from_slice(&stored.payload).ok()?;
    (fact.cause == *message_id).then_some(fact)
}

/// The error, if it answers the message.
fn error_for(stored: &Stored, message_id: &MessageId) -> Option<ErrorReport> {
    let envelope: Envelope = serde_json::from_slice(&stored.payload).ok()?;
    let answers = envelope.message_type == MessageType::Error
        && envelope.reply_to.as_deref() == Some(message_id.as_str());
    answers.then(|| envelope.payload().ok())?
}

/// The fact that the message has caused, if it is stored.
async fn recorded(
    broker: &Broker,
    facts: &Scope,
    message_id: &MessageId,
) -> Result<Option<Fact>, Failure> {
    let mut found = None;
    stream_reader::each(broker, facts, "reading facts", |stored| {
        found = fact_of(&stored, message_id).or(found.take());
        Ok(())
    })
    .await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(body: &Value) -> Stored {
        Stored {
            sequence: 1,
            subject: String::new(),
            at: clock::now(),
            headers: async_nats::HeaderMap::new(),
            payload: body.to_string().into(),
            foreign: None,
        }
    }

    #[test]
    fn only_what_follows_from_the_message_is_its_answer() {
        let id = MessageId::new("m-1").unwrap();
        let fact = json!({ "fact": "resolved", "at": clock::now(), "cause": "m-1", "data": { "n": 1 }, "id": "d-1" });
        assert_eq!(fact_of(&stored(&fact), &id).unwrap().fact, "resolved");
        assert!(fact_of(&stored(&fact), &MessageId::new("m-2").unwrap()).is_none());
        let mut error = json!({
            "message_id": "e-1", "timestamp": clock::now(), "from_agent": "coordinator", "to_agent": "eva",
            "message_type": "error", "reply_to": "m-1",
            "payload": { "error_code": "INVALID_REQUEST", "error_message": "No.", "recovery_suggestions": ["Try."] },
        });
        let report = error_for(&stored(&error), &id).unwrap();
        let heard = Heard {
            message_id: id.clone(),
            became: Became::Refused { error: report },
        };
        let failure = heard.failure(Service::Coordinator).unwrap();
        assert_eq!(
            (failure.code(), failure.to_string().as_str()),
            (1, "INVALID_REQUEST: No. Try.")
        );
        assert_eq!(serde_json::to_value(&heard).unwrap()["became"], "refused");
        error["message_type"] = json!("notification");
        assert!(error_for(&stored(&error), &id).is_none());
        assert!(error_for(&stored(&json!("text")), &id).is_none());
    }

    #[test]
    fn what_is_recorded_is_printed_with_its_fact() {
        let fact = json!({ "fact": "resolved", "at": clock::now(), "cause": "m-1", "data": {} });
        let became = Became::Recorded(serde_json::from_value(fact).unwrap());
        let printed = serde_json::to_value(Heard {
            message_id: MessageId::new("m-1").unwrap(),
            became,
        })
        .unwrap();
        assert_eq!(
            (&printed["became"], &printed["fact"]),
            (&json!("recorded"), &json!("resolved"))
        );
    }
}
