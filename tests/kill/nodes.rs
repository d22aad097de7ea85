//! What three brokers say otherwise than one, to whoever copies or looks after an installation.

use std::time::Duration;

use concord_testkit::{TestInstallation, concord_at, wait_for};
use concord_wire::subject::Service;

use crate::kill::brokers::Brokers;

const PATIENCE: Duration = Duration::from_secs(120);

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

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_copied_and_names_the_broker_that_it_has_lost() {
    let brokers = Brokers::start().await;
    let installation = start(&brokers).await;
    a_cluster_without_an_archive_of_its_own_is_copied(&brokers).await;
    a_broker_that_is_lost_is_named_until_it_is_back(&brokers, &installation).await;
}

/// They do not answer at all when they are to copy a stream that there is not.
async fn a_cluster_without_an_archive_of_its_own_is_copied(brokers: &Brokers) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let arguments = ["backup", copy.to_str().unwrap(), "--json"];
    let made = concord_at(&brokers.url(), &arguments).await.json();
    let streams = made["streams"].as_array().unwrap().iter();
    let names: Vec<&str> = streams.map(|one| one["stream"].as_str().unwrap()).collect();
    assert!(names.contains(&"CONCORD_EVENTS"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.contains("ARCHIVE")),
        "{names:?}"
    );
}

async fn a_broker_that_is_lost_is_named_until_it_is_back(
    brokers: &Brokers,
    installation: &TestInstallation,
) {
    let seen = async || {
        let said = concord_at(&brokers.url(), &["doctor"]).await;
        let lost = r#"concord_stream_copies_lost{node="broker-1"}"#;
        let counted = installation.counter(lost).await;
        let counted = counted.map_err(|error| error.to_string())?;
        let is_named = said
            .out
            .contains("the broker broker-1 is lost to the cluster");
        Ok::<_, String>((is_named, counted > 0, said.out))
    };
    for is_lost in [false, true, false] {
        let what = format!("everybody to say whether it is lost: {is_lost}");
        wait_for(what, PATIENCE, async || match seen().await? {
            (named, counted, _) if (named, counted) == (is_lost, is_lost) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        match is_lost {
            true => brokers.start_again(1).await,
            false => brokers.kill(1),
        }
    }
}
