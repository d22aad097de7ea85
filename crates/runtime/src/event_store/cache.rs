//! The aggregates that a process has in memory: those of all its kinds, bounded in bytes together.
//!
//! How much memory a state takes is not known. What is counted is the size of the events that it was made from, as JSON, which is
//! about half of it. An aggregate that forgets most of its events counts no more than its state keeps of them
//! ([`Machine::state_bytes_max`]).
//! Those that have ended are let go before any other, in the order in which they were last used: what follows from an end needs the
//! aggregate for a while.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_domain::Machine;
use concord_wire::Token;

use crate::event_store::byte_lru::ByteLru;

/// What each aggregate takes, whatever its events: its id, its slot, its place in the cache.
const SLOT_BYTES: usize = 512;

type Kept = ByteLru<(TypeId, Token), Arc<dyn Any + Send + Sync>>;

/// Recent aggregates of all kinds. Cheap to clone.
#[derive(Clone)]
pub struct Cache(Arc<Mutex<Kept>>);

impl Cache {
    /// Keeps aggregates of up to so many bytes of events; one is kept whatever its size.
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(ByteLru::new(bytes_max))))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of an aggregate; an empty one where it is not kept.
    pub(super) fn slot<S: Any + Send + Sync + Default>(&self, id: &Token) -> Arc<S> {
        let key = (TypeId::of::<S>(), id.clone());
        let mut kept = self.kept();
        if let Some(Ok(slot)) = kept.get(&key).map(|slot| Arc::clone(slot).downcast()) {
            return slot;
        }
        let slot = Arc::<S>::default();
        kept.put(key, Arc::clone(&slot) as _, SLOT_BYTES);
        slot
    }

    /// Takes into account how large an aggregate is now, if its slot is still kept, and lets others go where it is needed.
    pub(super) fn weigh<S: Any + Send + Sync>(&self, id: &Token, slot: &Arc<S>, weight: Weight) {
        let key = (TypeId::of::<S>(), id.clone());
        let mut kept = self.kept();
        let address = Arc::as_ptr(slot).cast::<()>();
        let same = |kept: &Arc<dyn Any + Send + Sync>| Arc::as_ptr(kept).cast::<()>() == address;
        if kept.get(&key).is_some_and(same) {
            kept.weigh(&key, SLOT_BYTES + weight.bytes);
            if weight.has_ended {
                kept.demote(&key);
            }
        }
    }

    /// Lets go of an aggregate that will not be needed soon.
    pub(super) fn forget<S: Any>(&self, id: &Token) {
        self.kept().pop(&(TypeId::of::<S>(), id.clone()));
    }

    /// How many aggregates are kept, and the bytes that they count.
    #[cfg(test)]
    fn size(&self) -> (usize, usize) {
        let kept = self.kept();
        (kept.len(), kept.bytes())
    }
}

/// How large an aggregate is, as the cache counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    bytes: usize,
    has_ended: bool,
}

impl Weight {
    /// Takes an event into account that has led to this state, how large it is, and whether it ends the aggregate.
    pub(super) fn add<M: Machine>(&mut self, state: &M::State, bytes: usize, ends: bool) {
        let bytes = self.bytes.saturating_add(bytes);
        self.bytes = bytes.min(M::state_bytes_max(state));
        self.has_ended |= ends;
    }
}

#[cfg(test)]
mod tests {
    use concord_domain::aggregates::impact::{ImpactMachine, ImpactState};
    use concord_domain::aggregates::opener::{OpenerMachine, OpenerState};
    use concord_domain::aggregates::worklist::{WorklistMachine, WorklistState};
    use concord_wire::Timestamp;

    use super::*;

    type Slot = tokio::sync::Mutex<u32>;

    fn id(number: usize) -> Token {
        Token::new(format!("a-{number}")).unwrap()
    }

    fn weigh(cache: &Cache, number: usize, bytes: usize, has_ended: bool) -> Arc<Slot> {
        let slot = cache.slot::<Slot>(&id(number));
        cache.weigh(&id(number), &slot, Weight { bytes, has_ended });
        slot
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes_over_all_kinds() {
        let cache = Cache::new(10 * (SLOT_BYTES + 1_000));
        let first = weigh(&cache, 0, 1_000, false);
        (1..10).for_each(|number| drop(weigh(&cache, number, 1_000, false)));
        assert!(Arc::ptr_eq(&first, &cache.slot(&id(0))), "all are kept");
        assert_eq!(cache.size(), (10, 10 * (SLOT_BYTES + 1_000)));
        // Another kind takes room too, and the one that was used the longest ago goes.
        cache.slot::<tokio::sync::Mutex<u64>>(&id(0));
        assert_eq!(cache.size().0, 10);
        assert!(Arc::ptr_eq(&first, &cache.slot(&id(0))));
        // One that is larger than all is kept alone.
        let huge = weigh(&cache, 77, 1 << 30, false);
        assert_eq!(cache.size(), (1, SLOT_BYTES + (1 << 30)));
        assert!(Arc::ptr_eq(&huge, &cache.slot(&id(77))));
        cache.forget::<Slot>(&id(77));
        assert_eq!(cache.size(), (0, 0));
        // What is not kept any more is not counted again.
        cache.weigh(&id(77), &huge, Weight::default());
        assert_eq!(cache.size(), (0, 0));
    }

    /// How many events of so many bytes an aggregate was made from, in this state.
    fn made_of<M: Machine>(state: &M::State, events: usize, bytes: usize) -> Weight {
        let mut weight = Weight::default();
        (0..events).for_each(|_| weight.add::<M>(state, bytes, false));
        weight
    }

    #[test]
    fn what_forgets_nothing_counts_as_what_it_was_made_from() {
        // The analyses of a case never end by an event of their own, and may take 16 MiB of one author.
        let large = made_of::<ImpactMachine>(&ImpactState::default(), 64, 32 << 10);
        assert_eq!(large.bytes, 2 << 20);
        let cache = Cache::new(16 << 20);
        for number in 0..40 {
            let slot = cache.slot::<Slot>(&id(number));
            cache.weigh(&id(number), &slot, large);
        }
        let (kept, bytes) = cache.size();
        assert!(kept == 7 && bytes <= 16 << 20, "{kept}, {bytes}");
    }

    #[test]
    fn what_forgets_counts_as_what_it_keeps() {
        let opener = OpenerState::default();
        assert_eq!(made_of::<OpenerMachine>(&opener, 10, 300).bytes, 3_000);
        assert_eq!(
            made_of::<OpenerMachine>(&opener, 9_999, 300).bytes,
            64 << 10
        );
        let mut flooded = opener;
        let at = Timestamp::from_unix_millis(0);
        flooded.tasks = (0..5_000).map(|number| (id(number), at)).collect();
        assert_eq!(
            made_of::<OpenerMachine>(&flooded, 9_999, 300).bytes,
            960_000
        );
        let worklist = WorklistState::default();
        assert_eq!(
            made_of::<WorklistMachine>(&worklist, 9_999, 300).bytes,
            4 << 10
        );
    }

    #[test]
    fn what_has_ended_goes_first() {
        let cache = Cache::new(2 * (SLOT_BYTES + 1_000));
        let open = weigh(&cache, 1, 1_000, false);
        weigh(&cache, 2, 1_000, true);
        weigh(&cache, 3, 1_000, false);
        assert!(Arc::ptr_eq(&open, &cache.slot(&id(1))));
    }

    #[test]
    fn what_has_just_ended_stays_longer_than_what_ended_before() {
        let cache = Cache::new(4 * (SLOT_BYTES + 1_000));
        let open = weigh(&cache, 0, 1_000, false);
        for number in 1..20 {
            let ended = weigh(&cache, number, 1_000, true);
            weigh(&cache, 100 + number, 1_000, true);
            assert!(Arc::ptr_eq(&ended, &cache.slot(&id(number))));
        }
        assert!(Arc::ptr_eq(&open, &cache.slot(&id(0))));
        assert_eq!(cache.size(), (4, 4 * (SLOT_BYTES + 1_000)));
    }
}
