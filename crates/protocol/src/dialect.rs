//! The wire formats that agents speak beside the canonical envelope: the five of the specification's documents.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an agent writes its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The canonical envelope.
    #[default]
    Concord,
    /// A panel of reviewers: `sender`, `recipients`, `messageType`, `content` as serialised JSON (specification 1).
    Panel,
    /// Coordination strategies: `sender_id`, `receiver_id` or none for everyone, upper-case types (specification 2).
    Collaboration,
    /// Analysts and their challenges: `from_agent`, `content` without an id (specification 3).
    Analyst,
    /// A session of workers: `source_agent_id`, `target_agent_id`, `interaction_type` (specification 4).
    Session,
    /// The general exchange: the canonical envelope without what Concord added (specification 5).
    Exchange,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Concord, Self::Panel, Self::Collaboration, Self::Analyst, Self::Session, Self::Exchange];

    /// The dialect as it is written in a card and in the `Concord-Dialect` header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Concord => "concord",
            Self::Panel => "panel",
            Self::Collaboration => "collaboration",
            Self::Analyst => "analyst",
            Self::Session => "session",
            Self::Exchange => "exchange",
        }
    }

    /// The dialect of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_is_read_by_the_name_it_is_written_with() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
            assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.as_str());
        }
        assert_eq!(Dialect::parse("latin"), None);
    }
}
