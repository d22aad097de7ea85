//! The replicas of a service, as each of them sees the others: by beats that nobody stores.
//!
//! From this view follow three things, without a lease and without a leader. Replicas that are not needed stand by ([`Replicas::works`]), work
//! on one aggregate goes to one replica ([`crate::service::hand_off`]), and a duty that one replica is enough for is done by one
//! ([`Replicas::has_duty`]). Views may differ for a moment, when a replica comes or goes. Then two do the same work; whoever decides does it
//! under a lock, so this costs time and nothing else.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_events::subject::{ReplicaVerb, SystemSubject};
use concord_wire::Token;
use concord_wire::subject::Service;
use futures::StreamExt;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use busy::Busy;
use view::{SILENCE_MAX, SILENCE_ODD, View};

use crate::broker::{Broker, Operation, Unavailable};
use crate::service::ServiceContext;
use crate::service::hand_off::receipts::{Beat, Receipts};
use crate::{NatsPorts, Ports, clock};

mod busy;
mod needed;
mod view;

/// How often a replica says that it is there.
const BEAT: Duration = Duration::from_millis(300);
/// The body of a replica's last beat.
const LEAVING: &[u8] = b"leaving";

/// The replicas of one service that are there.
pub struct Replicas {
    service: Service,
    own: Token,
    view: RwLock<View>,
    changed: watch::Sender<u64>,
    working: Gauge,
    /// What this replica has handed to the others and been handed by them.
    pub(crate) receipts: Receipts,
    /// The inbox, followed by a replica and a number, on which a replica refuses what it was handed.
    pub(crate) answers: String,
}

impl Replicas {
    /// One that sees no others yet. Where they stand by, it works when it has looked for others.
    pub(crate) fn new(context: &ServiceContext<NatsPorts>) -> Self {
        let own = Token::derived(&context.ports.unique_id());
        let view = View::new(own.clone(), context.work.standby.then(clock::now));
        let working = context.metrics.working.clone();
        working.set(i64::from(view.works()));
        Self {
            service: context.service,
            view: RwLock::new(view),
            own,
            changed: watch::Sender::new(0),
            working,
            receipts: Receipts::default(),
            answers: context.ports.broker.client.new_inbox(),
        }
    }

    /// The name of this replica.
    pub(crate) fn own(&self) -> &Token {
        &self.own
    }

    fn look<T>(&self, at: impl FnOnce(&View) -> T) -> T {
        at(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the view, and tells those who wait for a change.
    fn change<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let (worked, before) = (view.works(), view.changes());
        let changed = change(&mut view);
        let (works, changes) = (view.works(), view.changes());
        drop(view);
        if works != worked {
            self.working.set(i64::from(works));
            let state = if works { "works" } else { "stands by" };
            tracing::info!("This replica {state}.");
        }
        if changes != before {
            self.changed.send_replace(changes);
        }
        changed
    }

    /// The replica that works on what `key` names: the same for all replicas with the same view. None for this one.
    pub(crate) fn owner_of(&self, key: &str) -> Option<Token> {
        self.look(|view| view.owner_of(key).cloned())
    }

    /// Whether this is the only replica that is known.
    pub(crate) fn is_alone(&self) -> bool {
        self.look(View::is_alone)
    }

    /// Whether this replica works, and does not stand by.
    pub fn works(&self) -> bool {
        self.look(View::works)
    }

    /// Waits until this replica works, or until it stands by.
    pub(crate) async fn until_works(&self, works: bool) {
        self.until(|| self.works() == works).await;
    }

    /// Sees no others any more, and works.
    pub(crate) fn work_alone(&self) {
        self.change(View::see_nobody);
    }

    /// Whether a duty that one replica is enough for is this one's.
    pub fn has_duty(&self, duty: &str) -> bool {
        self.owner_of(duty).is_none()
    }

    /// Waits until a duty is this replica's, or no longer.
    pub async fn until_duty(&self, duty: &str, is_own: bool) {
        self.until(|| self.has_duty(duty) == is_own).await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        let mut changed = self.changed.subscribe();
        if changed.wait_for(|_| holds()).await.is_err() {
            tracing::debug!("Nobody follows the replicas any more.");
        }
    }

    /// Says regularly that this replica is there and how busy it is, and hears the others, until the service stops. Whoever is behind, as
    /// `is_behind` says, is as busy as can be.
    pub(crate) async fn follow(
        self: Arc<Self>,
        broker: Broker,
        stop: CancellationToken,
        is_behind: impl Fn() -> bool,
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
        self.beat(&broker, 0).await;
        let mut measured = Busy::new(Instant::now());
        let mut busy = 0;
        let mut due = tokio::time::interval_at((Instant::now() + BEAT).into(), BEAT);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = due.tick() => {
                    let now = Instant::now();
                    busy = measured.measure(now);
                    if self.works() && is_behind() {
                        busy = 100;
                    }
                    self.beat(&broker, busy).await;
                    self.bury(now);
                    self.change(|view| view.look(busy, now));
                    for replica in self.look(|view| view.silent(SILENCE_ODD, now)) {
                        self.ask_whether_there(&broker, &replica).await;
                    }
                }
                Some(beat) = heard.next() => {
                    let is_new = self.hear(&broker, &beat);
                    // Whoever is new need not wait until it knows the others.
                    if is_new {
                        self.beat(&broker, busy).await;
                    }
                }
                () = stop.cancelled() => break,
            }
        }
        self.beat(&broker, busy).await;
        self.say(&broker, LEAVING.into()).await;
        Ok(())
    }

    async fn beat(&self, broker: &Broker, busy: u32) {
        let beat = Beat {
            taken: self.receipts.taken_up_to(),
            since: self.look(View::since),
            busy,
        };
        self.say(broker, beat.encode()).await;
    }

    /// Where this replica says that it is there.
    pub(crate) fn beat_subject(&self, broker: &Broker) -> String {
        broker.subjects().build(&SystemSubject::Replica {
            service: self.service,
            verb: ReplicaVerb::Beat,
            replica: Some(self.own.clone()),
        })
    }

    async fn say(&self, broker: &Broker, body: Bytes) {
        let subject = self.beat_subject(broker);
        if let Err(error) = broker.client.publish(subject, body).await {
            tracing::debug!(%error, "A beat could not be sent.");
        }
    }

    /// Sends a replica something that it does not take. Whether somebody listens is heard where its other answers are.
    async fn ask_whether_there(&self, broker: &Broker, replica: &Token) {
        let to = broker.subjects().build(&SystemSubject::Replica {
            service: self.service,
            verb: ReplicaVerb::Take,
            replica: Some(replica.clone()),
        });
        let answer = self.answer_of(replica, Receipts::NOTHING);
        let sent = broker.client.publish_with_reply(to, answer, Bytes::new());
        if let Err(error) = sent.await {
            tracing::debug!(%error, "A replica could not be asked whether it is there.");
        }
    }

    /// Where a replica says what became of what it was handed under a number.
    pub(crate) fn answer_of(&self, owner: &Token, number: u64) -> String {
        format!("{}.{owner}.{number}", self.answers)
    }

    /// Lets go of a replica where nobody listens any more.
    pub(crate) fn let_go(&self, replica: &Token) {
        self.receipts.gone(replica);
        if self.change(|view| view.let_go(replica)) {
            tracing::warn!(%replica, "A replica of this service is gone; its work is taken over.");
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
        if beat.payload.as_ref() == LEAVING {
            self.receipts.gone(&replica);
            if self.change(|view| view.let_go(&replica)) {
                tracing::info!(%replica, "A replica of this service has left.");
            }
            return false;
        }
        let Some(said) = Beat::decode(&beat.payload) else {
            tracing::debug!(%replica, "Something else than a beat is heard where replicas beat.");
            return false;
        };
        if let Some(number) = said.taken.get(&self.own) {
            self.receipts.confirm(&replica, *number);
        }
        let is_new = self.change(|view| view.hear(replica.clone(), &said, Instant::now()));
        if is_new {
            tracing::info!(%replica, "There is another replica of this service.");
        }
        is_new
    }

    /// Lets go of those that have been silent for too long.
    fn bury(&self, now: Instant) {
        for replica in self.look(|view| view.silent(SILENCE_MAX, now)) {
            tracing::warn!(%replica, "A replica of this service is silent; its work is taken over.");
            self.receipts.gone(&replica);
            self.change(|view| view.let_go(&replica));
        }
    }
}
