//! From a program's line to a message.

use concord_protocol::envelope::{Metadata, from_json};
use concord_protocol::payload::ErrorReport;
use concord_protocol::{AgentId, Envelope, ErrorCode, Fault, MessageType, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a program answers: the parts of an envelope that only it can know.
#[derive(Deserialize)]
struct Line {
    message_type: Option<MessageType>,
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    metadata: Metadata,
}

/// The message that a program's line stands for; none for `{}`, which says nothing.
pub(crate) fn message(
    line: &[u8],
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
    took_ms: u64,
) -> Result<Option<Envelope>, Fault> {
    let Line { message_type, payload, metadata } = from_json(line, "")?;
    match (message_type, payload) {
        (None, None) => Ok(None),
        (Some(message_type), Some(payload)) => {
            let metadata = Metadata { processing_time_ms: metadata.processing_time_ms.or(Some(took_ms)), ..metadata };
            Ok(Some(answer(agent, asked, now, message_type, payload, metadata)))
        }
        (None, Some(_)) => Err(incomplete("/message_type")),
        (Some(_), None) => Err(incomplete("/payload")),
    }
}

fn incomplete(pointer: &str) -> Fault {
    Fault::invalid(pointer, "The program's line lacks a field.", "Answer with message_type and payload, or with {}.")
}

/// The error that is sent in place of an answer that the program did not give.
pub(crate) fn failure(
    code: ErrorCode,
    why: &str,
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
) -> Result<Envelope, serde_json::Error> {
    let advice = "Ask again later, or look at the adapter's log; `concord agents` shows how often it was started.";
    let report = ErrorReport::from(&Fault::new(code, "", format!("{agent} gave no answer: {why}."), advice));
    let payload = serde_json::value::to_raw_value(&report)?;
    Ok(answer(agent, asked, now, MessageType::Error, payload, Metadata::default()))
}

fn answer(
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
    message_type: MessageType,
    payload: Box<RawValue>,
    metadata: Metadata,
) -> Envelope {
    let answer = asked.reply(agent, now, message_type, payload);
    Envelope { metadata: Metadata { version: answer.metadata.version.clone(), ..metadata }, ..answer }
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
