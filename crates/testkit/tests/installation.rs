//! The kit itself: a broker and an installation start, work, survive what tests do to them, and leave nothing behind.

use std::path::Path;
use std::time::Duration;

use concord_testkit::{TestBroker, TestInstallation, until};
use concord_wire::subject::Service;

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_broker_keeps_its_port_and_its_streams() {
    let broker = TestBroker::start().await;
    let url = broker.url();
    let jetstream = async_nats::jetstream::new(broker.client().await);
    let config = async_nats::jetstream::stream::Config {
        name: "KEPT".into(),
        ..Default::default()
    };
    jetstream.create_stream(config).await.unwrap();
    broker.server().kill();
    broker.server().start().await.unwrap();
    assert_eq!(broker.url(), url);
    let jetstream = async_nats::jetstream::new(broker.client().await);
    jetstream.get_stream("KEPT").await.unwrap();
    assert!(broker.server().stop().await, "it ends by itself on SIGTERM");
    broker.server().start().await.unwrap();
    let pid = broker.server().pid().unwrap();
    let directory = broker.directory().to_owned();
    drop(broker);
    assert!(!is_alive(pid) && !directory.exists());
}

#[tokio::test]
async fn a_condition_that_does_not_come_is_named() {
    let look = async || Err::<(), _>("3 of 5 have answered".to_owned());
    let missing = until("all answers", Duration::from_millis(50), look)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("all answers") && missing.contains("3 of 5 have answered"),
        "{missing}"
    );
    let look = async || -> Result<(), String> { std::future::pending().await };
    assert!(
        until("an answer", Duration::from_millis(50), look)
            .await
            .is_err()
    );
}

/// That cases are decided although services and brokers are killed is what the tests of the whole show.
#[tokio::test]
async fn an_installation_starts_what_was_killed_again_and_leaves_nothing_behind() {
    const TIMER: Service = Service::EscalationTimer;
    let installation = TestInstallation::start_with(|mut plan| {
        plan.replicas.clear();
        plan.with_replicas(TIMER, 2)
    })
    .await;
    let pid = installation.pid(TIMER, 1).unwrap();
    installation.kill(TIMER, 1).unwrap();
    assert!(!is_alive(pid) && installation.pid(TIMER, 1).is_none());
    installation.restart(TIMER, 1).await.unwrap();
    assert!(
        installation.terminate(TIMER, 0).await.unwrap(),
        "a service drains on SIGTERM"
    );
    let mut pids: Vec<u32> = installation
        .processes()
        .filter_map(|(service, replica)| installation.pid(service, replica))
        .collect();
    assert_eq!(pids.len(), 1, "one is left");
    pids.push(installation.broker().unwrap().pid().unwrap());
    drop(installation);
    assert!(pids.into_iter().all(|pid| !is_alive(pid)));
}

#[tokio::test]
async fn a_service_that_does_not_start_shows_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = concord_testkit::Plan::new(directory.path()).with_setting("work.drain=1");
    plan.nats_server = Some(concord_testkit::nats_server());
    plan.binaries = Some(concord_testkit::binaries());
    let error = concord_testkit::Installation::start(plan, |_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has ended") && error.contains("did you mean \"work.drain_ms\"?"),
        "{error}"
    );
}
