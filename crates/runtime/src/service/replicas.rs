//! The replicas of a service, as each of them sees the others: by beats that nobody stores.
//!
//! From this view follow two things, without a lease and without a leader. Work on one aggregate goes to one replica
//! ([`crate::service::hand_off`]), and a duty that one replica is enough for is done by one ([`Replicas::has_duty`]). Views
//! may differ for a moment, when a replica comes or goes. Then two do the same work; whoever decides does it under a lock,
//! so this costs time and nothing else.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_events::subject::{ReplicaVerb, SystemSubject};
use concord_wire::Token;
use concord_wire::subject::Service;
use futures::StreamExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, Operation, Unavailable};
use crate::service::hand_off::receipts::{Beat, Receipts};

/// How often a replica says that it is there.
const BEAT: Duration = Duration::from_millis(300);
/// A replica that has said nothing for so long is taken for dead: three beats may be late.
const SILENCE_MAX: Duration = Duration::from_millis(1_200);
/// The body of a replica's last beat.
const LEAVING: &[u8] = b"leaving";

/// The replicas of one service that are there.
pub struct Replicas {
    service: Service,
    own: Token,
    /// The others, with the time of the last beat of each.
    others: RwLock<BTreeMap<Token, Instant>>,
    changed: watch::Sender<u64>,
    /// What this replica has handed to the others and been handed by them.
    pub(crate) receipts: Receipts,
    /// The inbox, followed by a replica and a number, on which a replica refuses what it was handed.
    pub(crate) answers: String,
}

impl Replicas {
    /// One that sees no others yet.
    pub(crate) fn new(service: Service, unique: &str, inbox: String) -> Self {
        Self {
            service,
            own: Token::derived(unique),
            others: RwLock::default(),
            changed: watch::Sender::new(0),
            receipts: Receipts::default(),
            answers: inbox,
        }
    }

    /// The name of this replica.
    pub(crate) fn own(&self) -> &Token {
        &self.own
    }

    /// The replica that works on what `key` names: the same for all replicas with the same view. None for this one.
    ///
    /// The highest of the hashes of key and replica wins (rendezvous hashing), so when a replica comes or goes only its own share
    /// moves.
    pub(crate) fn owner_of(&self, key: &str) -> Option<Token> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let owner = others.keys().max_by_key(|replica| weight(key, replica))?;
        (weight(key, owner) > weight(key, &self.own)).then(|| owner.clone())
    }

    /// Whether this is the only replica that is known.
    pub(crate) fn is_alone(&self) -> bool {
        let others = self.others.read();
        others.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether a duty that one replica is enough for is this one's.
    pub fn has_duty(&self, duty: &str) -> bool {
        self.owner_of(duty).is_none()
    }

    /// Waits until a duty is this replica's, or no longer.
    pub async fn until_duty(&self, duty: &str, is_own: bool) {
        let mut changed = self.changed.subscribe();
        let there = changed.wait_for(|_| self.has_duty(duty) == is_own).await;
        if there.is_err() {
            tracing::debug!("Nobody follows the replicas any more.");
        }
    }

    /// Says regularly that this replica is there, and hears the others, until the service stops.
    pub(crate) async fn follow(
        self: Arc<Self>,
        broker: Broker,
        stop: CancellationToken,
    ) -> Result<(), Unavailable> {
        let beats = SystemSubject::Replica {
            service: self.service,
            verb: ReplicaVerb::Beat,
            replica: None,
        };
        let heard = broker
            .client
            .subscribe(broker.subjects().build(&beats))
            .await;
        let mut heard = heard.map_err(|error| Operation::Subscribe.failed(error))?;
        let mut due = tokio::time::interval(BEAT);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = due.tick() => {
                    self.beat(&broker, self.receipts.beat().encode()).await;
                    self.bury(Instant::now());
                }
                Some(beat) = heard.next() => {
                    let is_new = self.hear(&broker, &beat);
                    // Whoever is new need not wait until it knows the others.
                    if is_new {
                        self.beat(&broker, self.receipts.beat().encode()).await;
                    }
                }
                () = stop.cancelled() => break,
            }
        }
        self.beat(&broker, self.receipts.beat().encode()).await;
        self.beat(&broker, LEAVING.into()).await;
        Ok(())
    }

    async fn beat(&self, broker: &Broker, body: Bytes) {
        let subject = SystemSubject::Replica {
            service: self.service,
            verb: ReplicaVerb::Beat,
            replica: Some(self.own.clone()),
        };
        let subject = broker.subjects().build(&subject);
        if let Err(error) = broker.client.publish(subject, body).await {
            tracing::debug!(%error, "A beat could not be sent.");
        }
    }

    /// Takes a beat into account. Whether its replica was not known.
    fn hear(&self, broker: &Broker, beat: &async_nats::Message) -> bool {
        let Ok(SystemSubject::Replica {
            replica: Some(replica),
            ..
        }) = broker.subjects().parse(&beat.subject)
        else {
            return false;
        };
        if replica == self.own {
            return false;
        }
        let leaves = beat.payload.as_ref() == LEAVING;
        if leaves {
            self.receipts.gone(&replica);
        } else if let Some(number) = Beat::decode(&beat.payload).taken.get(&self.own) {
            self.receipts.confirm(&replica, *number);
        }
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let was_known = if leaves {
            others.remove(&replica).is_some()
        } else {
            others.insert(replica.clone(), Instant::now()).is_some()
        };
        drop(others);
        if was_known == leaves {
            tracing::info!(%replica, leaves, "The replicas of this service have changed.");
            self.changed.send_modify(|count| *count += 1);
        }
        !was_known && !leaves
    }

    /// Lets go of those that have been silent for too long.
    fn bury(&self, now: Instant) {
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let before = others.len();
        others.retain(|replica, heard| {
            let lives = now.duration_since(*heard) < SILENCE_MAX;
            if !lives {
                tracing::warn!(%replica, "A replica of this service is silent; its work is taken over.");
                self.receipts.gone(replica);
            }
            lives
        });
        if others.len() != before {
            self.changed.send_modify(|count| *count += 1);
        }
    }
}

/// How much a replica wants what `key` names.
fn weight(key: &str, replica: &Token) -> (u64, Token) {
    // The same in all processes of one build. Builds that differ here have different views, which costs time alone.
    let mut hasher = DefaultHasher::new();
    (key, replica.as_str()).hash(&mut hasher);
    (hasher.finish(), replica.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeing(own: &str, others: &[&str]) -> Replicas {
        let replicas = Replicas {
            own: Token::new(own).unwrap(),
            ..Replicas::new(Service::Coordinator, own, "_INBOX.a".to_owned())
        };
        let known = others.iter().map(|name| Token::new(*name).unwrap());
        *replicas.others.write().unwrap() = known.map(|name| (name, Instant::now())).collect();
        replicas
    }

    #[test]
    fn all_who_see_the_same_agree_and_a_replica_that_goes_moves_its_share_alone() {
        let names = ["a", "b", "c", "d"];
        let views: Vec<Replicas> = names
            .iter()
            .map(|own| {
                let others: Vec<&str> = names.into_iter().filter(|name| name != own).collect();
                seeing(own, &others)
            })
            .collect();
        let without_d = seeing("a", &["b", "c"]);
        let owner = |view: &Replicas, key: &str| {
            let owner = view.owner_of(key);
            owner.unwrap_or_else(|| view.own().clone()).to_string()
        };
        let mut shares = BTreeMap::<String, usize>::new();
        for number in 0..4_000 {
            let key = format!("case-{number}");
            let named = owner(&views[0], &key);
            assert!(views.iter().all(|view| owner(view, &key) == named));
            let after = owner(&without_d, &key);
            assert!(after == named || named == "d", "{key}: {named} -> {after}");
            *shares.entry(named).or_default() += 1;
        }
        assert!(
            shares.len() == 4 && shares.values().all(|share| (800..1_200).contains(share)),
            "{shares:?}"
        );
    }

    #[test]
    fn whoever_is_alone_owns_everything_and_the_silent_are_let_go() {
        let alone = seeing("a", &[]);
        assert!(alone.is_alone() && alone.owner_of("c-1").is_none() && alone.has_duty("watch"));
        let two = seeing("a", &["b"]);
        two.bury(Instant::now());
        assert!(!two.is_alone());
        two.bury(Instant::now() + SILENCE_MAX);
        assert!(two.is_alone());
    }
}
