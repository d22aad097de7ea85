//! What waits for a further try, or was given to a process that is gone: no backup waits for it in vain.

use std::time::Duration;

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{self, AckKind};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_testkit::{
    Message, TestBroker, TestInstallation, concord_at, layout, unique, wait_for,
};
use futures::StreamExt;
use serde_json::json;

use crate::backup::ended::waiting;
use crate::backup::{PATIENCE, open, text};

const SECOND: Duration = Duration::from_secs(1);
/// The consumer of answered requests, whose callbacks the agent adapter calls.
const ANSWERED: &str = "agent-adapter-completions-request-answered";

/// A consumer of events that has missed a process when it has not acknowledged for so long.
async fn consumer(
    client: &async_nats::Client,
    name: &str,
    filter: String,
    ack_wait: Duration,
) -> Consumer<pull::Config> {
    let context = jetstream::new(client.clone());
    let stream = context.get_stream("CONCORD_EVENTS").await.unwrap();
    let config = pull::Config {
        durable_name: Some(name.to_owned()),
        ack_wait,
        filter_subject: filter,
        ..Default::default()
    };
    stream.create_consumer(config).await.unwrap()
}

/// The next event that it is given. It is asked anew every second, as services do: whom it has kept waiting the broker does not look at
/// when a pause ends.
async fn next(consumer: &Consumer<pull::Config>) -> jetstream::Message {
    wait_for("an event", PATIENCE, async || {
        let one = consumer.batch().max_messages(1);
        let one = one.expires(Duration::from_secs(1)).messages().await;
        let given = one.map_err(|error| error.to_string())?.next().await;
        let given = given.ok_or_else(|| "none".to_owned())?;
        given.map_err(|error| error.to_string())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_waits_for_a_further_try_holds_up_no_backup() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let mut defined = layout().adapter_consumers().into_iter();
    let answered = defined.find(|one| one.name == ANSWERED).unwrap();
    let answered = consumer(client, ANSWERED, answered.filter, SECOND).await;
    let [ann, bob] = ["ann", "bob"].map(unique);
    let payload = json!({ "action": "train", "parameters": {} });
    let asked = Message::new("_", &ann, &bob, "request", payload);
    asked.publish(client).await;
    let payload = json!({ "status": "success", "result": {} });
    let answer = Message::new("_", &bob, &ann, "response", payload);
    let answer = answer.with("/correlation_id", json!(asked.id()));
    answer.publish(client).await;
    let event = next(&answered).await;
    let later = AckKind::Nak(Some(Duration::from_secs(600)));
    event.ack_with(later).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let copy = text(&folder.path().join("copy"));
    let backup = ["backup", &copy, "--wait", "20"];
    let made = concord_at(installation.server_url(), &backup).await;
    made.good();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_had_that_is_gone_is_done_by_another_before_the_copy() {
    let installation = TestInstallation::start_without_adapter().await;
    let opened = layout().subjects.event_of_kind(Aggregate::Case, "opened");
    // Longer than half of the time that the backup has.
    let ack_wait = Duration::from_secs(11);
    let slow = consumer(installation.client(), "slow", opened, ack_wait).await;
    open(&installation, "under-way", false).await;
    let by_the_first = next(&slow).await;

    let folder = tempfile::tempdir().unwrap();
    let copy = text(&folder.path().join("copy"));
    let backup = waiting(&installation, &[&copy, "--wait", "20"]).await;
    let by_another = async {
        let by_another = next(&slow).await;
        assert!(!folder.path().join("copy/CONCORD_EVENTS").exists());
        by_another.double_ack().await.unwrap();
        by_another.subject.clone()
    };
    let (ended, done) = tokio::join!(backup.wait_with_output(), by_another);
    let ended = ended.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(done, by_the_first.subject);
}

#[tokio::test]
async fn what_stopped_services_had_taken_is_copied_as_it_waits() {
    let broker = TestBroker::start().await;
    let url = broker.url();
    concord_at(&url, &["migrate", "--apply"]).await.good();
    let client = broker.client().await;
    let context = jetstream::new(client.clone());
    let stored = context.publish("concord.v1.event.case.c-1.opened", "{}".into());
    stored.await.unwrap().await.unwrap();
    let taken = next(&consumer(&client, "slow", String::new(), SECOND).await).await;

    let folder = tempfile::tempdir().unwrap();
    let copy = text(&folder.path().join("copy"));
    let backup = ["backup", &copy, "--wait", "20"];
    concord_at(&url, &backup).await.good();
    let restored = TestBroker::start().await;
    concord_at(&restored.url(), &["restore", &copy])
        .await
        .good();
    let context = jetstream::new(restored.client().await);
    let slow = context.get_consumer_from_stream("slow", "CONCORD_EVENTS");
    let again = next(&slow.await.unwrap()).await;
    assert_eq!(again.subject, taken.subject);
}
