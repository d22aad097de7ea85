//! The token in the address for a later answer. It says which message is answered, and is signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use concord_wire::{AgentId, CaseId, Envelope, MessageId, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use sha2::digest::InvalidLength;

use crate::hosted_agent::answer_type::{Answerable, ExpectedAnswer};
use crate::hosted_agent::task_answer::TaskAnswer;

/// Nothing else signed with the same key can be taken for an address.
const PURPOSE: &[u8] = b"concord callback v1.";
/// Longest token; ours are shorter.
const TOKEN_BYTES_MAX: usize = 4_096;

/// The message that is answered, and the agent that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerTarget {
    /// The agent that answers.
    #[serde(rename = "a")]
    pub(crate) agent: AgentId,
    /// The message that is answered.
    #[serde(rename = "m")]
    pub(crate) message_id: MessageId,
    /// The sender of that message.
    #[serde(rename = "f")]
    pub(crate) from: AgentId,
    /// Its case.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) case_id: Option<CaseId>,
    /// Its correlation id.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    /// Its round in a debate.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(crate) round: Option<u32>,
    /// The type of an answer that does not say its type.
    #[serde(rename = "e", default)]
    pub(crate) expected: ExpectedAnswer,
    /// What the message asks for about a task. A replica of an earlier version passes it over.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_task: Option<TaskAnswer>,
    /// What it is, where only some types of message answer it. A replica of an earlier version passes it over.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Answerable>,
    /// Whether it is news, of which nothing but a confirmation is published. A replica of an earlier version passes it over.
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_news: bool,
    /// The trace context of the answer.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// When the address expires.
    #[serde(rename = "u")]
    pub(crate) until: Timestamp,
}

impl AnswerTarget {
    pub(crate) fn of(incoming: &Envelope, agent: &AgentId, until: Timestamp) -> Self {
        Self {
            agent: agent.clone(),
            message_id: incoming.message_id.clone(),
            from: incoming.from_agent.clone(),
            case_id: incoming.case_id.clone(),
            correlation_id: incoming.correlation_id.clone(),
            round: incoming.round,
            expected: ExpectedAnswer::of(incoming),
            of_task: TaskAnswer::of(incoming),
            asked: Answerable::of(incoming),
            is_news: false,
            trace: None,
            until,
        }
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// The token is none of ours.
    Unknown,
    /// Its time is over.
    Expired,
}

/// The key that signs tokens.
pub(crate) struct Key(Hmac<Sha256>);

impl Key {
    pub(crate) fn new(secret: &[u8]) -> Result<Self, InvalidLength> {
        Hmac::new_from_slice(secret).map(Self)
    }

    fn mac(&self, text: &str) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(PURPOSE);
        mac.update(text.as_bytes());
        mac
    }

    pub(crate) fn seal(&self, target: &AnswerTarget) -> String {
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(target).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(self.mac(&text).finalize().into_bytes());
        format!("{text}.{signature}")
    }

    pub(crate) fn open(&self, token: &str, now: Timestamp) -> Result<AnswerTarget, TokenError> {
        let (text, signature) = token
            .split_once('.')
            .filter(|_| token.len() <= TOKEN_BYTES_MAX)
            .ok_or(TokenError::Unknown)?;
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| TokenError::Unknown)?;
        // Compared in a time that does not depend on where they differ.
        self.mac(text)
            .verify_slice(&signature)
            .map_err(|_| TokenError::Unknown)?;
        let json = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| TokenError::Unknown)?;
        let target: AnswerTarget =
            serde_json::from_slice(&json).map_err(|_| TokenError::Unknown)?;
        if now >= target.until {
            Err(TokenError::Expired)
        } else {
            Ok(target)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(until: u64) -> AnswerTarget {
        AnswerTarget {
            agent: AgentId::new("ann").unwrap(),
            message_id: MessageId::new("d-1-7-0").unwrap(),
            from: AgentId::new("debate-facilitator").unwrap(),
            case_id: Some(CaseId::new("c-1").unwrap()),
            correlation_id: Some("d-1".into()),
            round: Some(2),
            expected: ExpectedAnswer::Finding,
            of_task: Some(TaskAnswer::Result),
            asked: Some(Answerable::Task),
            is_news: true,
            trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
            until: Timestamp::default().plus_millis(until),
        }
    }

    #[test]
    fn an_address_is_good_until_its_time_for_whoever_has_the_key() {
        let at = |ms| Timestamp::default().plus_millis(ms);
        let (key, same) = (Key::new(b"0123").unwrap(), Key::new(b"0123").unwrap());
        let token = key.seal(&asked(1_000));
        assert!(
            token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)),
            "{token}"
        );
        assert_eq!(same.open(&token, at(999)), Ok(asked(1_000)));
        assert_eq!(same.open(&token, at(1_000)), Err(TokenError::Expired));
        assert_eq!(
            Key::new(b"0124").unwrap().open(&token, at(0)),
            Err(TokenError::Unknown)
        );
    }

    #[test]
    fn no_other_address_is_good() {
        let key = Key::new(b"0123").unwrap();
        let (token, other) = (key.seal(&asked(1_000)), key.seal(&asked(2_000)));
        let (text, signature) = token.split_once('.').unwrap();
        let (other_text, _) = other.split_once('.').unwrap();
        let long = "a".repeat(5_000);
        for wrong in [
            "",
            ".",
            "a.b",
            text,
            &format!("{text}."),
            &format!("{other_text}.{signature}"),
            &format!("{token}a"),
            &long,
        ] {
            assert_eq!(
                key.open(wrong, Timestamp::default()),
                Err(TokenError::Unknown),
                "{wrong}"
            );
        }
    }
}
