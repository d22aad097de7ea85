//! Aggregates with hundreds of events, on a real broker: each event names only its last predecessors, and still every process
//! finds all of them, whether it knows none, a few or almost all.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use concord_domain::aggregates::deadline::{DeadlineMachine, Fire};
use concord_domain::aggregates::opener::{OpenerInput, OpenerMachine};
use concord_domain::aggregates::track_record::{Observe, TrackRecordMachine};
use concord_domain::assurance::replay;
use concord_domain::{Context, Decision, Machine, Versioned};
use concord_events::{
    Admitted, Aggregate, AggregateEvent, CarriedState, Deadline, EARLIER_MAX, FiredBy, Quotas,
    StoredEvent,
};
use concord_runtime::NatsPorts;
use concord_runtime::broker::provision;
use concord_runtime::event_store::cache::Cache;
use concord_runtime::event_store::{Appended, Error, LastEvent, Loaded, ScannedEvent};
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Aggregates, Broker, Consistency, EventStore, Outcome, Since, Trace};
use concord_testkit::TestBroker;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{self, Source};
use concord_wire::{AgentId, CaseId, MessageId, Timestamp, Token};

mod carried;

/// The number of events that one process stores: more than two events together name.
const EVENTS: u64 = 640;

fn start() -> Timestamp {
    Timestamp::parse("2026-11-21T20:00:00Z").unwrap()
}

/// The context of a step; the same for the same step, whichever process does it.
fn context(step: u64) -> Context {
    Context::of_message(
        start().plus_millis(1_000_000 + step),
        MessageId::new(format!("m-{step}")).unwrap(),
    )
}

async fn event_store(broker: &TestBroker) -> NatsPorts {
    let settings = BrokerSettings {
        servers: broker.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true)
        .await
        .unwrap();
    provision::streams(&broker).await.unwrap();
    NatsPorts::new(broker).await.unwrap()
}

/// One aggregate in the event store, and the input of each step.
struct Life<M: Machine, F> {
    store: NatsPorts,
    id: Token,
    input: F,
    machine: PhantomData<M>,
}

impl<M: Machine, F: Fn(u64) -> M::Input> Life<M, F> {
    /// A process that has nothing in memory.
    fn process(&self) -> Aggregates<M, NatsPorts> {
        Aggregates::new(self.store.clone(), &Cache::new(1 << 20))
    }

    async fn step(&self, process: &Aggregates<M, NatsPorts>, step: u64) -> Outcome {
        process
            .step(&self.id, &context(step), &(self.input)(step), None)
            .await
            .unwrap()
    }

    /// A step whose event is stored.
    async fn append(&self, process: &Aggregates<M, NatsPorts>, step: u64) {
        let outcome = self.step(process, step).await;
        assert!(matches!(outcome, Outcome::Appended { .. }), "{outcome:?}");
    }

    /// The aggregate as a process loads it.
    async fn load(&self, process: &Aggregates<M, NatsPorts>) -> Versioned<M> {
        process.load(&self.id).await.unwrap()
    }

    /// The stored events after this position.
    async fn events_after(
        &self,
        position: u64,
        consistency: Consistency,
    ) -> Vec<StoredEvent<M::Event>> {
        let since = Since {
            after: position,
            form: None,
        };
        let loaded = self.store.load(&self.id, since, consistency).await;
        loaded.unwrap().records
    }

    /// Processes that know a few events, or none, load the same as one that knows all.
    async fn check_load(&self, busy: &Aggregates<M, NatsPorts>, idle: &Aggregates<M, NatsPorts>) {
        let known = self.load(busy).await;
        assert_eq!(
            known.sequences.len(),
            EARLIER_MAX,
            "no process keeps a list that grows"
        );
        for (which, other) in [
            ("one that knew a few events", idle),
            ("one that knew none", &self.process()),
        ] {
            let found = self.load(other).await;
            assert_eq!(found.state, known.state, "{which}");
            assert_eq!(found.sequences, known.sequences, "{which}");
        }
    }

    /// A step of long ago is not done again; a process that did not know it finds its event.
    async fn check_repetition(&self, busy: &Aggregates<M, NatsPorts>) {
        let events = self.events_after(0, Consistency::Leader).await;
        for process in [&self.process(), busy] {
            match self.step(process, 7).await {
                Outcome::Ignored(_) => {}
                Outcome::Appended { sequence, .. } => assert_eq!(sequence, events[7].sequence),
                Outcome::Rejected(fault) => panic!("{fault}"),
            }
        }
        assert_eq!(self.events_after(0, Consistency::Leader).await, events);
    }

    /// The stored events give the state by replaying them, and every process finds those that it does not know.
    async fn check_events(&self, busy: &Aggregates<M, NatsPorts>) {
        let events = self.events_after(0, Consistency::Leader).await;
        assert_eq!(events.len() as u64, EVENTS + 3);
        assert_eq!(replay::rebuild::<M>(&events).1, []);
        assert!(
            events
                .iter()
                .all(|event| event.meta.earlier.len() <= EARLIER_MAX)
        );
        let mut rebuilt = Versioned::<M>::default();
        for event in &events {
            rebuilt.apply(event.clone());
        }
        assert_eq!(rebuilt.state, self.load(busy).await.state);
        for known in [1, 300, events.len() - 1, events.len()] {
            let position = events[known - 1].sequence;
            let new = self.events_after(position, Consistency::Any).await;
            assert_eq!(new, events[known..], "after {known} events");
        }
    }
}

/// Stores hundreds of events of one aggregate in one process, and then uses it from others.
async fn lives_long<M: Machine>(input: impl Fn(u64) -> M::Input) {
    let broker = TestBroker::start().await;
    let life = Life::<M, _> {
        store: event_store(&broker).await,
        id: Token::new("a-1").unwrap(),
        input,
        machine: PhantomData,
    };
    let busy = life.process();
    let idle = life.process();
    for step in 0..EVENTS {
        life.append(&busy, step).await;
        if step == 2 {
            life.load(&idle).await;
        }
    }
    life.check_load(&busy, &idle).await;

    // A process that does not know the last event learns so by the lock, and goes on from the last event.
    life.append(&life.process(), EVENTS).await;
    life.append(&idle, EVENTS + 1).await;
    life.append(&busy, EVENTS + 2).await;
    life.check_repetition(&busy).await;
    life.check_events(&busy).await;
}

#[tokio::test]
async fn a_deadline_that_is_moved_for_ever() {
    lives_long::<DeadlineMachine>(|step| Fire {
        aggregate: Aggregate::Case,
        id: Token::fixed("c-1"),
        deadline: Deadline {
            name: Token::fixed("case"),
            due: start().plus_millis(step),
        },
        fired_by: FiredBy::Scheduler,
    })
    .await;
}

#[tokio::test]
async fn a_track_record_of_years() {
    lives_long::<TrackRecordMachine>(|step| Observe {
        observation: Observation {
            at: start().plus_millis(step),
            correct: step.is_multiple_of(2),
            domain: "valuation".into(),
            regime: None,
            context: track_record::Context::default(),
            source: Source::Outcome,
            overridden: false,
        },
        debate_id: None,
        case_id: None,
        opened_by: None,
        by: AgentId::fixed("back_office"),
        imported: None,
        tell: None,
    })
    .await;
}

/// One case after the other, each with a place that is given back.
fn opened(step: u64) -> OpenerInput {
    let case_id = CaseId::new(format!("c-{}", step / 2)).unwrap();
    if !step.is_multiple_of(2) {
        return OpenerInput::Release(case_id);
    }
    OpenerInput::Admit(Admitted {
        opener: AgentId::fixed("olga"),
        case_id,
        gates: 0,
        quotas: Quotas::default(),
    })
}

/// The event store, but that all events of an aggregate cannot be read for a while.
#[derive(Clone)]
struct Hindered {
    store: NatsPorts,
    is_hindered: Arc<AtomicBool>,
}

impl EventStore for Hindered {
    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        since: Since,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        if since.form.is_none() && self.is_hindered.load(Ordering::Relaxed) {
            return Err(Error::NotFound { sequence: 0 });
        }
        self.store.load(id, since, consistency).await
    }

    async fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        trace: Option<&Trace>,
    ) -> Result<Appended, Error> {
        self.store.append(record, head, trace).await
    }

    async fn last(
        &self,
        aggregate: Aggregate,
        id: &Token,
        consistency: Consistency,
    ) -> Result<Option<LastEvent>, Error> {
        self.store.last(aggregate, id, consistency).await
    }

    async fn at<E: AggregateEvent>(&self, sequence: u64) -> Result<StoredEvent<E>, Error> {
        self.store.at(sequence).await
    }

    async fn scan(
        &self,
        next: &mut u64,
        each: impl FnMut(ScannedEvent) + Send,
    ) -> Result<(), Error> {
        self.store.scan(next, each).await
    }

    async fn last_sequence(&self) -> Result<u64, Error> {
        self.store.last_sequence().await
    }

    async fn ids(&self, aggregate: Aggregate) -> Result<Vec<Token>, Error> {
        self.store.ids(aggregate).await
    }

    async fn ids_by(
        &self,
        aggregate: Aggregate,
        event: &'static str,
        next: &mut u64,
        end: u64,
    ) -> Result<Vec<Token>, Error> {
        self.store.ids_by(aggregate, event, next, end).await
    }
}

/// An event carries a state that cannot be read, and reading those before it fails once: nothing is decided on less than all of them.
#[tokio::test]
async fn an_aggregate_whose_carried_state_cannot_be_read_is_read_whole_before_anything_is_decided()
{
    let broker = TestBroker::start().await;
    let life = Life::<OpenerMachine, _> {
        store: event_store(&broker).await,
        id: Token::fixed("olga"),
        input: opened,
        machine: PhantomData,
    };
    let busy = life.process();
    for step in [0, 2, 4] {
        life.append(&busy, step).await;
    }
    let known = life.load(&busy).await;
    let decided = OpenerMachine::decide(&known.state, &context(6), &opened(6));
    let Decision::Append(event) = decided else {
        panic!("{decided:?}");
    };
    let mut record = known.record(&life.id, &context(6), event);
    let form = OpenerMachine::CARRY.as_ref().map_or(0, |carry| carry.form);
    record.meta.state = Some(CarriedState {
        form,
        value: "of another form after all".into(),
    });
    let head = known.sequence();
    let appended = life.store.append(&record, head, None).await.unwrap();
    assert!(matches!(appended, Appended::Stored { .. }), "{appended:?}");

    let hindered = Hindered {
        store: life.store.clone(),
        is_hindered: Arc::new(AtomicBool::new(true)),
    };
    let other = Aggregates::<OpenerMachine, _>::new(hindered.clone(), &Cache::new(1 << 20));
    let step = async || other.step(&life.id, &context(8), &opened(8), None).await;
    assert!(step().await.is_err(), "the events before it cannot be read");
    hindered.is_hindered.store(false, Ordering::Relaxed);
    let outcome = step().await.unwrap();
    assert!(matches!(outcome, Outcome::Appended { .. }), "{outcome:?}");
    assert_eq!(other.load(&life.id).await.unwrap().state.cases.len(), 5);
}
