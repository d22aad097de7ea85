//! What is read in pages, what the user that is printed may not do, and what is said when something is wrong.

use concord_testkit::{Message, concord, events, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Cast, Stage};
use crate::permissions::PATIENCE;
use crate::permissions::user::User;

/// The events of a kind as somebody is given them, page by page, and the number of pages.
async fn pages(stage: &Stage, user: &User, request: &Value) -> (Vec<u64>, usize) {
    let subject = format!("concord.v1.api.coordinator.events.{}", stage.cast.rob);
    let (mut sequences, mut number, mut request) = (Vec::new(), 0, request.clone());
    loop {
        let answer = user
            .client
            .request(subject.clone(), request.to_string().into());
        let answer = answer.await.expect("an answer");
        assert!(answer.payload.len() < 1_000_000);
        let page: Value = serde_json::from_slice(&answer.payload).expect("a page");
        number += 1;
        let items = page["items"].as_array().expect("items").iter();
        sequences.extend(items.map(|item| item["sequence"].as_u64().expect("a sequence")));
        match page["next"].as_u64() {
            Some(next) => request["after"] = json!(next),
            None => return (sequences, number),
        }
    }
}

/// Who had a debate before is told, and not where they are notified: that is for operators and auditors.
pub(super) async fn check_addresses(stage: &Stage, user: &User, debate: &str) {
    let rob = &stage.cast.rob;
    let assigned = format!("debate.{debate}.assigned");
    let stored = events(stage.installation.client(), &assigned).await;
    let stored = stored.expect("readable");
    let addresses = |event: &Value| event.to_string().matches("@example.org").count();
    let stored: Vec<usize> = stored
        .iter()
        .map(|event| addresses(&event.json()))
        .collect();
    assert_eq!(stored, [1, 2, 2], "an address of each who has and had it");
    let subject = format!("concord.v1.api.debate-facilitator.events.{rob}");
    let request = json!({ "aggregate": "debate", "id": debate, "facts": ["assigned"] });
    let answer = user.client.request(subject, request.to_string().into());
    let answer = answer.await.expect("an answer");
    let page: Value = serde_json::from_slice(&answer.payload).expect("a page");
    let had = |item: &Value| item["body"]["data"].get("instead_of").is_some();
    let items = page["items"].as_array().expect("items");
    assert_eq!(items.iter().filter(|item| had(item)).count(), 2, "{page:#}");
    assert_eq!(addresses(&page), 0, "{page:#}");
}

/// A case of which one page does not hold everything is shown as an operator sees it.
pub(super) async fn check_pages(stage: &Stage, user: &User) {
    let client = stage.installation.client();
    let [case, ann] = ["large", "ann"].map(unique);
    let opening = json!({ "case_id": case, "participants": [ann], "task": { "type": "test" } });
    let id = stage.installation.open_case(&opening).await;
    for _ in 0..6 {
        let finding = json!({ "summary": "Seen.", "evidence": ["x".repeat(90_000)] });
        Message::finding(&case, &ann, finding, 0.8)
            .store(client)
            .await;
    }
    stage.installation.decision(&id, PATIENCE).await;
    let filter = format!("case.{case}.*");
    let all = wait_for("six findings", PATIENCE, async || {
        let all = events(client, &filter).await?;
        let findings = all.iter().filter(|one| one.subject.contains("finding"));
        let number = findings.count();
        (number == 6)
            .then_some(all)
            .ok_or_else(|| number.to_string())
    });
    let all: Vec<u64> = all.await.iter().map(|event| event.sequence).collect();
    let request = json!({ "aggregate": "case", "id": case });
    let (whole, number) = pages(stage, user, &request).await;
    assert!(
        whole == all && number > 2,
        "{number} pages: {whole:?} {all:?}"
    );
    let few = json!({ "aggregate": "case", "id": case, "limit": 1 });
    let (whole, number) = pages(stage, user, &few).await;
    assert!(whole == all && number >= all.len(), "{number}");
    // Behind everything there is nothing.
    let behind = json!({ "aggregate": "case", "id": case, "after": u64::MAX });
    assert_eq!(pages(stage, user, &behind).await, (Vec::new(), 1));
    // Of a kind, by the names of events: in the order of the stream.
    let named = json!({ "aggregate": "case", "facts": ["decided", "opened"], "limit": 2, "without_bodies": true });
    let (found, _) = pages(stage, user, &named).await;
    let mut expected = Vec::new();
    for name in ["opened", "decided"] {
        let stored = events(client, &format!("case.*.{name}")).await;
        expected.extend(stored.expect("readable").iter().map(|event| event.sequence));
    }
    expected.sort_unstable();
    assert_eq!(found, expected);
    let seen = stage
        .json(&stage.cast.rob, &format!("case show {case}"))
        .await;
    let server = stage.installation.server_url();
    let operator = concord(&["case", "show", &case, "--json", "--server", server]);
    let operator: Value = serde_json::from_slice(&operator.stdout).expect("JSON");
    assert_eq!(seen, operator);
}

/// The user that is printed reads no stream, hears nobody else, and asks under no other name and for nothing else.
pub(super) async fn check_user(stage: &Stage, user: &mut User) {
    let Cast { rob, olga, .. } = &stage.cast;
    for subject in [
        "$JS.API.STREAM.MSG.GET.CONCORD_EVENTS".to_owned(),
        "$JS.API.DIRECT.GET.CONCORD_EVENTS".to_owned(),
        "$JS.API.CONSUMER.CREATE.CONCORD_EVENTS".to_owned(),
        "concord.v1.api.coordinator.events".to_owned(),
        format!("concord.v1.api.coordinator.events.{olga}"),
        format!("concord.v1.api.coordinator.open_case.{rob}"),
        format!("concord.v1.msg._.{olga}.coordinator.request"),
        format!("concord.v1.msg._.{rob}.debate-facilitator.ruling"),
    ] {
        user.may_not_publish(subject.clone(), b"{}", &subject).await;
    }
    for subject in [
        format!("concord.v1.msg.*.*.{olga}.*"),
        "concord.v1.event.>".to_owned(),
        "concord.v1.api.>".to_owned(),
        format!("_INBOX.{olga}.>"),
    ]
    .into_iter()
    .filter(|subject| !subject.starts_with("_INBOX") || stage.shares_account)
    {
        user.may_not_subscribe(subject).await;
    }
}

/// What reads streams is not for people, whom the broker tells so at once: the command waits for no answer, and names no other cause.
pub(super) async fn check_denied(stage: &Stage) {
    let Cast { adam, rob, .. } = &stage.cast;
    let folder = tempfile::tempdir().expect("a temporary directory");
    let backup = format!("backup '{}'", folder.path().join("copy").display());
    for line in [
        "doctor",
        "dead list",
        "dead show 1",
        "audit head",
        "replay --all",
        "check",
        "migrate",
        &backup,
    ] {
        let denied = stage.run(adam, line).await.refused(69);
        for part in ["Permissions Violation", "an operator of the installation"] {
            assert!(denied.contains(part), "{line}: {denied}");
        }
    }
    // Whoever does not say who they are asks the broker, and may not.
    let nameless = stage.run_nameless(rob, "case list").await.refused(69);
    assert!(nameless.contains("--as NAME"), "{nameless}");
}

/// Somebody who is suspended reads nothing; a service that does not run is named.
pub(super) async fn check_failures(stage: &Stage) {
    let rob = &stage.cast.rob;
    let order = json!({ "name": rob, "by": "olga", "why": "left the firm" });
    let suspended = stage
        .installation
        .ask(Service::Coordinator, "suspend_person", &order)
        .await;
    suspended.expect("rob is suspended");
    let refused = stage.run(rob, "case list").await.refused(1);
    for part in ["left the firm", "concord person resume"] {
        assert!(refused.contains(part), "{refused}");
    }
    stage
        .installation
        .kill(Service::DebateFacilitator, 0)
        .expect("it runs");
    let down = stage.run(&stage.cast.adam, "queue").await.refused(1);
    assert!(
        down.contains("debate-facilitator") && down.contains("not run"),
        "{down}"
    );
    let started = stage
        .installation
        .restart(Service::DebateFacilitator, 0)
        .await;
    started.expect("it starts");
    stage.installation.ready().await.expect("it is ready");
    stage.good(&stage.cast.adam, "queue").await;
}
