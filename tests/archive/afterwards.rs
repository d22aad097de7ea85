//! What is read of archived debates afterwards: by people, and beside later cases like them.

use concord_testkit::{TestInstallation, events, unique, wait_for};
use serde_json::{Value, json};

use crate::archive::PATIENCE;
use crate::archive::stage::{concord, find, installation, removed};

/// How often an address of somebody stands in what is shown.
fn addresses(shown: &Value) -> usize {
    shown.to_string().matches("@example.org").count()
}

/// An arbiter who is told by e-mail.
async fn arbiter(installation: &TestInstallation, name: &str) -> String {
    let name = unique(name);
    let contact = json!({ "email": format!("{name}@example.org") });
    let expert = json!({ "agent_id": name, "domains": ["valuation"], "contact": contact });
    installation.register_expert(&expert).await;
    name
}

/// Waits until the debate was given to somebody so many times: its id.
async fn given(installation: &TestInstallation, times: usize) -> String {
    wait_for("the debate to be given", PATIENCE, async || {
        let assigned = events(installation.client(), "debate.*.assigned").await?;
        let last = assigned.last().filter(|_| assigned.len() == times);
        let id = last.and_then(|last| last.json()["id"].as_str().map(str::to_owned));
        id.ok_or_else(|| format!("{} times", assigned.len()))
    })
    .await
}

/// The events of a debate that say who has it, as the service shows them to somebody.
async fn shown(installation: &TestInstallation, reader: &str, debate: &str) -> Value {
    let subject = format!("concord.v1.api.debate-facilitator.events.{reader}");
    let request = json!({ "aggregate": "debate", "id": debate, "facts": ["assigned"] });
    let asked = installation
        .client()
        .request(subject, request.to_string().into());
    let answer = asked.await.expect("an answer");
    serde_json::from_slice(&answer.payload).expect("a page")
}

/// Opens a case of two analysts whose difference goes to a person at once, and gives their findings.
async fn differ(installation: &TestInstallation) -> String {
    let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
    let opening = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
        "policy": {
            "conflict_handling": "ladder", "rounds_max": 0, "answer_timeout_ms": 100,
            "ladder": {
                "domain": "valuation",
                "times": { "opinion_ms": 1, "mediation_ms": 50, "person_ms": 600_000 },
            },
        },
    });
    installation.open_case(&opening).await;
    find(installation, &case, &ann, 10).await;
    find(installation, &case, &ben, 80).await;
    case
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_debate_is_shown_without_addresses_and_named_in_later_packages() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let archive = folder.path().join("archive");
    let installation = installation(archive.to_str().expect("a text")).await;
    installation.register("rob", &["reviewer"]).await;
    installation.register("audrey", &["auditor"]).await;
    let eve = arbiter(&installation, "eve").await;
    let case = differ(&installation).await;
    let debate = given(&installation, 1).await;
    let ida = arbiter(&installation, "ida").await;
    let reassign = ["queue", "reassign", &debate, "--to", &ida, "--why", "Away."];
    concord(&installation, &reassign).await;
    given(&installation, 2).await;
    let stored = events(installation.client(), &format!("debate.{debate}.assigned")).await;
    let stored = stored.expect("readable");
    let stored: Vec<usize> = stored.iter().map(|one| addresses(&one.json())).collect();
    assert_eq!(stored, [1, 2], "{eve} has it, and {ida} has it instead");
    let rule = ["rule", &debate, "--expert", &ida, "--position", "p1"];
    let rule = [&rule[..], &["--rationale", "The annex caps it."]].concat();
    concord(&installation, &rule).await;
    removed(&installation, &case).await;

    shown_without_addresses(&installation, &debate).await;
    named_in_a_package(&installation, &debate).await;
}

async fn shown_without_addresses(installation: &TestInstallation, debate: &str) {
    let to_auditor = shown(installation, "audrey", debate).await;
    assert_eq!(addresses(&to_auditor), 3, "{to_auditor:#}");
    let to_reviewer = shown(installation, "rob", debate).await;
    let items = to_reviewer["items"].as_array().expect("items");
    let names_both = items.len() == 2 && to_reviewer.to_string().contains("instead_of");
    assert!(
        names_both && addresses(&to_reviewer) == 0,
        "{to_reviewer:#}"
    );
}

/// The entry among the precedents says how it turned out, so nobody need say where the archive is.
async fn named_in_a_package(installation: &TestInstallation, debate: &str) {
    // It waits for a person, and is not archived itself.
    let case = differ(installation).await;
    for reader in [&[][..], &["--as", "audrey"]] {
        let package = [reader, &["case", "package", &case]].concat();
        let known = wait_for("the earlier decision", PATIENCE, async || {
            let package = concord(installation, &package).await;
            let known = package["disputes"][0]["history"]["earlier"][0].clone();
            let is_there = known.is_object();
            is_there.then_some(known).ok_or_else(|| package.to_string())
        })
        .await;
        assert_eq!(known["debate_id"], debate, "{known}");
        assert_eq!(known["position"], "Risk score: 10", "{known}");
    }
}
