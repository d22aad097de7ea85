//! The doctor finds what is wrong, and only that.

use std::time::Duration;

use async_nats::jetstream::{consumer::pull, stream};
use concord_testkit::{CommandOutput, Plan, TestInstallation, binaries_with_clock};
use concord_wire::subject::Service;
use serde_json::Value;

use crate::command::{Session, doctor_until, run};

mod frozen;

fn faults(report: &Value) -> Vec<String> {
    let checks = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["verdict"] == "fault");
    checks
        .map(|check| format!("{} -> {}", check["found"], check["advice"]))
        .collect()
}

#[tokio::test]
async fn a_missing_service_and_a_missing_consumer_are_found() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::Coordinator, 2)).await;
    let url = installation.server_url();
    doctor_until(&["--server", url], |said| {
        said.code == 0
            && said.out.contains("Nothing is wrong.")
            && said.out.contains("coordinator: 2 processes")
    })
    .await;

    installation
        .terminate(Service::DebateFacilitator, 0)
        .await
        .unwrap();
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    jetstream
        .delete_consumer_from_stream("debate-facilitator-effects-debate-opened", "CONCORD_EVENTS")
        .await
        .unwrap();
    let faults_of = |said: &CommandOutput| faults(&serde_json::from_str(&said.out).unwrap());
    let said = doctor_until(&["--json", "--server", url], |said| {
        said.code == 1 && faults_of(said).len() == 2
    })
    .await;
    let found = faults_of(&said);
    assert!(
        found[0].contains("debate-facilitator does not answer"),
        "{found:?}"
    );
    assert!(
        found[1].contains("debate-facilitator-effects-debate-opened is missing")
            && found[1].contains("start the debate-facilitator")
    );

    installation
        .restart(Service::DebateFacilitator, 0)
        .await
        .unwrap();
    doctor_until(&["--server", url], |said| said.code == 0).await;

    let mut changed = jetstream
        .get_stream("CONCORD_DEAD")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    changed.max_age = std::time::Duration::from_secs(3_600);
    jetstream.update_stream(changed).await.unwrap();
    let said = run(&["doctor", "--server", url]).await;
    assert!(
        said.code == 1 && said.out.contains("CONCORD_DEAD: max_age is 3600s"),
        "{}",
        said.out
    );
}

#[tokio::test]
async fn a_service_that_an_installation_does_without_is_no_fault() {
    let installation = TestInstallation::start().await;
    let url = installation.server_url();
    let (adapter, detector) = (Service::AgentAdapter, Service::ConflictDetector);
    for service in [adapter, detector] {
        installation.terminate(service, 0).await.unwrap();
    }
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    let name = "conflict-detector-facts-case-findings_closed";
    jetstream
        .delete_consumer_from_stream(name, "CONCORD_EVENTS")
        .await
        .unwrap();
    let without_one = ["--server", url, "--without", "agent-adapter"];
    let said = doctor_until(&without_one, |said| said.out.contains("2 faults.")).await;
    assert!(
        said.out.contains("conflict-detector does not answer") && said.out.contains(name),
        "{}",
        said.out
    );
    let both = [&without_one[..], &["--without", "conflict-detector"]].concat();
    doctor_until(&both, |said| said.code == 0).await;
    // One that is there is looked at all the same.
    installation.restart(adapter, 0).await.unwrap();
    doctor_until(&both, |said| said.out.contains("agent-adapter: 1 process")).await;
}

/// As `nats stream edit` and `nats consumer edit` change them.
#[tokio::test]
async fn what_throws_events_away_or_holds_deliveries_up_is_found_and_mended() {
    let installation = TestInstallation::start().await;
    let url = installation.server_url();
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    let mut events = jetstream.get_stream("CONCORD_EVENTS").await.unwrap();
    let limited = stream::Config {
        max_messages: 100_000,
        max_bytes: 1 << 30,
        discard: stream::DiscardPolicy::Old,
        ..events.info().await.unwrap().config.clone()
    };
    jetstream.update_stream(limited).await.unwrap();
    let name = "coordinator-effects-case-opened";
    let found = events.consumer_info(name).await.unwrap().config;
    for (max_deliver, ack_wait_s) in [(1, 5), (-1, 60_000)] {
        let changed = pull::Config {
            durable_name: found.durable_name.clone(),
            filter_subject: found.filter_subject.clone(),
            ack_policy: found.ack_policy,
            max_ack_pending: found.max_ack_pending,
            max_deliver,
            ack_wait: Duration::from_secs(ack_wait_s),
            ..pull::Config::default()
        };
        events.update_consumer(changed).await.unwrap();
        let faults_of = |said: &CommandOutput| faults(&serde_json::from_str(&said.out).unwrap());
        let arguments = ["--json", "--server", url];
        let said = doctor_until(&arguments, |said| faults_of(said).len() == 3).await;
        let found = faults_of(&said);
        let has = |part: &str| found.iter().any(|fault| fault.contains(part));
        assert!(has("CONCORD_EVENTS: max_messages is 100000"), "{found:?}");
        assert!(has("CONCORD_EVENTS: discard is Old"), "{found:?}");
        let of_consumer = match max_deliver {
            1 => "max_deliver is 1 and should be unlimited\" -> \"restart the coordinator",
            _ => {
                "ack_wait is 60000s and should be 5s\" -> \"it follows from the setting work.ack_wait_ms"
            }
        };
        assert!(
            has(&format!("{name} on CONCORD_EVENTS: {of_consumer}")),
            "{found:?}"
        );
    }
    let planned = run(&["migrate", "--server", url]).await;
    assert_eq!(planned.code, 1, "{planned:?}");
    run(&["migrate", "--server", url, "--apply"]).await.good();
    let now = events.info().await.unwrap().config.clone();
    let kept = (now.max_messages, now.max_bytes, now.discard);
    assert_eq!(kept, (-1, 1 << 30, stream::DiscardPolicy::New));
    let coordinator = Service::Coordinator;
    installation.terminate(coordinator, 0).await.unwrap();
    installation.restart(coordinator, 0).await.unwrap();
    doctor_until(&["--server", url], |said| said.code == 0).await;
}

#[tokio::test]
async fn a_consumer_that_is_paused_is_named_with_how_long_it_is() {
    let installation = TestInstallation::start().await;
    let name = "debate-facilitator-effects-debate-opened";
    let until = time::OffsetDateTime::now_utc() + time::Duration::seconds(90);
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    let stream = jetstream.get_stream("CONCORD_EVENTS").await.unwrap();
    let paused = stream.pause_consumer(name, until).await.unwrap();
    assert!(paused.paused);
    let url = installation.server_url();
    let said = doctor_until(&["--json", "--server", url], |said| said.code == 0).await;
    let report = said.json();
    let checks = report["checks"].as_array().unwrap();
    let notes: Vec<&Value> = checks
        .iter()
        .filter(|check| check["verdict"] == "note")
        .collect();
    assert_eq!(notes.len(), 1, "{report:#}");
    let found = notes[0]["found"].as_str().unwrap();
    assert!(
        found.starts_with("1 consumer paused for up to ") && found.ends_with(name),
        "{found}"
    );
}

#[tokio::test]
async fn the_object_store_of_large_payloads_is_looked_at() {
    use async_nats::jetstream::object_store::Config;
    let installation = TestInstallation::start().await;
    let url = installation.server_url();
    let said = doctor_until(&["--server", url], |said| said.code == 0).await;
    let text = said.good();
    assert!(
        text.contains("CONCORD_PAYLOADS holds 0.0 MB of 1024.0 MB (0 %)"),
        "{text}"
    );

    let jetstream = async_nats::jetstream::new(installation.client().clone());
    let faults_of = |said: &CommandOutput| faults(&serde_json::from_str(&said.out).unwrap());
    let faulty = async |number: usize| {
        let arguments = ["--json", "--server", url];
        let are_all = |said: &CommandOutput| said.code == 1 && faults_of(said).len() == number;
        let said = doctor_until(&arguments, are_all).await;
        faults_of(&said)
    };
    jetstream
        .delete_object_store("CONCORD_PAYLOADS")
        .await
        .unwrap();
    let found = faulty(1).await;
    assert!(
        found[0].contains("CONCORD_PAYLOADS is missing"),
        "{found:?}"
    );
    assert!(
        found[0].contains("start any service") && found[0].contains("storage.payload_store_bytes"),
        "{found:?}"
    );

    // Another limit than the settings say, and nearly full.
    let config = Config {
        bucket: "CONCORD_PAYLOADS".into(),
        max_bytes: 1 << 20,
        ..Config::default()
    };
    let store = jetstream.create_object_store(config).await.unwrap();
    store
        .put("large", &mut &vec![7_u8; (1 << 20) - 40_000][..])
        .await
        .unwrap();
    let found = faulty(3).await;
    let has = |part: &str| {
        assert!(
            found.iter().any(|fault| fault.contains(part)),
            "{part}: {found:?}"
        )
    };
    has("OBJ_CONCORD_PAYLOADS: max_bytes is 1048576 and should be 1073741824");
    has("OBJ_CONCORD_PAYLOADS: max_age is 0ns and should be");
    has("CONCORD_PAYLOADS holds 1.0 MB of 1.0 MB (9");
    has("nats stream edit OBJ_CONCORD_PAYLOADS --max-bytes");

    // What the settings say is right for who gives them.
    let settings = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        settings.path(),
        "[storage]\npayload_store_bytes = 1048576\n",
    )
    .unwrap();
    let line = format!("doctor --config '{}'", settings.path().display());
    let with_settings = Session::new(url).run(&line).await;
    assert!(
        !with_settings.out.contains("max_bytes is"),
        "{with_settings:?}"
    );
}

#[tokio::test]
async fn a_store_of_large_payloads_that_is_almost_full_is_a_note_before_it_is_a_fault() {
    let plan = |plan: Plan| plan.with_setting("storage.payload_store_bytes=1048576");
    let installation = TestInstallation::start_with(plan).await;
    let settings = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        settings.path(),
        "[storage]\npayload_store_bytes = 1048576\n",
    )
    .unwrap();
    let config = settings.path().to_str().unwrap();
    let arguments = [
        "--json",
        "--server",
        installation.server_url(),
        "--config",
        config,
    ];
    let of_store = |said: &CommandOutput| {
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let checks = report["checks"].as_array().unwrap().clone().into_iter();
        let checks: Vec<Value> = checks
            .filter(|check| check["area"] == "Large payloads")
            .collect();
        assert_eq!(checks.len(), 1, "{checks:?}");
        checks[0].clone()
    };
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    let store = jetstream
        .get_object_store("CONCORD_PAYLOADS")
        .await
        .unwrap();
    for (name, bytes, code, verdict, shown) in [
        ("much", 800_000, 0, "good", "holds 0.8 MB of 1.0 MB (7"),
        ("more", 70_000, 0, "note", "holds 0.8 MB of 1.0 MB (8"),
        ("most", 135_000, 1, "fault", "holds 1.0 MB of 1.0 MB (9"),
    ] {
        store.put(name, &mut &vec![7_u8; bytes][..]).await.unwrap();
        let said = doctor_until(&arguments, |said| {
            (said.code, &of_store(said)["verdict"]) == (code, &Value::from(verdict))
        })
        .await;
        let check = of_store(&said).to_string();
        assert!(check.contains(shown), "{check}");
        assert_eq!(
            check.contains("raise storage.payload_store_bytes"),
            verdict != "good",
            "{check}"
        );
    }
}

#[tokio::test]
async fn a_process_whose_clock_is_wrong_is_named() {
    let installation = TestInstallation::start_without_adapter().await;
    let url = installation.server_url();
    let folder = tempfile::tempdir().unwrap();
    let clocks = [
        (Service::Coordinator, 30),
        (Service::ConflictDetector, -30),
        (Service::DebateFacilitator, 2),
    ];
    let mut wrong = Vec::new();
    for (service, ahead_s) in clocks {
        let Some(binaries) = binaries_with_clock(folder.path(), ahead_s) else {
            return;
        };
        let one = TestInstallation::start_with(|mut plan: Plan| {
            plan.server_url = Some(url.to_owned());
            plan.binaries = Some(binaries);
            plan.replicas.clear();
            plan.with_replicas(service, 1)
        });
        wrong.push(one.await);
    }
    let clocks_of = |said: &CommandOutput| -> Vec<String> {
        let faults = faults(&serde_json::from_str(&said.out).unwrap());
        let of_clocks = faults.into_iter().filter(|fault| fault.contains("clock"));
        of_clocks.collect()
    };
    // Half of the time of an answer is taken for its way back, which is too much for one that was slow.
    let is_exact = |fault: &String| fault.contains("29.") || fault.contains("30.");
    let said = doctor_until(&["--json", "--server", url], |said| {
        let others = "5 of the services' processes are at most";
        let found = clocks_of(said);
        said.out.contains(others) && found.len() == 2 && found.iter().all(is_exact)
    })
    .await;
    let found = clocks_of(&said);
    let expected = [
        (Service::ConflictDetector, "s behind the broker's"),
        (Service::Coordinator, "s ahead of the broker's"),
    ];
    for (service, side) in expected {
        let of_service = found.iter().find(|fault| fault.contains(service.as_str()));
        let fault = of_service.unwrap_or_else(|| panic!("{service}: {found:?}"));
        let with = wrong.iter().find_map(|one| one.pid(service, 0));
        let pid = with.expect("it runs");
        assert!(
            fault.contains(side) && fault.contains(&format!("pid {pid} on ")),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn services_that_were_never_started_are_said_once_and_before_consumers() {
    let installation = TestInstallation::start_with(|mut plan: Plan| {
        plan.replicas.clear();
        plan.with_replicas(Service::Coordinator, 1)
    })
    .await;
    let url = installation.server_url();
    let said = doctor_until(&["--json", "--server", url], |said| said.code == 1).await;
    let found = faults(&serde_json::from_str(&said.out).unwrap());
    assert!(found.len() < 10, "{found:#?}");
    let place = |part: &str| {
        let place = found.iter().position(|fault| fault.contains(part));
        place.unwrap_or_else(|| panic!("{part}: {found:#?}"))
    };
    let silent = place("conflict-detector does not answer");
    let missing = place("conflict-detector: its ");
    assert!(silent < missing, "{found:#?}");
    assert!(found[missing].contains("never started"), "{found:#?}");
}
