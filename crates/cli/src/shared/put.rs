//! Writing what agents share, on a board or in memory: a request to the coordinator, and the version that it has made.

use concord_events::Aggregate;
use concord_wire::payload::Request;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Fault, MessageType, Token};
use serde_json::{Map, Value};

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output;
use crate::shared::send::{OutgoingMessage, RecordedEvent, SendResult, WaitArgs, send};

/// What is written, and by whom.
pub(crate) struct Put<'a> {
    pub(crate) by: &'a AgentId,
    pub(crate) case: Option<&'a CaseId>,
    pub(crate) action: &'static str,
    pub(crate) parameters: Value,
    /// Where its event is stored.
    pub(crate) watched: (Aggregate, Token),
}

/// Sends it, waits until it is stored, and prints what `text` makes of the event.
pub(crate) async fn put(
    connection: &ConnectionArgs,
    put: Put<'_>,
    (wait, json): (WaitArgs, &JsonArg),
    text: impl FnOnce(&RecordedEvent) -> Result<String, Failure>,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = Request {
        action: put.action.to_owned(),
        parameters: put.parameters,
        context: Value::Null,
        constraints: Map::new(),
        deadline: None,
        callback_url: None,
    };
    let message = OutgoingMessage {
        from: put.by,
        to: Service::Coordinator,
        kind: MessageType::Request,
        priority: Default::default(),
        case: put.case,
        correlation_id: None,
        payload: &request,
        watched: put.watched,
    };
    let receipt = send(&broker, &message, wait).await?;
    let failure = receipt.failure(Service::Coordinator);
    if json.json {
        output::json(&receipt)?;
        return Ok(if failure.is_some() { FOUND } else { 0 });
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    output::print(&match &receipt.result {
        SendResult::Recorded(event) => text(event)?,
        _ => format!("it is sent as {}\n", receipt.message_id),
    })?;
    Ok(0)
}

/// What is wrong with what was to be written, before anything is sent.
pub(crate) fn refused(fault: Fault) -> Failure {
    Failure::usage(format!(
        "{}: {} {}",
        fault.pointer, fault.message, fault.advice
    ))
}

/// A value as JSON; what is none is a text.
pub(crate) fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
