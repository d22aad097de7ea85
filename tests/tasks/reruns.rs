//! Analyses are done again as tasks of their authors, each once, also while coordinators are killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, concord, event_data, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::tasks::PATIENCE;
use crate::tasks::stage::{Reply, ask, opening, register, result, work};
use crate::together::case_of;

/// Publishes an analysis with a figure `x`, which uses the figure `x` of these others.
async fn publish(client: &Client, case: &str, from: &str, id: &str, figure: i64, uses: &[&str]) {
    let used = |id: &&str| json!({ "kind": "analysis", "id": id, "metric": "x" });
    let depends_on: Vec<Value> = uses.iter().map(used).collect();
    let parameters = json!({
        "analysis_id": id, "type": "test", "figures": { "x": figure }, "rerun_minutes": 5, "depends_on": depends_on,
    });
    let payload = json!({ "action": "publish_analysis", "parameters": parameters });
    let message = Message::new(case, from, "coordinator", "request", payload);
    let (kind, answer) = ask(client, &message).await;
    assert_eq!(kind, "response", "{answer}");
}

/// The analysis that a message asks to do again; none for another message.
pub(crate) fn asked(kind: &str, body: &Value) -> Option<String> {
    let task = &body["payload"]["task"];
    let is_it = kind == "task_assignment" && task["type"] == "rerun_analysis";
    let id = task["input"]["analysis_id"].as_str();
    id.filter(|_| is_it).map(str::to_owned)
}

pub(crate) fn figures(x: i64) -> Reply {
    result(json!({ "figures": { "x": x } }))
}

/// Runs a verb of `concord impact`: whether it succeeds, and what it prints.
pub(crate) fn impact(installation: &TestInstallation, arguments: &[&str]) -> (bool, String) {
    let server = installation.server_url().to_owned();
    let done = concord(&[&["impact"], arguments, &["--server", &server]].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        done.status.success(),
        text(&done.stdout) + &text(&done.stderr),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_gives_the_decision_new_figures_and_tries_again_what_has_failed() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    register(client, "ann", json!({})).await;
    let of_ben = |kind: &str, body: &Value| asked(kind, body).and_then(|_| figures(20));
    let _ben = work(&installation, "ben", json!({}), of_ben).await;
    let tries = AtomicUsize::new(0);
    let of_cyd = move |kind: &str, body: &Value| {
        asked(kind, body).and_then(|_| match tries.fetch_add(1, Ordering::SeqCst) {
            0 => Some((
                "task_result",
                json!({ "status": "failure", "why": "No time." }),
            )),
            _ => figures(1),
        })
    };
    let _cyd = work(&installation, "cyd", json!({}), of_cyd).await;
    let case = case_of(&installation, &["ann", "ben", "cyd"]).await;
    publish(client, &case, "ann", "dcf", 85, &[]).await;
    publish(client, &case, "ben", "memo", 10, &["dcf"]).await;
    publish(client, &case, "cyd", "note", 1, &["memo"]).await;
    let (refused, why) = impact(&installation, &["run", &case]);
    assert!(
        !refused && why.contains("No analysis of this case must be done again"),
        "{why}"
    );
    publish(client, &case, "ann", "dcf", 95, &[]).await;
    decide(client, &case, &["ann", "ben", "cyd"]).await;

    check_plan(&installation, &case);
    let (succeeded, text) = impact(&installation, &["run", &case, "--wait"]);
    assert!(text.contains("1 of 2: memo has other figures"), "{text}");
    assert!(
        !succeeded && text.contains("2 of 2: note was not done"),
        "{text}"
    );
    let filter = format!("case.{case}.figures_recorded");
    let recorded = wait_for("figures in the decision", PATIENCE, async || {
        let recorded = event_data(client, &filter).await?;
        recorded.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await;
    let decision = &recorded["decision"];
    assert_eq!(
        (
            &decision["version"],
            &decision["figures"]["memo"]["figures"]["x"]
        ),
        (&json!(2), &json!(20.0))
    );
    check_shown(&installation, &case);

    let (succeeded, text) = impact(&installation, &["run", &case, "--wait", "--json"]);
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let lines = lines.unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(succeeded && lines.len() == 2, "{text}");
    let plan = &lines[0]["plan"]["required"];
    assert_eq!(plan[0]["analysis_id"], "note", "{text}");
    assert_eq!(lines[1]["outcome"], "unchanged", "{text}");
    check_forged(client).await;
    installation.holds(PATIENCE).await;
}

/// The figures stand with the decision, and the version that they made is among its versions.
fn check_shown(installation: &TestInstallation, case: &str) {
    let shown = concord(&["case", "show", case, "--server", installation.server_url()]);
    let text = String::from_utf8_lossy(&shown.stdout);
    for seen in [
        "Decision, version 2",
        "  figures         memo, version 2: x 20\n",
        "Z  figures of run 1: memo\n",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
}

/// The memo, and then the note, one after the other.
fn check_plan(installation: &TestInstallation, case: &str) {
    let (_, plan) = impact(installation, &["plan", case, "--json"]);
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let ids: Vec<&Value> = plan["required"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["analysis_id"])
        .collect();
    assert_eq!(ids, ["memo", "note"]);
    assert_eq!(
        (&plan["strategy"], &plan["estimated_minutes"]),
        (&json!("serial"), &json!(10))
    );
}

async fn check_forged(client: &Client) {
    // Nobody opens a task under an id of a run.
    let forged = opening("capability", &json!({ "task_id": "rerun-1" }));
    let (kind, error) = ask(client, &forged).await;
    assert_eq!(
        (kind.as_str(), &error["details"]["pointer"]),
        ("error", &json!("/payload/parameters/task_id"))
    );
}

/// Gives the findings of the participants, who agree, and waits for the decision.
pub(crate) async fn decide(client: &Client, case: &str, participants: &[&str]) {
    for agent in participants {
        let finding = json!({ "summary": "Fine.", "risk_score": 40 });
        Message::finding(case, agent, finding, 0.8)
            .publish(client)
            .await;
    }
    let filter = format!("case.{case}.decided");
    wait_for("a decision", PATIENCE, async || {
        let decided = event_data(client, &filter).await?;
        decided.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_analysis_is_done_again_once_when_a_coordinator_is_killed() {
    const ANALYSES: usize = 12;
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_replicas(Service::Coordinator, 2)
    })
    .await;
    let client = installation.client().clone();
    let given = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for name in ["ann", "ben"] {
        let counted = Arc::clone(&given);
        let answer = move |kind: &str, body: &Value| {
            let asked = asked(kind, body)?;
            counted.fetch_add(1, Ordering::SeqCst);
            figures(i64::try_from(asked.len()).unwrap_or(0) + 100)
        };
        workers.push(work(&installation, name, json!({ "capacity": 2 }), answer).await);
    }
    let case = case_of(&installation, &["ann", "ben"]).await;
    publish(&client, &case, "ann", "root", 1, &[]).await;
    // Two chains; each analysis uses the one before it in its chain.
    for n in 0..ANALYSES {
        let (from, id) = (["ann", "ben"][n % 2], format!("a{n:02}"));
        let before = n
            .checked_sub(2)
            .map_or("root".to_owned(), |n| format!("a{n:02}"));
        publish(&client, &case, from, &id, 1, &[&before]).await;
    }
    publish(&client, &case, "ann", "root", 2, &[]).await;
    let (begun, text) = impact(&installation, &["run", &case]);
    assert!(begun, "{text}");
    let filter = format!("impact.{case}.rerun_step_ended");
    for (replica, after) in [(0, 2), (1, 6)] {
        steps_ended(&client, &filter, after).await;
        installation.kill(Service::Coordinator, replica).unwrap();
        installation
            .restart(Service::Coordinator, replica)
            .await
            .unwrap();
    }
    let ended = steps_ended(&client, &filter, ANALYSES).await;
    let last = &ended.last().expect("there are some")["next"]["end"];
    assert_eq!(last["changed"], json!(ANALYSES), "{last}");
    installation.holds(PATIENCE).await;
    assert_eq!(
        steps_ended(&client, &filter, ANALYSES).await.len(),
        ANALYSES
    );
    assert_eq!(
        given.load(Ordering::SeqCst),
        ANALYSES,
        "each was given once"
    );
}

/// Waits until so many steps have ended: their events.
pub(crate) async fn steps_ended(client: &Client, filter: &str, count: usize) -> Vec<Value> {
    wait_for(format!("{count} steps to end"), PATIENCE, async || {
        let ended = event_data(client, filter).await?;
        match ended.len() >= count {
            true => Ok(ended),
            false => Err(format!("{} have", ended.len())),
        }
    })
    .await
}
