//! What the NATS user of one agent or person may do: speak under its own name, and hear what is for it.

use serde::Serialize;

use super::{Lane, SubjectSpace};
use crate::id::{AgentId, Recipient};

/// Subjects that a user may use and no others, in the form of the broker's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// Subjects that it may publish on.
    pub publish: Vec<String>,
    /// Subjects that it may subscribe to.
    pub subscribe: Vec<String>,
}

impl SubjectSpace {
    /// What the user of `agent` may do. Whoever may publish under an agent's name is that agent: the broker keeps all others
    /// from it, from the facts and from the deadlines, and from reading what is addressed to somebody else.
    ///
    /// Answers to its own requests come on `_INBOX.<agent>.>`, so its client must be told that prefix: the usual one is
    /// shared with everybody.
    pub fn permissions(&self, agent: &AgentId) -> Permissions {
        let own = Recipient::Agent(agent.clone());
        let said = Lane::ALL.map(|lane| format!("{}{}.*.{agent}.>", self.root, lane.as_str()));
        let heard = Lane::ALL.into_iter().flat_map(|lane| [self.inbox(lane, &own), self.inbox(lane, &Recipient::All)]);
        Permissions {
            publish: said.into_iter().chain([format!("{}beat.{agent}", self.root)]).collect(),
            subscribe: heard.chain([format!("{}.>", Self::replies(agent))]).collect(),
        }
    }

    /// The prefix of the subjects on which an agent's client is answered.
    pub fn replies(agent: &AgentId) -> String {
        format!("_INBOX.{agent}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_speaks_under_its_own_name_and_hears_what_is_for_it() {
        let permissions = SubjectSpace::default().permissions(&AgentId::new("eva").unwrap());
        assert_eq!(permissions.publish, ["concord.v1.msg.*.eva.>", "concord.v1.urgent.*.eva.>", "concord.v1.beat.eva"]);
        assert_eq!(
            permissions.subscribe,
            [
                "concord.v1.msg.*.*.eva.*",
                "concord.v1.msg.*.*._all.*",
                "concord.v1.urgent.*.*.eva.*",
                "concord.v1.urgent.*.*._all.*",
                "_INBOX.eva.>"
            ]
        );
    }
}
