//! Messages have taken all the room that they may: whoever publishes is told, decisions are stored all the same, readiness and `doctor` see
//! it, and what was begun goes on when there is room again.

use std::time::Duration;

use async_nats::jetstream;
use concord_events::topology::StreamKind;
use concord_installation::instances;
use concord_runtime::Broker;
use concord_runtime::broker::{log_reader, migration, provision};
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_testkit::{
    Agent, CommandOutput, TestBroker, TestInstallation, command, concord_at, finish, http_get,
    programs_of, round_trip, wait_for,
};
use concord_wire::subject::{DEFAULT_PREFIX, Service};
use concord_wire::{Timestamp, Token};
use futures::StreamExt;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
/// The least that the setting takes: messages may have half of it.
const BYTES_MAX: &str = "storage.bytes_max=100000000";
const FILLING: &str = "concord.v1.msg._.filler.nobody.note";

/// Publishes to nobody until the broker refuses: what it says.
async fn fill(installation: &TestInstallation) -> String {
    let mut jetstream = jetstream::new(installation.client().clone());
    jetstream.set_timeout(PATIENCE);
    for bytes in [900_000, 30_000, 1_000] {
        loop {
            let published = jetstream.publish(FILLING, vec![b'x'; bytes].into()).await;
            let stored = published.expect("the connection is there").await;
            match stored {
                Ok(_) => {}
                Err(refusal) if bytes == 1_000 => return refusal.to_string(),
                Err(_) => break,
            }
        }
    }
    unreachable!("the last size ends with a refusal")
}

/// What `doctor` finds wrong, as one text.
async fn faults(installation: &TestInstallation) -> String {
    let looked = concord_at(installation.server_url(), &["doctor", "--json"]).await;
    let found: Value = serde_json::from_str(&looked.out).expect("it answers in JSON");
    let checks = found["checks"].as_array().cloned().unwrap_or_default();
    let faults = checks
        .iter()
        .filter(|check| check["verdict"] == "fault")
        .map(|check| format!("{}: {}", check["found"], check["advice"]));
    faults.collect::<Vec<_>>().join("\n")
}

/// Waits until `doctor` finds nothing wrong: a process that is slow to answer counts as missing.
async fn is_faultless(installation: &TestInstallation) {
    wait_for("everybody to be ready", PATIENCE, async || {
        let found = faults(installation).await;
        found.is_empty().then_some(()).ok_or(found)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_room_are_refused_and_what_was_begun_is_decided() {
    let installation = TestInstallation::start_with(|plan| plan.with_setting(BYTES_MAX)).await;
    let finding = json!({ "summary": "Seen.", "risk_score": 20 });
    let _ann = Agent::steadfast(installation.client(), "ann", finding, 0.8).await;
    is_faultless(&installation).await;
    // The second participant never answers, so that a deadline decides, when there is no room any more.
    let opening = json!({
        "case_id": "begun", "participants": ["ann", "zoe"], "task": { "type": "test" },
        "policy": { "answer_timeout_ms": 500, "finding_timeout_ms": 20_000 },
    });
    let case = installation.open_case(&opening).await;
    wait_for("ann's finding", PATIENCE, async || {
        let shown = concord_at(installation.server_url(), &["case", "show", "begun"])
            .await
            .out;
        shown.contains("Seen.").then_some(()).ok_or(shown)
    })
    .await;

    let refusal = fill(&installation).await;
    assert!(refusal.contains("maximum bytes exceeded"), "{refusal}");

    // What was stored stays, and what has no room of its own limit goes on.
    let registered = ["person", "register", "eva", "--role", "reviewer"];
    concord_at(installation.server_url(), &registered)
        .await
        .good();
    let found = wait_for("the coordinator to be refused", PATIENCE, async || {
        let found = faults(&installation).await;
        let seen = found.contains("the broker does not store in CONCORD_MESSAGES");
        seen.then_some(found.clone()).ok_or(found)
    })
    .await;
    assert!(found.contains("CONCORD_MESSAGES holds"), "{found}");
    assert!(found.contains("docs/operating.md"), "{found}");

    let jetstream = jetstream::new(installation.client().clone());
    let stream = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    stream.purge().filter(FILLING).await.unwrap();
    let decision = installation.decision(&case, PATIENCE).await;
    assert!(decision.is_object(), "{decision}");
    is_faultless(&installation).await;
    installation.holds(PATIENCE).await;
}

/// What follows from an event is given up while there is no room. When there is, an operator has it done again.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_without_room_is_done_again() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_setting(BYTES_MAX)
            .with_setting("work.deliveries_max=2")
    })
    .await;
    let client = installation.client();
    let finding = json!({ "summary": "Seen.", "risk_score": 20 });
    let _ann = Agent::steadfast(client, "ann", finding, 0.8).await;
    fill(&installation).await;
    let opening = json!({ "case_id": "c-1", "participants": ["ann"], "task": { "type": "test" } });
    let case = installation.open_case(&opening).await;
    wait_for("the dead letter", PATIENCE, async || {
        let listed = concord_at(installation.server_url(), &["dead", "list"])
            .await
            .out;
        let is_there = listed.contains("event.case.c-1.opened");
        is_there.then_some(()).ok_or(listed)
    })
    .await;
    let jetstream = jetstream::new(client.clone());
    let stream = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    stream.purge().filter(FILLING).await.unwrap();
    let retried = concord_at(installation.server_url(), &["dead", "retry", "--all"]).await;
    assert!(retried.good().contains("sent again"));
    let decision = installation.decision(&case, PATIENCE).await;
    let outcome = &decision["decision"]["outcome"];
    assert_eq!(outcome["risk_score"], 20.0, "{decision}");
}

/// Everywhere else 0 tries are no limit. Here everything would be given up before it is tried.
#[tokio::test]
async fn settings_with_which_nothing_could_be_done_are_refused() {
    let program = programs_of(&["concord-coordinator"]).join("concord-coordinator");
    for (setting, part) in [
        ("storage.bytes_max=5000000", "at least 100000000"),
        ("storage.replicas=6", "storage.replicas"),
        ("storage.message_days=200000", "storage.message_days"),
        ("storage.archive=./cases", "begins with /"),
        ("broker.servers=", "broker.servers"),
        ("work.deliveries_max=0", "work.deliveries_max"),
        ("http.address=8080", "http.address"),
        ("http.address=:8080", "http.address"),
        ("http.address=127.0.0.1:80800", "http.address"),
        ("telemetry.log=concord=loud", "telemetry.log"),
        (
            "telemetry.otlp_endpoint=collector:4318",
            "telemetry.otlp_endpoint",
        ),
        ("broker.servers=http://127.0.0.1:4222", "broker.servers"),
        ("broker.servers=nats://127.0.0.1:port", "broker.servers"),
    ] {
        let mut command = command(&program);
        let refused = finish(command.args(["--check-config", "--set", setting]));
        let said = refused.await.refused(64);
        assert!(said.contains(part), "{said}");
    }
}

/// The last line of its log says which file or address it is, and which setting names it.
#[tokio::test]
async fn what_a_service_cannot_start_with_is_named() {
    let test_broker = TestBroker::start().await;
    let program = programs_of(&["concord-escalation-timer"]).join("concord-escalation-timer");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let gone = "/no/such/file";
    for (setting, value, code) in [
        ("http.address", taken.as_str(), 64),
        ("telemetry.otlp_ca", gone, 69),
        ("storage.s3.ca", gone, 69),
        ("broker.tls_ca", gone, 69),
        ("broker.password_file", gone, 69),
        ("broker.credentials", gone, 69),
        ("service.head_key", gone, 69),
    ] {
        let mut given = vec![format!("broker.servers={}", test_broker.url())];
        given.push(format!("{setting}={value}"));
        let with = match setting {
            "broker.password_file" => Some("broker.user=eva"),
            "telemetry.otlp_ca" => Some("telemetry.otlp_endpoint=https://127.0.0.1:4318"),
            "storage.s3.ca" => Some("storage.archive=s3://cases"),
            _ => None,
        };
        given.extend(with.map(str::to_owned));
        let given: Vec<&str> = given.iter().flat_map(|one| ["--set", one]).collect();
        // What is in use by somebody else is known only when it is tried.
        let checked = (code == 69).then_some("--check-config");
        for first in checked.map(Some).into_iter().chain([None]) {
            let mut command = command(&program);
            let ended = finish(command.args(first).args(&given)).await;
            assert_eq!(ended.code, code, "{first:?}: {ended:?}");
            let said = ended.err.lines().last().unwrap_or_default();
            let named = setting.rsplit('.').next().unwrap_or(setting);
            assert!(said.contains(named) && said.contains(value), "{ended:?}");
        }
    }
}

/// What `--check-config` finds good, a start does not end with.
#[tokio::test]
async fn files_of_one_service_are_looked_at_before_it_is_started() {
    let gone = "/no/such/file";
    let mail = &[
        "service.notify.email.host=smtp.example.org",
        "service.notify.email.from=c@example.org",
    ][..];
    for (service, setting, with) in [
        ("conflict-detector", "service.names.model_dir", &[][..]),
        ("agent-adapter", "service.wake.model_dir", &[]),
        ("agent-adapter", "service.notify.tls_ca", mail),
        (
            "escalation-timer",
            "storage.s3.credentials_file",
            &["storage.archive=s3://cases"],
        ),
    ] {
        let name = format!("concord-{service}");
        let mut command = command(programs_of(&[&name]).join(&name));
        command.args(["--check-config", "--set", &format!("{setting}={gone}")]);
        command.args(with.iter().flat_map(|one| ["--set", one]));
        let said = finish(&mut command).await.refused(69);
        let named = setting.rsplit('.').next().unwrap();
        assert!(said.contains(named) && said.contains(gone), "{said}");
    }
}

#[tokio::test]
async fn an_address_for_answers_that_somebody_has_is_named_with_its_setting() {
    let test_broker = TestBroker::start().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let name = "concord-agent-adapter";
    let mut command = command(programs_of(&[name]).join(name));
    for set in [
        format!("broker.servers={}", test_broker.url()),
        format!("service.callback.listen={taken}"),
        "service.callback.public_url=http://127.0.0.1/callback".to_owned(),
        format!("service.callback.secret={}", "x".repeat(32)),
    ] {
        command.args(["--set", &set]);
    }
    let ended = finish(&mut command).await;
    let said = error_of(&ended);
    let named = said.contains("service.callback.listen") && said.contains(&taken);
    assert!(ended.code == 69 && named, "{ended:?}");
}

/// What a service says that ends, among the lines of its log.
fn error_of(ended: &CommandOutput) -> &str {
    let mut lines = ended.err.lines();
    let said = lines.find(|line| line.starts_with("error: "));
    said.unwrap_or_default()
}

async fn connect(test_broker: &TestBroker, prefix: &'static str) -> Broker {
    let settings = BrokerSettings {
        servers: test_broker.url(),
        ..BrokerSettings::default()
    };
    let storage = StorageSettings {
        prefix: Token::fixed(prefix),
        ..StorageSettings::default()
    };
    let connected = Broker::connect("test", &settings, &storage, true).await;
    connected.unwrap()
}

/// The names of both installations' streams are the same, and the second would take the consumers of the first.
#[tokio::test]
async fn a_prefix_that_differs_in_capitals_takes_nothing_over() {
    let test_broker = TestBroker::start().await;
    let broker = connect(&test_broker, "q5").await;
    provision::streams(&broker).await.unwrap();
    let another = connect(&test_broker, "Q5").await;
    migration::apply(&another).await.unwrap_err();
    let name = "concord-coordinator";
    let mut command = command(programs_of(&[name]).join(name));
    let servers = format!("broker.servers={}", test_broker.url());
    command.args(["--set", &servers, "--set", "storage.prefix=Q5"]);
    let ended = finish(&mut command).await;
    let said = error_of(&ended);
    let named = said.contains("storage.prefix") && said.contains("\"q5\"");
    assert!(ended.code == 69 && named, "{ended:?}");
    let events = broker.layout.stream_name(StreamKind::Events);
    let mut events = broker.jetstream.get_stream(events).await.unwrap();
    let found = events.info().await.unwrap();
    assert_eq!(found.config.subjects, ["q5.v1.event.>"]);
    assert_eq!(found.state.consumer_count, 0);
}

/// Whoever has set it, and on whatever stream.
#[tokio::test]
async fn a_stream_with_a_limit_shows_how_full_it_is() {
    let installation = TestInstallation::start_without_adapter().await;
    let jetstream = jetstream::new(installation.client().clone());
    let shown = async || {
        let found = instances(installation.client(), PATIENCE, |found| !found.is_empty()).await;
        let address = found.unwrap()[0].http().expect("it has metrics").to_owned();
        http_get(&address, "/metrics").await.unwrap()
    };
    let until = async |is_shown: bool, stream: &str| {
        let series = format!("concord_stream_fill_ratio{{stream=\"{stream}\"}}");
        wait_for(&series, PATIENCE, async || {
            let metrics = shown().await;
            (metrics.contains(&series) == is_shown)
                .then_some(())
                .ok_or(metrics)
        })
        .await;
    };
    until(true, "OBJ_CONCORD_PAYLOADS").await;
    until(false, "CONCORD_EVENTS").await;
    let mut events = jetstream.get_stream("CONCORD_EVENTS").await.unwrap();
    for limit in [1 << 30, -1] {
        let limited = jetstream::stream::Config {
            max_bytes: limit,
            ..events.info().await.unwrap().config.clone()
        };
        jetstream.update_stream(limited).await.unwrap();
        until(limit > 0, "CONCORD_EVENTS").await;
    }
}

/// A stream that cannot be asked, as while its copies elect a leader, says nothing about what is in it.
#[tokio::test]
async fn what_the_broker_cannot_look_up_is_not_taken_for_missing() {
    let test_broker = TestBroker::start().await;
    let broker = connect(&test_broker, DEFAULT_PREFIX).await;
    provision::streams(&broker).await.unwrap();
    let last = log_reader::last(&broker, StreamKind::Messages, &[]).await;
    assert!(last.unwrap().is_none(), "nothing was stored");
    let since = Timestamp::default();
    let first = log_reader::first_since(&broker, StreamKind::Messages, since).await;
    assert!(first.unwrap().is_none(), "nothing was stored");
    let name = broker.layout.stream_name(StreamKind::Messages);
    broker.jetstream.delete_stream(&name).await.unwrap();
    let last = log_reader::last(&broker, StreamKind::Messages, &[]).await;
    assert!(last.is_err(), "{last:?}");
    let first = log_reader::first_since(&broker, StreamKind::Messages, since).await;
    assert!(first.is_err(), "{first:?}");
}

/// The copy that answers directly may lack what is new, and `concord redeliver` would leave the stream out.
#[tokio::test]
async fn where_a_stream_begins_since_a_time_the_leader_is_asked() {
    let test_broker = TestBroker::start().await;
    let broker = connect(&test_broker, DEFAULT_PREFIX).await;
    provision::streams(&broker).await.unwrap();
    let client = test_broker.client().await;
    let mut asked = client.subscribe("$JS.API.>").await.unwrap();
    round_trip(&client).await;
    let since = Timestamp::default();
    let first = log_reader::first_since(&broker, StreamKind::Messages, since).await;
    assert_eq!(first.unwrap(), None);
    broker
        .client
        .publish("$JS.API.end", "".into())
        .await
        .unwrap();
    let mut subjects = Vec::new();
    while let Some(message) = asked.next().await {
        match message.subject.as_str() {
            "$JS.API.end" => break,
            subject => subjects.push(subject.to_owned()),
        }
    }
    assert_eq!(subjects, ["$JS.API.STREAM.MSG.GET.CONCORD_MESSAGES"]);
}

/// The broker answers, and says what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_missing_is_not_taken_for_a_broker_that_does_not_answer() {
    let installation = TestInstallation::start().await;
    let jetstream = jetstream::new(installation.client().clone());
    jetstream.delete_stream("CONCORD_MEMORY").await.unwrap();
    let missing = "the stream CONCORD_MEMORY is missing: start all services again";
    let found = wait_for("the coordinator to miss it", PATIENCE, async || {
        let found = faults(&installation).await;
        // Whoever has stood still for a while may say that once.
        let seen = found.contains(missing) && !found.contains("the broker does not answer");
        seen.then_some(found.clone()).ok_or(found)
    })
    .await;
    assert!(found.contains("restart all services"), "{found}");
    wait_for(
        "each process to see the broker",
        PATIENCE,
        async || match installation.counter("concord_broker_up").await {
            Ok(5) => Ok(()),
            up => Err(format!("{up:?}")),
        },
    )
    .await;

    let timer = Service::EscalationTimer;
    installation.terminate(timer, 0).await.unwrap();
    installation.restart(timer, 0).await.unwrap();
    is_faultless(&installation).await;
}
