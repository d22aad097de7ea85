//! From an agent's line to a message.

use concord_protocol::envelope::{Metadata, from_json};
use concord_protocol::payload::ErrorReport;
use concord_protocol::{AgentId, Envelope, Extensions, Fault, MessageId, MessageType, Priority, Recipient, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::callback::token::Asked;
use crate::failure::Failure;
use crate::openai::Said;

/// What an agent answers: the parts of an envelope that only it can know.
#[derive(Deserialize)]
struct Line {
    message_type: Option<MessageType>,
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    metadata: Metadata,
}

/// The message that an agent's line stands for; none for `{}`, which says nothing.
pub(crate) fn message(
    line: &[u8],
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
    took_ms: u64,
) -> Result<Option<Envelope>, Fault> {
    let Some((message_type, payload, metadata)) = parts(line)? else { return Ok(None) };
    let metadata = Metadata { processing_time_ms: metadata.processing_time_ms.or(Some(took_ms)), ..metadata };
    Ok(Some(answer(&Asked::of(asked, agent, now), now, message_type, payload, metadata)))
}

/// The message that an answer stands for which comes later.
pub(crate) fn later(line: &[u8], asked: &Asked, now: Timestamp) -> Result<Option<Envelope>, Fault> {
    let Some((message_type, payload, metadata)) = parts(line)? else { return Ok(None) };
    Ok(Some(answer(asked, now, message_type, payload, metadata)))
}

type Parts = (MessageType, Box<RawValue>, Metadata);

fn parts(line: &[u8]) -> Result<Option<Parts>, Fault> {
    let Line { message_type, payload, metadata } = from_json(line, "")?;
    match (message_type, payload) {
        (None, None) => Ok(None),
        (Some(message_type), Some(payload)) => Ok(Some((message_type, payload, metadata))),
        (None, Some(_)) => Err(incomplete("/message_type")),
        (Some(_), None) => Err(incomplete("/payload")),
    }
}

fn incomplete(pointer: &str) -> Fault {
    Fault::invalid(pointer, "The agent's answer lacks a field.", "Answer with message_type and payload, or with {}.")
}

/// The message of a model.
pub(crate) fn of_model(said: Said, agent: &AgentId, asked: &Envelope, now: Timestamp, took_ms: u64) -> Envelope {
    let metadata = Metadata { confidence: said.confidence, processing_time_ms: Some(took_ms), ..Metadata::default() };
    answer(&Asked::of(asked, agent, now), now, said.message_type, said.payload, metadata)
}

/// The error that is sent in place of an answer that the agent did not give.
pub(crate) fn failure(
    failure: &Failure,
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
) -> Result<Envelope, serde_json::Error> {
    let fault = Fault::new(failure.verdict.code, "", format!("{agent} gave no answer: {}.", failure.why), "");
    let report = ErrorReport { recovery_suggestions: failure.suggestions(), ..ErrorReport::from(&fault) };
    let payload = serde_json::value::to_raw_value(&report)?;
    Ok(answer(&Asked::of(asked, agent, now), now, MessageType::Error, payload, Metadata::default()))
}

fn answer(
    asked: &Asked,
    now: Timestamp,
    message_type: MessageType,
    payload: Box<RawValue>,
    metadata: Metadata,
) -> Envelope {
    let Asked { agent, message_id, from, case_id, correlation_id, round, .. } = asked;
    Envelope {
        // The same whichever replica answers, so that an answer given twice is stored once.
        message_id: MessageId::of_answer(message_id, agent),
        timestamp: now,
        from_agent: agent.clone(),
        to_agent: Recipient::Agent(from.clone()),
        message_type,
        case_id: case_id.clone(),
        correlation_id: correlation_id.clone().or_else(|| Some(message_id.to_string())),
        reply_to: Some(message_id.to_string()),
        round: *round,
        priority: Priority::Normal,
        requires_response: false,
        deadline: None,
        payload,
        metadata: Metadata { version: Some("1.0".into()), ..metadata },
        extensions: Extensions::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked() -> Envelope {
        let question = json!({
            "message_id": "d-1-7-0", "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": "debate-facilitator",
            "to_agent": "alice", "message_type": "question", "case_id": "c-1", "correlation_id": "d-1", "round": 1,
            "payload": {}
        });
        serde_json::from_value(question).unwrap()
    }

    fn read(line: &str) -> Result<Option<Envelope>, Fault> {
        message(line.as_bytes(), &AgentId::new("alice").unwrap(), &asked(), Timestamp::default(), 5)
    }

    #[test]
    fn a_line_becomes_an_answer_to_what_was_asked() {
        let answer = read(r#"{"message_type":"agreement","payload":{"reasoning":"ok"}}"#).unwrap().unwrap();
        assert_eq!(answer.message_id.as_str(), "d-1-7-0-alice");
        assert_eq!(answer.reply_to.as_deref(), Some("d-1-7-0"));
        assert_eq!(answer.correlation_id.as_deref(), Some("d-1"));
        assert_eq!(answer.to_agent.as_str(), "debate-facilitator");
        assert_eq!(answer.round, Some(1));
    }

    #[test]
    fn nothing_to_say_is_no_message_and_nonsense_is_a_fault() {
        assert!(read("{}").unwrap().is_none());
        for line in ["", "hello", "[1]", r#"{"payload":{}}"#, r#"{"message_type":"finding"}"#] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
