//! Scenarios: nothing goes wrong in these worlds, everybody says what the test says, and the test keeps deliveries back until it
//! is their turn. They show the causes of what seeds have found: a seed is another world as soon as a handler asks for something more.

use std::sync::Arc;

use bytes::Bytes;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{AggregateEvent, StoredEvent};
use concord_runtime::delivery::{Cost, Delivery};
use concord_wire::Token;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::broker::Publication;
use crate::executor::{Executor, Incarnation};
use crate::faults::Faults;
use crate::network::Connection;
use crate::policies;
use crate::process::{Assignment, Process};
use crate::random::Random;
use crate::world::{Action, Shared, World, instant};

mod analyses;
mod copies;
mod ids;

const COORDINATOR: &str = "coordinator";

/// Room for everything that a scenario is about.
const CACHED_BYTES_MAX: usize = 1 << 20;

/// A world with one process of each service that has a part in the scenario.
struct Stage {
    world: Shared,
    executor: Executor,
    processes: Vec<(Service, Incarnation, Arc<Process>)>,
    /// The consumer whose deliveries are kept back.
    kept_back: Option<&'static str>,
    /// Deliveries that were kept back.
    waiting: Vec<(usize, u64)>,
    said: u32,
}

impl Stage {
    fn of(services: &[Service]) -> Self {
        let world = World::new(Random::new(1), Faults::none(), None, false);
        let world = Shared::new(world);
        policies::begin(&mut world.lock());
        let processes = services.iter().enumerate().map(|(replica, service)| {
            let incarnation = Incarnation { replica, number: 1 };
            let connection = Connection {
                world: world.clone(),
                incarnation,
            };
            let process = Process::new(*service, connection, CACHED_BYTES_MAX);
            (*service, incarnation, Arc::new(process))
        });
        Self {
            processes: processes.collect(),
            world,
            executor: Executor::default(),
            kept_back: None,
            waiting: Vec::new(),
            said: 0,
        }
    }

    /// Keeps back what this consumer would be given from now on.
    fn keep_back(&mut self, consumer: &'static str) {
        let world = self.world.lock();
        let mut all = world.broker.consumers.iter();
        let is_there = all.any(|one| one.definition.name == consumer);
        assert!(is_there, "there is no consumer {consumer}");
        drop(world);
        self.kept_back = Some(consumer);
    }

    /// Delivers what was kept back, and what follows from it, the last first.
    fn let_go_from_the_last(&mut self) {
        self.waiting.reverse();
        self.let_go();
    }

    /// Delivers what was kept back, and what follows from it.
    fn let_go(&mut self) {
        self.kept_back = None;
        let waiting = std::mem::take(&mut self.waiting);
        assert!(!waiting.is_empty(), "nothing was kept back");
        for (consumer, sequence) in waiting {
            self.deliver(consumer, sequence);
            self.run();
        }
    }

    /// Somebody says something, with these fields beside the usual ones, and whatever follows from it happens.
    fn say(&mut self, (from, to): (&str, &str), kind: &str, payload: &Value, more: &Value) {
        self.said += 1;
        let mut world = self.world.lock();
        let mut message = json!({
            "message_id": format!("m-{}", self.said), "timestamp": world.clock(), "from_agent": from,
            "to_agent": to, "message_type": kind, "payload": payload,
        });
        let (fields, more) = (message.as_object_mut(), more.as_object());
        fields.unwrap().extend(more.cloned().unwrap_or_default());
        let case = message["case_id"].as_str().unwrap_or("_");
        let all = world.subjects().all("msg");
        let place = format!("{case}.{from}.{to}.{kind}");
        let publication = Publication {
            subject: format!("{}{place}", all.trim_end_matches('>')),
            id: None,
            body: message.to_string().into_bytes().into(),
            original: None,
        };
        world.publish(StreamKind::Messages, publication);
        drop(world);
        self.run();
    }

    /// Somebody asks the coordinator for something.
    fn ask(&mut self, from: &str, action: &str, parameters: &Value, more: &Value) {
        let payload = json!({ "action": action, "parameters": parameters });
        self.say((from, COORDINATOR), "request", &payload, more);
    }

    /// An operator asks a service for something by its API.
    fn order(&mut self, service: Service, verb: &'static str, request: &Value) {
        self.said += 1;
        let (unique, request) = (format!("o-{}", self.said), request.to_string());
        let process = self.processes.iter().find(|(one, ..)| *one == service);
        let (_, incarnation, process) = process.unwrap();
        let process = Arc::clone(process);
        self.executor.spawn(*incarnation, async move {
            process.order(verb, &unique, request.into()).await;
        });
        self.run();
    }

    /// From now on what any copy may answer is answered by one that lags, however far.
    fn let_copies_lag(&mut self, seed: u64) {
        let mut world = self.world.lock();
        world.faults.stale_read = 1.0;
        world.random = Random::new(seed);
    }

    /// Has a process of a service begin anew, with nothing in memory.
    fn replace(&mut self, service: Service) {
        let mut all = self.processes.iter_mut();
        let (_, incarnation, process) = all.find(|(one, ..)| *one == service).unwrap();
        let connection = Connection {
            world: self.world.clone(),
            incarnation: *incarnation,
        };
        *process = Arc::new(Process::new(service, connection, CACHED_BYTES_MAX));
    }

    /// All events of a kind of aggregate.
    fn all_events<E: AggregateEvent>(&self) -> Vec<StoredEvent<E>> {
        let world = self.world.lock();
        let of_kind = world.subjects().events_of_kind(E::AGGREGATE);
        let of_kind = of_kind.trim_end_matches('*').trim_end_matches(['*', '.']);
        let events = world.broker.messages(StreamKind::Events).iter();
        let of_kind = events.filter(|one| one.publication.subject.starts_with(of_kind));
        of_kind
            .map(|one| StoredEvent::decode(&one.publication.body, one.sequence).unwrap())
            .collect()
    }

    /// The events of an aggregate.
    fn events<E: AggregateEvent>(&self, id: &Token) -> Vec<StoredEvent<E>> {
        let world = self.world.lock();
        let lock = world.subjects().events_of(E::AGGREGATE, id);
        let sequences = world.broker.events_of_lock(&lock).iter();
        let stored = sequences.map(|sequence| {
            let message = world.broker.message(StreamKind::Events, *sequence).unwrap();
            StoredEvent::decode(&message.publication.body, *sequence).unwrap()
        });
        stored.collect()
    }

    /// Messages of this kind to somebody, the oldest first.
    fn told(&self, to: &str, kind: &str) -> Vec<Value> {
        let world = self.world.lock();
        let all = world.broker.messages(StreamKind::Messages).iter();
        let to_them = all.filter(|one| {
            let subject = &one.publication.subject;
            subject.ends_with(&format!(".{to}.{kind}"))
        });
        to_them
            .map(|one| serde_json::from_slice(&one.publication.body).unwrap())
            .collect()
    }

    /// Goes on until nothing moves but the clock. No deadline fires: there is no escalation timer.
    fn run(&mut self) {
        loop {
            self.executor.run();
            let next = self.world.lock().advance();
            match next {
                None => return,
                Some(Action::Arrive(arrival)) => self.world.lock().arrive(arrival),
                Some(Action::Answer(cell, reply)) => drop(cell.settle(Some(reply))),
                Some(Action::GiveUp(cell)) => drop(cell.settle(None)),
                Some(Action::Ask(question)) => {
                    question.reach(&self.world, &mut self.executor, Vec::new());
                }
                Some(Action::Offer { consumer, sequence }) => self.offer(consumer, sequence),
                // Nobody here reads messages, is killed or looks for deadlines.
                Some(_) => {}
            }
        }
    }

    fn offer(&mut self, consumer: usize, sequence: u64) {
        let world = self.world.lock();
        let definition = &world.broker.consumers[consumer].definition;
        let is_kept_back = self.kept_back == Some(definition.name.as_str());
        drop(world);
        if is_kept_back {
            self.waiting.push((consumer, sequence));
        } else {
            self.deliver(consumer, sequence);
        }
    }

    fn deliver(&mut self, consumer: usize, sequence: u64) {
        let world = self.world.lock();
        let reader = &world.broker.consumers[consumer];
        let definition = &reader.definition;
        let service = definition.kind.service();
        let process = self.processes.iter().find(|(one, ..)| *one == service);
        let Some((_, incarnation, process)) = process else {
            return;
        };
        let stored = world.broker.message(definition.stream_kind, sequence);
        let stored = stored.unwrap();
        let delivery = Delivery {
            subject: stored.publication.subject.clone(),
            payload: Bytes::copy_from_slice(&stored.publication.body),
            headers: None,
            trace: None,
            stream: world.broker.layout.stream_name(definition.stream_kind),
            sequence,
            deliveries: 1,
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
        let process = Arc::clone(process);
        self.executor
            .spawn(*incarnation, async move { process.work(assignment).await });
    }
}
