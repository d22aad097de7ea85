//! Streams that were made on one broker get their copies when there are three.

use std::time::Duration;

use async_nats::jetstream::{self, object_store};
use concord_testkit::{command, connect, finish, programs_of, wait_for};
use futures::TryStreamExt;

use crate::kill::brokers::Brokers;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_gives_every_stream_its_copies_an_archive_too() {
    let brokers = Brokers::start().await;
    let program = programs_of(&["concord-cli"]).join("concord");
    let migrate = async |replicas: usize| {
        let mut migrate = command(&program);
        let migrate = migrate.args(["migrate", "--server", &brokers.url(), "--apply"]);
        let replicas = replicas.to_string();
        finish(migrate.env("CONCORD_STORAGE__REPLICAS", replicas)).await
    };
    // It may have no leader yet.
    wait_for("the streams", PATIENCE, async || {
        let made = migrate(1).await;
        (made.code == 0).then_some(()).ok_or(made.err)
    })
    .await;
    let urls = brokers.url();
    let context = jetstream::new(connect(&urls).await);
    let archive = object_store::Config {
        bucket: "CONCORD_ARCHIVE".to_owned(),
        ..Default::default()
    };
    context.create_object_store(archive).await.unwrap();

    migrate(3).await.good();
    let streams: Vec<_> = context.streams().try_collect().await.unwrap();
    let copies = streams.iter().map(|info| info.config.num_replicas);
    let names: Vec<&str> = streams.iter().map(|info| &*info.config.name).collect();
    assert!(names.contains(&"OBJ_CONCORD_ARCHIVE"), "{names:?}");
    assert_eq!(
        copies.collect::<Vec<_>>(),
        vec![3; names.len()],
        "{names:?}"
    );
}
