//! The ids of messages: how each is made, so that a message that is sent again has the same one.

use smol_str::{SmolStr, format_smolstr};

use super::{AgentId, CaseId, MESSAGE_ID_BYTES_MAX, MessageId, Token};

/// How the derived id of a message begins that came without one.
const DERIVED_PREFIX: &str = "said-";
/// The length of a UUID as text.
const UUID_CHARS: usize = 36;

/// Reads a derived id: its sequence, if it has one. `None` for an id that a sender has chosen.
fn parse_derived(id: &str) -> Option<Option<u64>> {
    let (uuid, sequence) = id
        .strip_prefix(DERIVED_PREFIX)?
        .split_at_checked(UUID_CHARS)?;
    uuid::Uuid::try_parse(uuid).ok()?;
    if sequence.is_empty() {
        return Some(None);
    }
    Some(Some(sequence.strip_prefix('-')?.parse().ok()?))
}

/// A derived id without the sequence of its message; any other id as it is. Whoever received a message without reading it from
/// its stream knows only this part.
pub fn without_sequence(id: &str) -> &str {
    match parse_derived(id) {
        Some(Some(_)) => id.get(..DERIVED_PREFIX.len() + UUID_CHARS).unwrap_or(id),
        Some(None) | None => id,
    }
}

impl MessageId {
    /// The id of the refusal of the message at `sequence` of a stream.
    pub fn of_refusal(lane: &'static str, sequence: u64) -> Self {
        Self(format_smolstr!("{}-{sequence}-refused", Token::fixed(lane)))
    }

    /// The id of a message to everybody as it is passed on to one agent: the same from every process.
    pub fn of_passing_on(message: &Self, to: &AgentId) -> Self {
        let derived = Token::derived(&format!("{message}/{to}"));
        Self(format_smolstr!("{derived}-passed-on"))
    }

    /// The id of an agent's answer to a message: the same from every process.
    pub fn of_answer(asked: &Self, agent: &AgentId) -> Self {
        Self::readable(format_smolstr!("{asked}-{agent}"))
    }

    /// The id of what an agent sends in reply to a message. Beside its one answer there can be one message of each other type,
    /// for example an acknowledgement or evidence.
    pub fn of_reply(asked: &Self, agent: &AgentId, kind: &crate::MessageType) -> Self {
        if kind.is_answer() {
            Self::of_answer(asked, agent)
        } else {
            Self::readable(format_smolstr!("{asked}-{agent}-{kind}"))
        }
    }

    /// The id under which a message is recorded whose own id another sender has used before: the same from every process.
    pub fn of_sender(message: &Self, sender: &AgentId) -> Self {
        let derived = Token::derived(&format!("{sender}/{message}"));
        Self(format_smolstr!("{derived}-of-sender"))
    }

    /// The id of the request at a place of a batch, counted from 0.
    pub fn of_part(batch: &Self, place: usize) -> Self {
        Self::readable(format_smolstr!("{batch}-part-{place}"))
    }

    fn readable(text: SmolStr) -> Self {
        // Two long ids do not fit side by side.
        if text.len() <= MESSAGE_ID_BYTES_MAX {
            Self(text)
        } else {
            Self(Token::derived(&text).0)
        }
    }

    /// The derived id of a message that came without one, from its subject and its bytes: the same for the same bytes. A stored
    /// message has its sequence in the id as well ([`Self::at_sequence`]), because the same bytes may be sent twice.
    pub(crate) fn of_bytes(subject: &str, bytes: &[u8]) -> Self {
        let name = [subject.as_bytes(), b" ", bytes].concat();
        Self(format_smolstr!(
            "{DERIVED_PREFIX}{}",
            uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, &name)
        ))
    }

    /// The id of the message at `sequence` of its stream. A derived id gets the sequence, so that a second delivery has the same id
    /// and a second message of the same bytes has another; an id that the sender has chosen stays.
    #[must_use]
    pub fn at_sequence(self, sequence: u64) -> Self {
        match parse_derived(&self.0) {
            Some(None) => Self(format_smolstr!("{}-{sequence}", self.0)),
            Some(Some(_)) | None => self,
        }
    }

    /// The same without the sequence of the message; see [`without_sequence`].
    #[must_use]
    pub fn without_sequence(&self) -> Self {
        Self(without_sequence(&self.0).into())
    }

    /// Whether the id is derived because the message came without one.
    pub fn is_derived(&self) -> bool {
        parse_derived(&self.0).is_some()
    }

    /// The id of the passing of a deadline: the same for every process that notices it.
    pub fn of_deadline(aggregate_id: &Token, name: &Token, due: crate::Timestamp) -> Self {
        let text = format!("{aggregate_id}/{name}/{due}");
        Self(format_smolstr!("due-{}", Token::derived(&text)))
    }

    /// The id of a request through the API to open this case: the same for the same case.
    pub fn of_api_request(case: &CaseId) -> Self {
        Self(format_smolstr!("api-{case}"))
    }

    /// The id of an operator's request through the API; `unique` differs with every request.
    pub fn of_operator_request(unique: &str) -> Self {
        Self(format_smolstr!("operator-{}", Token::derived(unique)))
    }

    /// An id derived from any text: the same for the same text.
    pub fn derived(text: &str) -> Self {
        let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).hyphenated();
        Self::trusted(&*id.encode_lower(&mut uuid::Uuid::encode_buffer()))
    }

    /// The id of the effect at `position` of the event at `sequence` of an aggregate: at most 64 + 20 + 20 characters and
    /// two hyphens, so it always fits.
    pub fn of_effect(aggregate_id: &Token, sequence: u64, position: usize) -> Self {
        Self(format_smolstr!("{aggregate_id}-{sequence}-{position}"))
    }
}
