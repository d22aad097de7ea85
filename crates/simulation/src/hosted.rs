//! Worlds of one hosted agent: replicas of the agent adapter, what is asked of the agent, and its endpoint, which fails in
//! all the ways endpoints fail until it is well again.
//!
//! The messages are handled by the adapter's own handler, on ports that this world implements ([`ports`], [`caller`]). The seed's
//! other world is not touched: these draw from a generator of their own.
//!
//! Not simulated: budgets, loops, answers that come later by callback, and the copies of a program.

use std::sync::Arc;

use concord_domain::resilience::breaker::BreakerState;

use crate::check;
use crate::executor::{Executor, Incarnation};
use crate::faults::Faults;
use crate::options::Options;
use crate::random::Random;
use crate::report::SeedReport;

mod caller;
mod ports;
mod process;
pub(crate) mod setup;
pub(crate) mod world;

use process::Process;
use setup::Setup;
use world::{Action, Shared, World};

/// What sets the numbers of these worlds apart from those of the same seed's other world.
const APART: u64 = 0x686f_7374_6564;
/// Nothing goes wrong any more after at most this long.
const CALM_MS_MAX: u64 = 45_000;
/// So much longer than its longest pause a breaker may take to close when all is well.
pub(crate) const RECOVERY_MS: u64 = 30_000;
/// When nobody asks any more, everything is done within this time, or it is stuck.
const QUIET_MS: u64 = 600_000;
/// While a delivery is worked on, the broker is told so this often.
const PROGRESS_MS: u64 = world::ACK_WAIT_MS / 2;

/// A replica of the adapter; its process is none while it is down.
struct Replica {
    incarnation: Incarnation,
    process: Option<Arc<Process>>,
}

struct Simulation {
    world: Shared,
    setup: Arc<Setup>,
    executor: Executor,
    replicas: Vec<Replica>,
}

/// Runs one seed to its end and checks what is left.
pub(crate) fn run(seed: u64, options: &Options) -> SeedReport {
    let mut random = Random::new(seed ^ APART);
    let setup = Arc::new(Setup::draw(&mut random));
    let faults = options.faults.varied(&mut random);
    let stormy = options.faults != Faults::none();
    let world = Shared::new(World::new(random, faults, Arc::clone(&setup), options));
    let mut simulation = Simulation {
        world,
        setup,
        executor: Executor::default(),
        replicas: Vec::new(),
    };
    simulation.begin(options.replicas.max(1), stormy);
    let stuck = simulation.run_until_quiet();
    let up = simulation
        .replicas
        .iter()
        .filter_map(|replica| Some((replica.incarnation, replica.process.as_ref()?.standing())));
    let standings: Vec<(Incarnation, BreakerState)> = up.collect();
    let mut world = simulation.world.lock();
    let mut report = check::hosted::check(seed, &world, &standings, stuck);
    report.log = world.take_log();
    report
}

impl Simulation {
    fn begin(&mut self, replicas: usize, stormy: bool) {
        for replica in 0..replicas {
            self.replicas.push(Replica {
                incarnation: Incarnation { replica, number: 0 },
                process: None,
            });
            self.start(replica);
        }
        let mut world = self.world.lock();
        let calm = if stormy {
            world.random.between(CALM_MS_MAX / 3, CALM_MS_MAX)
        } else {
            0
        };
        world.note(|| format!("{:?}", self.setup));
        world.plan(calm, Action::Calm);
        world.plan(
            calm + self.setup.rules.open_max_ms + RECOVERY_MS,
            Action::Close,
        );
        world.plan(0, Action::Mood);
        world.plan(0, Action::Ask);
        world.plan(1_000, Action::Second);
    }

    fn start(&mut self, replica: usize) {
        let Some(place) = self.replicas.get_mut(replica) else {
            return;
        };
        place.incarnation.number += 1;
        let process = Process::new(place.incarnation, self.world.clone(), &self.setup);
        debug_assert!(process.is_some(), "the agent cannot be hosted");
        place.process = process.map(Arc::new);
    }

    /// Goes on until nothing is going to happen. None when all is done then, else what is not.
    fn run_until_quiet(&mut self) -> Option<String> {
        loop {
            self.executor.run();
            let Some(action) = self.world.lock().advance() else {
                break;
            };
            self.act(action);
            let world = self.world.lock();
            if world
                .closed_at
                .is_some_and(|closed| world.now > closed + QUIET_MS)
            {
                return Some(format!(
                    "it is not quiet {QUIET_MS} ms after the last message: {:?}",
                    world.pending()
                ));
            }
        }
        let pending = self.world.lock().pending();
        let done = self.executor.is_idle() && pending.is_empty();
        (!done).then(|| {
            format!("nothing is going to happen any more, and these are not handled: {pending:?}")
        })
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Offer { sequence } => self.offer(sequence),
            Action::Deliver {
                sequence,
                incarnation,
            } => self.deliver(sequence, incarnation),
            Action::Crash(incarnation) => self.crash(incarnation),
            Action::Restart { replica } => self.start(replica),
            Action::Answer(cell, reply) => drop(cell.settle(Some(reply))),
            Action::GiveUp(cell) => drop(cell.settle(None)),
            Action::Progress { handling } => {
                let mut world = self.world.lock();
                if world.progress(handling) {
                    world.plan(PROGRESS_MS, Action::Progress { handling });
                }
            }
            other => self.world.lock().act(other),
        }
    }

    /// The broker gives a message to one of the processes that have room for it.
    fn offer(&mut self, sequence: usize) {
        let mut world = self.world.lock();
        if !world.is_pending(sequence) {
            return;
        }
        let away = world.away_ms();
        if away > 0 {
            let after = world.delay();
            return world.plan(away + after, Action::Offer { sequence });
        }
        let up = self
            .replicas
            .iter()
            .filter(|replica| replica.process.is_some())
            .map(|replica| replica.incarnation);
        let up: Vec<Incarnation> = up
            .filter(|incarnation| world.has_room(*incarnation))
            .collect();
        let Some(incarnation) = world.random.pick(&up).copied() else {
            return world.plan(100, Action::Offer { sequence });
        };
        world.lease(sequence);
        let (lost, double) = (world.faults.lost_delivery, world.faults.double_delivery);
        if !world.random.chance(lost) {
            let delay = world.delay();
            world.plan(
                delay,
                Action::Deliver {
                    sequence,
                    incarnation,
                },
            );
        }
        if world.random.chance(double) {
            let delay = world.delay();
            world.plan(delay, Action::Offer { sequence });
        }
    }

    /// A message reaches a process, if that is still alive.
    fn deliver(&mut self, sequence: usize, incarnation: Incarnation) {
        let Some(replica) = self
            .replicas
            .get(incarnation.replica)
            .filter(|replica| replica.incarnation == incarnation)
        else {
            return;
        };
        let Some(process) = replica.process.clone() else {
            return;
        };
        let mut world = self.world.lock();
        let Some(assignment) = world.begin(sequence, incarnation) else {
            return;
        };
        world.plan(
            PROGRESS_MS,
            Action::Progress {
                handling: assignment.handling,
            },
        );
        drop(world);
        self.executor.spawn(incarnation, process.work(assignment));
    }

    fn crash(&mut self, incarnation: Incarnation) {
        let Some(replica) = self
            .replicas
            .get_mut(incarnation.replica)
            .filter(|replica| replica.incarnation == incarnation)
        else {
            return;
        };
        if replica.process.take().is_none() {
            return;
        }
        self.world.lock().killed(incarnation);
        self.executor.kill(incarnation);
        let mut world = self.world.lock();
        let longest = world.faults.restart_ms_max;
        let in_ms = world.random.between(1, longest.max(1));
        world.plan(
            in_ms,
            Action::Restart {
                replica: incarnation.replica,
            },
        );
    }
}
