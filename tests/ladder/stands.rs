//! What a person has decided stands until somebody decides otherwise.

use concord_testkit::{Message, concord, unique};
use serde_json::{Value, json};

use crate::ladder::stage::Stage;

/// A finding with this risk score.
fn found(score: u32) -> Value {
    json!({ "summary": "Seen.", "risk_score": score })
}

/// The times of a ladder on which a person has so many milliseconds.
fn times(person_ms: u32) -> Value {
    json!({
        "acknowledge_ms": 50, "evidence_ms": 50, "evaluation_ms": 50, "opinion_ms": 1, "mediation_ms": 50, "person_ms": person_ms,
        "provisional_ms": 60_000,
    })
}

/// A case in which an expert has ruled 45 between 20 and 80, as its decision says. Only what is on the critical path falls back soon.
async fn ruled() -> Stage {
    let stage = Stage::empty().await;
    let expert = unique("eve");
    let registration = json!({ "agent_id": expert, "domains": ["valuation"] });
    stage.installation.register_expert(&registration).await;
    let ladder = json!({
        "domain": "valuation", "times": times(600_000), "times_by_priority": { "critical-path": times(1_000) },
    });
    let policy = json!({
        "conflict_handling": "ladder", "rounds_max": 0, "answer_timeout_ms": 100, "decide": "when_settled", "ladder": ladder,
    });
    stage
        .open(json!({ "gates": ["release"], "policy": policy }))
        .await;
    stage.give_findings([found(20), found(80)]).await;
    let brief = stage.message_to(&expert, "request", |_| true).await;
    let debate = &brief["payload"]["parameters"]["debate_id"];
    let ruling = json!({
        "debate_id": debate, "digest": brief["payload"]["parameters"]["digest"], "position": "Risk score: 45",
        "rationale": "Half of it is capped.",
    });
    let message = Message::new(&stage.case, &expert, "debate-facilitator", "ruling", ruling);
    let message = message.with(
        "/correlation_id",
        debate.as_str().expect("an id").to_owned(),
    );
    stage.send(&message).await;
    let decided = stage.event("case", "decided", |_| true).await;
    assert_eq!(decided["data"]["decision"]["outcome"]["risk_score"], 45.0);
    stage
}

/// Whoever has lost a ruling challenges the value once more, and nobody rules in time: the cautious position of the challenge is provisional,
/// and the decision goes on saying what the expert has said.
#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_nobody_decides_leaves_the_ruling_in_the_decision() {
    let stage = ruled().await;
    let decision = challenged_with(&stage, 95).await;
    assert_eq!(decision["outcome"]["risk_score"], 45.0, "{decision}");
    assert_eq!(decision["provisional"].as_array().map(Vec::len), Some(1));
    let (case, server) = (&stage.case, stage.installation.server_url());
    let shown = concord(&["case", "show", case, "--json", "--server", server]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["decision"]["outcome"]["risk_score"], 45.0, "{shown}");
    stage.holds().await;
}

/// The decision after strategy has challenged the 20 of finance with this score, and nobody has decided about it in time.
async fn challenged_with(stage: &Stage, value: u32) -> Value {
    let challenge = json!({
        "challenge_id": "CH-1", "challenger": stage.strategy, "challenged": stage.finance, "disputed_finding": "A risk of 20",
        "challenge_basis": "It is more.", "required_evidence": ["the annex"], "metric": "risk_score", "challenged_value": 20,
        "position": format!("Risk score: {value}"), "value": value, "domain": "valuation", "priority": "critical-path",
    });
    let (case, from) = (&stage.case, &stage.strategy);
    let challenge = Message::new(case, from, "coordinator", "challenge", challenge);
    stage.send(&challenge).await;
    let changed = stage.event("case", "decision_changed", |_| true).await["data"].clone();
    assert_eq!(changed["outcome"]["status"], "provisional", "{changed}");
    let chosen = &changed["outcome"]["resolution"]["value"];
    assert_eq!(chosen, value, "{changed}");
    changed["decision"].clone()
}

/// One agent alone challenges a low score with one that is hardly higher, and waits: that undoes no vote for a high one.
#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_nobody_decides_leaves_the_vote_in_the_decision() {
    let stage = Stage::empty().await;
    let ladder = json!({ "domain": "valuation", "times": times(50) });
    let policy = json!({ "rounds_max": 0, "answer_timeout_ms": 100, "ladder": ladder });
    stage
        .open(json!({ "gates": ["release"], "policy": policy }))
        .await;
    stage.give_findings([found(20), found(80)]).await;
    let decided = stage.event("case", "decided", |_| true).await;
    let decision = &decided["data"]["decision"];
    assert_eq!(decision["outcome"]["risk_score"], 80.0, "{decision}");
    assert_eq!(decision["outcomes"][0]["status"], "vote", "{decision}");
    let decision = challenged_with(&stage, 21).await;
    assert_eq!(decision["outcome"]["risk_score"], 80.0, "{decision}");
    stage.holds().await;
}
