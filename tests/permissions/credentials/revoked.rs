//! What is revoked is cut off, and what is replaced goes on, on a system that works meanwhile.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use async_nats::connection::State;
use async_nats::{ConnectErrorKind, ConnectOptions};
use concord_installation::SERVICES;
use concord_testkit::{Message, concord, unique, wait_for};
use concord_wire::{AgentId, CaseId};
use serde_json::json;

use super::{Stage, credentials, parties};
use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents};

/// The server lets nobody in with these credentials.
async fn check_refused(stage: &Stage, file: &Path) {
    let options = ConnectOptions::with_credentials_file(file).await;
    let options = options.expect("a file of credentials");
    let refused = options.connect(stage.installation.server_url()).await;
    let error = refused.expect_err("credentials that are revoked");
    assert_eq!(error.kind(), ConnectErrorKind::AuthorizationViolation);
}

/// Copies of credentials as they were issued.
fn copies(stage: &Stage, keys: [&str; 3]) -> [PathBuf; 3] {
    let kept = stage.folder.path().join("kept");
    std::fs::create_dir(&kept).expect("a folder");
    keys.map(|key| {
        let copy = kept.join(key);
        std::fs::copy(stage.file(key), &copy).expect("a copy");
        copy
    })
}

/// Opens four cases and meanwhile gives all services new credentials, and then revokes those of `revoked`.
async fn work(
    stage: &Stage,
    hers: &User,
    agents: [&AgentId; 2],
    revoked: &str,
    server: &[&str],
) -> Vec<CaseId> {
    let services = SERVICES.map(|service| format!("service:{service}"));
    let services: Vec<&str> = services.iter().map(String::as_str).collect();
    let changes = [
        ("rotate", &services[..2]),
        ("rotate", &services[2..4]),
        ("rotate", &services[4..]),
        ("revoke", &[revoked][..]),
    ];
    let mut cases = Vec::new();
    for (verb, holders) in changes {
        let case = unique("case");
        let opening =
            json!({ "case_id": case, "participants": agents, "task": { "type": "test" } });
        let request = json!({ "action": "open_case", "parameters": opening });
        // By a message, which waits for the coordinator while that connects again.
        Message::new(&case, agents[0].as_str(), "coordinator", "request", request)
            .store(&hers.client)
            .await;
        cases.push(CaseId::new(case).expect("an id"));
        credentials(verb, stage.folder.path(), &[holders, server].concat());
    }
    cases
}

/// What is revoked while no server is there is not forgotten. The server starts again with what its configuration said at first.
async fn revoke_while_away(stage: &Stage, holder: &str, server: &[&str]) {
    stage.installation.stop_broker().await.expect("it stops");
    let folder = stage.folder.path().to_str().expect("a path");
    let arguments = ["credentials", "revoke", folder, holder];
    let untold = concord(&[&arguments[..], server].concat());
    let error = String::from_utf8_lossy(&untold.stderr);
    assert_eq!(untold.status.code(), Some(69), "{error}");
    assert!(error.contains("repeat `concord"), "{error}");
    stage.installation.start_broker().await.expect("it starts");
    let ready = stage.installation.ready().await;
    ready.expect("the services are back");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_revoked_is_cut_off_and_services_go_on_with_new_credentials() {
    let [eva, ben, mallory] = agents(["eva", "ben", "mallory"]);
    let names = [&eva, &ben, &mallory].map(|agent| format!("agent:{agent}"));
    let stage = Stage::new(&names.each_ref().map(String::as_str)).await;
    let (hers, his) = (stage.agent(&eva).await, stage.agent(&ben).await);
    let revoked = stage.agent(&mallory).await;
    let keys = [&ben, &mallory].map(|agent| format!("agent-{agent}"));
    let old = copies(&stage, [&keys[0], &keys[1], "service-coordinator"]);
    let _parties = parties((&eva, &hers), (&ben, &his)).await;
    let url = stage.installation.server_url();
    let server = ["--tenant", "CONCORD", "--server", url];

    let cases = work(&stage, &hers, [&eva, &ben], &names[2], &server).await;
    wait_for(
        "mallory's connection to end",
        PATIENCE,
        async || match revoked.client.connection_state() {
            State::Connected => Err("it is there".to_owned()),
            _ => Ok(()),
        },
    )
    .await;
    for case in &cases {
        let decided = stage.installation.decision(case, PATIENCE).await;
        assert_eq!(decided["decision"]["reason"], "settled", "{decided}");
    }
    check_refused(&stage, &old[2]).await;
    for user in [&hers, &his] {
        let connects = user.client.statistics().connects.load(Ordering::Relaxed);
        assert_eq!(connects, 1, "the others notice nothing");
    }

    revoke_while_away(&stage, &names[1], &server).await;
    check_refused(&stage, &old[1]).await;
    credentials("push", stage.folder.path(), &server[2..]);
    check_refused(&stage, &old[0]).await;
    stage.installation.holds(PATIENCE).await;
    stage.check_services_were_refused_nothing();
}
