//! What came of a question to the group, for a reader and for programs.

use concord_wire::payload::{ErrorReport, GivenAnswer, GroupAnswer, Response, SynthesisStatus};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, MessageType};
use serde::Serialize;
use serde_json::Value;

use crate::shared::args::JsonArg;
use crate::shared::connection::refusal;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, FAINT, GOOD, NAMED, count, one_line, styled};

/// How many characters of an answer are printed.
const SHOWN_MAX: usize = 400;
/// The fields in which answers are written, in the order in which they are looked for.
const FIELDS: [&str; 7] = [
    "content", "answer", "text", "summary", "response", "result", "message",
];

/// A question, and what came of it.
#[derive(Debug, Serialize)]
pub(super) struct Asked {
    /// The id of the message.
    pub(super) question: MessageId,
    /// What came of it.
    #[serde(flatten)]
    pub(super) result: AskResult,
}

/// What comes of a question.
#[derive(Debug, Serialize)]
#[serde(tag = "became", rename_all = "snake_case")]
pub(super) enum AskResult {
    /// It is stored; nothing was waited for.
    Sent,
    /// There is an answer.
    Answered {
        /// The answer, with the others.
        answer: Box<GroupAnswer>,
    },
    /// There is none, and the reason.
    Refused {
        /// The reason, and advice.
        error: ErrorReport,
    },
    /// The time is over, and no service has said how it ended.
    Unanswered,
}

impl AskResult {
    /// What a message to whoever asked says about the question; none where it is about something else, and where it is the answer
    /// of one agent, which the coordinator hears too.
    pub(super) fn of(body: &[u8], question: &MessageId) -> Result<Option<Self>, Failure> {
        let Ok(envelope) = serde_json::from_slice::<Envelope>(body) else {
            return Ok(None);
        };
        let is_of_service = Service::parse(envelope.from_agent.as_str()).is_ok();
        if !is_of_service || envelope.reply_to.as_deref() != Some(question.as_str()) {
            return Ok(None);
        }
        let unread = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("the answer to {question} cannot be read: {error}"))
        };
        match envelope.message_type {
            MessageType::Response => {
                let response: Response = envelope.payload().map_err(|fault| unread(&fault))?;
                let answer =
                    serde_json::from_value(response.result).map_err(|error| unread(&error))?;
                Ok(Some(Self::Answered { answer }))
            }
            MessageType::Error => {
                let error = envelope.payload().map_err(|fault| unread(&fault))?;
                Ok(Some(Self::Refused { error }))
            }
            _ => Ok(None),
        }
    }
}

impl Asked {
    /// Prints it; the exit code. With `all` every answer is printed.
    pub(super) fn print(&self, json: &JsonArg, all: bool) -> Result<u8, Failure> {
        let failure = match &self.result {
            AskResult::Sent | AskResult::Answered { .. } => None,
            AskResult::Refused { error } => Some(Failure::failed(refusal(error))),
            AskResult::Unanswered => Some(Failure::failed(format!(
                "the question {} is stored, and the coordinator has not said how it ended; whether it and the agent adapter run, \
                 `concord doctor` says",
                self.question
            ))),
        };
        if json.json {
            output::json(self)?;
            return Ok(if failure.is_some() { FOUND } else { 0 });
        }
        match failure {
            Some(failure) => Err(failure),
            None => {
                output::print(&self.text(all))?;
                Ok(0)
            }
        }
    }

    fn text(&self, all: bool) -> String {
        let asked = styled(FAINT, format!("asked as {}", self.question));
        let AskResult::Answered { answer } = &self.result else {
            return format!("{asked}\n");
        };
        let woken = count(answer.asked.len() as u64, "agent");
        let mut text = format!("{asked}; {woken} asked\n");
        text.push_str(&line(&styled(GOOD, "primary"), &answer.primary));
        for (what, answers) in [
            ("supplementary", &answer.supplementary),
            ("declined", &answer.declined),
        ] {
            if all {
                answers
                    .iter()
                    .for_each(|one| text.push_str(&line(what, one)));
            } else if !answers.is_empty() {
                text.push_str(&named(what, answers.iter().map(|one| &one.by)));
            }
        }
        if !answer.silent.is_empty() {
            text.push_str(&named("silent", answer.silent.iter()));
        }
        if let Some(synthesis) = &answer.synthesis {
            let by = styled(NAMED, &synthesis.by);
            match synthesis.status {
                SynthesisStatus::Done => {}
                SynthesisStatus::Declined => {
                    text.push_str(&format!("{by} made no synthesis; these are the answers\n"));
                }
                SynthesisStatus::Missed => {
                    text.push_str(&format!(
                        "{by} made no synthesis in time; these are the answers\n"
                    ));
                }
            }
        }
        text
    }
}

fn named<'a>(what: &str, agents: impl Iterator<Item = &'a AgentId>) -> String {
    let names: Vec<&str> = agents.map(AgentId::as_str).collect();
    format!("{what} {}\n", names.join(", "))
}

fn line(what: &str, answer: &GivenAnswer) -> String {
    let mut sure = answer
        .confidence
        .map_or_else(String::new, |confidence| format!(" ({confidence:.2})"));
    if let Some(record) = &answer.record {
        sure = format!(" (right {:.0} % of the time)", record.score * 100.0);
    }
    let by = styled(NAMED, &answer.by);
    format!("{what} {by}{sure}: {}\n", said(answer))
}

fn said(answer: &GivenAnswer) -> String {
    if answer.too_large {
        return format!("too large to repeat; see the message {}", answer.message_id);
    }
    let result = answer.payload.get("result").filter(|one| one.is_object());
    let within = result.unwrap_or(&answer.payload);
    let said = FIELDS.iter().find_map(|field| within.get(*field));
    match said.unwrap_or(within) {
        Value::String(text) => one_line(text, SHOWN_MAX),
        other => one_line(&other.to_string(), SHOWN_MAX),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(by: &str, confidence: f64) -> Value {
        json!({
            "by": by, "message_id": format!("a-{by}"), "message_type": "response", "at": "2026-11-21T20:00:00Z",
            "confidence": confidence, "weight": confidence, "payload": { "content": format!("{by} says so.") },
        })
    }

    fn answered(from: &str, kind: &str, payload: &Value) -> Vec<u8> {
        let message = json!({
            "message_id": "r-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": from, "to_agent": "eva",
            "message_type": kind, "payload": payload, "reply_to": "m-1",
        });
        message.to_string().into_bytes()
    }

    fn answer() -> Value {
        json!({
            "question": "m-1", "mode": "collaborative", "primary": given("ben", 0.95),
            "supplementary": [given("ann", 0.7)], "declined": [given("dan", 1.0)], "silent": ["fay"],
            "asked": [{ "agent": "ben", "reason": "mention" }], "timed_out": true,
            "synthesis": { "by": "lead", "status": "missed" },
        })
    }

    #[test]
    fn the_answer_is_that_of_a_service_and_every_agent_has_its_place() {
        let question = MessageId::new("m-1").unwrap();
        let response = json!({ "status": "success", "result": answer() });
        let of = |body: Vec<u8>| AskResult::of(&body, &question).unwrap();
        assert!(of(answered("ben", "response", &response)).is_none());
        assert!(of(answered("coordinator", "notification", &json!({}))).is_none());
        assert!(of(b"text".to_vec()).is_none());
        let result = of(answered("coordinator", "response", &response)).unwrap();
        let asked = Asked {
            question: question.clone(),
            result,
        };
        let text = |all| anstream::adapter::strip_str(&asked.text(all)).to_string();
        for line in [
            "1 agent asked",
            "primary ben (0.95): ben says so.",
            "silent fay",
            "lead made no synthesis in time",
        ] {
            assert!(text(false).contains(line), "{}", text(false));
        }
        assert!(
            text(false).contains("supplementary ann\n")
                && text(true).contains("ann (0.70): ann says so.")
        );
    }

    #[test]
    fn why_nobody_answers_is_a_failure() {
        let question = MessageId::new("m-1").unwrap();
        let report = json!({
            "error_code": "AGENT_UNAVAILABLE", "error_message": "It wakes nobody.", "recovery_suggestions": ["Ask."],
        });
        let body = answered("coordinator", "error", &report);
        let result = AskResult::of(&body, &question).unwrap().unwrap();
        let asked = Asked { question, result };
        let failure = asked.print(&JsonArg { json: false }, false).unwrap_err();
        assert_eq!(
            (failure.code(), failure.to_string().as_str()),
            (1, "AGENT_UNAVAILABLE: It wakes nobody. Ask.")
        );
    }
}
