//! Questions to the group, what is answered to them, and what agents offer each other.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check_name;
use crate::Envelope;
use crate::envelope::value_from_json;
use crate::fault::Fault;
use crate::id::{AgentId, MessageId};
use crate::timestamp::Timestamp;

/// The action of the request that gives all answers to whoever is to make one of them.
pub const SYNTHESISE: &str = "synthesise";

/// How the answers of several agents to one question become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// All answer. The answer of the most confident is primary, the others are supplementary.
    #[default]
    Confidence,
    /// The first answer ends the question; the others are told to stand down.
    FirstResponder,
    /// All answer. Where a synthesiser is named, it is given all answers and makes the primary one.
    Collaborative,
}

impl AnswerMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Confidence, Self::FirstResponder, Self::Collaborative];

    /// The mode as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confidence => "confidence",
            Self::FirstResponder => "first_responder",
            Self::Collaborative => "collaborative",
        }
    }
}

impl fmt::Display for AnswerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The payload of `group_query` and of `peer_request`: a question to whoever can help. Until when answers count, the envelope's
/// `deadline` says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupQuestion {
    /// The question. Where it is left out, the text is looked for in `question`, `request`, `summary` and `text`, else all texts
    /// of the payload are it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How the answers become one; `confidence` where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<AnswerMode>,
    /// The agent that makes one answer of all, in the mode `collaborative`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesiser: Option<AgentId>,
    /// The domain of the question: how often an agent was right in it weighs its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub domain: Option<String>,
    /// Agents that are woken whatever the words: the first eight. At most 64; the others observe at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_agents: Option<Vec<AgentId>>,
    /// `objections`, to ask those who hold a position in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_for: Option<String>,
}

impl GroupQuestion {
    /// What a message asks. In a dialect whose content is a text, mode, synthesiser and domain stand in the metadata.
    pub fn of(envelope: &Envelope) -> Result<Self, Fault> {
        let mut asked: Self = envelope.payload()?;
        asked.mode = asked
            .mode
            .map_or_else(|| in_metadata(envelope, "mode"), keep)?;
        let named = asked.synthesiser;
        asked.synthesiser = named.map_or_else(|| in_metadata(envelope, "synthesiser"), keep)?;
        asked.domain = (asked.domain).map_or_else(|| in_metadata(envelope, "domain"), keep)?;
        asked.check()?;
        Ok(asked)
    }

    /// Checks what the types do not.
    pub fn check(&self) -> Result<(), Fault> {
        if let Some(domain) = &self.domain {
            check_name("/payload/domain", domain)?;
        }
        let mode = self.mode.unwrap_or_default();
        match &self.synthesiser {
            Some(_) if mode != AnswerMode::Collaborative => Err(Fault::invalid(
                "/payload/synthesiser",
                format!("A synthesiser is named, and the mode is {mode}."),
                "Ask in the mode \"collaborative\", or name no synthesiser.",
            )),
            _ => Ok(()),
        }
    }
}

fn keep<T>(value: T) -> Result<Option<T>, Fault> {
    Ok(Some(value))
}

fn in_metadata<T: DeserializeOwned>(envelope: &Envelope, name: &str) -> Result<Option<T>, Fault> {
    let Some(raw) = envelope.metadata.extensions.get(name) else {
        return Ok(None);
    };
    value_from_json(raw.get().as_bytes(), &format!("/metadata/{name}"))
}

/// The payload of `expertise_offer`: an agent says what it could help with. Nothing follows from it but that agents whom it
/// concerns are woken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpertiseOffer {
    /// What is offered, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The domains in which help is offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// The skills that are offered, as the card names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

/// The payload of `collaboration_invite`: an agent asks another to work with it. It is a message and no more: it changes nobody's
/// place in a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollaborationInvite {
    /// What is to be done together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The same in words that are matched with skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The part that the invited agent would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Who else is invited; each is sent an invite of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_invited: Vec<AgentId>,
}

/// How often somebody was right, as far as it weighs an answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswererRecord {
    /// The credibility in the domain of the question, 0 to 1.
    pub score: f64,
    /// How many data points it rests on.
    pub data_points: f64,
}

/// One agent's answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenAnswer {
    /// The agent.
    pub by: AgentId,
    /// The message.
    pub message_id: MessageId,
    /// The type of the message.
    pub message_type: String,
    /// When the broker stored it.
    pub at: Timestamp,
    /// How sure the agent says it is, 0 to 1; none where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The track record that counts in place of what the agent says; none where there is too little of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<AnswererRecord>,
    /// The weight by which answers are compared.
    pub weight: f64,
    /// Whether the agent says that it has no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declines: bool,
    /// The payload; null where it was too large to repeat. Whoever asked has the message itself.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub payload: Value,
    /// Whether it was too large to repeat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_large: bool,
}

/// What became of the synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SynthesisStatus {
    /// The primary answer is the synthesiser's.
    Done,
    /// The synthesiser has said that it makes none: the answers are as they were given.
    Declined,
    /// The time was over before it had answered: the answers are as they were given.
    Missed,
}

/// What became of the synthesis, and who was to make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Synthesis {
    /// The synthesiser.
    pub by: AgentId,
    /// What became of it.
    pub status: SynthesisStatus,
}

/// An agent that was asked, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedAgent {
    /// The agent.
    pub agent: AgentId,
    /// The reason for which it was woken, for example `semantic:<skill>`.
    pub reason: String,
}

/// The one answer to a question: the `result` of the `response` to whoever asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupAnswer {
    /// The question.
    pub question: MessageId,
    /// How the answers became one.
    pub mode: AnswerMode,
    /// The answer to go by.
    pub primary: GivenAnswer,
    /// The other answers, the weightiest first.
    pub supplementary: Vec<GivenAnswer>,
    /// Those who have said that they have no answer.
    pub declined: Vec<GivenAnswer>,
    /// Those who were asked and have said nothing.
    pub silent: Vec<AgentId>,
    /// Those who were asked, with the reason.
    pub asked: Vec<AskedAgent>,
    /// Whether the time was over before all had answered.
    pub timed_out: bool,
    /// What became of the synthesis, where a synthesiser was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesis: Option<Synthesis>,
}

/// The parameters of [`SYNTHESISE`]: all answers to a question. The answer is a `response`, or an `error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Synthesise {
    /// The question.
    pub question: MessageId,
    /// Who has asked.
    pub asker: AgentId,
    /// The question in words, or their beginning.
    pub text: String,
    /// The answers, the weightiest first.
    pub answers: Vec<GivenAnswer>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::subject::SubjectSpace;

    fn asked(payload: &Value, metadata: &Value) -> Result<GroupQuestion, Fault> {
        let bytes = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "ann", "to_agent": "_any",
            "message_type": "group_query", "payload": payload, "metadata": metadata,
        });
        let subject = SubjectSpace::default().parse("concord.v1.msg._.ann._any.group_query");
        GroupQuestion::of(&Envelope::decode(
            bytes.to_string().as_bytes(),
            &subject.unwrap(),
        )?)
    }

    #[test]
    fn the_terms_of_a_question_are_in_the_payload_or_the_metadata() {
        let none = json!({});
        let usual = asked(&json!({ "question": "Who?", "anything": 7 }), &none).unwrap();
        assert_eq!(usual, GroupQuestion::default());
        let stated = json!({ "content": "Who?", "mode": "collaborative", "synthesiser": "lead", "domain": "tax" });
        let in_payload = asked(&stated, &none).unwrap();
        let in_metadata = asked(&json!({ "content": "Who?" }), &stated).unwrap();
        assert_eq!(in_payload, in_metadata);
        assert_eq!(in_payload.mode, Some(AnswerMode::Collaborative));
    }

    #[test]
    fn terms_that_cannot_be_used_are_refused_at_their_place() {
        for (payload, metadata, pointer) in [
            (json!({ "mode": "telepathy" }), json!({}), "/payload/mode"),
            (json!({}), json!({ "mode": 7 }), "/metadata/mode"),
            (
                json!({ "mode": "collaborative", "synthesiser": "a.b" }),
                json!({}),
                "/payload/synthesiser",
            ),
            (
                json!({ "synthesiser": "lead" }),
                json!({}),
                "/payload/synthesiser",
            ),
            (
                json!({ "domain": "x".repeat(300) }),
                json!({}),
                "/payload/domain",
            ),
            (
                json!({ "preferred_agents": ["bob", 7] }),
                json!({}),
                "/payload/preferred_agents/1",
            ),
        ] {
            let fault = asked(&payload, &metadata).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fault}");
            assert!(!fault.advice.is_empty());
        }
    }
}
