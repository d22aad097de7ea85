//! What backups leave on the disk that were not made to their end.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use concord_testkit::{
    TestBroker, TestInstallation, command, concord_at, concord_program, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::backup::ended::{UnderWay, waiting};
use crate::backup::{PATIENCE, text};

/// The names of what is in a directory, in their order.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_fails_leaves_nothing() {
    let installation = TestInstallation::start_without_adapter().await;
    let folder = tempfile::tempdir().unwrap();
    let _under_way = UnderWay::at(&installation).await;
    let (parent, new) = (text(folder.path()), text(&folder.path().join("new")));
    for arguments in [vec![parent.as_str(), "--dated"], vec![new.as_str()]] {
        let arguments = [vec!["backup", "--wait", "0"], arguments].concat();
        let failed = concord_at(installation.server_url(), &arguments).await;
        let left = names(folder.path());
        assert!(left.is_empty(), "{failed:?} {left:?}");
        let said = failed.refused(1);
        assert!(said.contains("is still being worked on") && said.contains("is removed"));
    }
    let there = folder.path().join("there");
    std::fs::create_dir(&there).unwrap();
    let into = ["backup", "--wait", "0", &text(&there)];
    let failed = concord_at(installation.server_url(), &into)
        .await
        .refused(1);
    assert!(failed.contains("stays there"), "{failed}");
    assert!(there.is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_backup_left_is_removed_and_what_is_written_stays() {
    let installation = TestInstallation::start_without_adapter().await;
    let server = installation.server_url();
    let folder = tempfile::tempdir().unwrap();
    let parent = text(folder.path());
    let under_way = UnderWay::at(&installation).await;
    let first = [parent.as_str(), "--dated", "--pause-max", "10"];
    let mut running = waiting(&installation, &first).await;
    let written = names(folder.path());
    assert_eq!(written.len(), 1);
    // It would find everything paused, and within the same second it would have the same name.
    let beside = concord_at(server, &["backup", &parent, "--dated", "--wait", "0"]).await;
    assert_ne!(beside.code, 0, "{beside:?}");
    assert_eq!(names(folder.path()), written, "{beside:?}");
    running.kill().await.unwrap();

    // What nobody has said is a backup of this kind.
    std::fs::create_dir_all(folder.path().join("by-hand").join("CONCORD_MESSAGES")).unwrap();
    under_way.done().await;
    let next = ["backup", &parent, "--dated", "--json"];
    let made = wait_for(
        "a backup after the pause of the other",
        PATIENCE,
        async || {
            let made = concord_at(server, &next).await;
            // Until then it is refused; what the other one has left is not in its way.
            let is_made = made.code == 0;
            is_made.then(|| made.clone().json()).ok_or(made.err)
        },
    )
    .await;
    let made = Path::new(made["directory"].as_str().unwrap());
    let name = made.file_name().unwrap().to_str().unwrap();
    assert_eq!(names(folder.path()), [name, "by-hand"]);
    assert!(!names(made).contains(&".lock".to_owned()));
}

/// They hold everything that agents and people have said.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_and_a_bundle_are_read_by_their_owner_alone() {
    let installation = TestInstallation::start_without_adapter().await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("backups").join("copy");
    let backup = ["backup", &text(&copy)];
    concord_at(installation.server_url(), &backup).await.good();
    let bundle = folder.path().join("bundle");
    let export = ["audit", "export", &text(&bundle)];
    concord_at(installation.server_url(), &export).await.good();
    assert!(names(&bundle).contains(&"manifest.json".to_owned()));
    let (mut open, mut looked_at) = (Vec::new(), vec![folder.path().join("backups"), bundle]);
    while let Some(path) = looked_at.pop() {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        if mode & 0o077 != 0 {
            open.push(format!("{} {mode:o}", path.display()));
        }
        if path.is_dir() {
            looked_at.extend(names(&path).iter().map(|name| path.join(name)));
        }
    }
    assert!(open.is_empty(), "{open:#?}");
}

#[tokio::test]
async fn a_bundle_that_fails_leaves_nothing() {
    let broker = TestBroker::start().await;
    let folder = tempfile::tempdir().unwrap();
    let export = ["audit", "export", &text(&folder.path().join("bundle"))];
    let said = concord_at(&broker.url(), &export).await.refused(1);
    assert!(said.contains("is removed"), "{said}");
    let left = names(folder.path());
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_interrupted_leaves_nothing() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    // Enough to be written when it is interrupted.
    let note = bytes::Bytes::from(vec![b'x'; 4_096]);
    for _ in 0..5_000 {
        let subject = "concord.v1.msg.c-1.ann.ben.note";
        client.publish(subject, note.clone()).await.unwrap();
    }
    client.flush().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    // Where this process is slow it is over before it is interrupted, and is tried again.
    for _ in 0..20 {
        let mut export = command(concord_program());
        export.args(["--server", installation.server_url(), "audit", "export"]);
        let export = export.arg(&bundle).spawn().unwrap();
        wait_for("a folder that is being filled", PATIENCE, async || {
            bundle.is_dir().then_some(()).ok_or_else(String::new)
        })
        .await;
        let pid = Pid::from_raw(i32::try_from(export.id().unwrap()).unwrap());
        kill_process(pid.unwrap(), Signal::TERM).unwrap();
        let ended = export.wait_with_output().await.unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        if ended.status.success() {
            std::fs::remove_dir_all(&bundle).unwrap();
            continue;
        }
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("interrupted"), "{said}");
        let left = names(folder.path());
        assert!(left.is_empty(), "{left:?}");
        return;
    }
    panic!("it was never interrupted")
}
