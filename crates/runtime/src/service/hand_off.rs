//! Handing a delivery to the replica that works on its case, so that one replica has the case in memory and no two race
//! for it.
//!
//! All replicas of a service share its consumers, so the broker gives a delivery to any of them. Whoever gets it asks the
//! rendezvous hash which replica the case belongs to ([`Replicas`](super::Replicas)), and hands the delivery over by plain NATS, in one
//! message. The owner works on it, acknowledges it to the broker, and says with its next beat that it has taken it ([`receipts`]). Where it
//! is not there or has no room, that is known at once, and where it is frozen, after a second; then the delivery is worked on here. Whatever
//! happens, it is not acknowledged before somebody has worked on it, and the lock decides between two who do. See `docs/adr/0052`.

mod key;
pub(crate) mod receipts;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{HeaderMap, Message, StatusCode, Subject};
use concord_events::subject::{ReplicaVerb, SystemSubject};
use concord_events::topology::ConsumerKind;
use concord_wire::Token;
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::broker::{Operation, Unavailable};
use crate::delivery::{Ack, Delivery, HandleError};
use crate::service::{ServiceRunner, owned};
use key::key_of;
use receipts::Handed;

/// Room for deliveries that were handed over, in kilobytes: to this process, until they are done with, and by it, until others have taken
/// them. What does not fit is worked on where it is.
const ROOM_KB: usize = 32 * 1_024;
/// What a delivery takes of it besides its body: what is made of it while it is worked on.
const ROOM_KB_EACH: usize = 8;
/// How often is looked for what nobody has taken.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// The answer of an owner that has no room.
pub(crate) const NOT_TAKEN: &[u8] = b"full";

/// Headers of a delivery that is handed over: what the message and its consumer said of it, and who hands it over under which number.
mod header {
    pub(super) const CONSUMER: &str = "Concord-Handed-Consumer";
    pub(super) const SUBJECT: &str = "Concord-Handed-Subject";
    pub(super) const REPLY: &str = "Concord-Handed-Reply";
    pub(super) const BY: &str = "Concord-Handed-By";
    pub(super) const NUMBER: &str = "Concord-Handed-Number";
    pub(super) const ALL: [&str; 5] = [CONSUMER, SUBJECT, REPLY, BY, NUMBER];
}

/// Works on deliveries of one consumer that were handed over.
pub(crate) trait Taker: Send + Sync {
    /// Begins to work on a message as the broker delivered it. The permit is held until that is done.
    fn take(&self, message: Message, permit: OwnedSemaphorePermit);

    /// Handles a delivery that was given up once more. Nobody else hears of it.
    fn again(&self, delivery: Delivery) -> Again;
}

/// What comes of a delivery that is handled once more.
pub(crate) type Again = Pin<Box<dyn Future<Output = Result<Ack, HandleError>> + Send>>;

/// Who takes what is handed over, by the name of the consumer.
#[derive(Clone)]
pub(crate) struct Takers {
    by_consumer: Arc<Mutex<BTreeMap<String, Arc<dyn Taker>>>>,
    /// For what others have handed to this process.
    room: Arc<Semaphore>,
    /// For what this process has handed to others.
    room_of_others: Arc<Semaphore>,
}

impl Default for Takers {
    fn default() -> Self {
        Self {
            by_consumer: Arc::default(),
            room: Arc::new(Semaphore::new(ROOM_KB)),
            room_of_others: Arc::new(Semaphore::new(ROOM_KB)),
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

    /// Whoever works on what is handed over of this consumer.
    pub(crate) fn of(&self, consumer: &str) -> Option<Arc<dyn Taker>> {
        let takers = self.by_consumer.lock();
        takers
            .unwrap_or_else(PoisonError::into_inner)
            .get(consumer)
            .cloned()
    }

    /// Gives a handed message to whom it is for. Whether it was taken.
    fn take(&self, handed: Message) -> bool {
        let named = |name: &str| Some(named(&handed, name)?.to_owned());
        let (Some(consumer), Some(subject), Some(reply)) = (
            named(header::CONSUMER),
            named(header::SUBJECT),
            named(header::REPLY),
        ) else {
            return false;
        };
        let (Some(taker), Some(permit)) = (self.of(&consumer), room_for(&self.room, handed.length))
        else {
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

    /// Works here on what another replica has not taken.
    fn work_on(&self, handed: Handed) {
        let Handed {
            consumer,
            message,
            room,
        } = handed;
        match self.of(&consumer) {
            Some(taker) => taker.take(message, room),
            None => tracing::error!(
                consumer,
                "Nobody works on a consumer whose delivery came back."
            ),
        }
    }
}

/// Whether another replica asks for a step, and hands nothing over. A delivery has the headers of its message, and whoever has sent that may
/// have named them as they liked.
fn is_question(message: &Message) -> bool {
    named(message, header::CONSUMER).is_none() && owned::is_asked(message)
}

fn named<'a>(handed: &'a Message, name: &str) -> Option<&'a str> {
    Some(handed.headers.as_ref()?.get(name)?.as_str())
}

/// None where there is no room for a delivery with a body of so many bytes.
fn room_for(room: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let kilobytes = u32::try_from(bytes / 1_024 + ROOM_KB_EACH).ok()?;
    Arc::clone(room).try_acquire_many_owned(kilobytes).ok()
}

/// The headers of the delivery itself; none where it has none.
fn as_delivered(handed: &HeaderMap) -> Option<HeaderMap> {
    let mut delivered = HeaderMap::new();
    for (name, values) in handed.iter() {
        if !header::ALL.contains(&name.as_ref()) {
            for value in values {
                delivered.append(name.clone(), value.clone());
            }
        }
    }
    (!delivered.is_empty()).then_some(delivered)
}

/// Takes what other replicas hand over, and does what they ask for, until the service stops.
pub(crate) async fn receive(runner: ServiceRunner) -> Result<(), Unavailable> {
    let subject = subject(&runner, runner.replicas.own());
    let client = &runner.broker.client;
    let handed = client.subscribe(subject).await;
    let mut handed = handed.map_err(|error| Operation::Subscribe.failed(error))?;
    while let Some(Some(message)) = runner.stop.run_until_cancelled(handed.next()).await {
        if is_question(&message) {
            runner.spawn(owned::answer(runner.clone(), message));
            continue;
        }
        let refusal = message.reply.clone();
        let giver = named(&message, header::BY).and_then(|giver| Token::new(giver).ok());
        let number = named(&message, header::NUMBER).and_then(|number| number.parse().ok());
        if let Some((giver, number)) = giver.zip(number)
            && runner.takers.take(message)
        {
            runner.replicas.receipts.taken(giver, number);
        } else if let Some(refusal) = refusal
            && let Err(error) = client.publish(refusal, NOT_TAKEN.into()).await
        {
            tracing::debug!(%error, "It could not be said that a delivery was not taken.");
        }
    }
    Ok(())
}

/// Works on what other replicas were handed and have not taken, until the service stops.
pub(crate) async fn take_back(runner: ServiceRunner) -> Result<(), Unavailable> {
    let answers = format!("{}.*.*", runner.replicas.answers);
    let answers = runner.broker.client.subscribe(answers).await;
    let mut answers = answers.map_err(|error| Operation::Subscribe.failed(error))?;
    let receipts = &runner.replicas.receipts;
    let mut due = tokio::time::interval(LOOK_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {
                for overdue in receipts.take_back_overdue(Instant::now()) {
                    tracing::debug!(overdue.consumer, "A delivery was not taken in time; it is worked on here.");
                    runner.takers.work_on(overdue);
                }
            }
            Some(answer) = answers.next() => {
                let Some((owner, number)) = of_answer(&answer.subject) else { continue };
                let handed = receipts.take_back(&owner, number);
                let is_gone = answer.status == Some(StatusCode::NO_RESPONDERS);
                if is_gone {
                    runner.replicas.let_go(&owner);
                }
                let refused = is_gone || answer.payload.as_ref() == NOT_TAKEN;
                if let (Some(handed), true) = (handed, refused) {
                    runner.takers.work_on(handed);
                }
            }
            () = runner.stop.cancelled() => return Ok(()),
        }
    }
}

/// To whom a delivery was handed that an answer is about, and under which number.
fn of_answer(subject: &Subject) -> Option<(Token, u64)> {
    let (rest, number) = subject.rsplit_once('.')?;
    let (_, owner) = rest.rsplit_once('.')?;
    Some((Token::new(owner).ok()?, number.parse().ok()?))
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
    let bytes = delivery.bytes();
    let Some(room) = room_for(&runner.takers.room_of_others, bytes) else {
        return false;
    };
    let Delivery {
        consumer,
        subject: stored_under,
        payload,
        ..
    } = delivery;
    let message = Message {
        subject: stored_under.as_str().into(),
        reply: Some(reply.clone()),
        payload: payload.clone(),
        headers: delivery.headers.clone(),
        status: None,
        description: None,
        length: bytes,
    };
    let handed = Handed {
        consumer: consumer.to_string(),
        message,
        room,
    };
    let replicas = &runner.replicas;
    let number = replicas.receipts.hand(&owner, handed, Instant::now());
    let mut headers = delivery.headers.clone().unwrap_or_default();
    headers.insert(header::CONSUMER, &**consumer);
    headers.insert(header::SUBJECT, stored_under.as_str());
    headers.insert(header::REPLY, reply.as_str());
    headers.insert(header::BY, replicas.own().as_str());
    headers.insert(header::NUMBER, number.to_string());
    let answer = replicas.answer_of(&owner, number);
    let (client, to) = (&runner.broker.client, subject(runner, &owner));
    let sent = client.publish_with_reply_and_headers(to, answer, headers, payload.clone());
    match sent.await {
        Ok(()) => {
            runner.metrics.handed_off.inc();
            true
        }
        Err(error) => {
            tracing::debug!(%owner, %error, "A delivery could not be handed over; it is worked on here.");
            // Where it is not there any more it was taken back already, and is worked on.
            replicas.receipts.take_back(&owner, number).is_none()
        }
    }
}

/// Where a replica hears what the others want of it.
pub(crate) fn subject(runner: &ServiceRunner, replica: &Token) -> String {
    runner.broker.subjects().build(&SystemSubject::Replica {
        service: runner.service,
        verb: ReplicaVerb::Take,
        replica: Some(replica.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with these headers, as another replica has sent it.
    fn with_headers(names: &[&str]) -> Message {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.insert(*name, "opener");
        }
        Message {
            subject: "s".into(),
            reply: None,
            payload: "".into(),
            headers: Some(headers),
            status: None,
            description: None,
            length: 0,
        }
    }

    #[test]
    fn a_delivery_asks_for_nothing_whatever_headers_its_message_has() {
        let question = "Concord-Asked-Aggregate";
        for (names, expected) in [
            ([question].as_slice(), true),
            (&[question, header::CONSUMER], false),
            (&[header::CONSUMER], false),
            (&[], false),
        ] {
            assert_eq!(is_question(&with_headers(names)), expected, "{names:?}");
        }
    }
}
