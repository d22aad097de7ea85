//! What of everything counts in this replica.

use std::num::NonZeroUsize;

use concord_domain::coordination_metrics::{Countable, Counted};
use concord_wire::MessageId;
use lru::LruCache;

/// Messages of which it is remembered whose they are.
const MESSAGES_MAX: usize = 20_000;

/// Whose a message is.
enum Whose {
    /// This replica's: what follows from it counts here.
    Own,
    /// Not known, or another's: what would count.
    Unknown(Vec<Countable>),
}

/// The messages that count here, and what would follow from others. What is heard and what is given to this replica may come in
/// either order.
pub(super) struct Share(LruCache<MessageId, Whose>);

impl Default for Share {
    fn default() -> Self {
        Self(LruCache::new(
            NonZeroUsize::new(MESSAGES_MAX).unwrap_or(NonZeroUsize::MIN),
        ))
    }
}

impl Share {
    /// The message is this replica's: what has followed from it so far.
    pub(super) fn own(&mut self, message: &MessageId) -> Vec<Countable> {
        match self.0.put(message.clone(), Whose::Own) {
            Some(Whose::Unknown(waiting)) => waiting,
            Some(Whose::Own) | None => Vec::new(),
        }
    }

    /// Something follows from a message: it, where it counts here.
    pub(super) fn counted(&mut self, counted: Counted) -> Option<Countable> {
        let Counted { because, what } = counted;
        match self
            .0
            .get_or_insert_mut(because, || Whose::Unknown(Vec::new()))
        {
            Whose::Own => Some(what),
            Whose::Unknown(waiting) => {
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
        for given_after in 0..=things.len() {
            let (mut one, mut other) = (Share::default(), Share::default());
            let mut counted = Vec::new();
            for (place, what) in things.into_iter().enumerate() {
                if place == given_after {
                    counted.extend(one.own(&id("m-1")));
                }
                let thing = || Counted {
                    because: id("m-1"),
                    what,
                };
                counted.extend(one.counted(thing()));
                assert_eq!(other.counted(thing()), None);
            }
            if given_after == things.len() {
                counted.extend(one.own(&id("m-1")));
            }
            assert_eq!(counted, things, "given after {given_after}");
            assert!(
                one.own(&id("m-1")).is_empty(),
                "a second time it counts for nothing"
            );
        }
    }

    #[test]
    fn what_is_never_given_to_anybody_here_is_forgotten() {
        let mut share = Share::default();
        for number in 0..MESSAGES_MAX + 10 {
            share.counted(Counted {
                because: id(&format!("m-{number}")),
                what: Countable::Session,
            });
        }
        assert_eq!(share.0.len(), MESSAGES_MAX);
        assert!(share.own(&id("m-0")).is_empty());
    }
}
