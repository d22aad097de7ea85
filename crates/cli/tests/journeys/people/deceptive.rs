//! What others write into every field: no view lets a terminal obey it, hides it, or shows it as a line of its own.

use concord_testkit::{
    COMMAND_MAX, Message, TestInstallation, dead_letters, event_data, finish, wait_for,
};
use serde_json::{Value, json};

use super::{CHALLENGE, Stage};
use crate::command::concord;

/// Clears the screen, sets the title, hides, turns the direction of writing, is not seen, and begins a line.
const EVIL: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}[8m\u{9b}2J\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\r\nFORGED\tline";

#[tokio::test(flavor = "multi_thread")]
async fn no_view_shows_what_deceives() {
    let stage = Stage::start_on(TestInstallation::start().await, 14_400).await;
    evil_case(&stage).await;
    evil_challenge(&stage).await;
    evil_letters(&stage).await;
    evil_brief(&stage).await;
    let woken_by = evil_query(&stage).await;
    let debate = stage.json("gate show c-evil").await["provisional"][0]["conflict_id"].clone();
    let debate = debate.as_str().unwrap().to_owned();
    let letter = stage.json("dead list --all").await[0]["sequence"].to_string();
    let views = [
        "agents".to_owned(),
        "case list".to_owned(),
        "case show c-evil".to_owned(),
        "case transcript c-evil".to_owned(),
        "case watch c-evil --from-start".to_owned(),
        "queue next --expert gus".to_owned(),
        "person list".to_owned(),
        format!("wake explain {woken_by}"),
        format!("debate show {debate}"),
        "queue".to_owned(),
        "expert list".to_owned(),
        "gate list c-evil".to_owned(),
        "gate show c-evil".to_owned(),
        "decisions list".to_owned(),
        "decisions show c-evil-1".to_owned(),
        "record show fin".to_owned(),
        "dead list --all".to_owned(),
        format!("dead show {letter}"),
        "deadlines".to_owned(),
        "metrics".to_owned(),
        "doctor".to_owned(),
        "check".to_owned(),
    ];
    for view in views {
        look(&stage, &view).await;
        look(&stage, &format!("{view} --json")).await;
    }
    look(&stage, "decisions export").await;
    look(
        &stage,
        "gate review c-evil --gate 'v$(touch x)' --by gail --pass",
    )
    .await;
    stage.holds().await;
}

/// A case whose parts are evil, with two findings that differ, and an agent whose card is evil.
async fn evil_case(stage: &Stage) {
    let opening = json!({
        "case_id": "c-evil", "participants": ["fin", "sid"], "gates": ["valuation"],
        "task": { "type": EVIL, "title": EVIL, "input": { EVIL: EVIL } },
        "policy": { "answer_timeout_ms": 300, "rounds_max": 1, "ladder": { "time_scale": 14_400 } },
    });
    stage
        .with_input("case open -", &opening.to_string())
        .await
        .good();
    let client = stage.installation.client();
    let card = json!({
        "agent_id": "fin", "name": EVIL, "version": EVIL, "description": EVIL, "domains": [EVIL], "triggers": [EVIL],
        "skills": [{ "name": EVIL, "description": EVIL, "tags": [EVIL] }],
    });
    let register = json!({ "action": "register_agent", "parameters": card });
    Message::new("_", "fin", "coordinator", "request", register)
        .publish(client)
        .await;
    let status = json!({ "status": "busy", "why": EVIL });
    Message::new("_", "fin", "coordinator", "status", status)
        .publish(client)
        .await;
    for (agent, score) in [("fin", 20), ("sid", 90)] {
        let finding = json!({
            "summary": EVIL, "recommendation": EVIL, "risk_score": score, "evidence": [EVIL],
            "critical_findings": [{ "topic": EVIL, "severity": "low", "detail": EVIL }],
        });
        Message::finding("c-evil", agent, finding, 0.8)
            .publish(client)
            .await;
    }
    let is_decided = |case: &Value| case["phase"] == "decided";
    stage.until("case show c-evil", is_decided).await;
}

/// A challenge whose parts are evil falls back to a provisional decision.
async fn evil_challenge(stage: &Stage) {
    let mut challenge: Value = serde_json::from_str(CHALLENGE).unwrap();
    for field in [
        "disputed_finding",
        "challenge_basis",
        "metric",
        "position",
        "domain",
    ] {
        challenge[field] = EVIL.into();
    }
    for field in ["required_evidence", "dependants"] {
        challenge[field] = json!([EVIL]);
    }
    stage
        .with_input("challenge c-evil -", &challenge.to_string())
        .await
        .good();
    stage
        .until("gate show c-evil", |shown| shown["requires_review"] == 1)
        .await;
}

/// A brief whose parts are evil, for somebody who has time to rule on it.
async fn evil_brief(stage: &Stage) {
    stage.decide("c-brief", "valuation", 1).await;
    stage.good("person register gus --role arbiter").await;
    let mut challenge: Value = serde_json::from_str(CHALLENGE).unwrap();
    for field in ["disputed_finding", "challenge_basis", "position"] {
        challenge[field] = EVIL.into();
    }
    challenge["provisional_resolution"] = EVIL.into();
    let made = stage
        .with_input("challenge c-brief - --json", &challenge.to_string())
        .await
        .json();
    let debate = made["debate_id"].as_str().unwrap();
    stage.opened(debate).await;
    let said = async |from: &str, kind: &str, payload: Value| {
        let message = Message::new("c-brief", from, "debate-facilitator", kind, payload);
        let message = message.with("/correlation_id", debate);
        message.publish(stage.installation.client()).await;
    };
    said("fin", "acknowledgement", json!({})).await;
    said("fin", "evidence", json!({ "evidence": [EVIL] })).await;
    let given = |shown: &Value| super::events(shown).any(|name| name == "evidence_given");
    stage.until(&format!("debate show {debate}"), given).await;
    said("sid", "disagreement", json!({ "reasoning": EVIL })).await;
    let has_it = |next: &Value| next["brief"]["debate_id"] == debate;
    stage.until("queue next --expert gus", has_it).await;
}

/// A question to whoever can help, about which it is decided whom it wakes; its id.
async fn evil_query(stage: &Stage) -> String {
    let client = stage.installation.client();
    let content = json!({ "content": EVIL });
    let query = Message::new("_", "sid", "_any", "group_query", content);
    query.publish(client).await;
    wait_for("whom it wakes", COMMAND_MAX, async || {
        let all = event_data(client, "wake.*.decided").await?;
        let mut ids = all.iter().map(|one| &one["said"]["message_id"]);
        ids.any(|id| id == query.id())
            .then_some(())
            .ok_or_else(|| "not decided".to_owned())
    })
    .await;
    query.id().to_owned()
}

/// Messages that cannot be read, and one that names a gate as an earlier version let a case name it.
async fn evil_letters(stage: &Stage) {
    let client = stage.installation.client();
    let opening = json!({
        "participants": ["fin"], "task": { "type": "test" }, "gates": ["v$(touch x)"],
    });
    let opening = json!({ "action": "open_case", "parameters": opening });
    Message::new("_", "fin", "coordinator", "request", opening)
        .publish(client)
        .await;
    let evil = json!({ EVIL: EVIL }).to_string();
    for body in [EVIL.to_owned(), evil] {
        let subject = "concord.v1.msg.c-evil.fin.coordinator.finding";
        client.publish(subject, body.into()).await.unwrap();
    }
    wait_for("three dead letters", COMMAND_MAX, async || {
        let letters = dead_letters(client).await?;
        let number = letters.len();
        if number >= 3 {
            Ok(())
        } else {
            Err(format!("{number} of them"))
        }
    })
    .await;
}

/// Runs a view as on a terminal with colours, and looks at everything that it prints.
async fn look(stage: &Stage, view: &str) {
    let shown = finish(
        concord()
            .args(stage.arguments(view))
            .env("CLICOLOR_FORCE", "1"),
    )
    .await;
    assert!([0, 1].contains(&shown.code), "{view}: {shown:?}");
    for text in [shown.out, shown.err] {
        let mut plain = text.clone();
        for style in ["0", "1", "2", "31", "32", "33", "36"] {
            plain = plain.replace(&format!("\u{1b}[{style}m"), "");
        }
        let deceptive = |c: &char| {
            let code = u32::from(*c);
            (c.is_control() && *c != '\n')
                || [0x200b, 0x202e, 0x2066, 0xfeff, 0xe0041].contains(&code)
        };
        let found: Vec<char> = plain.chars().filter(deceptive).collect();
        assert!(found.is_empty(), "{view} shows {found:?}:\n{plain:?}");
        let forged = plain.lines().find(|line| line.trim().starts_with("FORGED"));
        // The original of a letter that is no JSON is shown with its lines, below everything else.
        assert!(
            forged.is_none() || view.starts_with("dead show"),
            "{view} shows {forged:?}"
        );
    }
}
