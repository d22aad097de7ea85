//! Which aggregates are in the archive, as far as this process knows: it looks every few seconds.
//!
//! A case is removed from the streams only some time after it was sealed (see the escalation timer). So every process knows of it
//! before it is gone, and appends nothing to it meanwhile; and a case id that was archived is never opened anew.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{PoisonError, RwLock};

use concord_events::{Aggregate, ArchiveEvent};
use concord_wire::Token;
use concord_wire::subject::Service;

/// Aggregates of one service that are archived.
#[derive(Debug, Default)]
pub(crate) struct SealedAggregates(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    hasher: RandomState,
    /// The sequence of the last event that was taken into account.
    sequence: u64,
    /// Archived aggregates, each by a hash of its kind and id: there is no end of cases, and every step asks.
    archived: HashSet<u64>,
    /// Those of them that are no cases and in segments that are not purged yet, by the number of the segment.
    waiting: BTreeMap<u64, Vec<u64>>,
}

impl Known {
    fn hash_of(&self, aggregate: Aggregate, id: &str) -> u64 {
        self.hasher.hash_one((aggregate, id))
    }
}

impl SealedAggregates {
    /// Whether an aggregate is archived.
    pub(crate) fn contains(&self, aggregate: Aggregate, id: &Token) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_empty = known.archived.is_empty();
        !is_empty && (known.archived).contains(&known.hash_of(aggregate, id.as_str()))
    }

    /// The sequence of the last event of the archive that is known; 0 for none.
    pub(crate) fn sequence(&self) -> u64 {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .sequence
    }

    /// Takes the next event of the archive into account, for a service.
    pub(crate) fn apply(&self, service: Service, sequence: u64, event: ArchiveEvent) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if sequence <= known.sequence {
            return;
        }
        known.sequence = sequence;
        match event {
            ArchiveEvent::Sealed(segment) => {
                let mut waiting = Vec::new();
                for sealed in segment.cases.into_iter().flat_map(|case| case.aggregates) {
                    if sealed.aggregate.owner() != service {
                        continue;
                    }
                    let hash = known.hash_of(sealed.aggregate, sealed.id.as_str());
                    known.archived.insert(hash);
                    if sealed.aggregate != Aggregate::Case {
                        waiting.push(hash);
                    }
                }
                known.waiting.insert(segment.number, waiting);
            }
            ArchiveEvent::Purged(purged) => {
                let still = known.waiting.split_off(&(purged.through + 1));
                let gone = std::mem::replace(&mut known.waiting, still);
                for hash in gone.into_values().flatten() {
                    known.archived.remove(&hash);
                }
                for case in purged.kept {
                    let hash = known.hash_of(Aggregate::Case, case.as_str());
                    known.archived.remove(&hash);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use concord_events::{SealedAggregate, SealedCase, SegmentSealed, SegmentsPurged};
    use concord_wire::{CaseId, Timestamp};

    use super::*;

    fn sealed(number: u64, case: &str, debate: &str) -> ArchiveEvent {
        let aggregate = |aggregate, id| SealedAggregate {
            aggregate,
            id: Token::new(id).unwrap(),
            last_sequence: 1,
        };
        ArchiveEvent::Sealed(SegmentSealed {
            number,
            previous: None,
            manifest: String::new(),
            name: String::new(),
            at: Timestamp::from_unix_millis(0),
            bytes: 0,
            plain_bytes: 0,
            cases: vec![SealedCase {
                case_id: CaseId::new(case).unwrap(),
                aggregates: vec![
                    aggregate(Aggregate::Case, case),
                    aggregate(Aggregate::Debate, debate),
                ],
            }],
            streams: Vec::new(),
        })
    }

    #[test]
    fn a_case_is_known_for_ever_and_a_debate_until_it_is_purged() {
        let id = |text| Token::new(text).unwrap();
        let purged = |through, kept| ArchiveEvent::Purged(SegmentsPurged { through, kept });
        let of_cases = SealedAggregates::default();
        let of_debates = SealedAggregates::default();
        let each = |sequence, event: ArchiveEvent| {
            of_cases.apply(Service::Coordinator, sequence, event.clone());
            of_debates.apply(Service::DebateFacilitator, sequence, event);
        };
        each(1, sealed(1, "c-1", "d-1"));
        each(2, sealed(2, "c-2", "d-2"));
        assert!(of_cases.contains(Aggregate::Case, &id("c-1")));
        assert!(!of_cases.contains(Aggregate::Case, &id("c-3")));
        assert!(of_debates.contains(Aggregate::Debate, &id("d-1")));
        assert!(!of_debates.contains(Aggregate::Case, &id("c-1")));
        each(3, purged(1, Vec::new()));
        assert!(of_cases.contains(Aggregate::Case, &id("c-1")));
        assert!(!of_debates.contains(Aggregate::Debate, &id("d-1")));
        assert!(of_debates.contains(Aggregate::Debate, &id("d-2")));
        each(4, purged(2, vec![CaseId::new("c-2").unwrap()]));
        assert!(!of_cases.contains(Aggregate::Case, &id("c-2")));
        each(2, sealed(2, "c-2", "d-2"));
        assert!(!of_cases.contains(Aggregate::Case, &id("c-2")));
        assert_eq!(of_cases.sequence(), 4);
    }
}
