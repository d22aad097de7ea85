//! An installation that archives what is a second old.

use std::path::Path;

use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, Plan, TestInstallation, concord_at, event_data, settled, stored, unique, wait_for,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::archive::PATIENCE;

/// A running installation with an archive at a place, and with heads.
pub(crate) async fn installation(archive: &str) -> TestInstallation {
    installation_with(archive, &[]).await
}

/// The same with these settings besides.
pub(crate) async fn installation_with(archive: &str, settings: &[String]) -> TestInstallation {
    TestInstallation::start_with(|plan| {
        let plan = archiving(plan, archive);
        settings.iter().fold(plan, Plan::with_setting)
    })
    .await
}

/// The same with these settings of the timers.
pub(crate) async fn installation_with_timers(archive: &str, settings: &[&str]) -> TestInstallation {
    TestInstallation::start_with(|plan| {
        let plan = archiving(plan, archive);
        let settings = settings.iter();
        settings.fold(plan, |plan, setting| {
            plan.with_service_setting(Service::EscalationTimer, *setting)
        })
    })
    .await
}

/// An installation that archives to a place, with heads.
fn archiving(plan: Plan, archive: &str) -> Plan {
    plan.with_replicas(Service::AgentAdapter, 0)
        .with_replicas(Service::EscalationTimer, 2)
        .with_setting(format!("storage.archive={archive}"))
        .with_setting("storage.archive_after_s=1")
        .with_service_setting(Service::EscalationTimer, "service.head_interval_ms=300")
}

/// Runs `concord` on an installation: its exit code, and what it printed and complained.
pub(crate) async fn said(
    installation: &TestInstallation,
    arguments: &[&str],
) -> (i32, String, String) {
    let output = concord_at(installation.server_url(), arguments).await;
    (output.code, output.out, output.err)
}

/// What is to be seen of a case by whoever says in this way where the archive is: `["--archive", place]` or `["--config", file]`.
pub(crate) async fn views(
    installation: &TestInstallation,
    case: &str,
    place: [&str; 2],
) -> Vec<Value> {
    let mut views = Vec::new();
    for verb in [
        &["case", "show", case][..],
        &["case", "transcript", case],
        &["replay", case],
        &["decisions", "export", case],
    ] {
        views.push(concord(installation, &[verb, &place].concat()).await);
    }
    views
}

/// Runs `concord`, which must be content, and reads its JSON.
pub(crate) async fn concord(installation: &TestInstallation, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    let (code, out, err) = said(installation, &arguments).await;
    assert_eq!(code, 0, "{arguments:?}: {out} {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Opens a case of two analysts.
pub(crate) async fn open(installation: &TestInstallation, case: &str) -> [String; 2] {
    let [ann, ben] = ["ann", "ben"].map(unique);
    let opening = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
        "policy": { "answer_timeout_ms": 300, "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    [ann, ben]
}

/// Says the finding of an analyst.
pub(crate) async fn find(installation: &TestInstallation, case: &str, agent: &str, score: i32) {
    let finding = json!({ "summary": "Seen.", "risk_score": score });
    let finding = Message::finding(case, agent, finding, 0.8);
    finding.store(installation.client()).await;
}

/// Waits until a case is decided.
pub(crate) async fn decided(installation: &TestInstallation, case: &str) {
    wait_for(format!("the decision of {case}"), PATIENCE, async || {
        let decided = event_data(installation.client(), &format!("case.{case}.decided")).await?;
        decided.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
}

/// Lets two analysts differ in a case until it is decided; one of them remembers something of it. Gives one of them.
pub(crate) async fn decide(installation: &TestInstallation, case: &str) -> String {
    let [ann, ben] = open(installation, case).await;
    let remembers = [
        "memory",
        "put",
        "margin",
        "0.25",
        "--by",
        &ann,
        "--importance",
        "0.5",
        "--case",
        case,
    ];
    concord(installation, &remembers).await;
    find(installation, case, &ann, 10).await;
    find(installation, case, &ben, 80).await;
    decided(installation, case).await;
    // What everybody is told of the decision comes after it.
    settled(installation.client(), PATIENCE)
        .await
        .expect("all is done with");
    ann
}

/// Waits until nothing of a case is in the streams of events and messages.
pub(crate) async fn removed(installation: &TestInstallation, case: &str) {
    let filters = [
        (StreamKind::Messages, format!("concord.v1.msg.{case}.>")),
        (
            StreamKind::Events,
            format!("concord.v1.event.case.{case}.>"),
        ),
        (
            StreamKind::Events,
            format!("concord.v1.event.detection.{case}.>"),
        ),
    ];
    wait_for(format!("the removal of {case}"), PATIENCE, async || {
        for (kind, filter) in &filters {
            let left = stored(installation.client(), *kind, filter).await?;
            if let Some(first) = left.first() {
                return Err(format!("{} is there", first.subject));
            }
        }
        // Then everything else of its segment is removed, too.
        let sealed = event_data(installation.client(), "archive.log.sealed").await?;
        let name = format!("\"{case}\"");
        let is_in = |one: &&Value| one["cases"].to_string().contains(&name);
        let segment = sealed.iter().rfind(is_in).ok_or("not sealed")?;
        let number = segment["number"].as_u64();
        let purged = event_data(installation.client(), "archive.log.purged").await?;
        let mut through = purged.iter().map(|one| one["through"].as_u64());
        let is_purged = through.any(|through| through >= number);
        is_purged.then_some(()).ok_or_else(|| "not purged".into())
    })
    .await;
}

/// A head that was kept, in a file.
pub(crate) async fn keep_head(installation: &TestInstallation, file: &Path) {
    let head = wait_for("a head", PATIENCE, async || {
        let (code, out, err) = said(installation, &["audit", "head", "--json"]).await;
        (code == 0).then_some(out).ok_or(err)
    })
    .await;
    std::fs::write(file, head).expect("it is written");
}

/// What the timers have logged, in whole lines: the last one may still be written.
pub(crate) fn logged(installation: &TestInstallation) -> String {
    let logs = [0, 1].map(|replica| {
        let log = installation.log(Service::EscalationTimer, replica);
        let mut log =
            std::fs::read_to_string(log.expect("a process of the plan")).expect("its log");
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    });
    logs.concat()
}

/// Waits until the archive was not found, and a segment of it named, in a round that began after this: cases that were over wait in it.
pub(crate) async fn rounds_in_vain(installation: &TestInstallation, segment: &str) {
    let seen = logged(installation).matches(segment).count();
    wait_for("rounds without the archive", PATIENCE, async || {
        let log = logged(installation);
        let go_on = log.matches(segment).count() > seen + 1;
        go_on.then_some(()).ok_or(log)
    })
    .await;
}
