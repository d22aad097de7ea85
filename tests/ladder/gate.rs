//! A challenge that nobody answers goes through all five levels, and a gate overrides the provisional decision.

use concord_testkit::{Message, concord, event_data};
use serde_json::{Value, json};

use crate::ladder::impact;
use crate::ladder::stage::Stage;

/// Follows the debate through the levels of agents and people to its provisional decision: the debate.
async fn climb_to_provisional_decision(stage: &Stage) -> String {
    stage
        .message_to(&stage.finance, "challenge", |message| {
            message["payload"]["challenge_id"] == "CH-001"
        })
        .await;
    assert_eq!(stage.escalated_to(2).await["reason"], "unacknowledged");
    // The hour of mediation is a quarter of a second here: on a busy machine it may pass before the comparison.
    let reason = stage.escalated_to(3).await["reason"].clone();
    assert!(
        ["credibility_inconclusive", "mediation_overdue"]
            .iter()
            .any(|one| reason == *one),
        "{reason}"
    );
    let event = stage.event("debate", "fell_back", |_| true).await;
    let outcome = &event["data"]["outcome"];
    assert_eq!(
        (&outcome["status"], &outcome["resolution"]["value"]),
        (&json!("provisional"), &json!(25))
    );
    assert_eq!(outcome["provisional"]["review_at"], "valuation");
    wait_until_settled(stage, "provisional").await;
    outcome["conflict_id"].as_str().expect("an id").to_owned()
}

/// Waits until the case has recorded the outcome of the debate with this status: the event.
async fn wait_until_settled(stage: &Stage, status: &str) -> Value {
    stage
        .event("case", "decision_changed", |data| {
            data["outcome"]["status"] == status
        })
        .await
}

/// The case cannot pass the gate before the provisional decision is reviewed.
async fn check_gate_is_closed(stage: &Stage) {
    stage
        .review(json!({ "gate": "valuation", "action": "pass" }))
        .await;
    let error = stage.message_to("gail", "error", |_| true).await;
    let message = error["payload"]["error_message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.contains("1 provisional decision requires review"),
        "{error}"
    );
    let server = stage.installation.server_url();
    let shown = concord(&["case", "show", &stage.case, "--server", server]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.contains("the cautious position stands until a gate has reviewed it"),
        "{shown}"
    );
}

/// Gail and gus override at the same time, by what they were shown: who was first. The other is told that nothing is left to review.
async fn override_at_once(stage: &Stage, debate: &str) -> &'static str {
    stage.installation.register("gus", &["reviewer"]).await;
    let review = json!({
        "gate": "valuation", "action": "override", "debate_id": debate, "position": "28 %", "value": 28,
        "rationale": "Management guidance.",
    });
    for reviewer in ["gail", "gus"] {
        Message::new(
            &stage.case,
            reviewer,
            "coordinator",
            "review",
            review.clone(),
        )
        .publish(stage.installation.client())
        .await;
    }
    let reviewed = stage.event("case", "gate_reviewed", |_| true).await;
    let [first, other] = match reviewed["data"]["heard"]["agent_id"] == "gail" {
        true => ["gail", "gus"],
        false => ["gus", "gail"],
    };
    let told = stage
        .message_to(other, "error", |error| {
            error["payload"]["details"]["pointer"] == "/payload/debate_id"
        })
        .await;
    let why = told["payload"]["error_message"]
        .as_str()
        .unwrap_or_default();
    assert!(why.contains(debate), "{told}");
    first
}

/// The overriding decision is in the log of decisions, the track record of finance, and the precedents.
async fn check_override_is_recorded(stage: &Stage, by: &str) {
    let settled = wait_until_settled(stage, "overridden").await;
    assert_eq!(settled["data"]["outcome"]["resolution"]["value"], 28);
    assert_eq!(
        settled["data"]["entry"]["number"], 2,
        "after the provisional one"
    );
    let observed = stage
        .event("record", "observed", |data| {
            data["observation"]["overridden"] == true
        })
        .await;
    assert_eq!(
        (&observed["id"], &observed["data"]["by"]),
        (&json!(stage.finance), &json!(by))
    );
    // Whose case it was: no opener's cases make up more than a share of a record.
    let opened = stage.event("case", "opened", |_| true).await;
    let opener = &opened["data"]["opened_by"];
    assert!(
        opener.is_string() && observed["data"]["opened_by"] == *opener,
        "{observed} is of a case of {opener}"
    );
    stage
        .event("precedent", "recorded", |data| {
            data["precedent"]["status"] == "overridden"
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_nobody_answers_climbs_all_five_levels_and_a_gate_overrides_it() {
    let stage = Stage::start(14_400).await;
    stage.challenge().await;
    let debate = climb_to_provisional_decision(&stage).await;
    check_gate_is_closed(&stage).await;
    stage.event("debate", "awaits_gate", |_| true).await;
    impact::publish(&stage).await;
    let first = override_at_once(&stage, &debate).await;
    check_override_is_recorded(&stage, first).await;
    impact::check_report(&stage, first).await;
    stage
        .review(json!({ "gate": "valuation", "action": "pass" }))
        .await;
    stage
        .event("case", "gate_passed", |data| data["gate"] == "valuation")
        .await;
    stage.holds().await;
    for once in ["case.*.gate_reviewed", "impact.*.assessed"] {
        let all = event_data(stage.installation.client(), once).await;
        assert_eq!(all.map(|all| all.len()), Ok(1), "{once}");
    }
}
