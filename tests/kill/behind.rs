//! A broker that has just come back lacks what was stored meanwhile, and a reader may be given its copy: it must not take that for all.

use std::ops::ControlFlow;
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_runtime::broker::log_reader;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_testkit::{layout, stored, wait_for};
use futures::future::join_all;

use crate::kill::brokers::{BROKERS, Brokers};

/// How often a broker is killed, and how often at most, until it was once seen to lack something.
const ROUNDS: usize = 4;
const ROUNDS_MAX: usize = 12;
/// Messages that it lacks then, and their size in bytes.
const LACKED: usize = 4_000;
const SIZE: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(60);
/// What the readers look for: one message of each round.
const MARKS: &str = "concord.v1.msg.c.mark.coordinator.x";

/// Stores what the broker that is down lacks, and a mark as the last.
async fn store(jetstream: &jetstream::Context, body: &bytes::Bytes) {
    let publish = async |subject: &'static str| {
        wait_for("a message is stored", PATIENCE, async || {
            let sent = jetstream.publish(subject, body.clone()).await;
            sent.map_err(|error| error.to_string())?
                .await
                .map_err(|error| error.to_string())
        })
        .await;
    };
    for _ in 0..LACKED / 100 {
        join_all((0..100).map(|_| publish("concord.v1.msg.c.bulk.coordinator.x"))).await;
    }
    publish(MARKS).await;
}

/// The broker that leads the stream, and whether all copies have everything.
async fn copies(jetstream: &jetstream::Context, name: &str) -> Result<(String, bool), String> {
    let stream = jetstream.get_stream(name).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let cluster = stream.cached_info().cluster.clone().unwrap_or_default();
    let all = cluster.replicas.len() == BROKERS - 1;
    let current = cluster
        .replicas
        .iter()
        .all(|one| one.current && !one.offline);
    Ok((cluster.leader.ok_or("no leader")?, all && current))
}

/// How many marks each way of reading finds.
async fn found(broker: &Broker) -> Result<[usize; 2], String> {
    let marks = stored(&broker.client, StreamKind::Messages, MARKS).await?;
    let (filters, mut read) = ([MARKS.to_owned()], 0);
    log_reader::read_matching(broker, StreamKind::Messages, &filters, 1, |_| {
        read += 1;
        ControlFlow::Continue(())
    })
    .await
    .map_err(|error| error.to_string())?;
    Ok([marks.len(), read])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_lacks_is_read_all_the_same() {
    if std::env::var_os("CONCORD_QUICK").is_some() {
        return println!("left out: CONCORD_QUICK is set");
    }
    let brokers = Brokers::start().await;
    let settings = BrokerSettings {
        servers: brokers.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true).await;
    let broker = broker.expect("the brokers are there");
    let jetstream = jetstream::new(broker.client.clone());
    let name = layout().stream_name(StreamKind::Messages);
    wait_for("the stream", PATIENCE, async || {
        let config = stream::Config {
            name: name.clone(),
            subjects: vec!["concord.v1.msg.>".to_owned()],
            num_replicas: BROKERS,
            ..stream::Config::default()
        };
        let made = jetstream.get_or_create_stream(config).await;
        made.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let body = bytes::Bytes::from(vec![b'x'; SIZE]);
    let (mut reads, mut behind) = (0, 0);
    for round in 1..=ROUNDS_MAX {
        if round > ROUNDS && behind > 0 {
            break;
        }
        let (leader, _) = wait_for("a leader", PATIENCE, async || {
            copies(&jetstream, &name).await
        })
        .await;
        let down = (0..BROKERS).find(|one| format!("broker-{one}") != leader);
        let down = down.expect("one that does not lead");
        brokers.kill(down);
        store(&jetstream, &body).await;
        brokers.start_again(down).await;
        loop {
            let have_all = copies(&jetstream, &name).await.is_ok_and(|(_, all)| all);
            // Without an answer it is asked again.
            let found = wait_for("an answer", PATIENCE, async || found(&broker).await).await;
            assert_eq!(
                found,
                [round, round],
                "in round {round}, after {reads} reads"
            );
            reads += 1;
            if have_all {
                break;
            }
            behind += 1;
        }
    }
    println!("{reads} reads, {behind} of them while a broker lacked something");
    assert!(behind > 0, "no broker was ever behind");
}
