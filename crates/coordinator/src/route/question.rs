//! Which messages answer questions to the group.

use concord_domain::aggregates::question::{QuestionInput, id_of};
use concord_domain::effect::source_of;
use concord_runtime::delivery::as_asked;
use concord_wire::payload::GivenAnswer;
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageType, Recipient, Timestamp, Token};
use serde_json::Value;

/// The message types that answer a question to the group. An `error` says that there is no answer.
pub const ANSWERING: [MessageType; 3] = [
    MessageType::Response,
    MessageType::TaskResult,
    MessageType::Error,
];

/// An answer to a question that an agent may have asked, with the id that the question would have. It is not weighed yet.
pub fn read_answer(envelope: &Envelope, at: Timestamp) -> Option<(Token, GivenAnswer)> {
    let Recipient::Agent(asker) = &envelope.to_agent else {
        return None;
    };
    // The message that is answered is surer than the conversation that it belongs to.
    let answered = envelope
        .reply_to
        .as_deref()
        .or(envelope.correlation_id.as_deref())?;
    Some((id_of(asker, answered), given(envelope, at)?))
}

/// An answer to a question of this agent that is told to everybody, and names the question alone.
pub fn read_published(
    envelope: &Envelope,
    asker: &AgentId,
    at: Timestamp,
) -> Option<(Token, GivenAnswer)> {
    let answered = envelope.reply_to.as_deref()?;
    let is_published = envelope.to_agent == Recipient::All;
    Some((id_of(asker, answered), given(envelope, at)?)).filter(|_| is_published)
}

/// The answer of a synthesiser to the coordinator, with the id of the question.
pub fn read_synthesis(envelope: &Envelope, at: Timestamp) -> Option<(Token, QuestionInput)> {
    let is_for_us = envelope.to_agent == Recipient::Agent(Service::Coordinator.agent_id());
    let (id, asked) = source_of(envelope.reply_to.as_deref()?).filter(|_| is_for_us)?;
    let answer = Box::new(given(envelope, at)?);
    Some((
        Token::new(id).ok()?,
        QuestionInput::Synthesis { answer, asked },
    ))
}

fn given(envelope: &Envelope, at: Timestamp) -> Option<GivenAnswer> {
    if !ANSWERING.contains(&envelope.message_type) {
        return None;
    }
    let payload: Value = envelope.payload().ok()?;
    Some(GivenAnswer {
        by: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        message_type: envelope.message_type.to_string(),
        at,
        confidence: envelope.metadata.confidence,
        record: None,
        weight: 0.0,
        declines: declines(&envelope.message_type, &payload),
        payload,
        too_large: false,
    })
}

/// Whether an answer says that there is none: it is an error, has failed, or does not accept.
fn declines(kind: &MessageType, payload: &Value) -> bool {
    *kind == MessageType::Error || as_asked::declines(payload)
}

#[cfg(test)]
mod tests {
    use concord_wire::subject::SubjectSpace;
    use serde_json::json;

    use super::*;

    fn message(to: &str, kind: &str, reply_to: &str, payload: Value) -> Envelope {
        let bytes = json!({
            "message_id": "m-9", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": to,
            "message_type": kind, "payload": payload, "reply_to": reply_to, "metadata": { "confidence": 0.7 },
        });
        let subject = SubjectSpace::default().parse(&format!("concord.v1.msg._.bob.{to}.{kind}"));
        Envelope::decode(bytes.to_string().as_bytes(), &subject.unwrap()).unwrap()
    }

    #[test]
    fn an_answer_names_the_question_and_may_say_that_it_is_none() {
        let at = Timestamp::from_unix_millis(0);
        let asked = id_of(&"ann".parse().unwrap(), "m-1");
        for (kind, payload, declines) in [
            ("response", json!({ "status": "success" }), Some(false)),
            ("response", json!({ "status": "failure" }), Some(true)),
            (
                "response",
                json!({ "result": { "accepted": false } }),
                Some(true),
            ),
            ("task_result", json!({ "content": "Yes." }), Some(false)),
            ("error", json!({ "error_code": "TIMEOUT" }), Some(true)),
            ("acknowledgement", json!({}), None),
            ("notification", json!({ "event": "lunch" }), None),
        ] {
            let read = read_answer(&message("ann", kind, "m-1", payload), at);
            let found = read
                .as_ref()
                .map(|(id, answer)| (id.clone(), answer.declines));
            assert_eq!(
                found,
                declines.map(|declines| (asked.clone(), declines)),
                "{kind}"
            );
            assert!(read.is_none_or(|(_, answer)| answer.confidence == Some(0.7)));
        }
        let to_all = message("_all", "response", "m-1", json!({}));
        assert_eq!(read_answer(&to_all, at), None);
        let asker = "ann".parse().unwrap();
        let (id, _) = read_published(&to_all, &asker, at).unwrap();
        assert_eq!(id, asked);
        let to_ann = message("ann", "response", "m-1", json!({}));
        assert_eq!(read_published(&to_ann, &asker, at), None);
    }

    #[test]
    fn a_synthesis_answers_an_event_of_the_question() {
        let at = Timestamp::from_unix_millis(0);
        let read = |to: &str, reply_to: &str| {
            read_synthesis(&message(to, "response", reply_to, json!({})), at)
        };
        let (id, input) = read("coordinator", "q-7-0").unwrap();
        assert_eq!(id.as_str(), "q");
        assert!(
            matches!(input, QuestionInput::Synthesis { asked: 7, .. }),
            "{input:?}"
        );
        assert_eq!(read("ann", "q-7-0"), None);
        assert_eq!(read("coordinator", "m"), None);
    }
}
