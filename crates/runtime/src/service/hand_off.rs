//! Handing a delivery to the replica that works on its case, so that one replica has the case in memory and no two race
//! for it.
//!
//! All replicas of a service share its consumers, so the broker gives a delivery to any of them. Whoever gets it asks the
//! rendezvous hash which replica the case belongs to ([`Replicas`]), and hands the delivery over by plain NATS. The owner says at
//! once whether it has taken it, works on it, and acknowledges it to the broker. Where it has not, the delivery is worked
//! on here: the owner may have gone, be frozen or be full. Whatever happens, the delivery is not acknowledged before somebody has
//! worked on it, and the lock decides between two who do. See `docs/adr/0052`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{HeaderMap, Message, Request, Subject};
use concord_events::Aggregate;
use concord_events::subject::{ReplicaVerb, SystemSubject};
use concord_events::topology::ConsumerKind;
use concord_wire::subject::{Service, Subject as WireSubject, SubjectSpace};
use futures::StreamExt;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::broker::{Operation, Unavailable};
use crate::delivery::Delivery;
use crate::service::ServiceRunner;

/// How long the owner has to say that it has taken a delivery.
const TAKEN_WITHIN: Duration = Duration::from_millis(800);
/// Room for deliveries that were handed to this process and are not done with, in kilobytes; what does not fit is not taken.
const TAKEN_KB_MAX: usize = 32 * 1_024;
/// What a delivery takes of it besides its body: what is made of it while it is worked on.
const TAKEN_KB_EACH: usize = 8;

/// The answer of an owner that has no room.
const NOT_TAKEN: &[u8] = b"full";

/// Headers of a delivery that is handed over: what the message and its consumer said of it.
mod header {
    pub(super) const CONSUMER: &str = "Concord-Handed-Consumer";
    pub(super) const SUBJECT: &str = "Concord-Handed-Subject";
    pub(super) const REPLY: &str = "Concord-Handed-Reply";
}

/// Works on deliveries of one consumer that other replicas have handed over.
pub(crate) trait Taker: Send + Sync {
    /// Begins to work on a message as the broker delivered it. The permit is held until that is done.
    fn take(&self, message: Message, permit: OwnedSemaphorePermit);
}

/// Who takes what is handed over, by the name of the consumer.
#[derive(Clone)]
pub(crate) struct Takers {
    by_consumer: Arc<Mutex<BTreeMap<String, Arc<dyn Taker>>>>,
    room: Arc<Semaphore>,
}

impl Default for Takers {
    fn default() -> Self {
        Self {
            by_consumer: Arc::default(),
            room: Arc::new(Semaphore::new(TAKEN_KB_MAX)),
        }
    }
}

impl Takers {
    /// From now on `taker` works on what is handed over of this consumer.
    pub(crate) fn add(&self, consumer: &str, taker: Arc<dyn Taker>) {
        let mut takers = self
            .by_consumer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        takers.insert(consumer.to_owned(), taker);
    }

    fn of(&self, consumer: &str) -> Option<Arc<dyn Taker>> {
        let takers = self.by_consumer.lock();
        takers
            .unwrap_or_else(PoisonError::into_inner)
            .get(consumer)
            .cloned()
    }

    /// Gives a handed message to whom it is for. Whether it was taken.
    fn take(&self, handed: Message) -> bool {
        let named = |name: &str| Some(handed.headers.as_ref()?.get(name)?.as_str().to_owned());
        let (Some(consumer), Some(subject), Some(reply)) = (
            named(header::CONSUMER),
            named(header::SUBJECT),
            named(header::REPLY),
        ) else {
            return false;
        };
        let kilobytes = handed.payload.len() / 1_024 + TAKEN_KB_EACH;
        let room = Arc::clone(&self.room);
        let taken = u32::try_from(kilobytes).map(|size| room.try_acquire_many_owned(size));
        let (Some(taker), Ok(Ok(permit))) = (self.of(&consumer), taken) else {
            return false;
        };
        let message = Message {
            subject: subject.into(),
            reply: Some(reply.into()),
            headers: handed.headers.as_ref().and_then(as_delivered),
            ..handed
        };
        taker.take(message, permit);
        true
    }
}

/// The headers of the delivery itself; none where it has none.
fn as_delivered(handed: &HeaderMap) -> Option<HeaderMap> {
    let own = [header::CONSUMER, header::SUBJECT, header::REPLY];
    let mut delivered = HeaderMap::new();
    for (name, values) in handed.iter() {
        if !own.contains(&name.as_ref()) {
            for value in values {
                delivered.append(name.clone(), value.clone());
            }
        }
    }
    (!delivered.is_empty()).then_some(delivered)
}

/// Takes what other replicas hand over, until the service stops.
pub(crate) async fn receive(runner: ServiceRunner) -> Result<(), Unavailable> {
    let subject = subject(&runner, runner.replicas.own());
    let handed = runner.broker.client.subscribe(subject).await;
    let mut handed = handed.map_err(|error| Operation::Subscribe.failed(error))?;
    while let Some(Some(message)) = runner.stop.run_until_cancelled(handed.next()).await {
        let receipt = message.reply.clone();
        let said = if runner.takers.take(message) {
            b"".as_slice()
        } else {
            NOT_TAKEN
        };
        if let Some(receipt) = receipt
            && let Err(error) = runner.broker.client.publish(receipt, said.into()).await
        {
            tracing::debug!(%error, "It could not be said whether a delivery was taken.");
        }
    }
    Ok(())
}

/// Hands a delivery to the replica that its case belongs to. False where it is to be worked on here.
pub(crate) async fn to_owner(
    runner: &ServiceRunner,
    kind: Option<ConsumerKind>,
    delivery: &Delivery,
    reply: &Subject,
) -> bool {
    // What comes again may have been handed to a replica that did not work on it.
    if delivery.deliveries > 1 || delivery.over_limit.is_some() || runner.replicas.is_alone() {
        return false;
    }
    let key = kind.and_then(|kind| key_of(kind, runner.broker.subjects(), delivery));
    let Some(owner) = key.and_then(|key| runner.replicas.owner_of(&key)) else {
        return false;
    };
    let mut headers = delivery.headers.clone().unwrap_or_default();
    headers.insert(header::CONSUMER, &*delivery.consumer);
    headers.insert(header::SUBJECT, delivery.subject.as_str());
    headers.insert(header::REPLY, reply.as_str());
    let request = Request::new()
        .headers(headers)
        .payload(delivery.payload.clone())
        .timeout(Some(TAKEN_WITHIN));
    let client = &runner.broker.client;
    match client.send_request(subject(runner, &owner), request).await {
        Ok(answer) if answer.payload.as_ref() == NOT_TAKEN => false,
        Ok(_) => {
            runner.metrics.handed_off.inc();
            true
        }
        Err(error) => {
            tracing::debug!(%owner, %error, "A delivery was not taken; it is worked on here.");
            false
        }
    }
}

fn subject(runner: &ServiceRunner, replica: &concord_wire::Token) -> String {
    runner.broker.subjects().build(&SystemSubject::Replica {
        service: runner.service,
        verb: ReplicaVerb::Take,
        replica: Some(replica.clone()),
    })
}

/// What the deliveries have in common that are best worked on by one replica: mostly their case. None where it does not matter.
fn key_of(kind: ConsumerKind, subjects: &SubjectSpace, delivery: &Delivery) -> Option<String> {
    match kind {
        ConsumerKind::Inbox(_)
        | ConsumerKind::UrgentInbox(_)
        | ConsumerKind::Wake
        | ConsumerKind::Exchange => match subjects.parse(&delivery.subject).ok()? {
            WireSubject::Message { case, .. } => case.map(|case| case.to_string()),
            _ => None,
        },
        ConsumerKind::Events(service) => of_event(service, subjects, delivery),
        // What opens a deadline and what closes it meet.
        ConsumerKind::Deadlines => match subjects.parse(&delivery.subject).ok()? {
            SystemSubject::Event { aggregate, id, .. } => Some(format!("{aggregate}.{id}")),
            _ => None,
        },
        // What ends a case gives its opener's place back, for which the case is read.
        ConsumerKind::Effects(Service::Coordinator) => {
            match subjects.parse(&delivery.subject).ok()? {
                SystemSubject::Event {
                    aggregate: Aggregate::Case,
                    id,
                    event,
                } => ENDS.contains(&event.as_str()).then(|| id.to_string()),
                _ => None,
            }
        }
        ConsumerKind::Effects(_)
        | ConsumerKind::Due
        | ConsumerKind::Completions
        | ConsumerKind::Notices(_) => None,
    }
}

/// Events that may be the end of a case.
const ENDS: [&str; 5] = [
    "decided",
    "decision_changed",
    "gate_reviewed",
    "gate_passed",
    "cancelled",
];

/// All steps of the queue of people are those of one aggregate.
const QUEUE: &str = "queue";

fn of_event(service: Service, subjects: &SubjectSpace, delivery: &Delivery) -> Option<String> {
    let SystemSubject::Event {
        aggregate,
        id,
        event,
    } = subjects.parse(&delivery.subject).ok()?
    else {
        return None;
    };
    let queues = matches!(event.as_str(), "escalated" | "reminded" | "fell_back");
    match aggregate {
        Aggregate::Case | Aggregate::Detection => Some(id.to_string()),
        Aggregate::ReviewQueue | Aggregate::Person => Some(QUEUE.to_owned()),
        Aggregate::Debate if service == Service::DebateFacilitator && queues => {
            Some(QUEUE.to_owned())
        }
        Aggregate::Debate => named_in(delivery).case_id.map(str::to_owned),
        Aggregate::Deadline => named_in(delivery).id.map(str::to_owned),
        _ => None,
    }
}

/// What an event names of its contents, where it does.
#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    case_id: Option<&'a str>,
    #[serde(borrow, default)]
    id: Option<&'a str>,
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    data: Named<'a>,
}

fn named_in(delivery: &Delivery) -> Named<'_> {
    let read = serde_json::from_slice::<Stored<'_>>(&delivery.payload);
    read.map(|stored| stored.data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use concord_wire::Timestamp;

    use super::*;
    use crate::delivery::Cost;

    fn delivery(subject: &str, payload: &'static str) -> Delivery {
        Delivery {
            subject: subject.to_owned(),
            payload: payload.into(),
            headers: None,
            trace: None,
            stream: "S".to_owned(),
            sequence: 1,
            deliveries: 1,
            stored_at: Timestamp::from_unix_millis(0),
            consumer: "c".into(),
            over_limit: None,
            cost: Cost::default(),
        }
    }

    #[test]
    fn what_belongs_to_one_case_is_kept_together() {
        use ConsumerKind::{Deadlines, Due, Effects, Events, Inbox};
        use Service::{Coordinator, DebateFacilitator};
        for (kind, subject, payload, key) in [
            (
                Inbox(Coordinator),
                "msg.c-1.ann.coordinator.finding",
                "",
                Some("c-1"),
            ),
            (
                Inbox(Coordinator),
                "msg._.ann.coordinator.request",
                "",
                None,
            ),
            (Inbox(Coordinator), "anything", "", None),
            (
                Events(Coordinator),
                "event.detection.c-1.completed",
                "{}",
                Some("c-1"),
            ),
            (
                Events(Coordinator),
                "event.debate.d-1.resolved",
                r#"{"data":{"case_id":"c-1"}}"#,
                Some("c-1"),
            ),
            (
                Events(DebateFacilitator),
                "event.debate.d-1.escalated",
                "{}",
                Some("queue"),
            ),
            (
                Events(DebateFacilitator),
                "event.queue.queue.assigned",
                "{}",
                Some("queue"),
            ),
            (
                Events(Coordinator),
                "event.debate.d-1.resolved",
                "no JSON",
                None,
            ),
            (
                Events(Coordinator),
                "event.deadline.x.case_elapsed",
                r#"{"data":{"id":"c-1"}}"#,
                Some("c-1"),
            ),
            (Deadlines, "event.debate.d-1.opened", "", Some("debate.d-1")),
            (
                Effects(Coordinator),
                "event.case.c-1.decided",
                "",
                Some("c-1"),
            ),
            (Effects(Coordinator), "event.case.c-1.opened", "", None),
            (Due, "timer.due.case.c-1.findings", "", None),
        ] {
            let delivery = delivery(&format!("concord.v1.{subject}"), payload);
            let found = key_of(kind, &SubjectSpace::default(), &delivery);
            assert_eq!(found.as_deref(), key, "{subject}");
        }
    }
}
