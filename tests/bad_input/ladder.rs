//! The ladder of escalation: challenges, rulings and reviews that cannot be used are refused, and change nothing.

use concord_testkit::{Message, unique};
use serde_json::{Value, json};

use crate::bad_input::stage::{
    Stage, finding, invalid, opening, over_capacity, request_to_open, unauthorized,
};

/// Opens a case and brings it to its gate: the case, and the two agents that have given findings.
async fn at_gate(stage: &Stage) -> (String, String, String) {
    let (case, finance, strategy) = (unique("case"), unique("finance"), unique("strategy"));
    let mut parameters = opening(&case, &[&finance, &strategy], json!({}));
    parameters["gates"] = json!(["valuation"]);
    stage.installation().open_case(&parameters).await;
    for agent in [&finance, &strategy] {
        stage
            .send(&Message::finding(&case, agent, finding(40), 0.8))
            .await;
    }
    stage.decision(&case).await;
    (case, finance, strategy)
}

/// The payload of a challenge, with the fields of `more` in place of the usual ones.
fn challenge(challenger: &str, challenged: &str, more: &Value) -> Value {
    let mut challenge = json!({
        "challenge_id": unique("CH"), "challenger": challenger, "challenged": challenged,
        "disputed_finding": "Management effectiveness", "challenge_basis": "ROI declining despite claims",
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        challenge[field] = value.clone();
    }
    challenge
}

async fn challenges_that_make_no_sense(stage: &Stage) {
    let (case, finance, strategy) = at_gate(stage).await;
    let long = "x".repeat(5_000);
    for (more, refusal) in [
        (
            json!({ "challenged": strategy }),
            invalid("/payload/challenged"),
        ),
        (
            json!({ "challenged": unique("nobody") }),
            invalid("/payload/challenged"),
        ),
        (
            json!({ "finding_id": "m-none" }),
            invalid("/payload/finding_id"),
        ),
        (
            json!({ "escalation_timer": -1 }),
            invalid("/payload/escalation_timer"),
        ),
        (
            json!({ "escalation_timer": 0 }),
            invalid("/payload/escalation_timer"),
        ),
        (
            json!({ "escalation_timer": 99_999_999_999_i64 }),
            invalid("/payload/escalation_timer"),
        ),
        (
            json!({ "escalation_timer": "soon" }),
            invalid("/payload/escalation_timer"),
        ),
        (
            json!({ "priority": "world-ending" }),
            invalid("/payload/priority"),
        ),
        (
            json!({ "disputed_finding": " " }),
            invalid("/payload/disputed_finding"),
        ),
        (
            json!({ "challenger": finance, "challenged": strategy }),
            unauthorized("/payload/challenger"),
        ),
        (
            json!({ "challenge_basis": long }),
            over_capacity("/payload/challenge_basis"),
        ),
    ] {
        let challenge = challenge(&strategy, &finance, &more);
        let message = Message::new(&case, &strategy, "coordinator", "challenge", challenge);
        stage.send_refused(&message, &refusal).await;
    }
}

/// A debate that was never opened.
const DEBATE: &str = "d-none";

/// Outcomes of a debate that cannot be read, each with the place of the fault.
fn bad_outcomes() -> [(Value, &'static str); 5] {
    [
        (
            json!({ "debate_id": DEBATE, "explanation": "x" }),
            "/payload/held_by",
        ),
        (
            json!({ "debate_id": DEBATE, "held_by": "a", "position": "b", "explanation": "x" }),
            "/payload/held_by",
        ),
        (
            json!({ "debate_id": DEBATE, "held_by": "a", "explanation": " " }),
            "/payload/explanation",
        ),
        (
            json!({ "debate_id": DEBATE, "held_by": "a", "explanation": "x", "at": "soon" }),
            "/payload/at",
        ),
        (
            json!({ "debate_id": DEBATE, "held_by": "a", "explanation": "x", "circumstances": { "weather": "fine" } }),
            "/payload/circumstances/weather",
        ),
    ]
}

/// Rulings that cannot be read, each with the place of the fault.
fn bad_rulings() -> [(Value, &'static str); 3] {
    [
        (
            json!({ "debate_id": DEBATE, "digest": "0", "rationale": "x" }),
            "/payload/position_id",
        ),
        (
            json!({ "debate_id": DEBATE, "digest": "0", "position_id": "p1", "rationale": "" }),
            "/payload/rationale",
        ),
        (
            json!({ "debate_id": "d.1", "digest": "0", "position_id": "p1", "rationale": "x" }),
            "/payload/debate_id",
        ),
    ]
}

async fn what_is_said_to_a_debate_that_does_not_exist(stage: &Stage) {
    let zoe = unique("zoe");
    let to_facilitator =
        |kind: &str, payload: Value| Message::new("_", &zoe, "debate-facilitator", kind, payload);
    let ruling = json!({ "debate_id": DEBATE, "digest": "0", "position_id": "p1", "rationale": "So it is." });
    let outcome = json!({ "debate_id": DEBATE, "held_by": "ann", "explanation": "So it was." });
    for message in [
        to_facilitator("ruling", ruling),
        to_facilitator("outcome", outcome),
    ] {
        let refusal = invalid("/payload/debate_id");
        stage.send_refused(&message, &refusal).await;
    }
    for (payload, pointer) in bad_outcomes() {
        let message = to_facilitator("outcome", payload);
        stage.send_refused(&message, &invalid(pointer)).await;
    }
    for (kind, payload) in [
        ("evidence", json!({ "evidence": ["page 4"] })),
        ("acknowledgement", json!({})),
        ("clarification", json!({ "text": "Which year?" })),
    ] {
        let message = to_facilitator(kind, payload).with("/correlation_id", DEBATE);
        stage.send_refused(&message, &invalid("/reply_to")).await;
    }
    for (payload, pointer) in bad_rulings() {
        let message = to_facilitator("ruling", payload);
        stage.send_refused(&message, &invalid(pointer)).await;
    }
}

async fn reviews_at_the_wrong_gate_or_by_the_wrong_people(stage: &Stage) {
    let (case, finance, _) = at_gate(stage).await;
    let gail = unique("gail");
    stage.installation().register(&gail, &["reviewer"]).await;
    for (by, review, refusal) in [
        (
            &gail,
            json!({ "gate": "release", "action": "pass" }),
            invalid("/payload/gate"),
        ),
        (
            &finance,
            json!({ "gate": "valuation", "action": "pass" }),
            unauthorized("/from_agent"),
        ),
        (
            &unique("nobody"),
            json!({ "gate": "valuation", "action": "pass" }),
            unauthorized("/from_agent"),
        ),
        (
            &gail,
            json!({ "gate": "valuation", "action": "wave" }),
            invalid("/payload/action"),
        ),
        (
            &gail,
            json!({ "gate": "valuation", "action": "confirm" }),
            invalid("/payload/debate_id"),
        ),
        (
            &gail,
            json!({ "gate": "valuation", "action": "confirm", "debate_id": "d-none" }),
            invalid("/payload/debate_id"),
        ),
        (
            &gail,
            json!({ "gate": "valuation", "action": "override", "debate_id": "d-none", "rationale": "x" }),
            invalid("/payload/position"),
        ),
    ] {
        let message = Message::new(&case, by, "coordinator", "review", review);
        stage.send_refused(&message, &refusal).await;
    }
}

async fn rules_of_the_ladder_that_cannot_be_kept(stage: &Stage) {
    let hours = |days: Value, opens: &str, closes: &str, zone: &str| {
        let calendar = json!({ "time_zone": zone, "days": days, "opens": opens, "closes": closes });
        json!({ "calendar": calendar })
    };
    for (ladder, pointer) in [
        (
            json!({ "times": { "person_ms": 0 } }),
            "/ladder/times/person_ms",
        ),
        (
            json!({ "times": { "person_ms": -5 } }),
            "/ladder/times/person_ms",
        ),
        (
            json!({ "times": { "opinion_ms": 7_200_000 } }),
            "/ladder/times/opinion_ms",
        ),
        (json!({ "time_scale": 0 }), "/ladder/time_scale"),
        (json!({ "vote_margin_min": 1.5 }), "/ladder/vote_margin_min"),
        (json!({ "no_such_rule": 1 }), "/ladder/no_such_rule"),
        (
            hours(json!([]), "09:00", "17:00", "Europe/Berlin"),
            "/ladder/calendar/days",
        ),
        (
            hours(json!(["monday"]), "17:00", "09:00", "Europe/Berlin"),
            "/ladder/calendar/closes",
        ),
        (
            hours(json!(["monday"]), "09:00", "17:00", "Europe/Nowhere"),
            "/ladder/calendar/time_zone",
        ),
    ] {
        let (olga, case) = (unique("olga"), unique("case"));
        let parameters = opening(&case, &["ann"], json!({ "ladder": ladder }));
        let message = request_to_open(&olga, &parameters);
        stage
            .send_refused(
                &message,
                &invalid(&format!("/payload/parameters/policy{pointer}")),
            )
            .await;
    }
}

/// Each has a case of its own.
#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_on_the_ladder_is_refused() {
    let stage = Stage::start().await;
    challenges_that_make_no_sense(&stage).await;
    what_is_said_to_a_debate_that_does_not_exist(&stage).await;
    reviews_at_the_wrong_gate_or_by_the_wrong_people(&stage).await;
    rules_of_the_ladder_that_cannot_be_kept(&stage).await;
    stage.goes_on().await;
}
