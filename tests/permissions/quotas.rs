//! Quotas: an opener, as the user that `concord permissions --role opener` prints, has as many open cases as the installation
//! allows and no more, whatever becomes of the coordinator; others are not held by what one of them has.

use concord_domain::Context;
use concord_domain::aggregates::opener::{OpenerInput, OpenerMachine};
use concord_events::{Admitted, Quotas};
use concord_runtime::NatsPorts;
use concord_runtime::event_store::cache::Cache;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Aggregates, Broker, Outcome};
use concord_testkit::{
    Message, TestInstallation, concord, events, message_bodies, unique, wait_for,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, MessageId, Timestamp};
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::roles::user;
use crate::permissions::user::agents;

/// An installation with two openers and an operator, in which everybody may have two open cases.
struct Stage {
    installation: TestInstallation,
    opal: AgentId,
    oran: AgentId,
    olga: AgentId,
}

impl Stage {
    async fn start() -> Self {
        let [opal, oran, olga] = agents(["opal", "oran", "olga"]);
        let users = json!({ "users": [
            user(&opal, Some("opener")), user(&oran, Some("opener")), user(&olga, Some("operator")),
            { "user": "services", "password": "x" },
        ] });
        let config = format!("authorization: {users}\nno_auth_user: services");
        let installation = TestInstallation::start_with(|mut plan| {
            plan.nats_config = config;
            plan.with_service_setting(Service::Coordinator, "service.quota.open_cases=2")
        })
        .await;
        for opener in [&opal, &oran] {
            installation.register(opener.as_str(), &["opener"]).await;
        }
        installation.register(olga.as_str(), &["operator"]).await;
        Self {
            installation,
            opal,
            oran,
            olga,
        }
    }

    /// Runs a command as the printed user of a person: its exit code, and what it prints and complains.
    fn command(&self, name: &AgentId, arguments: &[&str]) -> (Option<i32>, String) {
        let address = self.installation.server_url();
        let server = address.replacen("nats://", &format!("nats://{name}:x@"), 1);
        let own = ["--as", name.as_str(), "--server", &server];
        let output = concord(&[arguments, &own].concat());
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        (output.status.code(), said)
    }

    /// Opens a case that goes on for long.
    fn open(&self, name: &AgentId, case: &str) -> (Option<i32>, String) {
        let path = self.installation.directory().join(case);
        let file = json!({ "case_id": case, "participants": ["ann"], "task": { "type": "test" } });
        std::fs::write(&path, file.to_string()).expect("written");
        let path = path.display().to_string();
        self.command(name, &["case", "open", &path])
    }

    /// What an opener has, by the command.
    fn held(&self, name: &AgentId) -> Value {
        let (code, said) = self.command(name, &["quota", "--json"]);
        assert_eq!(code, Some(0), "{said}");
        let shown: Value = serde_json::from_str(&said).expect("JSON");
        shown["openers"][0].clone()
    }
}

/// A third case is refused, by the API and by message, and nobody else notices.
async fn check_refused(stage: &Stage) {
    let (code, said) = stage.open(&stage.opal, &unique("over"));
    assert_eq!(code, Some(65), "{said}");
    for part in [
        "CAPACITY_EXCEEDED",
        "more than 2 open cases",
        "concord case cancel",
        "quota.open_cases",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let parameters = json!({ "participants": ["ann"], "task": { "type": "test" } });
    let request = json!({ "action": "open_case", "parameters": parameters });
    let sent = Message::new("_", stage.opal.as_str(), "coordinator", "request", request);
    sent.publish(stage.installation.client()).await;
    let filter = format!("concord.v1.msg.*.coordinator.{}.error", stage.opal);
    let error = wait_for("the error", PATIENCE, async || {
        let errors = message_bodies(stage.installation.client(), &filter).await?;
        errors.last().cloned().ok_or("none".to_owned())
    })
    .await;
    assert_eq!(
        error["payload"]["error_code"], "CAPACITY_EXCEEDED",
        "{error}"
    );
    let (code, said) = stage.open(&stage.oran, &unique("other"));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(stage.held(&stage.oran)["open_cases"], 1);
    let (code, said) = stage.command(&stage.oran, &["quota", stage.opal.as_str()]);
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("may not see what opal"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opener_has_as_many_cases_as_the_quota_says() {
    let stage = Stage::start().await;
    let (first, second) = (unique("first"), unique("second"));
    for case in [&first, &second] {
        let (code, said) = stage.open(&stage.opal, case);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(stage.held(&stage.opal)["open_cases"], 2);
    check_refused(&stage).await;
    // The same request again is no other case.
    assert_eq!(stage.open(&stage.opal, &second).0, Some(0));
    let coordinator = Service::Coordinator;
    stage.installation.kill(coordinator, 0).expect("killed");
    stage.installation.launch(coordinator, 0).expect("launched");
    stage.installation.ready().await.expect("ready");
    assert_eq!(stage.open(&stage.opal, &unique("over")).0, Some(65));
    let cancel = ["case", "cancel", &first, "--why", "not needed", "--by"];
    let cancel = [&cancel[..], &[stage.olga.as_str()]].concat();
    let (code, said) = stage.command(&stage.olga, &cancel);
    assert_eq!(code, Some(0), "{said}");
    // The place is free as soon as the coordinator has heard of the end.
    let third = unique("third");
    wait_for("a place", PATIENCE, async || {
        match stage.open(&stage.opal, &third) {
            (Some(0), _) => Ok(()),
            (_, said) => Err(said),
        }
    })
    .await;
    assert_eq!(stage.held(&stage.opal)["open_cases"], 2);
    // Refused four times or more, told once.
    let filter = format!("opener.{}.quota_reached", stage.opal);
    let told = events(stage.installation.client(), &filter)
        .await
        .expect("events");
    assert_eq!(told.len(), 1);
    // An operator has no quota.
    for _ in 0..3 {
        let (code, said) = stage.open(&stage.olga, &unique("free"));
        assert_eq!(code, Some(0), "{said}");
    }
    stage.installation.holds(PATIENCE).await;
}

/// Takes a place for a case, as a try of a message does that was slow: it has seen that there is no such case, and stops afterwards.
async fn take_place_late(stage: &Stage, opener: &AgentId, case: &str) {
    let settings = BrokerSettings {
        servers: stage.installation.server_url().to_owned(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("slow", &settings, &StorageSettings::default(), true)
        .await
        .expect("connected");
    let store = NatsPorts::new(broker).await.expect("an event store");
    let openers = Aggregates::<OpenerMachine, _>::new(store, &Cache::new(1 << 20));
    let message = MessageId::new(unique("slow")).expect("an id");
    let admitted = Admitted {
        opener: opener.clone(),
        case_id: CaseId::new(case).expect("an id"),
        gates: 0,
        quotas: Quotas::default(),
    };
    let context = Context::of_message(Timestamp::from_unix_millis(1_764_000_000_000), message);
    let input = OpenerInput::Admit(admitted);
    let done = openers.step(&opener.token(), &context, &input, None).await;
    let done = done.expect("stored");
    assert!(matches!(done, Outcome::Appended { .. }), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_was_taken_too_late_is_given_back() {
    let stage = Stage::start().await;
    let (of_another, ended, own) = (unique("another"), unique("ended"), unique("own"));
    assert_eq!(stage.open(&stage.oran, &of_another).0, Some(0));
    assert_eq!(stage.open(&stage.opal, &own).0, Some(0));
    assert_eq!(stage.open(&stage.olga, &ended).0, Some(0));
    let cancel = ["case", "cancel", &ended, "--why", "not needed", "--by"];
    let cancel = [&cancel[..], &[stage.olga.as_str()]].concat();
    let (code, said) = stage.command(&stage.olga, &cancel);
    assert_eq!(code, Some(0), "{said}");
    for case in [&of_another, &ended] {
        take_place_late(&stage, &stage.opal, case).await;
    }
    wait_for("the places are given back", PATIENCE, async || {
        let held = stage.held(&stage.opal);
        if held["open_cases"] == 1 {
            Ok(())
        } else {
            Err(held.to_string())
        }
    })
    .await;
    let filter = format!("opener.{}.released", stage.opal);
    let released = events(stage.installation.client(), &filter).await;
    assert_eq!(released.expect("events").len(), 2);
    // Who opened the case keeps the place.
    assert_eq!(stage.held(&stage.oran)["open_cases"], 1);
    stage.installation.holds(PATIENCE).await;
}
