//! What the NATS user of a service may do.

use concord_wire::subject::{Lane, Permissions, Service, SubjectForm};

use super::{Layout, StreamKind};
use crate::Aggregate;
use crate::subject::{ReplicaVerb, SystemSubject};

impl Layout {
    /// What the user of a service needs: it stores the events of the aggregates that it owns and dead letters of its own, speaks
    /// under its own name, answers its own verbs, and uses JetStream. Agents and people cannot be forged by accident, nor the events
    /// of another service.
    ///
    /// It is no wall against whoever holds a service's user: what may ask JetStream for a stored message can have the broker
    /// publish a copy anywhere (`docs/adr/0029`).
    pub fn service_permissions(&self, service: Service) -> Permissions {
        let space = &self.subjects;
        let mut publish: Vec<String> = Aggregate::ALL
            .iter()
            .filter(|aggregate| aggregate.owner() == service)
            .map(|aggregate| space.join(&["event", aggregate.as_str(), ">"]))
            .collect();
        publish.push(space.join(&["dead", service.as_str(), ">"]));
        // What its processes share, such as what is left of a budget.
        publish.push(space.join(&["memory", service.as_str(), ">"]));
        publish.extend(self.spoken_by(service));
        let replicas = [ReplicaVerb::Beat, ReplicaVerb::Take].map(|verb| {
            SystemSubject::Replica {
                service,
                verb,
                replica: None,
            }
            .build(space)
        });
        publish.extend(replicas.iter().cloned());
        publish.extend(self.stored_by(service));
        // Whoever asks a service waits for the answer on an inbox of its own.
        publish.push("_INBOX.>".to_owned());
        let mut subscribe = vec![format!("{}.>", space.api_root(service))];
        subscribe.extend(replicas);
        subscribe.extend(self.heard_by(service));
        subscribe.extend(["$SRV.>", "_INBOX.>"].map(str::to_owned));
        Permissions { publish, subscribe }
    }

    /// The subjects of its messages. The agent adapter speaks for the agents that it hosts.
    fn spoken_by(&self, service: Service) -> Vec<String> {
        let space = &self.subjects;
        match service {
            Service::AgentAdapter => {
                let lanes = Lane::ALL.map(|lane| space.all(lane.as_str()));
                lanes.into_iter().chain([space.beats()]).collect()
            }
            _ => Lane::ALL
                .map(|lane| space.messages_from(lane, &service.agent_id()))
                .into(),
        }
    }

    /// What it hears besides its consumers.
    fn heard_by(&self, service: Service) -> Vec<String> {
        let space = &self.subjects;
        match service {
            Service::Coordinator => vec![space.beats()],
            Service::AgentAdapter => {
                let lanes = Lane::ALL.map(|lane| space.all(lane.as_str()));
                lanes.into_iter().chain([space.all("event")]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What it asks JetStream for: to make streams and consumers, to read and acknowledge. The escalation timer moves deadlines,
    /// and removes what is archived.
    fn stored_by(&self, service: Service) -> Vec<String> {
        let mut asked: Vec<String> = [
            "INFO",
            "STREAM.INFO.*",
            "STREAM.CREATE.*",
            "STREAM.MSG.GET.*",
            "CONSUMER.>",
            "DIRECT.GET.>",
        ]
        .map(|verb| format!("$JS.API.{verb}"))
        .into();
        // What no client can parse is taken out of a stream; of events that is left to whoever archives them.
        let others = StreamKind::ALL
            .into_iter()
            .filter(|kind| *kind != StreamKind::Events || service == Service::EscalationTimer);
        asked.extend(
            others.map(|kind| format!("$JS.API.STREAM.MSG.DELETE.{}", self.stream_name(kind))),
        );
        // To acknowledge, and to say that more can be taken of what is read from a bucket.
        asked.extend(["$JS.ACK.>", "$JS.FC.>"].map(str::to_owned));
        if service == Service::EscalationTimer {
            asked.push("$JS.API.STREAM.PURGE.*".to_owned());
            asked.push(self.subjects.all("timer"));
        }
        let buckets = [self.payload_bucket(), self.archive_bucket()];
        asked.extend(buckets.map(|bucket| format!("$O.{bucket}.>")));
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_stores_its_own_events_and_speaks_under_its_own_name() {
        let layout = Layout::default();
        let may = |service, subject: &str| {
            let permissions = layout.service_permissions(service);
            permissions
                .publish
                .contains(&format!("concord.v1.{subject}"))
        };
        let (coordinator, timer) = (Service::Coordinator, Service::EscalationTimer);
        assert!(may(coordinator, "event.case.>") && !may(coordinator, "event.debate.>"));
        assert!(may(coordinator, "msg.*.coordinator.*.*") && !may(coordinator, "msg.>"));
        assert!(may(coordinator, "dead.coordinator.>") && !may(coordinator, "timer.>"));
        assert!(may(timer, "timer.>") && !may(timer, "event.case.>"));
        assert!(may(Service::AgentAdapter, "urgent.>"), "for whom it hosts");
        assert!(may(timer, "replica.take.escalation-timer.*"));
        let may_delete = |service, stream: &str| {
            let permissions = layout.service_permissions(service);
            permissions
                .publish
                .contains(&format!("$JS.API.STREAM.MSG.DELETE.CONCORD_{stream}"))
        };
        assert!(may_delete(coordinator, "MESSAGES") && !may_delete(coordinator, "EVENTS"));
        assert!(may_delete(timer, "EVENTS"));
    }

    #[test]
    fn every_event_is_stored_by_somebody() {
        let layout = Layout::default();
        for aggregate in Aggregate::ALL {
            let subject = layout.subjects.join(&["event", aggregate.as_str(), ">"]);
            let owners = Service::ALL.iter().filter(|service| {
                layout
                    .service_permissions(**service)
                    .publish
                    .contains(&subject)
            });
            assert_eq!(owners.count(), 1, "{aggregate}");
        }
    }
}
