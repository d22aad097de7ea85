//! Events of questions to the group: each is opened once and ends once, in one answer or one error to whoever asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::events;
use crate::Aggregate;
use concord_wire::error_code::ErrorCode;
use concord_wire::id::{AgentId, CaseId, MessageId, Token};
use concord_wire::payload::{
    AnswerMode, AskedAgent, GivenAnswer, GroupAnswer, SynthesisStatus, Synthesise,
};
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to a question to the group.
    QuestionEvent of Aggregate::Question;
    Opened(QuestionOpened) = "opened", effects: true, deadlines: true,
        "A question to the group has woken agents, and their answers are awaited; or it ends at once, for nobody can answer it.";
    Answered(QuestionAnswered) = "answered", effects: true, deadlines: true,
        "An agent that was asked has answered, or has said that it has no answer.";
    Elapsed(QuestionElapsed) = "elapsed", effects: true, deadlines: true,
        "A deadline of the question has passed.";
    Synthesised(QuestionSynthesised) = "synthesised", effects: true, deadlines: true,
        "The synthesiser has made one answer of all, or has said that it does not.";
}

/// How long answers to a question to the group are awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuestionBounds {
    /// How long answers count where the question states no deadline, in milliseconds.
    pub answer_ms: u64,
    /// The latest deadline that a question may state, in milliseconds after it was stored.
    pub answer_ms_max: u64,
}

impl Default for QuestionBounds {
    fn default() -> Self {
        Self {
            answer_ms: 30_000,
            answer_ms_max: 3_600_000,
        }
    }
}

/// What a question to the group says about how it is to be answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionTerms {
    /// How the answers become one.
    pub mode: AnswerMode,
    /// The agent that makes one answer of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesiser: Option<AgentId>,
    /// The domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The time until which answers count, where it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The sequence of the message in its stream.
    pub sequence: u64,
    /// Whether that is the stream of urgent messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
}

/// Contents of `opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOpened {
    /// Who asks.
    pub asker: AgentId,
    /// The message.
    pub message_id: MessageId,
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The text, or its beginning.
    pub text: String,
    /// How it is to be answered.
    pub terms: QuestionTerms,
    /// The agents whose answers are awaited: those whom it woke.
    pub asked: Vec<AskedAgent>,
    /// When the broker stored the message.
    pub asked_at: Timestamp,
    /// The time until which answers of those who are asked count.
    pub answers_due: Timestamp,
    /// The time until which the question ends, whatever is missing.
    pub due: Timestamp,
    /// Most bytes of an answer that is repeated to whoever asked, as JSON.
    pub answer_bytes_max: usize,
    /// The end, where it ends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<QuestionEnd>,
}

/// Contents of `answered`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The answer.
    pub answer: GivenAnswer,
    /// What follows.
    #[serde(default)]
    pub next: QuestionStep,
}

/// Contents of `elapsed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionElapsed {
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The name of the deadline.
    pub name: Token,
    /// Answers that were stored in time and not handled before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<GivenAnswer>,
    /// What follows.
    #[serde(default)]
    pub next: QuestionStep,
}

/// Contents of `synthesised`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionSynthesised {
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The message.
    pub message_id: MessageId,
    /// Whether there is one answer now.
    pub status: SynthesisStatus,
    /// The end.
    pub next: QuestionStep,
}

/// What follows from an event: nothing, a synthesis, or the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionStep {
    /// The synthesiser is given the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesise: Option<SynthesisAsked>,
    /// The question ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<QuestionEnd>,
}

/// The synthesiser is asked for one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SynthesisAsked {
    /// The synthesiser.
    pub to: AgentId,
    /// The time until which it must have answered.
    pub due: Timestamp,
    /// What it is given.
    pub synthesise: Synthesise,
}

/// The end of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionEnd {
    /// Who has asked.
    pub asker: AgentId,
    /// The question.
    pub message_id: MessageId,
    /// What whoever asked is told.
    pub outcome: QuestionOutcome,
    /// Those who were asked, have not answered, and need not any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stand_down: Vec<AgentId>,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // An event is made, stored and dropped one at a time.
pub enum QuestionOutcome {
    /// There is an answer.
    Answered(GroupAnswer),
    /// There is none.
    Failed {
        /// The reason as a code.
        code: ErrorCode,
        /// The reason as a sentence.
        why: String,
        /// What to do.
        advice: String,
        /// Who was asked, has declined, and was silent.
        #[serde(default)]
        #[schemars(with = "Map<String, Value>")]
        details: Map<String, Value>,
    },
}

impl QuestionEvent {
    /// What follows from the event; nothing from an opening, but for its end.
    pub fn next(&self) -> Option<&QuestionStep> {
        match self {
            Self::Opened(_) => None,
            Self::Answered(event) => Some(&event.next),
            Self::Elapsed(event) => Some(&event.next),
            Self::Synthesised(event) => Some(&event.next),
        }
    }

    /// The end, where the event ends the question.
    pub fn end(&self) -> Option<&QuestionEnd> {
        match self {
            Self::Opened(opened) => opened.end.as_ref(),
            _ => self.next()?.end.as_ref(),
        }
    }

    /// The case, if in one.
    pub fn case_id(&self) -> Option<&CaseId> {
        match self {
            Self::Opened(event) => event.case_id.as_ref(),
            Self::Answered(event) => event.case_id.as_ref(),
            Self::Elapsed(event) => event.case_id.as_ref(),
            Self::Synthesised(event) => event.case_id.as_ref(),
        }
    }
}
