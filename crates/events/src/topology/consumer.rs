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
        let define = |stream, name, event, filter| ConsumerDefinition {
            kind,
            service: kind.service(),
            stream: self.stream_name(stream),
            stream_kind: stream,
            name,
            event,
            filter,
        };
        let alone = |stream, filter| vec![define(stream, kind.name(), None, filter)];
        let facts = |keep: &dyn Fn(Aggregate, &EventInfo) -> bool| -> Vec<ConsumerDefinition> {
            let kept = all_events().filter(|(aggregate, info)| keep(*aggregate, info));
            kept.map(|(aggregate, info)| {
                let name = format!("{}-{aggregate}-{}", kind.name(), info.name);
                let filter = subjects.event_of_kind(aggregate, info.name);
                define(StreamKind::Events, name, Some((aggregate, info)), filter)
            })
            .collect()
        };
        match kind {
            ConsumerKind::Inbox(service) => alone(
                StreamKind::Messages,
                subjects.service_inbox(Lane::Normal, service),
            ),
            ConsumerKind::UrgentInbox(service) => alone(
                StreamKind::Urgent,
                subjects.service_inbox(Lane::Urgent, service),
            ),
            ConsumerKind::Events(service) => {
                facts(&|aggregate, info| aggregate.is_read_by(service, info.name))
            }
            ConsumerKind::Effects(service) => {
                facts(&|aggregate, info| aggregate.owner() == service && info.has_effects)
            }
            ConsumerKind::Deadlines => facts(&|_, info| info.moves_deadlines),
            ConsumerKind::Due => alone(StreamKind::Timers, subjects.due()),
            ConsumerKind::Wake => {
                let each = |lane| WAKING.iter().map(move |message_type| (lane, message_type));
                let all = Lane::ALL.into_iter().flat_map(each);
                let of_types = all.map(|(lane, message_type)| {
                    let name = format!("{}-{}-{message_type}", kind.name(), lane.as_str());
                    define(
                        StreamKind::of_lane(lane),
                        name,
                        None,
                        subjects.of_type(lane, &message_type.token()),
                    )
                });
                let to_groups = GROUPS.into_iter().flat_map(|(suffix, to)| {
                    let kind = kind.name();
                    Lane::ALL.into_iter().map(move |lane| {
                        let name = format!("{kind}-{}{suffix}", lane.as_str());
                        define(
                            StreamKind::of_lane(lane),
                            name,
                            None,
                            subjects.inbox(lane, &to),
                        )
                    })
                });
                of_types.chain(to_groups).collect()
            }
            ConsumerKind::Exchange => {
                let each = |lane| {
                    EXCHANGED
                        .iter()
                        .map(move |message_type| (lane, message_type))
                };
                let all = Lane::ALL.into_iter().flat_map(each);
                all.map(|(lane, message_type)| {
                    let name = format!("{}-{}-{message_type}", kind.name(), lane.as_str());
                    define(
                        StreamKind::of_lane(lane),
                        name,
                        None,
                        subjects.of_type(lane, &message_type.token()),
                    )
                })
                .collect()
            }
            ConsumerKind::Completions => facts(&|aggregate, info| aggregate.completes(info.name)),
            ConsumerKind::Notices(_) => facts(&|aggregate, info| aggregate.notifies(info.name)),
        }
    }

    /// Every consumer that an installation has. Hosted agents' inboxes are added by the adapter.
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
        ]);
        kinds.flat_map(|kind| self.consumers_of(kind)).collect()
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

/// What agents send each other about requests: the request, and what may end it.
pub const EXCHANGED: [MessageType; 5] = [
    MessageType::Request,
    MessageType::Acknowledgement,
    MessageType::Response,
    MessageType::Error,
    MessageType::Notification,
];

/// Messages that may concern others than whom they are addressed to, or that others remember.
pub const WAKING: [MessageType; 8] = [
    MessageType::GroupQuery,
    MessageType::PeerRequest,
    MessageType::ExpertiseOffer,
    MessageType::CollaborationInvite,
    MessageType::CallForProposals,
    MessageType::InfoUpdate,
    MessageType::TaskResult,
    MessageType::SessionBriefing,
];

/// Whoever can help and everyone, and how the names of the consumers end that are given what is addressed to them.
const GROUPS: [(&str, Recipient); 2] = [("-any", Recipient::Any), ("-all", Recipient::All)];

/// Whether a message of an agent may concern others than whom it is addressed to.
pub fn may_wake(message_type: &MessageType, to: &Recipient) -> bool {
    WAKING.contains(message_type) || GROUPS.iter().any(|(_, group)| group == to)
}

/// Whether a message is given to two consumers of [`ConsumerKind::Wake`] and this is the second of them: one is given what is
/// addressed to a group, of whatever type, and another each type [that wakes](WAKING).
pub fn is_given_twice(consumer: &str, message_type: &str) -> bool {
    GROUPS.iter().any(|(suffix, _)| consumer.ends_with(suffix))
        && WAKING.iter().any(|kind| kind.as_str() == message_type)
}

/// The kinds of consumers of the services: durable, pulled, shared by all replicas. Of a kind that is given facts there
/// is one consumer for each fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsumerKind {
    /// Messages addressed to a service.
    Inbox(Service),
    /// Urgent messages addressed to a service.
    UrgentInbox(Service),
    /// Facts of others that a service acts on.
    Events(Service),
    /// A service's own facts, to publish what follows from them.
    Effects(Service),
    /// Every fact that may move a deadline, for the escalation timer.
    Deadlines,
    /// Deadlines the broker has delivered, for the escalation timer.
    Due,
    /// Requests of agents to agents and what is answered, for the coordinator: there is a consumer for each lane and
    /// message type.
    Exchange,
    /// Messages that may concern others than whom they are addressed to, for the agent adapter: there is a consumer for each
    /// lane and message type, and for what is addressed to whoever can help or to everyone.
    Wake,
    /// Ends of requests, which are posted where the request asks for it, for the agent adapter.
    Completions,
    /// Facts of which people are notified, for the agent adapter. Each channel has its own, so that what one of them
    /// fails to deliver is never repeated by another.
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

    /// Who pulls from it.
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

    /// Its durable name; that of a consumer of facts begins with it.
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
    /// Who pulls from it.
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
    fn each_channel_reads_each_fact_by_itself() {
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
            8
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
