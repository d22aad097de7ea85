//! A stream that went back, as that of a broker that was restored from an older copy or has lost its last seconds: no process decides on
//! events that do not exist any more, although it has them in memory. And one in which an event stands where none should. Real broker.

use std::time::Duration;

use concord_domain::Context;
use concord_domain::aggregates::opener::{OpenerInput, OpenerMachine};
use concord_domain::assurance::audit::Invariant;
use concord_events::{Admitted, Quotas};
use concord_runtime::NatsPorts;
use concord_runtime::broker::provision;
use concord_runtime::event_store::cache::Cache;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Aggregates, Broker, Outcome};
use concord_testkit::{
    SERVICES, TestBroker, TestInstallation, audit, command, finish, programs_of, wait_for,
};
use concord_wire::{AgentId, CaseId, MessageId, Timestamp, Token};

use crate::kill::cluster::beside_the_lock;

const PATIENCE: Duration = Duration::from_secs(60);

type Process = Aggregates<OpenerMachine, NatsPorts>;

async fn process(url: &str) -> Process {
    let settings = BrokerSettings {
        servers: url.to_owned(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true).await;
    let broker = broker.unwrap();
    provision::streams(&broker).await.unwrap();
    let store = NatsPorts::new(broker).await.unwrap();
    Aggregates::new(store, &Cache::new(1 << 20))
}

/// Asks for a place for a case of olga's, because of a message.
async fn admit(process: &Process, message: &str, case: &str) -> String {
    let now = Timestamp::parse("2026-11-21T20:00:00Z").unwrap();
    let context = Context::of_message(now, MessageId::new(message).unwrap());
    let input = OpenerInput::Admit(Admitted {
        opener: AgentId::fixed("olga"),
        case_id: CaseId::new(case).unwrap(),
        gates: 0,
        quotas: Quotas::default(),
    });
    match process.step(&olga(), &context, &input, None).await {
        Ok(Outcome::Appended { .. }) => "stored".to_owned(),
        other => format!("{other:?}"),
    }
}

fn olga() -> Token {
    Token::fixed("olga")
}

async fn cases(process: &Process) -> Vec<String> {
    let known = process.load(&olga()).await.unwrap().state;
    known.cases.keys().map(ToString::to_string).collect()
}

#[tokio::test]
async fn events_that_are_gone_are_forgotten() {
    let broker = TestBroker::start().await;
    let process = process(&broker.url()).await;
    let jetstream = async_nats::jetstream::new(broker.client().await);
    let stream = jetstream.get_stream("CONCORD_EVENTS").await.unwrap();
    let lose = async |last: u64| {
        let sequence = process.load(&olga()).await.unwrap().sequence();
        for gone in sequence + 1 - last..=sequence {
            stream.delete_message(gone).await.unwrap();
        }
    };
    for (message, case) in [("m-1", "c-1"), ("m-2", "c-2")] {
        assert_eq!(admit(&process, message, case).await, "stored");
    }
    // What a lost event had done is not done.
    lose(1).await;
    assert_eq!(admit(&process, "m-3", "c-2").await, "stored");
    assert_eq!(cases(&process).await, ["c-1", "c-2"]);
    // An event that does not exist does not keep others from being stored.
    lose(1).await;
    assert_eq!(admit(&process, "m-4", "c-4").await, "stored");
    assert_eq!(cases(&process).await, ["c-1", "c-4"]);
    // It is forgotten where it is only read.
    lose(1).await;
    assert_eq!(cases(&process).await, ["c-1"]);
    // And all of them.
    lose(1).await;
    assert_eq!(cases(&process).await, Vec::<String>::new());
    assert_eq!(admit(&process, "m-5", "c-1").await, "stored");
    assert_eq!(cases(&process).await, ["c-1"]);
}

#[tokio::test]
async fn what_others_have_stored_in_the_place_of_what_is_gone_is_read_from_the_beginning() {
    let broker = TestBroker::start().await;
    let known = process(&broker.url()).await;
    let jetstream = async_nats::jetstream::new(broker.client().await);
    let stream = jetstream.get_stream("CONCORD_EVENTS").await.unwrap();
    for (message, case) in [("m-1", "c-1"), ("m-2", "c-2")] {
        assert_eq!(admit(&known, message, case).await, "stored");
    }
    let last = known.load(&olga()).await.unwrap().sequence();
    stream.delete_message(last).await.unwrap();
    // Another process has not known what is gone.
    let other = process(&broker.url()).await;
    assert_eq!(admit(&other, "m-3", "c-3").await, "stored");
    assert_eq!(admit(&known, "m-4", "c-4").await, "stored");
    for process in [&known, &other] {
        assert_eq!(cases(process).await, ["c-1", "c-3", "c-4"]);
    }
    // Nothing is left, and another begins anew.
    stream.purge().await.unwrap();
    let other = process(&broker.url()).await;
    assert_eq!(admit(&other, "m-5", "c-5").await, "stored");
    assert_eq!(cases(&known).await, ["c-5"]);
}

/// As a broker stores it whose disk is full (record 112): an event passes the lock though another one stands there, and was acknowledged.
#[tokio::test]
async fn what_stands_beside_the_chain_counts_for_none_and_is_done_again() {
    let installation = TestInstallation::start().await;
    for service in SERVICES {
        installation.kill(service, 0).unwrap();
    }
    let known = process(installation.server_url()).await;
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    let mut stream = jetstream.get_stream("CONCORD_EVENTS").await.unwrap();
    for (message, case) in [("m-1", "c-1"), ("m-2", "c-2")] {
        assert_eq!(admit(&known, message, case).await, "stored");
    }
    let last = known.load(&olga()).await.unwrap().sequence();
    let passed = stream.get_raw_message(last).await.unwrap();
    stream.delete_message(last).await.unwrap();
    let other = process(installation.server_url()).await;
    assert_eq!(admit(&other, "m-3", "c-3").await, "stored");
    let (subject, payload) = (passed.subject, passed.payload);
    let stored = jetstream.publish(subject, payload).await.unwrap();
    stored.await.unwrap();
    let third = process(installation.server_url()).await;
    for process in [&known, &other, &third] {
        assert_eq!(cases(process).await, ["c-1", "c-2"]);
    }
    // Who is handed its message again does it again: as soon as the broker does not take it for a repetition any more.
    let again = admit(&other, "m-3", "c-3").await;
    assert!(again.contains("Contended"), "{again}");
    let mut config = stream.info().await.unwrap().config.clone();
    config.duplicate_window = Duration::from_millis(100);
    jetstream.update_stream(config).await.unwrap();
    wait_for("it to be done again", PATIENCE, async || {
        let again = admit(&other, "m-3", "c-3").await;
        (again == "stored").then_some(()).ok_or(again)
    })
    .await;
    for process in [&known, &other, &third] {
        assert_eq!(cases(process).await, ["c-1", "c-2", "c-3"]);
    }
    check_says_so(&installation).await;
}

/// `concord check` names the two events after the one that was passed over, and says what to do; the test of three brokers counts the same.
async fn check_says_so(installation: &TestInstallation) {
    let client = installation.client();
    let report = audit(client).await.unwrap();
    let replay = report.of(Invariant::Replay).unwrap();
    let beside = beside_the_lock(client).await;
    assert_eq!(beside, [("opener/olga".to_owned(), 2)].into());
    assert_eq!(replay.violations, 2, "{replay:?}");
    let mut command = command(programs_of(&["concord-cli"]).join("concord"));
    let said = finish(command.args(["--server", installation.server_url(), "check"])).await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("opener/olga at "), "{said:?}");
    let remedy = "does not name the one before it";
    assert!(said.out.contains(remedy), "{said:?}");
}
