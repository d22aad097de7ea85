//! Every view, before and after; what is tampered with; who comes late.

use std::path::Path;

use concord_events::topology::StreamKind;
use concord_testkit::{TestInstallation, settled, stored, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::archive::PATIENCE;
use crate::archive::stage::{
    concord, decide, decided, find, installation, keep_head, open, removed, said, views,
};

/// The same of somebody who asks the services, which know where the archive is.
async fn views_by_asking(installation: &TestInstallation, case: &str) -> Vec<Value> {
    let mut views = Vec::new();
    for verb in ["show", "transcript"] {
        views.push(concord(installation, &["--as", "audrey", "case", verb, case]).await);
    }
    views
}

/// Changes one byte of the first file in a folder: the name of the file.
fn tamper(folder: &Path) -> String {
    let mut files = std::fs::read_dir(folder).expect("a folder");
    let file = files.next().expect("a file").expect("a file").path();
    let mut bytes = std::fs::read(&file).expect("it is read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("it is written");
    let name = file.file_name().expect("a name");
    name.to_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_case_is_seen_as_before_and_is_closed_for_ever() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let archive = place.to_str().expect("a text");
    let installation = installation(archive).await;
    let [case, still_open] = ["case", "open"].map(unique);
    let [cem, dan] = open(&installation, &still_open).await;
    find(&installation, &still_open, &cem, 20).await;
    let ann = decide(&installation, &case).await;
    let quiet = settled(installation.client(), PATIENCE).await;
    quiet.expect("everything is handled");
    installation.register("audrey", &["auditor"]).await;
    let there = ["--archive", archive];
    let before = views(&installation, &case, there).await;
    let before_by_asking = views_by_asking(&installation, &case).await;
    let snapshot = concord(&installation, &["memory", "list", &ann]).await["as_of"].clone();
    let snapshot = snapshot.as_str().expect("a snapshot");
    let remembered = ["memory", "as-of", snapshot, &ann, "margin"];
    let known = concord(&installation, &remembered).await;
    assert_eq!(known["entries"][0]["case_id"], case.as_str());
    let head = folder.path().join("head.json");
    keep_head(&installation, &head).await;
    removed(&installation, &case).await;

    assert_eq!(views(&installation, &case, there).await, before);
    let by_asking = views_by_asking(&installation, &case).await;
    assert_eq!(by_asking, before_by_asking);
    assert_eq!(concord(&installation, &remembered).await, known);
    let head = head.to_str().expect("a text");
    let against = ["check", "--archive", archive, "--against", head];
    let checked = concord(&installation, &against).await;
    assert_eq!(checked["holds"], true, "{checked:#}");
    let replayed = concord(&installation, &["replay", "--all", "--archive", archive]).await;
    assert_eq!(replayed["identical"], true, "{replayed:#}");
    let listed = concord(&installation, &["archive", "list"]).await;
    assert_eq!(listed[0]["case_id"], case.as_str());
    let verified = concord(&installation, &["archive", "verify", "--archive", archive]).await;
    assert_eq!(
        (&verified["cases"], &verified["faults"]),
        (&json!(1), &json!([]))
    );

    said_to_be_archived(&installation, &case, archive).await;
    late_ones_are_told(&installation, &case, &ann).await;

    // What stayed open goes on.
    find(&installation, &still_open, &dan, 70).await;
    decided(&installation, &still_open).await;
    settled(installation.client(), PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let checked = concord(&installation, &["check", "--archive", archive]).await;
    assert_eq!(checked["holds"], true, "{checked:#}");

    restored(&installation, &case, folder.path()).await;
    let name = tamper(&place.join("segments"));
    for arguments in [&["archive", "verify"][..], &["check"]] {
        let arguments = [arguments, &["--archive", archive]].concat();
        let (code, out, complaint) = said(&installation, &arguments).await;
        let told = format!("{out}{complaint}");
        assert!(code == 1 && told.contains(&name), "{told}");
    }
}

/// What the services have of a case only while it is in the streams is not said to be empty; what agents remember of it stays.
async fn said_to_be_archived(installation: &TestInstallation, case: &str, archive: &str) {
    for arguments in [
        &["board", "show", case][..],
        &["--as", "audrey", "board", "show", case],
        &["commitment", "list", case],
        &["case", "insights", case],
        &["impact", "run", case],
    ] {
        let (code, _, complaint) = said(installation, arguments).await;
        let named = format!("The case {case} is archived");
        assert!(code == 1 && complaint.contains(&named), "{complaint}");
    }
    let debates = concord(installation, &["decisions", "list", "--archive", archive]).await;
    let debate = debates[0]["entry"]["debate_id"].as_str().expect("a debate");
    let known = [
        "outcome",
        debate,
        "--position",
        "20",
        "--because",
        "it is so",
        "--from",
        "audrey",
    ];
    let (code, _, complaint) = said(installation, &known).await;
    let told = complaint.contains("is archived with its case");
    assert!(code == 1 && told, "{complaint}");
    let board = ["board", "show", case, "--history"];
    for arguments in [
        &["case", "show", case][..],
        &["case", "transcript", case],
        &["check"],
        &["impact", "show", case],
        &board,
    ] {
        let (code, _, complaint) = said(installation, arguments).await;
        assert!(code == 2 && complaint.contains("--archive"), "{complaint}");
    }
    for arguments in [&["impact", "show", case][..], &board] {
        let there = [arguments, &["--archive", archive]].concat();
        assert_eq!(concord(installation, &there).await, json!([]));
    }
    let remembered = concord(installation, &["memory", "list", "--case", case]).await;
    assert_eq!(remembered["entries"][0]["case_id"], case, "{remembered}");
}

async fn late_ones_are_told(installation: &TestInstallation, case: &str, ann: &str) {
    let opening = json!({ "case_id": case, "participants": [ann], "task": { "type": "test" } });
    let opened = installation.ask(Service::Coordinator, "open_case", &opening);
    let refusal = opened.await.expect_err("it is refused");
    assert!(refusal.contains("is archived"), "{refusal}");
    find(installation, case, ann, 50).await;
    wait_for("the answer to a late finding", PATIENCE, async || {
        let filter = format!("concord.v1.msg.{case}.coordinator.{ann}.error");
        let errors = stored(installation.client(), StreamKind::Messages, &filter).await?;
        let error = errors.first().ok_or("there is none")?.json();
        let told = error["payload"].to_string();
        told.contains("is archived").then_some(()).ok_or(told)
    })
    .await;
}

async fn restored(installation: &TestInstallation, case: &str, folder: &Path) {
    let (archive, to) = (folder.join("archive"), folder.join("restored"));
    let [archive, to] = [&archive, &to].map(|path| path.to_str().expect("a text"));
    let restore = ["archive", "restore", case, "--to", to, "--archive", archive];
    let said_of = concord(installation, &restore).await;
    let files = ["events", "messages", "urgent"].map(|stream| {
        let file = Path::new(to).join(format!("{stream}.jsonl"));
        std::fs::read_to_string(file).expect("it is read")
    });
    let lines = files.iter().flat_map(|file| file.lines()).count() as u64;
    assert_eq!(said_of["messages"], lines);
    assert!(files[0].contains(&format!("event.case.{case}.opened")));
    let (code, _, complaint) = said(installation, &restore).await;
    assert!(code == 2 && complaint.contains("not empty"), "{complaint}");
}
