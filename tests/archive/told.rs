//! Whoever asks how the installation is hears that nothing is archived, and why.

use concord_installation::{Instance, instances};
use concord_testkit::{TestInstallation, http_get, unique, wait_for};
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

/// What the metrics of the escalation timers say of whether archiving fails, the alert is made of it: one of two does it.
async fn fails(installation: &TestInstallation) -> Result<String, String> {
    let timers = |found: &[Instance]| -> Vec<Instance> {
        let found = found
            .iter()
            .filter(|one| one.name == "concord-escalation-timer");
        found.cloned().collect()
    };
    let found = instances(installation.client(), PATIENCE, |found| {
        timers(found).len() == 2
    });
    let found = found.await.map_err(|error| error.to_string())?;
    let mut fails = Vec::new();
    for timer in timers(&found) {
        let metrics = http_get(timer.http().ok_or("no HTTP")?, "/metrics").await;
        let metrics = metrics.map_err(|error| error.to_string())?;
        let line = |line: &str| {
            line.strip_prefix("concord_archive_fails ")
                .map(str::to_owned)
        };
        fails.push(metrics.lines().find_map(line).unwrap_or_default());
    }
    fails.sort();
    Ok(fails.join(" "))
}

async fn nothing_is_found(installation: &TestInstallation) {
    wait_for("the doctor to find nothing", PATIENCE, async || {
        let found = found(installation).await?;
        found.is_empty().then_some(()).ok_or(format!("{found:?}"))
    })
    .await;
}

/// Waits until the timers say so of whether archiving fails.
async fn counted(installation: &TestInstallation, expected: &str) {
    wait_for(format!("{expected:?}"), PATIENCE, async || {
        let fails = fails(installation).await?;
        (fails == expected).then_some(()).ok_or(fails)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_why_nothing_is_archived_until_it_is() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let [first, second] = ["first", "second"].map(unique);
    decide(&installation, &first).await;
    removed(&installation, &first).await;
    // A round may have failed because the broker stood still; the next one does not.
    nothing_is_found(&installation).await;
    counted(&installation, "0 0").await;

    // What was sealed last is found, and nothing can be written.
    let (segments, away) = (place.join("segments"), place.join("away"));
    std::fs::rename(&segments, &away).expect("it is moved");
    decide(&installation, &second).await;
    let told = wait_for("the doctor to tell", PATIENCE, async || {
        let found = found(&installation).await?;
        let is_it = |one: &&Value| {
            let why = one["found"].as_str().unwrap_or_default();
            one["verdict"] == "fault" && why.contains("segments/00000002-")
        };
        let told = found.iter().find(is_it).cloned();
        told.ok_or_else(|| format!("{found:?}"))
    })
    .await;
    assert!(
        told["advice"]
            .as_str()
            .is_some_and(|advice| advice.contains("docs/archive.md"))
    );
    counted(&installation, "0 1").await;

    std::fs::rename(&away, &segments).expect("it is moved back");
    removed(&installation, &second).await;
    nothing_is_found(&installation).await;
}
