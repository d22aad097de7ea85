//! What is outside the adapter: time, the agent's inbox, whoever asks, and the endpoint. And a record of all that happened,
//! for the checkers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_domain::resilience::call_policy::in_flight_max;
use concord_events::topology::{Layout, StreamKind};
use concord_runtime::delivery::{Cost, Delivery};
use concord_wire::Timestamp;

use crate::executor::Incarnation;
use crate::faults::{Faults, InjectedBug};
use crate::hosted::setup::{Kind, Mood, Setup};
use crate::options::Options;
use crate::plan::Plan;
use crate::random::Random;
use crate::report::{Counts, HostedCounts};
use crate::world::instant;

mod answers;
mod outside;
mod types;

pub(crate) use types::{
    Action, Asked, Assignment, Call, Cause, Cell, Entry, Publication, Reply, Request, Said, What,
};
use types::{Handled, Kept};

/// After this long without a word about it a delivery is made again: the services' default.
pub(crate) const ACK_WAIT_MS: u64 = 5_000;

/// Everything outside the processes.
pub(crate) struct World {
    pub(crate) now: u64,
    plan: Plan<Action>,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) injected_bug: Option<InjectedBug>,
    pub(crate) setup: Arc<Setup>,
    mood: Mood,
    away_until: u64,
    pub(crate) calm_since: Option<u64>,
    pub(crate) closed_at: Option<u64>,
    pub(crate) asked: Vec<Asked>,
    /// What is stored for the askers, in order.
    pub(crate) said: Vec<Said>,
    /// The messages of the adapter, in the order of their sequences.
    stored: Vec<Kept>,
    /// When a message was stored under an id for a recipient. The broker remembers that for so long.
    ids: BTreeMap<(String, String), u64>,
    window_ms: u64,
    pub(crate) calls: BTreeMap<u64, Call>,
    /// The deliveries that are worked on.
    handled: BTreeMap<u64, Handled>,
    handlings: u64,
    /// The one that runs at this moment.
    pub(crate) current: Option<u64>,
    layout: Layout,
    /// How many were worked on and waited in each process when that was looked at last.
    loads: BTreeMap<Incarnation, What>,
    /// Deliveries that were given up.
    pub(crate) given_up: Vec<String>,
    pub(crate) record: Vec<Entry>,
    pub(crate) counts: Counts,
    log: Option<Vec<String>>,
}

/// The world as its processes share it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    /// Everything runs on one thread, so nobody ever waits here.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    pub(crate) fn new(
        random: Random,
        faults: Faults,
        setup: Arc<Setup>,
        options: &Options,
    ) -> Self {
        let layout = Layout::default();
        let window = layout.stream(StreamKind::Messages).duplicate_window;
        Self {
            now: 0,
            plan: Plan::default(),
            random,
            faults,
            injected_bug: options.injected_bug,
            setup,
            mood: Mood::Well,
            away_until: 0,
            calm_since: None,
            closed_at: None,
            asked: Vec::new(),
            said: Vec::new(),
            stored: Vec::new(),
            ids: BTreeMap::new(),
            window_ms: u64::try_from(window.as_millis()).unwrap_or(u64::MAX),
            calls: BTreeMap::new(),
            handled: BTreeMap::new(),
            handlings: 0,
            current: None,
            layout,
            loads: BTreeMap::new(),
            given_up: Vec::new(),
            record: Vec::new(),
            counts: Counts::default(),
            log: options.verbose.then(Vec::new),
        }
    }

    /// The present, as a clock shows it.
    pub(crate) fn clock(&self) -> Timestamp {
        instant(self.now)
    }

    /// What a clock shows that is behind by so much.
    pub(crate) fn clock_behind(&self, behind_ms: u64) -> Timestamp {
        instant(self.now.saturating_sub(behind_ms))
    }

    pub(crate) fn hosted(&mut self) -> &mut HostedCounts {
        &mut self.counts.hosted
    }

    /// Writes a line of the log; the line is made only when somebody reads it.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push(format!("{now:>8} ms  {}", line()));
        }
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        self.log.take().unwrap_or_default()
    }

    /// Keeps on record what a process did.
    pub(crate) fn keep(&mut self, incarnation: Incarnation, what: What) {
        self.note(|| {
            format!(
                "adapter {} ({}): {what:?}",
                incarnation.replica, incarnation.number
            )
        });
        self.record.push(Entry {
            at: self.now,
            incarnation,
            what,
        });
    }

    /// Keeps the load of a process on record where it has changed.
    pub(crate) fn keep_if_new(&mut self, incarnation: Incarnation, load: What) {
        if self.loads.insert(incarnation, load) != Some(load) {
            self.keep(incarnation, load);
        }
    }

    /// A delivery was given up as a dead letter.
    pub(crate) fn give_up(&mut self, subject: &str) {
        self.counts.given_up += 1;
        self.given_up.push(subject.to_owned());
    }

    /// Plans something for `in_ms` from now.
    pub(crate) fn plan(&mut self, in_ms: u64, action: Action) {
        self.plan.push(self.now.saturating_add(in_ms), action);
    }

    /// Goes on to the next action.
    pub(crate) fn advance(&mut self) -> Option<Action> {
        let (at, action) = self.plan.pop()?;
        self.now = at;
        Some(action)
    }

    /// How long something takes on its way.
    pub(crate) fn delay(&mut self) -> u64 {
        if self.random.chance(self.faults.straggler) {
            return self.random.between(0, self.faults.straggler_ms_max);
        }
        self.random.between(0, self.faults.delay_ms_max)
    }

    /// How long until the broker is there again; 0 when it is there.
    pub(crate) fn away_ms(&self) -> u64 {
        self.away_until.saturating_sub(self.now)
    }

    /// A process may be killed while it waits for so long.
    pub(crate) fn may_crash(&mut self, incarnation: Incarnation, while_ms: u64) {
        if self.random.chance(self.faults.crash) {
            let in_ms = self.random.between(0, while_ms);
            self.plan(in_ms, Action::Crash(incarnation));
        }
    }

    /// True while a message is not acknowledged.
    pub(crate) fn is_pending(&self, sequence: usize) -> bool {
        self.asked
            .get(sequence)
            .is_some_and(|asked| asked.lease.is_some())
    }

    /// Messages that are not acknowledged.
    pub(crate) fn pending(&self) -> Vec<usize> {
        (0..self.asked.len())
            .filter(|sequence| self.is_pending(*sequence))
            .collect()
    }

    /// True when a process takes another delivery.
    pub(crate) fn has_room(&self, incarnation: Incarnation) -> bool {
        let under_way = self.handled.values();
        let under_way = under_way
            .filter(|handled| handled.incarnation == incarnation)
            .count();
        under_way < in_flight_max(self.setup.instances, self.setup.queue_max)
    }

    /// A delivery begins: when nothing is heard of it for too long it is made again.
    pub(crate) fn lease(&mut self, sequence: usize) {
        let Some(asked) = self.asked.get_mut(sequence) else {
            return;
        };
        asked.deliveries += 1;
        let again = asked.deliveries > 1;
        if again {
            self.counts.redeliveries += 1;
        }
        self.renew(sequence);
    }

    fn renew(&mut self, sequence: usize) {
        let Some(lease) = self
            .asked
            .get_mut(sequence)
            .and_then(|asked| asked.lease.as_mut())
        else {
            return;
        };
        *lease += 1;
        let lease = *lease;
        self.plan(ACK_WAIT_MS, Action::Lapse { sequence, lease });
    }

    /// A process begins to work on a delivery.
    pub(crate) fn begin(
        &mut self,
        sequence: usize,
        incarnation: Incarnation,
    ) -> Option<Assignment> {
        let asked = self.asked.get(sequence)?.clone();
        self.handlings += 1;
        let handled = Handled {
            incarnation,
            sequence,
            began: self.now,
        };
        self.handled.insert(self.handlings, handled);
        let lane = asked.envelope.priority.lane();
        let agent = asked.envelope.to_agent.as_str();
        let delivery = Delivery {
            subject: self.layout.subjects.build(&asked.envelope.subject()),
            payload: serde_json::to_vec(&asked.envelope).ok()?.into(),
            headers: None,
            trace: None,
            stream: self.layout.stream_name(StreamKind::of_lane(lane)),
            sequence: asked.sequence,
            deliveries: asked.deliveries,
            stored_at: asked.stored_at,
            consumer: format!("agent-{agent}").into(),
            over_limit: None,
            cost: Cost::default(),
        };
        Some(Assignment {
            handling: self.handlings,
            sequence,
            delivery,
        })
    }

    /// A process has worked on a delivery.
    pub(crate) fn end(&mut self, handling: u64) {
        self.handled.remove(&handling);
    }

    /// Nothing that a process did goes on.
    pub(crate) fn killed(&mut self, incarnation: Incarnation) {
        self.counts.crashes += 1;
        self.keep(incarnation, What::Killed);
        self.handled
            .retain(|_, handled| handled.incarnation != incarnation);
    }

    /// The word that a delivery is worked on; false when it is not any more.
    pub(crate) fn progress(&mut self, handling: u64) -> bool {
        let Some(Handled { sequence, .. }) = self.handled.get(&handling).copied() else {
            return false;
        };
        let lost = self.faults.lost_request;
        if !self.random.chance(lost) && self.away_ms() == 0 {
            self.renew(sequence);
        }
        true
    }

    /// The delivery that runs at this moment.
    fn current(&self) -> Option<(u64, Handled)> {
        let handling = self.current?;
        Some((handling, self.handled.get(&handling).copied()?))
    }

    /// A call is on its way to the endpoint. Returns its number.
    pub(crate) fn call(&mut self, incarnation: Incarnation, part: u8, cell: &Cell) -> u64 {
        let call = self.calls.len() as u64 + 1;
        let current = self.current();
        debug_assert!(current.is_some(), "a call is made outside of any delivery");
        let (handling, sequence) =
            current.map_or((0, 0), |(handling, handled)| (handling, handled.sequence));
        self.calls.insert(
            call,
            Call {
                sequence,
                handling,
                part,
                taken: None,
                outcome: None,
                abandoned: false,
            },
        );
        self.keep(incarnation, What::Sent { call });
        let delay = self.delay();
        self.plan(
            delay,
            Action::Reach {
                call,
                cell: cell.clone(),
            },
        );
        call
    }

    /// Who made a call waits no longer. Says whether there was a connection.
    pub(crate) fn abandon(&mut self, call: u64) -> bool {
        let Some(call) = self.calls.get_mut(&call) else {
            return false;
        };
        call.abandoned = true;
        call.taken.is_some()
    }

    fn kind(&self) -> Kind {
        self.setup.kind
    }
}
