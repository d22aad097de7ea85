//! Whoever asks how the installation is hears that nothing is archived, and why.

use concord_testkit::{TestInstallation, unique, wait_for};
use serde_json::Value;

use crate::archive::PATIENCE;
use crate::archive::stage::{decide, installation, removed, said};

/// What the doctor finds of the archive.
async fn found(installation: &TestInstallation) -> Result<Vec<Value>, String> {
    let (_, out, complaint) = said(installation, &["doctor", "--json"]).await;
    let found: Value =
        serde_json::from_str(&out).map_err(|error| format!("{error}: {complaint}"))?;
    let checks = found["checks"].as_array().ok_or("no checks")?;
    let of_archive = checks.iter().filter(|check| check["area"] == "Archive");
    Ok(of_archive.cloned().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_why_nothing_is_archived_until_it_is() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let [first, second] = ["first", "second"].map(unique);
    decide(&installation, &first).await;
    removed(&installation, &first).await;
    assert_eq!(found(&installation).await, Ok(Vec::new()));

    // What was sealed last is found, and nothing can be written.
    let (segments, away) = (place.join("segments"), place.join("away"));
    std::fs::rename(&segments, &away).expect("it is moved");
    decide(&installation, &second).await;
    let told = wait_for("the doctor to tell", PATIENCE, async || {
        let found = found(&installation).await?;
        found.first().cloned().ok_or_else(|| "nothing".to_owned())
    })
    .await;
    let why = told["found"].as_str().unwrap_or_default();
    assert!(
        told["verdict"] == "fault" && why.contains("segments/00000002-"),
        "{told:#}"
    );
    assert!(
        told["advice"]
            .as_str()
            .is_some_and(|advice| advice.contains("docs/archive.md"))
    );

    std::fs::rename(&away, &segments).expect("it is moved back");
    removed(&installation, &second).await;
    wait_for("the doctor to find nothing", PATIENCE, async || {
        let found = found(&installation).await?;
        found.is_empty().then_some(()).ok_or(format!("{found:?}"))
    })
    .await;
}
