//! A decision follows what people say after it, and everyone in the case hears of each change.

use concord_testkit::{Message, concord, unique};
use serde_json::{Value, json};

use crate::ladder::stage::Stage;

/// A case whose time is over while the disagreement about its risk score, 20 or 80, waits for a person.
async fn decided_before_the_person() -> Stage {
    // The debate must have been opened when the time is over.
    decided(10_000, 600_000).await
}

/// A case of so much time with that disagreement, about which a person has so much time.
async fn decided(case_ms: u64, person_ms: u64) -> Stage {
    let terms = json!({ "policy": {
        "conflict_handling": "ladder", "case_timeout_ms": case_ms, "finding_timeout_ms": 10_000,
        "rounds_max": 0, "answer_timeout_ms": 100,
        "ladder": {
            "domain": "valuation",
            "times": { "opinion_ms": 1, "mediation_ms": 50, "person_ms": person_ms, "provisional_ms": 60_000 },
        },
    }});
    let finding = |score: u32| json!({ "summary": "Seen.", "risk_score": score });
    Stage::decided(terms, [finding(20), finding(80)]).await
}

/// Waits until the decision has this version: the contents of the event.
async fn version(stage: &Stage, version: u32) -> Value {
    let event = stage
        .event("case", "decision_changed", |data| {
            data["change"]["version"] == version
        })
        .await;
    event["data"].clone()
}

/// Every participant, and who opened the case, was told of the version once.
async fn check_told(stage: &Stage, version: u32) {
    for agent in [&stage.finance, &stage.strategy] {
        let told = stage
            .message_to(agent, "notification", |message| {
                message["payload"]["event"] == "case_decision_changed"
                    && message["payload"]["data"]["change"]["version"] == version
            })
            .await;
        assert_eq!(
            told["payload"]["data"]["decision"]["version"], version,
            "with the whole decision"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ruling_that_comes_after_the_decision_changes_it() {
    let stage = decided_before_the_person().await;
    let first = stage.event("case", "decided", |_| true).await["data"]["decision"].clone();
    assert_eq!(
        (&first["version"], &first["outcome"]["risk_score"]),
        (&json!(1), &json!(80.0)),
        "the cautious score, because the debate is open"
    );
    let debate = first["open"][0]
        .as_str()
        .expect("an open debate")
        .to_owned();
    let expert = unique("eve");
    let registration = json!({ "agent_id": expert, "domains": ["valuation"] });
    stage.installation.register_expert(&registration).await;
    let brief = stage
        .message_to(&expert, "request", |request| {
            request["payload"]["action"] == "rule"
        })
        .await;
    let digest = &brief["payload"]["parameters"]["digest"];
    let ruling = json!({
        "debate_id": debate, "digest": digest, "position_id": "p1", "rationale": "The annex caps it.",
    });
    let ruling = Message::new(&stage.case, &expert, "debate-facilitator", "ruling", ruling);
    stage
        .send(&ruling.with("/correlation_id", debate.clone()))
        .await;

    let changed = version(&stage, 2).await;
    assert_eq!(changed["decision"]["outcome"]["risk_score"], 20.0);
    assert_eq!(changed["decision"]["open"], Value::Null);
    let change = &changed["change"];
    assert_eq!(
        (&change["replaces"], &change["by"], &change["level"]),
        (&json!(1), &json!(expert), &json!(3))
    );
    assert_eq!(
        change["changed"],
        json!([{ "part": "risk_score", "before": 80.0, "after": 20.0 }])
    );
    assert_eq!(
        (
            &changed["entry"]["decision_version"],
            &changed["entry"]["replaces_version"]
        ),
        (&json!(2), &json!(1))
    );
    check_told(&stage, 2).await;
    stage.holds().await;
}

/// As much as a person may write.
fn reason() -> String {
    "Half of what each of them says, for the annex caps it. ".repeat(74)
}

/// An open debate that an expert has, and what the command says when that expert rules with these words.
async fn with_expert(stage: &Stage) -> impl Fn(&[&str]) -> std::process::Output {
    let first = stage.event("case", "decided", |_| true).await;
    let debate = first["data"]["decision"]["open"][0].as_str();
    let debate = debate.expect("an open debate").to_owned();
    let expert = unique("eve");
    let registration = json!({ "agent_id": expert, "domains": ["valuation"] });
    stage.installation.register_expert(&registration).await;
    stage.message_to(&expert, "request", |_| true).await;
    let server = stage.installation.server_url().to_owned();
    move |own| {
        let reason = reason();
        let who = ["rule", &debate, "--expert", &expert, "--rationale", &reason];
        concord(&[&who, own, &["--server", &server]].concat())
    }
}

/// Who rules by the command need not know how a position is written as a value.
#[tokio::test(flavor = "multi_thread")]
async fn a_ruling_in_words_of_ones_own_is_what_the_decision_says() {
    let stage = decided_before_the_person().await;
    let rule = with_expert(&stage).await;
    for (own, value, reason) in [
        ("too much", "101", "it must be a number from 0 to 100"),
        ("Risk score: 50", "60", "the value is 60"),
        ("Risk score: \u{2212}50", "50", "the value is 50"),
    ] {
        let refused = rule(&["--own", own, "--value", value]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains(reason), "{said}");
    }
    let ruled = rule(&["--own", "Risk score: 50"]);
    assert!(ruled.status.success(), "{ruled:?}");
    let said = String::from_utf8_lossy(&ruled.stdout);
    assert!(!said.contains("--value"), "{said}");
    let changed = version(&stage, 2).await;
    assert_eq!(changed["decision"]["outcome"]["risk_score"], 50.0);
    check_told(&stage, 2).await;
    let server = ["--server", stage.installation.server_url()];
    for ask in [
        &["decisions", "list"][..],
        &["decisions", "export", &stage.case],
    ] {
        let listed = concord(&[ask, &["--json"], &server].concat());
        let listed = String::from_utf8_lossy(&listed.stdout);
        assert!(listed.contains(&reason()), "the whole reason: {listed}");
    }
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ruling_in_words_that_decide_nothing_is_told_that_a_value_does() {
    let stage = decided_before_the_person().await;
    let rule = with_expert(&stage).await;
    let ruled = rule(&["--own", "- 50"]);
    assert!(ruled.status.success(), "{ruled:?}");
    let said = String::from_utf8_lossy(&ruled.stdout);
    let note = "--value does: a number from 0 to 100";
    assert!(said.contains("resolved") && said.contains(note), "{said}");
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_at_the_final_gate_of_a_case_without_gates_changes_the_decision() {
    // Nobody rules in time, so the case is decided long before its own time is over.
    let stage = decided(600_000, 1_000).await;
    let first = stage.event("case", "decided", |_| true).await;
    let decision = &first["data"]["decision"];
    assert_eq!(decision["outcome"]["risk_score"], 80.0, "nobody has ruled");
    let debate = decision["provisional"][0].as_str().expect("a debate");
    assert_eq!(decision["gates"], json!(["final review"]));
    stage
        .review(json!({
            "gate": "final review", "action": "override", "debate_id": debate, "position": "Risk score: 10",
            "rationale": "The annex caps it.",
        }))
        .await;
    let overridden = version(&stage, 2).await;
    let decision = &overridden["decision"];
    assert_eq!(decision["outcome"]["risk_score"], 10.0);
    assert_eq!(
        (&decision["provisional"], &decision["gates"]),
        (&Value::Null, &Value::Null),
        "nothing waits for a review any more"
    );
    assert_eq!(overridden["change"]["by"], "gail");
    check_told(&stage, 2).await;
    stage.holds().await;
}
