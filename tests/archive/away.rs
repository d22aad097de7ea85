//! The place of the archive is not there for a while, as a volume that is not mounted.

use std::path::Path;

use concord_testkit::{TestInstallation, event_data, unique, wait_for};
use serde_json::{Value, json};

use crate::archive::PATIENCE;
use crate::archive::stage::{
    concord, decide, installation, logged, removed, rounds_in_vain, said, views,
};

/// The numbers of the segments that were sealed.
async fn sealed(installation: &TestInstallation) -> Result<Vec<Value>, String> {
    let sealed = event_data(installation.client(), "archive.log.sealed").await?;
    Ok(sealed.iter().map(|one| one["number"].clone()).collect())
}

/// Decides a case while the archive is not where it was; it must stay in the streams, and the log must say why.
async fn decide_without(installation: &TestInstallation, case: &str, place: &Path) -> Vec<Value> {
    let archive = place.to_str().expect("a text");
    decide(installation, case).await;
    let before = views(installation, case, ["--archive", archive]).await;
    let told = wait_for("the timers to notice", PATIENCE, async || {
        if sealed(installation).await?.len() > 1 {
            return Ok(Some("a segment was sealed".to_owned()));
        }
        let log = logged(installation);
        let lines = log.lines().filter(|line| line.contains("00000001-"));
        let lines: Vec<&str> = lines.collect();
        let told = lines.last().map(|line| (*line).to_owned());
        told.map(Some).ok_or(log)
    })
    .await;
    let told = told.unwrap_or_default();
    assert!(
        told.contains("Nothing is sealed") && told.contains("mount the folder"),
        "{told}"
    );
    assert_eq!(sealed(installation).await, Ok(vec![json!(1)]));
    before
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_away_is_waited_for_and_no_other_takes_its_place() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (place, away) = (folder.path().join("archive"), folder.path().join("away"));
    let archive = place.to_str().expect("a text");
    let installation = installation(archive).await;
    let cases = ["first", "second", "third"].map(unique);
    decide(&installation, &cases[0]).await;
    removed(&installation, &cases[0]).await;

    // A volume that is not mounted leaves nothing, or the empty folder that it is mounted on.
    std::fs::rename(&place, &away).expect("it is moved");
    let before = decide_without(&installation, &cases[1], &place).await;
    assert!(!place.exists());
    std::fs::create_dir(&place).expect("it is made");
    decide(&installation, &cases[2]).await;
    rounds_in_vain(&installation, "00000001-").await;
    assert_eq!(sealed(&installation).await, Ok(vec![json!(1)]));
    let inside = std::fs::read_dir(&place).expect("a folder").count();
    assert_eq!(inside, 0, "something was written to the empty folder");

    std::fs::remove_dir(&place).expect("it is removed");
    std::fs::rename(&away, &place).expect("it is moved back");
    for case in &cases[1..] {
        removed(&installation, case).await;
    }
    let there = ["--archive", archive];
    assert_eq!(views(&installation, &cases[1], there).await, before);
    let verified = concord(&installation, &["archive", "verify", "--archive", archive]).await;
    assert_eq!(
        (
            &verified["cases"],
            &verified["faults"],
            &verified["unsealed"]
        ),
        (&json!(3), &json!([]), &json!([]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_not_there_is_named_before_anything_is_archived() {
    let installation = TestInstallation::start_without_adapter().await;
    for verb in ["status", "list", "verify"] {
        let look = ["archive", verb, "--archive", "/nowhere/archive"];
        let (code, _, complaint) = said(&installation, &look).await;
        let is_named = complaint.contains("there is no folder /nowhere/archive");
        assert!(code == 0 && is_named, "{verb}: {code} {complaint}");
    }
    // Nobody answers there.
    let look = ["archive", "status", "--archive", "s3://nobody/here"];
    let (code, _, complaint) = said(&installation, &look).await;
    assert_ne!(code, 0, "{complaint}");
}
