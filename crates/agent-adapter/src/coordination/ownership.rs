//! Which messages this replica counts: those that the broker gave it in the queue group.

use std::num::NonZeroUsize;

use concord_domain::coordination_metrics::{Countable, Counted};
use concord_wire::MessageId;
use lru::LruCache;

/// Messages whose owner is remembered.
const MESSAGES_MAX: usize = 20_000;

/// The owner of a message.
enum Owner {
    /// This replica: what follows from the message counts here.
    Own,
    /// Another replica, or not known yet; with what would count.
    Unknown(Vec<Countable>),
}

/// The messages that count here, and what would follow from the others. The message itself and its assignment to this replica may
/// come in either order.
pub(super) struct Ownership(LruCache<MessageId, Owner>);

impl Default for Ownership {
    fn default() -> Self {
        Self(LruCache::new(
            NonZeroUsize::new(MESSAGES_MAX).unwrap_or(NonZeroUsize::MIN),
        ))
    }
}

impl Ownership {
    /// Assigns a message to this replica. Returns what has followed from it so far.
    pub(super) fn own(&mut self, message: &MessageId) -> Vec<Countable> {
        debug_assert!(
            self.0.len() <= MESSAGES_MAX,
            "more messages are remembered than there is room for"
        );
        match self.0.put(message.clone(), Owner::Own) {
            Some(Owner::Unknown(waiting)) => waiting,
            Some(Owner::Own) | None => Vec::new(),
        }
    }

    /// Something follows from a message. Returns it if it counts here.
    pub(super) fn counted(&mut self, counted: Counted) -> Option<Countable> {
        let Counted { because, what } = counted;
        match self
            .0
            .get_or_insert_mut(because, || Owner::Unknown(Vec::new()))
        {
            Owner::Own => Some(what),
            Owner::Unknown(waiting) => {
                waiting.push(what);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> MessageId {
        MessageId::new(name).unwrap()
    }

    #[test]
    fn of_two_replicas_one_counts_whatever_comes_first() {
        let things = [
            Countable::Message {
                through_lead: false,
            },
            Countable::Session,
            Countable::Asked,
        ];
        for assigned_after in 0..=things.len() {
            let (mut one, mut other) = (Ownership::default(), Ownership::default());
            let mut counted = Vec::new();
            for (place, what) in things.into_iter().enumerate() {
                if place == assigned_after {
                    counted.extend(one.own(&id("m-1")));
                }
                let thing = || Counted {
                    because: id("m-1"),
                    what,
                };
                counted.extend(one.counted(thing()));
                assert_eq!(other.counted(thing()), None);
            }
            if assigned_after == things.len() {
                counted.extend(one.own(&id("m-1")));
            }
            assert_eq!(counted, things, "assigned after {assigned_after}");
            assert!(
                one.own(&id("m-1")).is_empty(),
                "a second time it counts for nothing"
            );
        }
    }

    #[test]
    fn what_is_never_assigned_to_this_replica_is_forgotten() {
        let mut ownership = Ownership::default();
        for number in 0..MESSAGES_MAX + 10 {
            ownership.counted(Counted {
                because: id(&format!("m-{number}")),
                what: Countable::Session,
            });
        }
        assert_eq!(ownership.0.len(), MESSAGES_MAX);
        assert!(ownership.own(&id("m-0")).is_empty());
    }
}
