//! What three brokers say otherwise than one, to whoever copies or looks after an installation.

use concord_testkit::{CommandOutput, TestInstallation, command, finish, programs_of};
use concord_wire::subject::Service;

use crate::kill::brokers::Brokers;

async fn concord(brokers: &Brokers, arguments: &[&str]) -> CommandOutput {
    let program = programs_of(&["concord-cli"]).join("concord");
    let mut command = command(program);
    finish(command.args(["--server", &brokers.url()]).args(arguments)).await
}

/// A timer on three brokers that keep each stream three times, with the archive elsewhere.
async fn start(brokers: &Brokers) -> TestInstallation {
    let url = brokers.url();
    TestInstallation::start_with(|mut plan| {
        plan.server_url = Some(url);
        plan.replicas.clear();
        plan.with_replicas(Service::EscalationTimer, 1)
            .with_setting("storage.replicas=3")
    })
    .await
}

/// They do not answer at all when they are to copy a stream that there is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_an_archive_of_its_own_is_copied() {
    let brokers = Brokers::start().await;
    let _installation = start(&brokers).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let arguments = ["backup", copy.to_str().unwrap(), "--json"];
    let made = concord(&brokers, &arguments).await.json();
    let streams = made["streams"].as_array().unwrap().iter();
    let names: Vec<&str> = streams.map(|one| one["stream"].as_str().unwrap()).collect();
    assert!(names.contains(&"CONCORD_EVENTS"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.contains("ARCHIVE")),
        "{names:?}"
    );
}
