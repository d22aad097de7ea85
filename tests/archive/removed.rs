//! Whoever reads a stream comes to an end although what waited is removed meanwhile, as when cases are archived.

use std::ops::ControlFlow;
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::topology::StreamKind;
use concord_runtime::NatsPorts;
use concord_runtime::broker::{log_reader, provision};
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Broker, EventStore};
use concord_testkit::{Missing, TestBroker, TestInstallation, concord_at, now, patient, until};
use concord_wire::subject::Service;
use futures::TryStreamExt;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// More than a reader asks for at once.
const EVENTS: u64 = 1_200;
const PATIENCE: Duration = Duration::from_secs(60);

async fn broker_of(test_broker: &TestBroker) -> Broker {
    let settings = BrokerSettings {
        servers: test_broker.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true)
        .await
        .unwrap();
    provision::streams(&broker).await.unwrap();
    broker
}

async fn broker_with_events(test_broker: &TestBroker) -> Broker {
    let broker = broker_of(test_broker).await;
    let context = patient(&broker.client);
    let opened = include_str!("../../proto-schemas/examples/accepted/event.case.opened.json");
    for number in 0..EVENTS {
        let subject = format!("concord.v1.event.case.c{number}.opened");
        let stored = context.publish(subject, opened.into()).await.unwrap();
        stored.await.unwrap();
    }
    broker
}

fn remove_all(broker: &Broker) {
    tokio::task::block_in_place(|| {
        Handle::current().block_on(async {
            let stream = broker.stream(StreamKind::Events).await.unwrap();
            stream.purge().await.unwrap();
        });
    });
}

/// Takes from readers what they read from.
fn remove_consumers(broker: &Broker) {
    tokio::task::block_in_place(|| {
        Handle::current().block_on(async {
            let stream = broker.stream(StreamKind::Events).await.unwrap();
            let mut names = stream.consumer_names();
            while let Some(name) = names.try_next().await.unwrap() {
                stream.delete_consumer(&name).await.unwrap();
            }
        });
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_while_it_is_read_ends_the_reading() {
    let test_broker = TestBroker::start().await;
    let broker = broker_with_events(&test_broker).await;
    let mut read = 0;
    let reading = log_reader::read(&broker, StreamKind::Events, 1, |_| {
        if read == 0 {
            remove_all(&broker);
        }
        read += 1;
        ControlFlow::Continue(())
    });
    timeout(PATIENCE, reading).await.expect("it ends").unwrap();
    assert!((1..EVENTS).contains(&read), "{read} were read");
}

/// The watchdog reads all events so, when it starts.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_while_deadlines_are_looked_for_ends_the_looking() {
    let test_broker = TestBroker::start().await;
    let broker = broker_with_events(&test_broker).await;
    let store = NatsPorts::new(broker.clone()).await.unwrap();
    let (mut read, mut next) = (0, 1);
    let reading = store.scan(&mut next, |_| {
        if read == 0 {
            remove_all(&broker);
        }
        read += 1;
    });
    timeout(PATIENCE, reading).await.expect("it ends").unwrap();
    assert!((1..EVENTS).contains(&read), "{read} were read");
    assert_eq!(next, EVENTS + 1);
}

/// What was read of many events is known, and is not read again.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_fails_goes_on_where_it_was() {
    let test_broker = TestBroker::start().await;
    let broker = broker_with_events(&test_broker).await;
    let store = NatsPorts::new(broker.clone()).await.unwrap();
    let (mut read, mut next) = (0, 1);
    let reading = store.scan(&mut next, |_| {
        if read == 0 {
            remove_consumers(&broker);
        }
        read += 1;
    });
    let failed = timeout(PATIENCE, reading).await.expect("it ends");
    failed.expect_err("what it reads from is gone");
    assert!((1..EVENTS).contains(&read), "{read} were read");
    assert_eq!(next, read + 1);
    let reading = store.scan(&mut next, |_| read += 1);
    timeout(PATIENCE, reading).await.expect("it ends").unwrap();
    assert_eq!((read, next), (EVENTS, EVENTS + 1), "each was read once");
}

/// Cases go to the archive while it is read which there are; those that stay are found, each once.
#[tokio::test(flavor = "multi_thread")]
async fn cases_are_listed_page_by_page_while_others_are_removed() {
    let test_broker = TestBroker::start().await;
    let broker = broker_with_events(&test_broker).await;
    let store = NatsPorts::new(broker.clone()).await.unwrap();
    let end = EVENTS - 10;
    let (mut found, mut pages, mut next) = (Vec::new(), 0, 1);
    while next < end {
        let page = store.ids_by(Aggregate::Case, "opened", &mut next, end);
        found.extend(page.await.unwrap());
        pages += 1;
        let stream = broker.stream(StreamKind::Events).await.unwrap();
        stream.purge().sequence(next / 2).await.unwrap();
    }
    assert!(pages > 1 && next == end, "{pages}, {next}");
    let ids: Vec<String> = found.iter().map(ToString::to_string).collect();
    let expected: Vec<String> = (1..end).map(|one| format!("c{}", one - 1)).collect();
    assert_eq!(ids, expected);
}

/// Waits until so many deadlines are known to be open.
async fn open(
    installation: &TestInstallation,
    wanted: u64,
    within: Duration,
) -> Result<(), Missing> {
    let what = format!("{wanted} open deadlines");
    until(what, within, async || {
        let open = installation.counter("concord_deadlines_open").await;
        match open.map_err(|error| error.to_string())? {
            open if open == wanted => Ok(()),
            open => Err(format!("{open} are open")),
        }
    })
    .await
}

/// Stores a case whose deadline is known to be open before it has passed: how its event was stored. Where a slow machine does not know it
/// in time, another case has more.
async fn stored_with_deadline(
    installation: &TestInstallation,
    context: &async_nats::jetstream::Context,
) -> u64 {
    let opened = include_str!("../../proto-schemas/examples/accepted/event.case.opened.json");
    for (case, seconds) in [("c-42", 3), ("c-43", 15), ("c-44", 60)] {
        let opened = opened.replace("c-42", case);
        let mut opened: Value = serde_json::from_str(&opened).unwrap();
        let due = now().plus_millis(seconds * 1_000);
        opened["deadlines"] = json!([{ "name": "case", "due": due }]);
        let subject = format!("concord.v1.event.case.{case}.opened");
        let stored = context.publish(subject, opened.to_string().into()).await;
        let stored = stored.unwrap().await.unwrap();
        let within = Duration::from_secs(seconds);
        if open(installation, 1, within).await.is_ok() {
            return stored.sequence;
        }
        let closed = open(installation, 0, PATIENCE).await;
        closed.unwrap_or_else(|error| panic!("{error}"));
    }
    panic!("no deadline was ever known to be open")
}

/// An event may be read whose followers are removed before they are read: its deadlines are not looked at for ever.
#[tokio::test(flavor = "multi_thread")]
async fn deadlines_of_what_was_removed_are_let_go_of() {
    let timer = Service::EscalationTimer;
    let installation = TestInstallation::start_with(|plan| {
        plan.with_service_setting(timer, "service.watchdog_interval_ms=200")
            .with_service_setting(timer, "service.watchdog_grace_ms=100")
    })
    .await;
    let context = patient(installation.client());
    let sequence = stored_with_deadline(&installation, &context).await;
    let stream = context.get_stream("CONCORD_EVENTS").await.unwrap();
    stream.delete_message(sequence).await.unwrap();
    let closed = open(&installation, 0, PATIENCE).await;
    closed.unwrap_or_else(|error| panic!("{error}"));
}

/// It may go between the reading of which cases there are and that of what they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_has_just_gone_to_the_archive_is_left_out_of_lists_with_a_note() {
    let test_broker = TestBroker::start().await;
    let broker = broker_of(&test_broker).await;
    let context = async_nats::jetstream::new(broker.client.clone());
    let sealed = include_str!("../../proto-schemas/examples/accepted/event.archive.sealed.json");
    let mut sealed: Value = serde_json::from_str(sealed).unwrap();
    sealed.as_object_mut().unwrap().remove("earlier");
    let opened = include_str!("../../proto-schemas/examples/accepted/event.case.opened.json");
    for (subject, body) in [
        ("archive.log.sealed", sealed.to_string()),
        // Nothing of this case can be read any more, but that there was one.
        ("case.c-42.opened", "{}".to_owned()),
        ("case.c-43.opened", opened.replace("c-42", "c-43")),
    ] {
        let subject = format!("concord.v1.event.{subject}");
        let stored = context.publish(subject, body.into()).await.unwrap();
        stored.await.unwrap();
    }
    for (verb, shown) in [("case", "c-43"), ("gate", "")] {
        let server = test_broker.url();
        let listed = concord_at(&server, &[verb, "list"]).await;
        let note = "in the archive and not shown";
        assert!(listed.err.contains(note), "{verb}: {listed:?}");
        assert_eq!(listed.code, 0, "{verb}: {listed:?}");
        let out = &listed.out;
        assert!(out.contains(shown) && !out.contains("c-42"), "{listed:?}");
    }
}
