//! Aggregates that live long, on a real broker: of hundreds of facts each names its last predecessors only, and still
//! every process finds all of them, whether it knows none, a few or almost all.

use std::num::NonZeroUsize;

use concord_domain::aggregates::deadline::{DeadlineMachine, Fire};
use concord_domain::aggregates::track_record::{Observe, TrackRecordMachine};
use concord_domain::{Context, Machine, Versioned, assurance::replay};
use concord_events::Aggregate;
use concord_events::{Deadline, EARLIER_MAX, FiredBy};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Aggregates, Broker, Consistency, EventStore, Outcome, broker::provision};
use concord_testkit::TestBroker;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{self, Source};
use concord_wire::{AgentId, MessageId, Timestamp, Token};

/// More than two facts together name.
const FACTS: u64 = 640;

fn start() -> Timestamp {
    Timestamp::parse("2026-11-21T20:00:00Z").unwrap()
}

/// The same for the same step, whichever process does it.
fn context(step: u64) -> Context {
    Context::of_message(
        start().plus_millis(1_000_000 + step),
        MessageId::new(format!("m-{step}")).unwrap(),
    )
}

async fn ledger(broker: &TestBroker) -> NatsEventStore {
    let settings = BrokerSettings {
        servers: broker.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true)
        .await
        .unwrap();
    provision::streams(&broker).await.unwrap();
    NatsEventStore::new(broker).await.unwrap()
}

/// A process that has nothing in memory.
fn process<M: Machine>(ledger: &NatsEventStore) -> Aggregates<M, NatsEventStore> {
    Aggregates::new(ledger.clone(), NonZeroUsize::new(8).unwrap())
}

/// Plays an aggregate of whose inputs each is stored, in one process; then looks at it from others.
async fn lives_long<M: Machine>(input: impl Fn(u64) -> M::Input) {
    let broker = TestBroker::start().await;
    let (ledger, id) = (ledger(&broker).await, Token::new("a-1").unwrap());
    let step = async |process: &Aggregates<M, NatsEventStore>, step: u64| {
        process
            .step(&id, &context(step), &input(step), None)
            .await
            .unwrap()
    };
    let is_stored =
        |outcome: Outcome| assert!(matches!(outcome, Outcome::Appended { .. }), "{outcome:?}");

    let (busy, dozing) = (process::<M>(&ledger), process::<M>(&ledger));
    for n in 0..FACTS {
        is_stored(step(&busy, n).await);
        if n == 2 {
            dozing.load(&id).await.unwrap();
        }
    }
    let known = busy.load(&id).await.unwrap();
    assert_eq!(
        known.sequences.len(),
        EARLIER_MAX,
        "no process keeps a list that grows"
    );
    for (who, other) in [
        ("one that knew a few facts", &dozing),
        ("one that knew none", &process(&ledger)),
    ] {
        let found = other.load(&id).await.unwrap();
        assert_eq!(found.state, known.state, "{who}");
        assert_eq!(found.sequences, known.sequences, "{who}");
    }

    // Whoever knows nothing, or not the last fact, is told so by the lock, and goes on from the last fact.
    is_stored(step(&process(&ledger), FACTS).await);
    is_stored(step(&dozing, FACTS + 1).await);
    is_stored(step(&busy, FACTS + 2).await);
    let records = ledger
        .load::<M::Event>(&id, 0, Consistency::Leader)
        .await
        .unwrap()
        .records;
    // What was done long ago is not done again; a process that did not know it finds it as its own.
    for other in [&process(&ledger), &busy] {
        match step(other, 7).await {
            Outcome::Ignored(_) => {}
            Outcome::Appended { sequence, .. } => assert_eq!(sequence, records[7].sequence),
            Outcome::Rejected(fault) => panic!("{fault}"),
        }
    }
    assert_eq!(
        ledger
            .load::<M::Event>(&id, 0, Consistency::Leader)
            .await
            .unwrap()
            .records,
        records
    );
    assert_eq!(records.len() as u64, FACTS + 3);
    assert_eq!(replay::rebuild::<M>(&records).1, []);
    assert!(
        records
            .iter()
            .all(|record| record.meta.earlier.len() <= EARLIER_MAX)
    );
    let mut rebuilt = Versioned::<M>::default();
    records
        .iter()
        .for_each(|record| rebuilt.apply(record.clone()));
    assert_eq!(rebuilt.state, busy.load(&id).await.unwrap().state);
    for known in [1, 300, records.len() - 1, records.len()] {
        let after = records[known - 1].sequence;
        let new = ledger
            .load::<M::Event>(&id, after, Consistency::Any)
            .await
            .unwrap()
            .records;
        assert_eq!(new, records[known..], "after {known} facts");
    }
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
        by: AgentId::fixed("back_office"),
    })
    .await;
}
