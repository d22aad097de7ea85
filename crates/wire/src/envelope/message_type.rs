//! The message types that this build knows.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::Token;

macro_rules! message_types {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal),+ $(,)?) => {
        /// The type of a message; decides the schema of the payload.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MessageType {
            $($(#[doc = $doc])+ $variant,)+
            /// A type that this build does not know; the message is stored, counted and otherwise ignored.
            Unknown(Token),
        }

        impl MessageType {
            /// Every type this build knows.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// Each known type with its meaning, for the generated reference; in the order of [`Self::KNOWN`].
            pub const DOCS: &'static [(&'static str, &'static str)] = &[$(($text, concat!($($doc),+).trim_ascii())),+];

            /// The type as a subject token.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(name) => name.as_str(),
                }
            }
        }

        impl From<Token> for MessageType {
            fn from(token: Token) -> Self {
                match token.as_str() {
                    $($text => Self::$variant,)+
                    _ => Self::Unknown(token),
                }
            }
        }
    };
}

message_types! {
    /// What one agent concluded.
    Finding = "finding",
    /// A finding with earlier cases it rests on.
    FindingWithPrecedent = "finding_with_precedent",
    /// A question to an agent.
    Question = "question",
    /// The answer to a question that asked for more detail.
    Clarification = "clarification",
    /// In a debate: the sender now holds a peer's position.
    Agreement = "agreement",
    /// In a debate: the sender keeps its position.
    Disagreement = "disagreement",
    /// In a debate: the sender changed its position.
    Revision = "revision",
    /// Supporting evidence.
    Evidence = "evidence",
    /// One agent disputes another's finding on purpose.
    Challenge = "challenge",
    /// Receipt of a challenge.
    Acknowledgement = "acknowledgement",
    /// Validates information.
    Confirmation = "confirmation",
    /// Urgent attention needed.
    Alert = "alert",
    /// A person's binding answer.
    Ruling = "ruling",
    /// What proved right of what was debated, known later.
    Outcome = "outcome",
    /// A person's review at a gate.
    Review = "review",
    /// Asks another to do something.
    Request = "request",
    /// The answer to a request.
    Response = "response",
    /// Tells without expecting an answer.
    Notification = "notification",
    /// Says what went wrong.
    Error = "error",
    /// State of an agent or of work.
    Status = "status",
    /// Hands work over.
    Handoff = "handoff",
    /// Gives a participant its task.
    TaskAssignment = "task_assignment",
    /// The result of a task.
    TaskResult = "task_result",
    /// News without a question.
    InfoUpdate = "info_update",
    /// What a newcomer must know.
    SessionBriefing = "session_briefing",
    /// An agent has joined.
    AgentJoined = "agent_joined",
    /// A question to the group.
    GroupQuery = "group_query",
    /// Asks a peer for help.
    PeerRequest = "peer_request",
    /// Offers expertise.
    ExpertiseOffer = "expertise_offer",
    /// Invites to collaborate.
    CollaborationInvite = "collaboration_invite",
    /// Contract net: asks for bids.
    CallForProposals = "call_for_proposals",
    /// Contract net: a bid.
    Bid = "bid",
    /// Contract net: the award.
    Award = "award",
    /// Does not do what was asked for.
    Refuse = "refuse",
    /// A commitment to do something.
    Commitment = "commitment",
}

impl MessageType {
    /// The type as a subject token.
    pub fn token(&self) -> Token {
        Token::trusted(self.as_str())
    }

    /// Whether a message of this type answers what it replies to. A message has one answer; other types may be sent beside it.
    pub fn is_answer(&self) -> bool {
        use MessageType as T;
        matches!(
            self,
            T::Finding | T::FindingWithPrecedent | T::Agreement | T::Disagreement | T::Revision
        ) || matches!(self, T::Response | T::Error | T::TaskResult)
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for MessageType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for MessageType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Token::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for MessageType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageType".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": Self::KNOWN })
    }
}
