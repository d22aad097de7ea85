//! The durable consumers of an installation, as data.

use serde::{Deserialize, Serialize};

use super::{Layout, StreamKind};
use crate::subject::SystemFilters;
use crate::{Aggregate, EventInfo, all_events};
use concord_wire::envelope::MessageType;
use concord_wire::id::Recipient;
use concord_wire::subject::{Lane, Service};

impl Layout {
    /// The definitions of all consumers of a kind.
    ///
    /// Each has exactly one filter. The broker looks for the next message of a consumer with several filters by
    /// comparing them with every subject of a block, which under load costs more than everything else it does; see
    /// `docs/adr/0004`.
    pub fn consumers_of(&self, kind: ConsumerKind) -> Vec<ConsumerDefinition> {
        let subjects = &self.subjects;
        let single = |stream, filter| vec![self.define(kind, stream, kind.name(), filter)];
        match kind {
            ConsumerKind::Inbox(service) => single(
                StreamKind::Messages,
                subjects.service_inbox(Lane::Normal, service),
            ),
            ConsumerKind::UrgentInbox(service) => single(
                StreamKind::Urgent,
                subjects.service_inbox(Lane::Urgent, service),
            ),
            ConsumerKind::Events(service) => self.of_events(kind, |aggregate, info| {
                aggregate.is_read_by(service, info.name)
            }),
            ConsumerKind::Effects(service) => self.of_events(kind, |aggregate, info| {
                aggregate.owner() == service && info.has_effects
            }),
            ConsumerKind::Deadlines => self.of_events(kind, |_, info| info.moves_deadlines),
            ConsumerKind::Due => single(StreamKind::Timers, subjects.due()),
            ConsumerKind::Wake => {
                let mut consumers = self.of_types(kind, &WAKING);
                consumers.extend(self.of_groups(kind));
                consumers
            }
            ConsumerKind::Exchange => {
                let mut consumers = self.of_types(kind, &EXCHANGED);
                let alerts = self.of_types(kind, &[MessageType::Alert]);
                // Of any other priority it is a message like any other.
                let urgent = |one: &ConsumerDefinition| one.stream_kind == StreamKind::Urgent;
                consumers.extend(alerts.into_iter().filter(urgent));
                consumers
            }
            ConsumerKind::Completions => {
                self.of_events(kind, |aggregate, info| aggregate.completes(info.name))
            }
            ConsumerKind::Notices(_) => {
                self.of_events(kind, |aggregate, info| aggregate.notifies(info.name))
            }
        }
    }

    fn define(
        &self,
        kind: ConsumerKind,
        stream: StreamKind,
        name: String,
        filter: String,
    ) -> ConsumerDefinition {
        ConsumerDefinition {
            kind,
            service: kind.service(),
            stream: self.stream_name(stream),
            stream_kind: stream,
            name,
            event: None,
            filter,
        }
    }

    /// One consumer for each event that `is_given` lets through.
    fn of_events(
        &self,
        kind: ConsumerKind,
        is_given: impl Fn(Aggregate, &EventInfo) -> bool,
    ) -> Vec<ConsumerDefinition> {
        let events = all_events().filter(|(aggregate, info)| is_given(*aggregate, info));
        events
            .map(|(aggregate, info)| {
                let name = format!("{}-{aggregate}-{}", kind.name(), info.name);
                let filter = self.subjects.event_of_kind(aggregate, info.name);
                ConsumerDefinition {
                    event: Some((aggregate, info)),
                    ..self.define(kind, StreamKind::Events, name, filter)
                }
            })
            .collect()
    }

    /// One consumer for each lane and each of these message types.
    fn of_types(&self, kind: ConsumerKind, types: &[MessageType]) -> Vec<ConsumerDefinition> {
        let pairs = Lane::ALL
            .into_iter()
            .flat_map(|lane| types.iter().map(move |message_type| (lane, message_type)));
        pairs
            .map(|(lane, message_type)| {
                let name = format!("{}-{}-{message_type}", kind.name(), lane.as_str());
                let filter = self.subjects.of_type(lane, &message_type.token());
                self.define(kind, StreamKind::of_lane(lane), name, filter)
            })
            .collect()
    }

    /// One consumer for each group that a message can be addressed to, and each lane.
    fn of_groups(&self, kind: ConsumerKind) -> Vec<ConsumerDefinition> {
        let pairs = GROUPS
            .iter()
            .flat_map(|group| Lane::ALL.map(|lane| (group, lane)));
        pairs
            .map(|((suffix, to), lane)| {
                let name = format!("{}-{}{suffix}", kind.name(), lane.as_str());
                let filter = self.subjects.inbox(lane, to);
                self.define(kind, StreamKind::of_lane(lane), name, filter)
            })
            .collect()
    }

    /// Every consumer that each installation has. The adapter adds the inboxes of hosted agents.
    pub fn consumers(&self) -> Vec<ConsumerDefinition> {
        ConsumerKind::all()
            .into_iter()
            .flat_map(|kind| self.consumers_of(kind))
            .collect()
    }

    /// The consumers of the agent adapter, which an installation may do without.
    pub fn adapter_consumers(&self) -> Vec<ConsumerDefinition> {
        let notices = Channel::ALL.into_iter().map(ConsumerKind::Notices);
        let kinds = notices.chain([
            ConsumerKind::Completions,
            ConsumerKind::Wake,
            ConsumerKind::Effects(Service::AgentAdapter),
            ConsumerKind::Inbox(Service::AgentAdapter),
            ConsumerKind::UrgentInbox(Service::AgentAdapter),
        ]);
        kinds.flat_map(|kind| self.consumers_of(kind)).collect()
    }

    /// The durable inboxes of an agent on `lane`, for what is said to it and for alerts, each with its stream, the name of its consumer, and
    /// the subjects that it is given.
    pub fn agent_inboxes(
        &self,
        lane: Lane,
        agent: &concord_wire::AgentId,
    ) -> [(StreamKind, String, String); 2] {
        let alerts = self.subjects.agent_alerts(lane, agent);
        let stream = StreamKind::of_lane(lane);
        [
            self.agent_inbox(lane, agent),
            (stream, alerts.consumer, alerts.filter),
        ]
    }

    /// The durable inbox of an agent on `lane`: its stream, the name of its consumer, and the subjects that it is given.
    pub fn agent_inbox(
        &self,
        lane: Lane,
        agent: &concord_wire::AgentId,
    ) -> (StreamKind, String, String) {
        let inbox = self.subjects.agent_inbox(lane, agent);
        (StreamKind::of_lane(lane), inbox.consumer, inbox.filter)
    }
}

/// A way to notify people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// A mailbox, by SMTP.
    Email,
    /// An address that is called, by HTTP.
    Webhook,
}

impl Channel {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Email, Self::Webhook];

    /// The channel as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Webhook => "webhook",
        }
    }
}

/// The message types of requests between agents: the request, and what may answer it, or a question to the group.
pub const EXCHANGED: [MessageType; 7] = [
    MessageType::Request,
    MessageType::Acknowledgement,
    MessageType::Response,
    MessageType::Error,
    MessageType::Notification,
    MessageType::TaskResult,
    MessageType::Refuse,
];

/// The message types that may concern agents they are not addressed to, or that those remember as context.
pub const WAKING: [MessageType; 9] = [
    MessageType::GroupQuery,
    MessageType::PeerRequest,
    MessageType::ExpertiseOffer,
    MessageType::CollaborationInvite,
    MessageType::CallForProposals,
    MessageType::InfoUpdate,
    MessageType::TaskResult,
    MessageType::SessionBriefing,
    MessageType::TaskAssignment,
];

/// The groups that a message can be addressed to, and how the names of their consumers end.
const GROUPS: [(&str, Recipient); 2] = [("-any", Recipient::Any), ("-all", Recipient::All)];

/// Whether a message of an agent may concern agents that it is not addressed to.
pub fn may_wake(message_type: &MessageType, to: &Recipient) -> bool {
    WAKING.contains(message_type) || GROUPS.iter().any(|(_, group)| group == to)
}

/// Whether this is the second of two consumers of [`ConsumerKind::Wake`] that are given a message: one is given what is
/// addressed to a group, of any type, and another each type of [`WAKING`].
pub fn is_second_delivery(consumer: &str, message_type: &str) -> bool {
    GROUPS.iter().any(|(suffix, _)| consumer.ends_with(suffix))
        && WAKING.iter().any(|kind| kind.as_str() == message_type)
}

/// The kinds of consumers of the services: durable, pulled, shared by all replicas. A kind that is given events has one
/// consumer for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsumerKind {
    /// Messages addressed to a service.
    Inbox(Service),
    /// Urgent messages addressed to a service.
    UrgentInbox(Service),
    /// Events of other services that a service acts on.
    Events(Service),
    /// A service's own events, to publish the messages that follow from them.
    Effects(Service),
    /// Every event that may move a deadline, for the escalation timer.
    Deadlines,
    /// Deadlines the broker has delivered, for the escalation timer.
    Due,
    /// Requests between agents and their answers, and urgent alerts to whomever, for the coordinator: one consumer for each lane and message
    /// type.
    Exchange,
    /// Messages that may concern agents they are not addressed to, for the agent adapter: one consumer for each lane and message
    /// type, and for each lane and group.
    Wake,
    /// Events that end a request, for the agent adapter, which posts the result to the callback of the request.
    Completions,
    /// Events of which people are notified, for the agent adapter. Each channel has consumers of its own, so that a failure of
    /// one channel never repeats what another has delivered.
    Notices(Channel),
}

impl ConsumerKind {
    /// The kinds that every installation has.
    pub fn all() -> Vec<Self> {
        let each = |service: &Service| {
            [
                Self::Inbox(*service),
                Self::UrgentInbox(*service),
                Self::Events(*service),
                Self::Effects(*service),
            ]
        };
        // An installation may do without the adapter, which speaks for the agents it hosts and notifies people.
        let services = Service::ALL
            .iter()
            .filter(|service| **service != Service::AgentAdapter);
        services
            .flat_map(each)
            .chain([Self::Exchange, Self::Deadlines, Self::Due])
            .collect()
    }

    /// The service that pulls from it.
    pub fn service(self) -> Service {
        match self {
            Self::Inbox(service)
            | Self::UrgentInbox(service)
            | Self::Events(service)
            | Self::Effects(service) => service,
            Self::Exchange => Service::Coordinator,
            Self::Deadlines | Self::Due => Service::EscalationTimer,
            Self::Notices(_) | Self::Wake | Self::Completions => Service::AgentAdapter,
        }
    }

    /// Its durable name; the name of a consumer of one event begins with it.
    fn name(self) -> String {
        let service = self.service();
        match self {
            Self::Inbox(_) => format!("{service}-inbox"),
            Self::UrgentInbox(_) => format!("{service}-urgent"),
            Self::Events(_) => format!("{service}-facts"),
            Self::Effects(_) => format!("{service}-effects"),
            Self::Deadlines => format!("{service}-deadlines"),
            Self::Due => format!("{service}-due"),
            Self::Exchange => format!("{service}-exchange"),
            Self::Wake => format!("{service}-wake"),
            Self::Completions => format!("{service}-completions"),
            Self::Notices(channel) => format!("{service}-{}", channel.as_str()),
        }
    }
}

/// One consumer's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerDefinition {
    /// Which consumer.
    pub kind: ConsumerKind,
    /// The service that pulls from it.
    pub service: Service,
    /// The stream's name.
    pub stream: String,
    /// The stream.
    pub stream_kind: StreamKind,
    /// Its durable name.
    pub name: String,
    /// The event that it is given, if it is given events.
    pub event: Option<(Aggregate, EventInfo)>,
    /// Subjects it is given.
    pub filter: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_consumer_has_a_filter_and_a_name_of_its_own() {
        let layout = Layout::default();
        let consumers: Vec<_> = layout
            .consumers()
            .into_iter()
            .chain(layout.adapter_consumers())
            .collect();
        let mut names: Vec<_> = consumers.iter().map(|c| c.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), consumers.len());
        for consumer in consumers {
            assert!(!consumer.filter.is_empty(), "{}", consumer.name);
        }
    }

    #[test]
    fn each_channel_reads_each_event_by_itself() {
        let names: Vec<String> = Layout::default()
            .adapter_consumers()
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(
            names
                .iter()
                .filter(|name| name.contains("-email-") || name.contains("-webhook-"))
                .count(),
            24
        );
        assert!(
            names.contains(&"agent-adapter-email-debate-assigned".to_owned()),
            "{names:?}"
        );
        assert!(
            names.contains(&"agent-adapter-webhook-debate-awaits_gate".to_owned()),
            "{names:?}"
        );
    }
}
