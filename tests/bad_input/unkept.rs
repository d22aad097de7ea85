//! There is no room for dead letters, because somebody has sent very much that is refused: others go on, whoever is refused is told, and what
//! is not kept is counted.

use std::time::Duration;

use async_nats::jetstream;
use concord_events::dead_letter::header;
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_runtime::broker::{migration, provision, room};
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_testkit::{Message, Stored, TestBroker, concord_at, dead_letters, patient, wait_for};
use serde_json::{Value, json};

use crate::bad_input::stage::{PATIENCE, Stage, finding, invalid};
use crate::bad_input::wire::{UNPARSABLE, Wire};

/// The least that the setting takes; letters may have a tenth of it.
const BYTES_MAX: u64 = 100_000_000;
const LETTERS: &str = "concord.v1.dead.coordinator.invalid";

/// Stores letters of about so many bytes until the broker refuses: what it says.
async fn fill(client: &async_nats::Client, bytes: usize) -> String {
    let jetstream = patient(client);
    // With a limit, far fewer do.
    for _ in 0..20_000 {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(header::SUBJECT, "concord.v1.msg._.filler.coordinator.note");
        let body = vec![b'x'; bytes].into();
        let sent = jetstream.publish_with_headers(LETTERS, headers, body).await;
        if let Err(refusal) = sent.expect("the connection is there").await {
            return refusal.to_string();
        }
    }
    panic!("letters have no limit")
}

/// Waits until so many messages that were not kept are counted: how many are.
async fn counted(stage: &Stage, least: u64) -> u64 {
    let unkept = "concord_dead_total{reason=\"unkept\"}";
    wait_for(format!("{least} to be counted"), PATIENCE, async || {
        let counted = stage.installation().counter(unkept).await;
        let counted = counted.map_err(|error| error.to_string())?;
        (counted >= least)
            .then_some(counted)
            .ok_or_else(|| format!("{counted}"))
    })
    .await
}

/// The doctor waits only so long for the processes, so it is asked again.
async fn the_doctor_sees_it(stage: &Stage) {
    wait_for("the doctor to see it", PATIENCE, async || {
        let looked = concord_at(stage.installation().server_url(), &["doctor", "--json"]).await;
        let found: Value = serde_json::from_str(&looked.out).map_err(|error| error.to_string())?;
        let checks = found["checks"].as_array().cloned().unwrap_or_default();
        let faults = checks.iter().filter(|check| check["verdict"] == "fault");
        let faults: Vec<_> = faults.map(|check| check["found"].to_string()).collect();
        let is_full = faults.iter().any(|one| one.contains("CONCORD_DEAD holds"));
        let is_ready = !faults.iter().any(|one| one.contains("not ready"));
        (is_full && is_ready)
            .then_some(())
            .ok_or_else(|| format!("{faults:#?}"))
    })
    .await;
}

async fn letters_about(stage: &Stage, subject: &str) -> Vec<Stored> {
    let letters = dead_letters(stage.client()).await;
    let letters = letters.expect("the stream can be read").into_iter();
    let about = letters.filter(|letter| letter.header(header::SUBJECT) == subject);
    about.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_for_letters_senders_are_told_and_everything_else_goes_on() {
    let stage = Stage::start_with(|plan| {
        plan.with_setting(format!("storage.bytes_max={BYTES_MAX}"))
            .with_setting("work.ack_wait_ms=1000")
    })
    .await;
    let client = stage.client().clone();
    let case = stage.open(&["alice"]).await;
    for bytes in [900_000, 1_000, 1] {
        let refusal = fill(&client, bytes).await;
        assert!(refusal.contains("maximum bytes exceeded"), "{refusal}");
    }

    let good = Message::finding(&case, "alice", finding(50), 0.5);
    let sent = stage.send_bytes(good.subject(), b"not JSON".to_vec()).await;
    stage.error_to("alice", &sent).await;
    let before = counted(&stage, 1).await;
    // What no client can parse would end the connection of whoever is given it, again and again.
    let (suffix, headers) = UNPARSABLE[3];
    let subject = [good.subject().as_bytes(), suffix].concat();
    let objection = Wire::publish(&stage, &subject, headers, &good.bytes()).await;
    assert_eq!(objection, None, "the broker takes it");
    // More often where a slow machine is given one of them again.
    counted(&stage, before + 1).await;
    // Nothing is delivered again and again.
    stage.settled().await;
    stage.decides_a_good_case().await;
    assert!(letters_about(&stage, &sent.subject).await.is_empty());

    // It restricts nobody's work, and the doctor sees it.
    the_doctor_sees_it(&stage).await;

    // The original is where it was sent to: with room again, it can be handed out again.
    let jetstream = jetstream::new(client);
    let stream = jetstream
        .get_stream("CONCORD_DEAD")
        .await
        .expect("it is there");
    stream.purge().await.expect("it is purged");
    let url = stage.installation().server_url();
    concord_at(url, &["redeliver", "--since", "1h"])
        .await
        .good();
    stage.refused("alice", &sent, &invalid("")).await;
    stage.goes_on().await;
}

async fn connect(test_broker: &TestBroker, bytes_max: u64) -> Broker {
    let settings = BrokerSettings {
        servers: test_broker.url(),
        ..BrokerSettings::default()
    };
    let storage = StorageSettings {
        bytes_max,
        ..StorageSettings::default()
    };
    let connected = Broker::connect("test", &settings, &storage, true).await;
    connected.expect("it can be connected to")
}

/// It is reported, nobody is refused for it, and no letter is lost when it is set.
#[tokio::test]
async fn an_installation_of_before_gets_the_limit_of_letters_by_a_migration() {
    let test_broker = TestBroker::start().await;
    let before = connect(&test_broker, 0).await;
    provision::streams(&before).await.expect("they are made");
    let jetstream = patient(&before.client);
    for _ in 0..12 {
        let sent = jetstream.publish(LETTERS, vec![b'x'; 900_000].into()).await;
        sent.expect("it is sent").await.expect("it is stored");
    }

    let after = connect(&test_broker, BYTES_MAX).await;
    let found = provision::streams(&after).await.expect("they are there");
    let named: Vec<_> = found
        .iter()
        .filter(|one| one.stream == "CONCORD_DEAD")
        .map(|one| (one.property, one.setting))
        .collect();
    let setting = Some("storage.bytes_max");
    assert_eq!(named, [("max_bytes", setting), ("discard", setting)]);
    migration::apply(&after).await.expect("they are changed");
    assert_eq!(migration::plan(&after).await.expect("they are there"), []);

    let refusal = tokio::time::timeout(Duration::from_secs(30), fill(&after.client, 1)).await;
    let refusal = refusal.expect("there is no room");
    assert!(refusal.contains("maximum bytes exceeded"), "{refusal}");
    let letters = dead_letters(&after.client).await.expect("readable");
    assert_eq!(letters.len(), 12);
    let fills = room::fills(&after).await.expect("they are there");
    let of_letters = fills.iter().find(|(kind, _)| *kind == StreamKind::Dead);
    let most = of_letters.and_then(|(_, fill)| fill.bytes_max);
    assert_eq!(json!(most), BYTES_MAX / 10);
}
