//! One seed: a world, its processes and its people, from the first request until nothing moves any more.

use std::sync::Arc;

use bytes::Bytes;
use concord_runtime::delivery::{Cost, Delivery};
use concord_wire::subject::Service;

use crate::agents::Agents;
use crate::agents::operators::Operation;
use crate::check;
use crate::executor::{Executor, Incarnation};
use crate::faults::Faults;
use crate::hosted;
use crate::network::Connection;
use crate::options::Options;
use crate::policies;
use crate::process::{Assignment, Process};
use crate::random::Random;
use crate::report::SeedReport;
use crate::world::{Action, Shared, World, instant};

/// The watchdog looks this often.
const WATCH_MS: u64 = 10_000;
/// Nothing goes wrong any more after at most this long.
const CALM_MS_MAX: u64 = 45_000;
/// When faults have stopped, everything is done within this time, or it is stuck: an analysis that is to be done again is awaited for ten
/// minutes, and others wait for it.
const QUIET_MS: u64 = 3_600_000;
/// The same in a world of intrusions: the longest time of a policy.
const QUIET_AFTER_INTRUSIONS_MS: u64 = 400 * 86_400_000;
/// So often deadlines that are held are resumed at the end. What an operator has asked for before may hold them again.
const CLOSINGS_MAX: u32 = 5;

/// A replica of a service; its process is none while it is down.
struct Replica {
    service: Service,
    incarnation: Incarnation,
    process: Option<Arc<Process>>,
}

struct Simulation {
    world: Shared,
    executor: Executor,
    replicas: Vec<Replica>,
    agents: Agents,
    /// When faults stopped; none before.
    calm_since: Option<u64>,
    /// How often held deadlines were resumed at the end.
    closings: u32,
    /// How long after faults have stopped everything is done.
    quiet_ms: u64,
}

/// Runs one seed to its end and checks what is left.
pub fn run(seed: u64, options: &Options) -> SeedReport {
    if options.hosted {
        return hosted::run(seed, options);
    }
    let mut random = Random::new(seed);
    let agents = Agents::new(Random::new(random.next()), options.ladder, options.tasks);
    let faults = options.faults.varied(&mut random);
    let world = Shared::new(World::new(
        random,
        faults,
        options.injected_bug,
        options.verbose,
    ));
    let mut simulation = Simulation {
        world,
        executor: Executor::default(),
        replicas: Vec::new(),
        agents,
        calm_since: None,
        closings: 0,
        quiet_ms: if options.intrusions.is_empty() {
            QUIET_MS
        } else {
            QUIET_AFTER_INTRUSIONS_MS
        },
    };
    simulation.begin(options.replicas.max(1));
    simulation
        .agents
        .intrude_with(&mut simulation.world.lock(), &options.intrusions);
    let quiet = simulation.run_until_quiet();
    let mut world = simulation.world.lock();
    let mut report = check::check(seed, &world, quiet);
    report.log = world.take_log();
    report
}

impl Simulation {
    fn begin(&mut self, replicas: usize) {
        policies::begin(&mut self.world.lock());
        for service in Service::ALL.iter().copied() {
            for _ in 0..replicas {
                let incarnation = Incarnation {
                    replica: self.replicas.len(),
                    number: 0,
                };
                self.replicas.push(Replica {
                    service,
                    incarnation,
                    process: None,
                });
                self.start(incarnation.replica);
                if service == Service::EscalationTimer {
                    let mut world = self.world.lock();
                    let first = world.random.between(0, WATCH_MS);
                    world.plan(
                        first,
                        Action::Watch {
                            replica: incarnation.replica,
                        },
                    );
                }
            }
        }
        let mut world = self.world.lock();
        self.agents.begin(&mut world);
        let calm = world.random.between(CALM_MS_MAX / 3, CALM_MS_MAX);
        world.plan(calm, Action::Calm);
        world.plan(1_000, Action::Second);
    }

    fn start(&mut self, replica: usize) {
        let Some(place) = self.replicas.get_mut(replica) else {
            return;
        };
        place.incarnation.number += 1;
        let connection = Connection {
            world: self.world.clone(),
            incarnation: place.incarnation,
        };
        // A few aggregates: an event has one or two kilobytes.
        let cached_bytes_max = self.world.lock().random.between(1_000, 20_000);
        let cached_bytes_max = usize::try_from(cached_bytes_max).unwrap_or_default();
        place.process = Some(Arc::new(Process::new(
            place.service,
            connection,
            cached_bytes_max,
        )));
    }

    /// Goes on until nothing moves. None when it has come to that, else why it has not.
    fn run_until_quiet(&mut self) -> Option<String> {
        loop {
            self.executor.run();
            let next = self.world.lock().advance();
            let Some(action) = next else {
                return Some("nothing is planned any more".into());
            };
            // Looking for overdue deadlines goes on for ever, so that is when to look whether anything else does.
            if self.calm_since.is_some()
                && matches!(action, Action::Watch { .. })
                && self.is_quiet()
            {
                if self.closings == CLOSINGS_MAX || !self.resume() {
                    return None;
                }
                self.closings += 1;
            }
            self.act(action);
            let Some(calm_since) = self.calm_since else {
                continue;
            };
            let world = self.world.lock();
            if world.now > calm_since + self.quiet_ms {
                let waiting = world.broker.unacknowledged();
                return Some(format!(
                    "it is not quiet {} ms after faults stopped: {waiting:?}",
                    self.quiet_ms
                ));
            }
        }
    }

    fn is_quiet(&self) -> bool {
        let world = self.world.lock();
        self.executor.is_idle()
            && world.talk == 0
            && world.broker.unacknowledged().is_empty()
            && world.broker.scheduler.is_empty()
            && world.broker.open_deadlines().next().is_none()
            && !check::is_anybody_away(&world)
    }

    /// Everything that an operator holds runs again. False when nothing is held.
    fn resume(&mut self) -> bool {
        let mut world = self.world.lock();
        let held = check::held(&world);
        self.agents.close(&mut world, &held);
        !held.is_empty()
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Arrive(arrival) => self.world.lock().arrive(arrival),
            Action::Answer(cell, reply) => drop(cell.settle(Some(reply))),
            Action::GiveUp(cell) => drop(cell.settle(None)),
            Action::Offer { consumer, sequence } => self.offer(consumer, sequence),
            Action::Deliver {
                consumer,
                sequence,
                incarnation,
            } => self.deliver(consumer, sequence, incarnation),
            Action::Lapse {
                consumer,
                sequence,
                lease,
            } => {
                let mut world = self.world.lock();
                let pending = world
                    .broker
                    .consumers
                    .get(consumer)
                    .and_then(|c| c.pending.get(&sequence));
                if pending.is_some_and(|pending| pending.lease == lease) {
                    world.plan(0, Action::Offer { consumer, sequence });
                }
            }
            Action::Fire { target, generation } => {
                let mut world = self.world.lock();
                let away = world.away_ms();
                if away > 0 {
                    // What became due meanwhile fires at once when the broker is back.
                    world.plan(away, Action::Fire { target, generation });
                } else {
                    world.fire(target, generation);
                }
            }
            Action::Crash(incarnation) => self.crash(incarnation),
            Action::Restart { replica } => self.start(replica),
            Action::Ask(question) => {
                let others = self.living(question.service);
                question.reach(&self.world, &mut self.executor, others);
            }
            Action::Second => self.second(),
            Action::Watch { replica } => self.watch(replica),
            Action::Hear { sequence } => {
                let mut world = self.world.lock();
                world.talk -= 1;
                self.agents.hear(&mut world, sequence);
            }
            Action::Say(outgoing) => {
                let mut world = self.world.lock();
                world.talk -= 1;
                world.say(outgoing);
            }
            Action::Operate(operation) => self.operate(operation),
            Action::Calm => self.calm(),
        }
    }

    /// A consumer gives a delivery to one of the processes that pull from it.
    fn offer(&mut self, consumer: usize, sequence: u64) {
        let mut world = self.world.lock();
        if !world.broker.is_pending(consumer, sequence) {
            return;
        }
        let away = world.away_ms();
        if away > 0 {
            let after = world.delay();
            return world.plan(away + after, Action::Offer { consumer, sequence });
        }
        let Some((kind, _)) = world.broker.kind_of(consumer) else {
            return;
        };
        let up = self.living(kind.service());
        let Some(&(incarnation, _)) = world.random.pick(&up) else {
            return world.plan(500, Action::Offer { consumer, sequence });
        };
        world.lease(consumer, sequence);
        let (lost, double) = (world.faults.lost_delivery, world.faults.double_delivery);
        if !world.random.chance(lost) {
            let delay = world.delay();
            world.plan(
                delay,
                Action::Deliver {
                    consumer,
                    sequence,
                    incarnation,
                },
            );
        }
        if world.random.chance(double) {
            let delay = world.delay();
            world.plan(delay, Action::Offer { consumer, sequence });
        }
    }

    /// A delivery reaches a process, if that is still alive.
    fn deliver(&mut self, consumer: usize, sequence: u64, incarnation: Incarnation) {
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
        let world = self.world.lock();
        let Some(reader) = world.broker.consumers.get(consumer) else {
            return;
        };
        let definition = &reader.definition;
        let Some(stored) = world.broker.message(definition.stream_kind, sequence) else {
            return;
        };
        let pending = reader.pending.get(&sequence);
        let delivery = Delivery {
            subject: stored.publication.subject.clone(),
            payload: Bytes::copy_from_slice(&stored.publication.body),
            headers: None,
            trace: None,
            stream: world.broker.layout.stream_name(definition.stream_kind),
            sequence,
            deliveries: pending.map_or(1, |pending| u64::from(pending.lease)),
            stored_at: instant(stored.at),
            consumer: definition.name.as_str().into(),
            over_limit: None,
            cost: Cost::default(),
        };
        let assignment = Assignment {
            consumer,
            kind: definition.kind,
            delivery,
        };
        drop(world);
        self.executor
            .spawn(incarnation, async move { process.work(assignment).await });
    }

    /// An operator's request reaches a process of the service; if that dies meanwhile, nobody answers.
    fn operate(&mut self, operation: Arc<Operation>) {
        let mut world = self.world.lock();
        world.talk -= 1;
        let up = self.living(operation.service());
        let Some((incarnation, process)) = world.random.pick(&up).cloned() else {
            return world.plan(500, Action::Operate(operation));
        };
        world.note(|| format!("an operator asks: {:?}", operation.verb));
        world.operated.push(Arc::clone(&operation));
        drop(world);
        self.executor.spawn(
            incarnation,
            async move { process.operate(&operation).await },
        );
    }

    /// The processes of a service that are up.
    fn living(&self, service: Service) -> Vec<(Incarnation, Arc<Process>)> {
        let of_service = self.replicas.iter().filter(|one| one.service == service);
        let up =
            of_service.filter_map(|one| Some((one.incarnation, Arc::clone(one.process.as_ref()?))));
        up.collect()
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
        self.executor.kill(incarnation);
        let mut world = self.world.lock();
        world.counts.crashes += 1;
        world.note(|| format!("{} {} is killed", replica.service, incarnation.replica));
        let longest = world.faults.restart_ms_max;
        let in_ms = world.random.between(1, longest.max(1));
        let replica = incarnation.replica;
        world.plan(in_ms, Action::Restart { replica });
    }

    fn second(&mut self) {
        let mut world = self.world.lock();
        let (pause, longest) = (world.faults.pause, world.faults.pause_ms_max);
        if world.random.chance(pause) {
            let away = world.random.between(1, longest.max(1));
            world.away_until = world.now + away;
            world.counts.pauses += 1;
            world.note(|| format!("the broker is away for {away} ms"));
        }
        if self.calm_since.is_none() {
            world.plan(1_000, Action::Second);
        }
        drop(world);
        self.retry();
    }

    /// Every process looks whether agents that were silent are to be tried again.
    fn retry(&mut self) {
        for replica in &self.replicas {
            if let Some(process) = replica.process.clone() {
                self.executor
                    .spawn(replica.incarnation, async move { process.retry().await });
            }
        }
    }

    fn watch(&mut self, replica: usize) {
        self.world.lock().plan(WATCH_MS, Action::Watch { replica });
        self.retry();
        let Some(replica) = self.replicas.get(replica) else {
            return;
        };
        if let Some(process) = replica.process.clone() {
            self.executor
                .spawn(replica.incarnation, async move { process.watch().await });
        }
    }

    fn calm(&mut self) {
        let mut world = self.world.lock();
        world.note(|| "nothing goes wrong from here on".into());
        world.faults = Faults::none();
        self.calm_since = Some(world.now);
    }
}
