//! NATS in operator mode, with the credentials that `concord credentials` issues: a real server takes them, each service starts
//! with its own, and each may do what `concord permissions` prints for it and nothing else.

use std::path::{Path, PathBuf};

use async_nats::{ConnectErrorKind, ConnectOptions, RequestErrorKind};
use concord_installation::SERVICES;
use concord_testkit::{Agent, Message, TestInstallation, agrees, concord, keeps_position, unique};
use concord_wire::{AgentId, CaseId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents};

mod revoked;

/// A directory of credentials, and an installation that runs with them.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) installation: TestInstallation,
}

/// Runs `concord credentials`; it must succeed.
pub(crate) fn credentials(verb: &str, folder: &Path, arguments: &[&str]) -> String {
    let folder = folder.to_str().expect("a path");
    let output = concord(&[&["credentials", verb, folder], arguments].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{verb} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

impl Stage {
    /// Issues credentials to all services, to an operator and to these, and starts an installation in which each uses its own.
    pub(crate) async fn new(holders: &[&str]) -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        credentials(
            "init",
            folder.path(),
            &["--tenant", "CONCORD", "--tenant", "ACME"],
        );
        let services = SERVICES.map(|service| format!("service:{service}"));
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        let all = [&services[..], &["operator:ops"], holders].concat();
        credentials(
            "issue",
            folder.path(),
            &[&all[..], &["--tenant", "CONCORD"]].concat(),
        );
        let other = ["operator:ops", "--tenant", "ACME", "--format", "secret"];
        let secret = credentials("issue", folder.path(), &other);
        let shown = ["operator:ops", "--tenant", "ACME", "--format", "secret"];
        assert_eq!(credentials("show", folder.path(), &shown), secret);
        Self::check_is_issued_once(folder.path(), &other);
        let secret: Value = serde_json::from_str(&secret).expect("JSON");
        let secret = &secret["items"][0];
        assert_eq!(secret["metadata"]["name"], "concord-operator-ops");
        let file = Self::path(folder.path(), "ACME", "operator-ops");
        let bytes = std::fs::metadata(file).expect("the file").len();
        let encoded = secret["data"]["nats.creds"].as_str().map(str::len);
        assert_eq!(encoded, usize::try_from(bytes.div_ceil(3) * 4).ok());
        let config = std::fs::read_to_string(folder.path().join("nats-server.conf"));
        let config = config.expect("the server's configuration");
        let file = |key: &str| Self::path(folder.path(), "CONCORD", key);
        let installation = TestInstallation::start_with(|mut plan| {
            plan.nats_config = config;
            plan.credentials = Some(file("operator-ops"));
            plan = plan.with_setting("work.ack_wait_ms=1000");
            SERVICES.into_iter().fold(plan, |plan, service| {
                let file = file(&format!("service-{service}"));
                plan.with_service_setting(service, format!("broker.credentials={}", file.display()))
            })
        })
        .await;
        Self {
            folder,
            installation,
        }
    }

    /// What counts already is not issued again, and nothing is printed that kubectl would take.
    fn check_is_issued_once(folder: &Path, arguments: &[&str]) {
        let folder = folder.to_str().expect("a path");
        let output = concord(&[&["credentials", "issue", folder], arguments].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    }

    fn path(folder: &Path, tenant: &str, key: &str) -> PathBuf {
        folder.join(format!("creds/{tenant}/{key}.creds"))
    }

    /// The file of somebody's credentials, for example of `agent-eva`.
    pub(crate) fn file(&self, key: &str) -> PathBuf {
        Self::path(self.folder.path(), "CONCORD", key)
    }

    /// Connects an agent with its credentials.
    pub(crate) async fn agent(&self, agent: &AgentId) -> User {
        let file = self.file(&format!("agent-{agent}"));
        User::with_credentials(&self.installation, agent, &file).await
    }

    /// The broker has refused nothing of what the services asked for.
    pub(crate) fn check_services_were_refused_nothing(&self) {
        for service in SERVICES {
            let log = self.installation.log(service, 0).expect("a log");
            let log = std::fs::read_to_string(log)
                .expect("the log")
                .to_lowercase();
            let refused: Vec<&str> = log
                .lines()
                .filter(|line| line.contains("permissions violation"))
                .collect();
            assert!(refused.is_empty(), "{service}: {refused:#?}");
        }
    }
}

/// Two agents that find differently in every case.
pub(crate) async fn parties(eva: (&AgentId, &User), ben: (&AgentId, &User)) -> [Agent; 2] {
    let finding = |score: u32| json!({ "summary": "Seen.", "risk_score": score, "severity": "high", "recommendation": "negotiate" });
    [
        Agent::start_as_user(
            &eva.1.client,
            eva.0.as_str(),
            keeps_position(finding(20), 0.9),
        )
        .await,
        Agent::start_as_user(&ben.1.client, ben.0.as_str(), agrees(finding(90), 0.6)).await,
    ]
}

/// What opens a case between two agents.
fn opening(case: &str, agents: [&AgentId; 2]) -> Value {
    json!({
        "case_id": case, "participants": agents, "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_service_agent_and_operator_works_with_credentials_of_its_own() {
    let [eva, ben] = agents(["eva", "ben"]);
    let stage = Stage::new(&[&format!("agent:{eva}"), &format!("agent:{ben}")]).await;
    let mut hers = stage.agent(&eva).await;
    let mut his = stage.agent(&ben).await;
    let parties = parties((&eva, &hers), (&ben, &his)).await;
    let case = unique("case");
    stage
        .installation
        .open_case(&opening(&case, [&eva, &ben]))
        .await;
    let case = CaseId::new(case).expect("an id");
    let decided = stage.installation.decision(&case, PATIENCE).await;
    assert_eq!(decided["decision"]["reason"], "settled", "{decided}");
    drop(parties);
    stage.installation.holds(PATIENCE).await;
    stage.check_services_were_refused_nothing();
    hers.check_nothing_refused();

    let as_her = Message::finding("c-1", eva.as_str(), json!({ "summary": "As her." }), 0.8);
    his.may_not_publish(as_her.subject(), &as_her.bytes(), "a finding in her name")
        .await;
    his.may_not_subscribe(format!("concord.v1.msg.*.*.{eva}.*"))
        .await;
    let coordinator = stage.file("service-coordinator");
    let mut coordinator = User::with_credentials(&stage.installation, &eva, &coordinator).await;
    let event = "concord.v1.event.debate.d-1.resolved".to_owned();
    coordinator
        .may_not_publish(event, b"{}", "another service's event")
        .await;

    let without = async_nats::connect(stage.installation.server_url()).await;
    let error = without.expect_err("a connection without credentials");
    assert_eq!(error.kind(), ConnectErrorKind::AuthorizationViolation);

    // A tenant sees nothing of another.
    let other = Stage::path(stage.folder.path(), "ACME", "operator-ops");
    let other = ConnectOptions::with_credentials_file(other).await;
    let other = other
        .expect("a file")
        .connect(stage.installation.server_url());
    let other = other.await.expect("the tenant is known");
    let asked = other.request("concord.v1.api.coordinator.status", "".into());
    let error = asked.await.expect_err("nobody is there");
    assert_eq!(error.kind(), RequestErrorKind::NoResponders);
}
