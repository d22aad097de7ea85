//! What this replica has handed to others and does not know yet to have been taken, and what it has taken itself.
//!
//! A replica numbers what it hands to another. The other says with each of its beats up to which number it has taken what it was handed,
//! by whom. To say so of each delivery cost as much as handing it over. What nobody has said it has taken comes back in the end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Message;
use bytes::Bytes;
use concord_wire::{Timestamp, Token};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

/// How long the owner has to say that it has taken a delivery: as long as a replica may be silent.
const TAKEN_WITHIN: Duration = Duration::from_millis(1_200);

/// A delivery of a consumer, as the broker delivered it.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) consumer: String,
    pub(crate) message: Message,
    /// What it takes of the room for deliveries that are handed over; given back when it is done with.
    pub(crate) room: OwnedSemaphorePermit,
}

struct Unconfirmed {
    number: u64,
    since: Instant,
    handed: Handed,
}

/// What one replica was handed.
#[derive(Default)]
struct OfOwner {
    /// In the order of the numbers.
    unconfirmed: VecDeque<Unconfirmed>,
    /// Up to which number it has said that it has taken it.
    said: u64,
}

/// What a replica says with a beat.
#[derive(Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Beat {
    /// Up to which number it has taken what the others have handed to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) taken: BTreeMap<Token, u64>,
    /// When it was started. Nothing where it does not stand by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// How busy it is, in percent. Never left out: what does not say it is no beat.
    pub(crate) busy: u32,
}

impl Beat {
    /// The body of the beat.
    pub(crate) fn encode(&self) -> Bytes {
        serde_json::to_vec(self)
            .map(Bytes::from)
            .unwrap_or_default()
    }

    /// What a beat says; none where it is none. The broker's own answers come here, too, where an agent has named this subject for the reply
    /// to something else (record 35): an acknowledgement that passed for a replica would have all others stand by.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// What one replica has handed to the others and been handed by them.
#[derive(Default)]
pub(crate) struct Receipts {
    /// What each was handed.
    unconfirmed: Mutex<BTreeMap<Token, OfOwner>>,
    /// Held while a delivery is numbered and sent: who has taken one has been sent all before it.
    pub(crate) order: tokio::sync::Mutex<()>,
    /// The number of what was handed last, to whomever.
    last: AtomicU64,
    /// Up to which number this replica has taken what others have handed to it.
    taken: Mutex<BTreeMap<Token, u64>>,
}

impl Receipts {
    /// No delivery has this number.
    pub(crate) const NOTHING: u64 = 0;

    /// Keeps a delivery that is handed to `owner` now until the owner has taken it. Its number.
    pub(crate) fn hand(&self, owner: &Token, handed: Handed, now: Instant) -> u64 {
        let mut unconfirmed = lock(&self.unconfirmed);
        // Under the lock, so that those of one owner stand in order.
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        unconfirmed
            .entry(owner.clone())
            .or_default()
            .unconfirmed
            .push_back(Unconfirmed {
                number,
                since: now,
                handed,
            });
        number
    }

    /// The owner says that it has taken everything up to a number that it was handed, but what it refuses. A refusal goes another way than a
    /// beat, which may overtake it: so what one beat says is kept until the next.
    pub(crate) fn confirm(&self, owner: &Token, number: u64) {
        if let Some(OfOwner { unconfirmed, said }) = lock(&self.unconfirmed).get_mut(owner) {
            unconfirmed.drain(..unconfirmed.partition_point(|one| one.number <= *said));
            *said = number.max(*said);
        }
    }

    /// Takes back one delivery, unless it is known to have been taken.
    pub(crate) fn take_back(&self, owner: &Token, number: u64) -> Option<Handed> {
        let mut unconfirmed = lock(&self.unconfirmed);
        let of = &mut unconfirmed.get_mut(owner)?.unconfirmed;
        let at = of.binary_search_by_key(&number, |one| one.number);
        Some(of.remove(at.ok()?)?.handed)
    }

    /// Takes back what should be known by `now` to have been taken, and is not.
    pub(crate) fn take_back_overdue(&self, now: Instant) -> Vec<Handed> {
        let mut overdue = Vec::new();
        lock(&self.unconfirmed).retain(|_, of| {
            let late = |one: &Unconfirmed| now.duration_since(one.since) >= TAKEN_WITHIN;
            let count = of.unconfirmed.partition_point(late);
            let back = of.unconfirmed.drain(..count);
            // What was taken is only dropped: who has taken it may say nothing more.
            let back = back.filter(|one| one.number > of.said);
            overdue.extend(back.map(|one| one.handed));
            !of.unconfirmed.is_empty()
        });
        overdue
    }

    /// This replica has taken what `giver` has handed to it under a number.
    pub(crate) fn taken(&self, giver: Token, number: u64) {
        let mut taken = lock(&self.taken);
        let last = taken.entry(giver).or_default();
        *last = number.max(*last);
    }

    /// Up to which number this replica has taken what the others have handed to it.
    pub(crate) fn taken_up_to(&self) -> BTreeMap<Token, u64> {
        lock(&self.taken).clone()
    }

    /// Forgets what was taken of a replica that has gone. What it was handed itself comes back when it is overdue.
    pub(crate) fn gone(&self, replica: &Token) {
        lock(&self.taken).remove(replica);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    fn handed(room: &Arc<Semaphore>, consumer: &str) -> Handed {
        Handed {
            consumer: consumer.to_owned(),
            message: Message {
                subject: "s".into(),
                reply: None,
                payload: "".into(),
                headers: None,
                status: None,
                description: None,
                length: 0,
            },
            room: Arc::clone(room).try_acquire_owned().unwrap(),
        }
    }

    fn names(of: Vec<Handed>) -> Vec<String> {
        of.into_iter().map(|handed| handed.consumer).collect()
    }

    #[test]
    fn what_is_not_known_to_be_taken_comes_back_once() {
        let room = Arc::new(Semaphore::new(9));
        let (receipts, begin) = (Receipts::default(), Instant::now());
        let (ann, bob) = (Token::fixed("ann"), Token::fixed("bob"));
        let hand = |to: &Token, consumer| receipts.hand(to, handed(&room, consumer), begin);
        let numbers = ["one", "two", "three", "four"].map(|consumer| hand(&ann, consumer));
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(hand(&bob, "other"), 5);
        receipts.confirm(&ann, 2);
        receipts.confirm(&ann, 2);
        assert_eq!(
            room.available_permits(),
            6,
            "what was taken takes no room here"
        );
        assert!(receipts.take_back(&ann, 2).is_none());
        let refused = receipts.take_back(&ann, 4);
        assert_eq!(names(refused.into_iter().collect()), ["four"]);
        assert!(receipts.take_back(&ann, 4).is_none(), "it came back before");
        assert!(receipts.take_back_overdue(begin).is_empty());
        let overdue = receipts.take_back_overdue(begin + TAKEN_WITHIN);
        assert_eq!(names(overdue), ["three", "other"]);
        assert!(receipts.take_back_overdue(begin + TAKEN_WITHIN).is_empty());
        assert_eq!(room.available_permits(), 9);
        assert_eq!(hand(&bob, "one more"), 6, "no number is given twice");
    }

    #[test]
    fn a_refusal_that_a_beat_has_overtaken_is_heard() {
        let room = Arc::new(Semaphore::new(9));
        let (receipts, begin) = (Receipts::default(), Instant::now());
        let ann = Token::fixed("ann");
        for consumer in ["refused", "taken", "later"] {
            receipts.hand(&ann, handed(&room, consumer), begin);
        }
        // The beat says that the second was taken; that the first was refused comes behind it.
        receipts.confirm(&ann, 2);
        let back = receipts.take_back(&ann, 1);
        assert_eq!(names(back.into_iter().collect()), ["refused"]);
        // What was taken is worked on nowhere else, also where nothing more is heard of who has taken it.
        let overdue = receipts.take_back_overdue(begin + TAKEN_WITHIN);
        assert_eq!(names(overdue), ["later"]);
        assert_eq!(room.available_permits(), 9);
    }

    #[test]
    fn a_beat_says_what_was_taken_of_those_who_are_there() {
        let receipts = Receipts::default();
        assert!(receipts.taken_up_to().is_empty());
        let (ann, bob) = (Token::fixed("ann"), Token::fixed("bob"));
        for number in [1, 3, 2] {
            receipts.taken(ann.clone(), number);
        }
        receipts.taken(bob.clone(), 7);
        receipts.gone(&bob);
        let beat = Beat {
            taken: receipts.taken_up_to(),
            since: Timestamp::parse("2026-11-21T20:00:00Z").ok(),
            busy: 7,
        };
        let body = beat.encode();
        assert_eq!(
            body,
            br#"{"taken":{"ann":3},"since":"2026-11-21T20:00:00.000Z","busy":7}"#.as_slice()
        );
        assert_eq!(Beat::decode(&body), Some(beat));
        // What the broker says is no beat.
        let acknowledged = br#"{"stream":"CONCORD_MESSAGES","seq":7}"#.as_slice();
        for answer in [acknowledged, b"", b"+ACK", br#"{"taken":{"ann":3}}"#] {
            assert_eq!(Beat::decode(answer), None);
        }
    }
}
