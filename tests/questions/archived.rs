//! A question in a case goes to the archive with its case.

use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, TestInstallation, command, event_data, finish, programs_of, settled, stored, unique,
    wait_for,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::questions::PATIENCE;
use crate::questions::stage::{answers, end_of, register, says};

#[tokio::test(flavor = "multi_thread")]
async fn a_question_goes_to_the_archive_with_its_case_and_is_checked_there() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("archive").to_str().unwrap().to_owned();
    let installation = TestInstallation::start_with(|plan| {
        let heads = "service.head_interval_ms=300";
        plan.with_setting(format!("storage.archive={place}"))
            .with_setting("storage.archive_after_s=1")
            .with_service_setting(Service::EscalationTimer, heads)
    })
    .await;
    register(&installation, &["ann", "ben"]).await;
    let client = installation.client();
    let _ben = answers(&installation, "ben", |_| says("Ben says so.", 0.7)).await;
    let case = unique("case");
    let opening =
        json!({ "case_id": case, "participants": ["ann", "ben"], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    let payload = json!({ "content": "@ben is this usual?" });
    let question = Message::new(&case, "ann", "_any", "group_query", payload);
    question.publish(client).await;
    let end = end_of(client, "ann", question.id()).await;
    assert_eq!(end["case_id"], json!(case), "{end}");
    for name in ["ann", "ben"] {
        let finding = Message::finding(&case, name, json!({ "summary": "Seen." }), 0.8);
        finding.publish(client).await;
    }
    // The question leaves the stream with its case, and all of their segment after that.
    let own = format!("case.{case}.>");
    wait_for("both to leave the stream", PATIENCE, async || {
        for of in ["question.>", own.as_str()] {
            let filter = format!("concord.v1.event.{of}");
            let left = stored(client, StreamKind::Events, &filter).await?;
            if let Some(first) = left.first() {
                return Err(format!("{} is there", first.subject));
            }
        }
        let purged = event_data(client, "archive.log.purged").await?;
        let last = purged.last().map(|_| ());
        last.ok_or_else(|| "not purged".to_owned())
    })
    .await;
    settled(client, PATIENCE).await.unwrap();
    for (verb, good) in [
        (&["check"][..], "holds"),
        (&["replay", "--all"], "identical"),
    ] {
        let program = programs_of(&["concord-cli"]).join("concord");
        let fixed = [
            "--archive",
            &place,
            "--json",
            "--server",
            installation.server_url(),
        ];
        let found: Value = finish(command(program).args(verb).args(fixed)).await.json();
        assert_eq!(found[good], true, "{found:#}");
    }
}
