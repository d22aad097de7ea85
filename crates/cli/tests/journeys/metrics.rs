//! Agents that help each other, one that declines, and what `concord metrics` counts of it.

use std::process::Stdio;

use concord_events::topology::StreamKind;
use concord_testkit::{Message, TestInstallation, knows_agents, settled, stored, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::command::{concord, run};
use concord_testkit::{COMMAND_MAX, CommandOutput};

struct Stage {
    installation: TestInstallation,
}

impl Stage {
    /// Ben knows taxes, Cleo databases, and Lea leads.
    async fn start() -> Self {
        let stage = Self {
            installation: TestInstallation::start().await,
        };
        let tax = [
            "Who bears the value added tax?",
            "Is VAT included in the price?",
            "Does reverse charge apply here?",
        ];
        let base = [
            "Which indexes does this query need?",
            "How large should the connection pool be?",
            "Normalise this schema.",
        ];
        for (agent, skill) in [
            ("ben", json!({ "name": "tax", "examples": tax })),
            ("cleo", json!({ "name": "database", "examples": base })),
            ("lea", json!({ "name": "planning", "tags": ["lead"] })),
        ] {
            let card = json!({ "agent_id": agent, "skills": [skill] });
            let request = json!({ "action": "register_agent", "parameters": card });
            stage
                .say("_", agent, "coordinator", "request", request, None)
                .await;
        }
        let registered = until("three agents on the register", COMMAND_MAX, async || {
            let listed = stage
                .installation
                .ask(Service::Coordinator, "agents", &Value::Null)
                .await?;
            if listed.as_array().unwrap().len() == 3 {
                Ok(())
            } else {
                Err(listed.to_string())
            }
        });
        registered.await.unwrap_or_else(|error| panic!("{error}"));
        settled(stage.installation.client(), COMMAND_MAX)
            .await
            .unwrap();
        // Their cards reach the adapter by themselves.
        knows_agents(&stage.installation, COMMAND_MAX).await;
        stage
    }

    async fn say(
        &self,
        case: &str,
        from: &str,
        to: &str,
        kind: &str,
        payload: Value,
        answers: Option<&Message>,
    ) -> Message {
        let mut message = Message::new(case, from, to, kind, payload);
        if let Some(asked) = answers {
            message = message.with("/reply_to", asked.id());
        }
        message.publish(self.installation.client()).await;
        message
    }

    async fn metrics(&self, more: &[&str]) -> CommandOutput {
        run(&[
            &["metrics", "--server", self.installation.server_url()],
            more,
        ]
        .concat())
        .await
    }

    /// When the broker stored a message, in milliseconds.
    async fn stored_at(&self, message: &Message) -> i64 {
        let all = stored(
            self.installation.client(),
            StreamKind::Messages,
            &message.subject(),
        )
        .await
        .unwrap();
        let one = all
            .iter()
            .find(|one| one.json()["message_id"] == message.id())
            .unwrap();
        one.at.unix_millis()
    }
}

/// A question of Ann's is asked until it wakes whom it should: the adapter hears of cards in its own time.
async fn wakes(stage: &Stage, woken: u64) {
    let decided = until(
        format!("{woken} agents to be woken"),
        COMMAND_MAX,
        async || {
            let report = stage.metrics(&["--json"]).await.json();
            if report["wakes"]["woken"] == woken {
                Ok(())
            } else {
                Err(report["wakes"].to_string())
            }
        },
    );
    decided.await.unwrap_or_else(|error| panic!("{error}"));
}

/// What the agents have sent to each other, as far as its times are compared.
struct Sent {
    asked: Message,
    answered: Message,
    invited: Message,
    joined: Message,
}

fn content(text: &str) -> Value {
    json!({ "content": text })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_do_for_each_other_is_counted_exactly() {
    let stage = Stage::start().await;
    let nothing = stage.metrics(&[]).await.good();
    assert_eq!(nothing.matches("no data").count(), 5, "{nothing}");
    assert!(nothing.ends_with("leads: coordinator, lea\n"), "{nothing}");
    let sent = help(&stage).await;
    counted(&stage, &sent).await;
    selected(&stage, &sent).await;
    goes_on(&stage).await;
    stage.installation.holds(COMMAND_MAX).await;
}

/// The agents ask each other for help: one answers, one declines, one joins; and two messages pass the lead.
async fn help(stage: &Stage) -> Sent {
    let yes = json!({ "status": "success", "result": {} });
    let no =
        json!({ "status": "failure", "result": { "accepted": false, "reason": "not_relevant" } });
    let tax = content("Is the value added tax included in the price?");
    let asked = stage
        .say("_", "ann", "_any", "group_query", tax, None)
        .await;
    wakes(stage, 1).await;
    let answered = stage
        .say("_", "ben", "ann", "response", yes, Some(&asked))
        .await;
    let help = content("Which indexes does this query need?");
    let declined = stage
        .say("_", "ann", "_any", "peer_request", help, None)
        .await;
    wakes(stage, 2).await;
    stage
        .say("_", "cleo", "ann", "response", no, Some(&declined))
        .await;
    let join = content("Join us.");
    let invited = stage
        .say("_", "ann", "ben", "collaboration_invite", join, None)
        .await;
    let joined = stage
        .say("_", "ben", "ann", "commitment", json!({}), Some(&invited))
        .await;
    stage
        .say("_", "lea", "ann", "info_update", content("Go on."), None)
        .await;
    stage
        .say("_", "ann", "lea", "task_result", content("Done."), None)
        .await;
    wakes(stage, 4).await;
    settled(stage.installation.client(), COMMAND_MAX)
        .await
        .unwrap();
    Sent {
        asked,
        answered,
        invited,
        joined,
    }
}

/// Every number is exactly what follows from the messages.
async fn counted(stage: &Stage, sent: &Sent) {
    let report = stage.metrics(&["--json"]).await.json();
    assert_eq!(
        (&report["messages"], &report["messages_through_lead"]),
        (&json!(8), &json!(2)),
        "{report}"
    );
    assert_eq!(
        report["lead_share"],
        json!({ "value": 0.25, "target": 0.5, "above": false, "met": true })
    );
    let first = stage.stored_at(&sent.answered).await - stage.stored_at(&sent.asked).await;
    let second = stage.stored_at(&sent.joined).await - stage.stored_at(&sent.invited).await;
    let help = json!({
        "asked": 3, "answered": 2, "unanswered": 0, "waiting": 1, "average_ms": (first + second) / 2,
        "p50_ms": first.min(second), "p95_ms": first.max(second),
    });
    assert_eq!(report["peer_help"], help);
    let matches = json!({ "woken": 2, "accepted": 1, "declined": 1, "silent": 0, "waiting": 0 });
    assert_eq!(
        (&report["matches"], &report["matching_accuracy"]["value"]),
        (&matches, &json!(0.5))
    );
    let wakes = json!({ "woken": 4, "accepted": 2, "declined": 1, "silent": 0, "waiting": 1 });
    assert_eq!(
        (&report["wakes"], &report["false_wakes"]["value"]),
        (&wakes, &json!(1.0 / 3.0))
    );
    assert_eq!(
        (&report["collaboration_events"], &report["sessions"]),
        (&json!(5), &json!(5))
    );
    assert_eq!(report["events_per_session"]["met"], false);
}

/// The same for other leads, and for what was sent since some time.
async fn selected(stage: &Stage, sent: &Sent) {
    let text = stage.metrics(&["--since", "1h"]).await.good();
    assert!(
        text.contains("25.0 %") && text.contains("2 of 8 messages between agents"),
        "{text}"
    );
    let led = stage.metrics(&["--lead", "ann", "--json"]).await.json();
    assert_eq!(
        (&led["leads"], &led["lead_share"]["value"]),
        (&json!(["ann", "coordinator"]), &json!(1.0))
    );
    let answered = stage.stored_at(&sent.answered).await;
    let since = concord_wire::Timestamp::from_unix_millis(answered).to_string();
    let later = stage.metrics(&["--since", &since, "--json"]).await.json();
    assert_eq!(
        (&later["messages"], &later["since"]),
        (&json!(7), &json!(since))
    );
    let future = stage.metrics(&["--since", "2999-01-01T00:00:00Z"]).await;
    assert!(future.refused(2).contains("in the future"));
    let unknown = stage.metrics(&["--case", "c-none"]).await;
    assert!(unknown.refused(1).contains("there is no case c-none"));
    assert_eq!(stage.metrics(&["--since", "soon"]).await.code, 2);
}

/// With `--watch` what has changed is printed again, and a case is counted by itself.
async fn goes_on(stage: &Stage) {
    let mut command = concord();
    command.args([
        "metrics",
        "--watch",
        "--json",
        "--server",
        stage.installation.server_url(),
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || -> Value {
        let line = tokio::time::timeout(COMMAND_MAX, lines.next_line())
            .await
            .expect("a line")
            .unwrap()
            .unwrap();
        serde_json::from_str(&line).unwrap()
    };
    assert_eq!(next().await["messages"], 8);
    stage
        .say(
            "c-1",
            "ann",
            "ben",
            "peer_request",
            json!({ "content": "And now?" }),
            None,
        )
        .await;
    assert_eq!(next().await["messages"], 9);
    child.kill().await.unwrap();
    let alone = stage.metrics(&["--case", "c-1", "--json"]).await.json();
    assert_eq!(
        (&alone["messages"], &alone["sessions"], &alone["case_id"]),
        (&json!(1), &json!(1), &json!("c-1"))
    );
}
