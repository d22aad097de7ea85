//! A case from opening to decision, and everything that can be seen of it.

use concord_testkit::{Agent, TestInstallation, until};
use serde_json::{Value, json};

use crate::command::{case, concord, run, run_with};
use concord_testkit::{COMMAND_MAX, finish};

/// Three agents: two who differ about the risk, one who lets itself be convinced.
async fn panel(client: &async_nats::Client) -> Vec<Agent> {
    let low = json!({ "summary": "Harmless.", "risk_score": 20, "recommendation": "sign" });
    let high = json!({ "summary": "Dangerous.", "risk_score": 80, "recommendation": "sign" });
    vec![
        Agent::steadfast(client, "ann", low.clone(), 0.6).await,
        Agent::steadfast(client, "ben", high, 0.9).await,
        Agent::agreeable(client, "cem", low, 0.8).await,
    ]
}

const PANEL: [&str; 3] = ["ann", "ben", "cem"];

#[tokio::test]
async fn a_case_is_opened_awaited_and_looked_at() {
    let installation = TestInstallation::start().await;
    let _agents = panel(installation.client()).await;
    let url = installation.server_url();
    let at = |verb: &str| -> Vec<String> {
        verb.split(' ')
            .chain(["--server", url])
            .map(str::to_owned)
            .collect()
    };
    let say = async |verb: &str| {
        let arguments = at(verb);
        run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    };

    let request = case("c-1", &PANEL).to_string();
    let arguments = ["case", "open", "-", "--wait", "--json", "--server", url];
    let decided = run_with(&arguments, request.as_bytes()).await.json();
    assert_eq!(decided["phase"], "decided");
    assert_eq!(decided["findings"].as_array().unwrap().len(), 3);
    let debate = &decided["debates"][0];
    assert_eq!(debate["conflict"]["type"], "risk_score_disagreement");
    assert_eq!(debate["rounds"][0]["answers"].as_array().unwrap().len(), 3);
    assert_eq!(
        debate["outcome"]["tally"]["winner"],
        decided["decision"]["outcomes"][0]["tally"]["winner"]
    );
    // The same case once more is the same case, and no other.
    let again = ["case", "open", "-", "--json", "--server", url];
    assert_eq!(
        run_with(&again, request.as_bytes()).await.json()["case_id"],
        "c-1"
    );
    let other = case("c-1", &["dora"]).to_string();
    let refused = run_with(&again, other.as_bytes()).await.refused(65);
    assert!(refused.contains("case_id"), "{refused}");

    run_with(
        &["case", "open", "-", "--wait", "--server", url],
        case("c-2", &PANEL).to_string().as_bytes(),
    )
    .await
    .good();
    let list = say("case list --json").await.json();
    let ids: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["case_id"])
        .collect();
    assert_eq!(ids, ["c-2", "c-1"], "the newest first");
    assert_eq!(
        (&list[0]["phase"], &list[0]["debated"], &list[0]["settled"]),
        (&json!("decided"), &json!(1), &json!(1))
    );
    let text = say("case list --limit 1").await.good();
    assert!(
        text.contains("c-2") && !text.contains("c-1") && text.contains("1 of 2 cases"),
        "{text}"
    );

    assert_eq!(say("case show c-1 --json").await.json(), decided);
    let text = say("case show c-1").await.good();
    for seen in [
        "Lease of a warehouse",
        "Findings (3 of 3)",
        "Risk score spread: 20-80",
        "round 1: 3 of 3 answered",
        "ben 0.90",
        "Decision",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let transcript = say("case transcript c-1 --json").await.json();
    let kinds: Vec<&str> = transcript
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["body"]["message_type"].as_str())
        .collect();
    for kind in [
        "task_assignment",
        "finding",
        "question",
        "disagreement",
        "agreement",
        "notification",
    ] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    let text = say("case transcript c-1").await.good();
    assert!(
        text.contains("cem -> debate-facilitator agreement"),
        "{text}"
    );
    let watched = say("case watch c-1 --from-start").await.good();
    let first = watched.lines().next().unwrap();
    assert!(
        first.contains("case c-1 opened") && watched.contains("ann -> coordinator finding"),
        "{watched}"
    );
    assert!(!watched.contains("c-2"), "{watched}");

    concord_testkit::settled(installation.client(), COMMAND_MAX)
        .await
        .unwrap();
    let replay = say("replay --all --json").await.json();
    assert_eq!(
        (&replay["identical"], &replay["votes_again"]),
        (&json!(true), &json!(2)),
        "{replay}"
    );
    assert_eq!(say("replay c-1 --json").await.json()["votes_again"], 1);
    let check = say("check --json").await.json();
    assert_eq!(
        (&check["holds"], &check["under_way"]),
        (&json!(true), &json!(0)),
        "{check}"
    );
    assert!(
        check["invariants"]
            .as_array()
            .unwrap()
            .iter()
            .all(|invariant| invariant["complete"] == true),
        "{check}"
    );
    assert!(say("check").await.good().contains("Every invariant holds."));
    say("case show c-3").await.refused(1);
    say("replay c-3").await.refused(1);
    say("case transcript c-3").await.refused(1);
}

#[tokio::test]
async fn a_case_is_watched_while_it_happens() {
    let installation = TestInstallation::start().await;
    let url = installation.server_url();
    // Nobody answers before the case is watched: its participants come later.
    run_with(
        &["case", "open", "-", "--server", url],
        case("c-1", &["ann", "ben"]).to_string().as_bytes(),
    )
    .await
    .good();
    let armed = until("the deadlines to be armed", COMMAND_MAX, async || {
        let armed = run(&["deadlines", "--json", "--server", url]).await.json();
        let names: Vec<&Value> = armed
            .as_array()
            .unwrap()
            .iter()
            .map(|deadline| &deadline["name"])
            .collect();
        if names == ["findings", "case"] {
            Ok(armed.clone())
        } else {
            Err(format!("{names:?}"))
        }
    });
    assert_eq!(armed.await.unwrap()[0]["overdue_ms"], 0);
    let request = case("c-2", &["dora"]).to_string();
    let impatient = [
        "case",
        "open",
        "-",
        "--wait",
        "--timeout",
        "0",
        "--server",
        url,
    ];
    let error = run_with(&impatient, request.as_bytes()).await.refused(1);
    assert!(error.contains("is not decided"), "{error}");

    let mut watch = concord();
    watch.args([
        "case",
        "watch",
        "c-1",
        "--json",
        "--from-start",
        "--server",
        url,
    ]);
    let watching = tokio::spawn(async move { finish(&mut watch).await });
    let client = installation.client();
    for (agent, score) in [("ann", 20), ("ben", 30)] {
        let finding = json!({ "summary": "Read.", "risk_score": score });
        concord_testkit::Message::finding("c-1", agent, finding, 0.8)
            .publish(client)
            .await;
    }
    let lines = watching.await.unwrap().good();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let subjects: Vec<&str> = lines
        .iter()
        .map(|line| line["subject"].as_str().unwrap())
        .collect();
    assert!(
        subjects.contains(&"concord.v1.msg.c-1.ann.coordinator.finding"),
        "{subjects:?}"
    );
    assert!(
        subjects.contains(&"concord.v1.event.case.c-1.decided"),
        "{subjects:?}"
    );
    assert!(
        subjects.iter().all(|subject| !subject.contains("c-2")),
        "{subjects:?}"
    );
}
