//! What the NATS user of one agent or person may do: publish under its own id, and receive what is addressed to it.

use serde::Serialize;

use super::{Lane, Service, SubjectSpace};
use crate::id::{AgentId, Recipient};
use crate::payload::Role;

/// The verbs that everybody asks for under their own name, agents too, with the service that answers: what a case shares, for whoever
/// is in it, what they may see of its conversation, shared memory, payloads that are too large for a message,
/// and their durable inbox, with what they acknowledge of it.
pub const MEMBER_VERBS: [(Service, &str); 9] = [
    (Service::Coordinator, "acknowledge"),
    (Service::Coordinator, "board"),
    (Service::Coordinator, "briefing"),
    (Service::Coordinator, "commitments"),
    (Service::Coordinator, "inbox"),
    (Service::Coordinator, "memory"),
    (Service::Coordinator, "payload"),
    (Service::Coordinator, "put_payload"),
    (Service::AgentAdapter, "context"),
];

/// Subjects that a user may use and no others, in the form of the broker's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// Subjects that it may publish on.
    pub publish: Vec<String>,
    /// Subjects that it may subscribe to.
    pub subscribe: Vec<String>,
}

impl SubjectSpace {
    /// What the user of `agent` may do. Whoever may publish under an agent's id is that agent. The broker lets no other user do
    /// so, and lets no agent publish events and deadlines or read what is addressed to somebody else.
    ///
    /// It may acknowledge nothing to the broker, also not what comes from its own durable inboxes ([`Self::registered_inbox`]): an
    /// acknowledgement with a reply subject asks JetStream for whatever that subject names (`docs/adr/0116`). It asks the coordinator to.
    ///
    /// Answers to its own requests come on `_INBOX.<agent>.>`, so its client must be told that prefix: the usual one is
    /// shared with everybody.
    pub fn permissions(&self, agent: &AgentId) -> Permissions {
        let mut subscribe = self.subscribe_subjects(agent);
        subscribe.push(format!("{}.>", Self::replies(agent)));
        Permissions {
            publish: self.publish_subjects(agent),
            subscribe,
        }
    }

    /// What an agent in an account of its own may do there. Only what it publishes leaves the account, and only what it
    /// subscribes to comes in, so its client may use any inbox.
    pub fn permissions_in_own_account(&self, agent: &AgentId) -> Permissions {
        let mut subscribe = self.subscribe_subjects(agent);
        subscribe.push("_INBOX.>".to_owned());
        Permissions {
            publish: self.publish_subjects(agent),
            subscribe,
        }
    }

    /// The subjects on which the NATS user of somebody with these roles may publish: it asks the services for `verbs` under its
    /// name (for every verb where there are none), sends the messages that the roles are for, and asks the group. The services check
    /// the role.
    /// It may subscribe to what any user may, and to no more.
    pub fn publish_subjects_of_roles(
        &self,
        name: &AgentId,
        roles: &[Role],
        verbs: Option<&[&str]>,
    ) -> Vec<String> {
        let mut messages: Vec<(Service, &str)> =
            roles.iter().flat_map(|role| messages_of(*role)).collect();
        messages.sort_unstable();
        messages.dedup();
        let said = messages.iter().flat_map(|(to, kind)| {
            Lane::ALL.map(|lane| format!("{}{}.*.{name}.{to}.{kind}", self.root, lane.as_str()))
        });
        // Whoever may do more than read asks the group.
        let is_reader = roles.iter().all(|role| *role == Role::Auditor);
        let asks = Lane::ALL.map(|lane| {
            let (lane, to) = (lane.as_str(), Recipient::Any);
            format!("{}{lane}.*.{name}.{to}.group_query", self.root)
        });
        let said = said.chain(asks.into_iter().filter(|_| !is_reader));
        let every = ["*"];
        let asked = verbs.unwrap_or(&every).iter();
        let asked = asked.map(|verb| format!("{}api.*.{verb}.{name}", self.root));
        asked.chain(said).collect()
    }

    /// The subjects of an agent's messages and heartbeats, and of what it reads of its cases.
    pub fn publish_subjects(&self, agent: &AgentId) -> Vec<String> {
        let said = Lane::ALL.map(|lane| format!("{}{}.*.{agent}.>", self.root, lane.as_str()));
        let asked = MEMBER_VERBS;
        let asked =
            asked.map(|(service, verb)| format!("{}api.{service}.{verb}.{agent}", self.root));
        said.into_iter()
            .chain([format!("{}beat.{agent}", self.root)])
            .chain(asked)
            .collect()
    }

    /// The subjects of what is addressed to an agent, and to everyone.
    pub fn subscribe_subjects(&self, agent: &AgentId) -> Vec<String> {
        let own = Recipient::Agent(agent.clone());
        Lane::ALL
            .into_iter()
            .flat_map(|lane| [self.inbox(lane, &own), self.inbox(lane, &Recipient::All)])
            .collect()
    }

    /// The subjects of an agent's messages to one other agent, and to everyone.
    pub fn publish_subjects_between(&self, from: &AgentId, to: &AgentId) -> Vec<String> {
        let to = Recipient::Agent(to.clone());
        let on = |lane: Lane, to: &Recipient| {
            format!("{}{}.*.{from}.{}.*", self.root, lane.as_str(), to.as_str())
        };
        Lane::ALL
            .into_iter()
            .flat_map(|lane| [on(lane, &to), on(lane, &Recipient::All)])
            .collect()
    }

    /// The subjects of an agent's messages to anyone.
    pub fn publish_subjects_to_agents(&self, agent: &AgentId) -> Vec<String> {
        Lane::ALL
            .map(|lane| format!("{}{}.*.{agent}.*.*", self.root, lane.as_str()))
            .into()
    }

    /// The prefix of the subjects on which an agent's client receives replies of the broker and of services.
    pub fn replies(agent: &AgentId) -> String {
        format!("_INBOX.{agent}")
    }
}

/// The messages that somebody with a role sends, and to which service. Whoever has a role can challenge, and then speaks in the
/// debate; auditors only read.
fn messages_of(role: Role) -> Vec<(Service, &'static str)> {
    use Service::{Coordinator, DebateFacilitator};
    let own: &[(Service, &str)] = match role {
        Role::Auditor => return Vec::new(),
        Role::Opener => &[(Coordinator, "request"), (DebateFacilitator, "outcome")],
        Role::Arbiter => &[(DebateFacilitator, "ruling")],
        Role::Reviewer => &[(Coordinator, "review"), (DebateFacilitator, "outcome")],
        Role::Operator => &[(DebateFacilitator, "outcome"), (Coordinator, "alert")],
        Role::OutcomeSource => &[(DebateFacilitator, "outcome")],
        Role::Alerter => &[(Coordinator, "alert")],
    };
    let spoken = [
        "acknowledgement",
        "agreement",
        "clarification",
        "disagreement",
        "evidence",
        "revision",
    ];
    let challenger = spoken.map(|kind| (DebateFacilitator, kind));
    own.iter()
        .copied()
        .chain([(Coordinator, "challenge")])
        .chain(challenger)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_sends_what_it_is_for() {
        let (space, eva) = (SubjectSpace::default(), AgentId::new("eva").unwrap());
        let may = |roles: &[Role], subject: &str| {
            let verbs = Some(&["events"][..]);
            let publish = space.publish_subjects_of_roles(&eva, roles, verbs);
            publish.contains(&format!("concord.v1.{subject}"))
        };
        for (roles, ruling, review) in [
            (&[Role::Arbiter][..], true, false),
            (&[Role::Reviewer], false, true),
            (&[Role::Reviewer, Role::Arbiter], true, true),
            (&[Role::Auditor], false, false),
        ] {
            let found = [
                may(roles, "msg.*.eva.debate-facilitator.ruling"),
                may(roles, "urgent.*.eva.coordinator.review"),
                may(roles, "api.*.events.eva") && !may(roles, "api.*.*.eva"),
            ];
            assert_eq!(found, [ruling, review, true], "{roles:?}");
        }
        assert!(may(&[Role::Opener], "msg.*.eva._any.group_query"));
        let auditor = space.publish_subjects_of_roles(&eva, &[Role::Auditor], None);
        assert_eq!(auditor, ["concord.v1.api.*.*.eva"]);
    }

    #[test]
    fn in_its_own_account_an_agent_may_use_any_inbox() {
        let (space, eva) = (SubjectSpace::default(), AgentId::new("eva").unwrap());
        let (shared, own) = (
            space.permissions(&eva),
            space.permissions_in_own_account(&eva),
        );
        assert_eq!(own.publish, shared.publish);
        assert_eq!(own.subscribe[..4], shared.subscribe[..4]);
        assert_eq!(own.subscribe[4..], ["_INBOX.>"]);
        let between = space.publish_subjects_between(&eva, &AgentId::new("ben").unwrap());
        assert_eq!(
            between[..2],
            ["concord.v1.msg.*.eva.ben.*", "concord.v1.msg.*.eva._all.*"]
        );
        assert_eq!(
            space.publish_subjects_to_agents(&eva),
            ["concord.v1.msg.*.eva.*.*", "concord.v1.urgent.*.eva.*.*"]
        );
    }

    #[test]
    fn an_agent_speaks_under_its_own_name_and_hears_what_is_for_it() {
        let permissions = SubjectSpace::default().permissions(&AgentId::new("eva").unwrap());
        assert_eq!(
            permissions.publish,
            [
                "concord.v1.msg.*.eva.>",
                "concord.v1.urgent.*.eva.>",
                "concord.v1.beat.eva",
                "concord.v1.api.coordinator.acknowledge.eva",
                "concord.v1.api.coordinator.board.eva",
                "concord.v1.api.coordinator.briefing.eva",
                "concord.v1.api.coordinator.commitments.eva",
                "concord.v1.api.coordinator.inbox.eva",
                "concord.v1.api.coordinator.memory.eva",
                "concord.v1.api.coordinator.payload.eva",
                "concord.v1.api.coordinator.put_payload.eva",
                "concord.v1.api.agent-adapter.context.eva"
            ]
        );
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
