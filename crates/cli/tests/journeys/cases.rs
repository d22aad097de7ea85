//! A case from opening to decision, and everything that can be seen of it.

use std::process::Stdio;

use concord_testkit::{Agent, COMMAND_MAX, Message, TestInstallation, settled, wait_for};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;

use crate::command::{Session, case, concord, length};

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
    let session = Session::new(installation.server_url());
    let decided = opened(&session).await;
    listed(&session).await;
    // Whoever is told of the decision is told after it.
    settled(installation.client(), COMMAND_MAX).await.unwrap();
    shown(&session, &decided).await;
    transcript(&session).await;
    checked(&session).await;
    for unknown in ["case show c-3", "replay c-3", "case transcript c-3"] {
        session.run(unknown).await.refused(1);
    }
    expired(&installation, &session).await;
}

/// Messages are kept by age, and a case without them is still there.
async fn expired(installation: &TestInstallation, session: &Session) {
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    for stream in ["CONCORD_MESSAGES", "CONCORD_URGENT"] {
        let stream = jetstream.get_stream(stream).await.unwrap();
        stream.purge().await.unwrap();
    }
    session.good("case show c-1").await;
    session
        .refused("case transcript c-1", "storage.message_days")
        .await;
    session
        .refused("case transcript c-3", "there is no case c-3")
        .await;
}

/// Whoever waits for a decision or watches is told that there will be none.
#[tokio::test]
async fn a_case_that_is_cancelled_ends_waiting_and_watching() {
    let installation = TestInstallation::start_without_adapter().await;
    let session = Session::new(installation.server_url());
    // Nobody answers.
    let request = case("c-9", &["zoe"]).to_string();
    let waiting = session.with_input("case open - --wait", &request);
    let watching = async {
        let opened = concord_testkit::wait_for("the case", COMMAND_MAX, async || {
            let shown = session.run("case show c-9").await;
            shown.out.contains("zoe").then_some(()).ok_or(shown.out)
        });
        opened.await;
        let cancel = "case cancel c-9 --by eva --why off";
        let watching = session.run("case watch c-9 --from-start");
        let (watched, cancelled) = tokio::join!(watching, session.run(cancel));
        cancelled.good();
        watched.good()
    };
    let (waited, watched) = tokio::join!(waiting, watching);
    let said = waited.refused(1);
    assert!(said.contains("was cancelled"), "{said}");
    assert!(watched.contains("cancelled"), "{watched}");
    session.run("case watch c-9").await.good();
}

/// Opens a case and waits for its decision, which is returned.
async fn opened(session: &Session) -> Value {
    let mut request = case("c-1", &PANEL);
    request["task"]["input"] = json!({ "clauses": ["The roof."] });
    let request = request.to_string();
    let decided = session
        .with_input("case open - --wait --json", &request)
        .await
        .json();
    assert_eq!(decided["phase"], "decided");
    // A brief has 16 KiB of it, and says that the whole is here.
    assert_eq!(decided["task"]["input"]["clauses"][0], "The roof.");
    assert_eq!(length(&decided["findings"]), 3);
    let debate = &decided["debates"][0];
    assert_eq!(debate["conflict"]["type"], "risk_score_disagreement");
    assert_eq!(length(&debate["rounds"][0]["answers"]), 3);
    assert_eq!(
        debate["outcome"]["tally"]["winner"],
        decided["decision"]["outcomes"][0]["tally"]["winner"]
    );
    // The same case once more is the same case, and no other.
    let again = "case open - --json";
    let same = session.with_input(again, &request).await.json();
    assert_eq!(same["case_id"], "c-1");
    let other = case("c-1", &["dora"]).to_string();
    let refused = session.with_input(again, &other).await.refused(65);
    assert!(refused.contains("case_id"), "{refused}");
    decided
}

async fn listed(session: &Session) {
    let request = case("c-2", &PANEL).to_string();
    session
        .with_input("case open - --wait", &request)
        .await
        .good();
    let list = session.json("case list").await;
    let rows = list.as_array().unwrap().iter();
    let ids: Vec<&Value> = rows.map(|row| &row["case_id"]).collect();
    assert_eq!(ids, ["c-2", "c-1"], "the newest first");
    assert_eq!(
        (&list[0]["phase"], &list[0]["debated"], &list[0]["settled"]),
        (&json!("decided"), &json!(1), &json!(1))
    );
    let text = session.good("case list --limit 1").await;
    assert!(
        text.contains("c-2") && !text.contains("c-1") && text.contains("1 of 2 cases"),
        "{text}"
    );
}

async fn shown(session: &Session, decided: &Value) {
    assert_eq!(session.json("case show c-1").await, *decided);
    let first = session.json("case show c-1 --version 1").await;
    assert_eq!(first["task"], decided["task"]);
    let text = session.good("case show c-1").await;
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
}

async fn transcript(session: &Session) {
    let transcript = session.json("case transcript c-1").await;
    let messages = transcript.as_array().unwrap().iter();
    let kinds: Vec<&str> = messages
        .filter_map(|message| message["body"]["message_type"].as_str())
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
    let text = session.good("case transcript c-1").await;
    let agreement = "cem -> debate-facilitator agreement";
    assert!(text.contains(agreement), "{text}");
    let watched = session.good("case watch c-1 --from-start").await;
    let first = watched.lines().next().unwrap();
    assert!(
        first.contains("case c-1 opened") && watched.contains("ann -> coordinator finding"),
        "{watched}"
    );
    assert!(!watched.contains("c-2"), "{watched}");
}

/// Everything that is stored is as it should be.
async fn checked(session: &Session) {
    let replay = session.json("replay --all").await;
    assert_eq!(
        (&replay["identical"], &replay["votes_again"]),
        (&json!(true), &json!(2)),
        "{replay}"
    );
    assert_eq!(session.json("replay c-1").await["votes_again"], 1);
    let check = session.json("check").await;
    assert_eq!(
        (&check["holds"], &check["under_way"]),
        (&json!(true), &json!(0)),
        "{check}"
    );
    let mut invariants = check["invariants"].as_array().unwrap().iter();
    assert!(
        invariants.all(|invariant| invariant["complete"] == true),
        "{check}"
    );
    // Something may be stored just then, of which nothing is judged yet.
    wait_for("a check of everything", COMMAND_MAX, async || {
        let text = session.good("check").await;
        let is_whole = text.contains("Every invariant holds.");
        is_whole.then_some(()).ok_or(text)
    })
    .await;
}

/// The subject on the next line of what is watched; none at its end.
async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<String> {
    let line = tokio::time::timeout(COMMAND_MAX, lines.next_line())
        .await
        .expect("a line, or the end");
    let line: Value = serde_json::from_str(&line.unwrap()?).unwrap();
    Some(line["subject"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_case_is_watched_while_it_happens() {
    let installation = TestInstallation::start().await;
    let session = Session::new(installation.server_url());
    // Nobody answers before the case is watched: its participants come later.
    let request = case("c-1", &["ann", "ben"]).to_string();
    session.with_input("case open -", &request).await.good();
    let are_armed = |armed: &Value| {
        let deadlines = armed.as_array().unwrap().iter();
        deadlines.map(|one| &one["name"]).eq(["findings", "case"])
    };
    let armed = session.until("deadlines", are_armed).await;
    assert_eq!(armed[0]["overdue_ms"], 0);
    let request = case("c-2", &["dora"]).to_string();
    let impatient = "case open - --wait --timeout 0";
    let error = session.with_input(impatient, &request).await.refused(1);
    assert!(error.contains("is not decided"), "{error}");

    let mut watch = concord();
    watch.args(["case", "watch", "c-1", "--json", "--from-start"]);
    watch.args(["--server", installation.server_url()]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    // It has read everything that is stored when it prints the first of it: what comes now comes while it watches.
    let mut subjects = vec![next(&mut lines).await.expect("the opening")];
    for (agent, score) in [("ann", 20), ("ben", 30)] {
        let finding = json!({ "summary": "Read.", "risk_score": score });
        Message::finding("c-1", agent, finding, 0.8)
            .publish(installation.client())
            .await;
    }
    while let Some(subject) = next(&mut lines).await {
        subjects.push(subject);
    }
    assert!(watch.wait().await.unwrap().success());
    for expected in [
        "concord.v1.msg.c-1.ann.coordinator.finding",
        "concord.v1.event.case.c-1.decided",
    ] {
        let is_it = |subject: &String| subject == expected;
        assert!(subjects.iter().any(is_it), "{expected}: {subjects:?}");
    }
    let of_other = |subject: &String| subject.contains("c-2");
    assert!(!subjects.iter().any(of_other), "{subjects:?}");
}
