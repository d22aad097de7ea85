//! Estimates that differ are a conflict that nobody has to ask for, and other words for the same are none.

use concord_testkit::{concord, unique};
use serde_json::{Value, json};

use crate::ladder::PATIENCE;
use crate::ladder::stage::Stage;

/// What the command prints about the case.
fn printed(stage: &Stage, verb: &[&str]) -> String {
    let server = stage.installation.server_url();
    let output = concord(&[verb, &[&stage.case, "--server", server]].concat());
    assert!(output.status.success(), "{verb:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn finding(margin: Value, revenue: Value) -> Value {
    json!({ "summary": "Modelled.", "estimates": [margin, revenue] })
}

#[tokio::test(flavor = "multi_thread")]
async fn margins_of_25_and_30_percent_are_a_conflict_that_the_cautious_one_decides_provisionally() {
    let terms = json!({ "gates": ["valuation"], "policy": {
        "preset": "investment", "rounds_max": 0, "answer_timeout_ms": 100,
        "ladder": { "times": { "opinion_ms": 1, "mediation_ms": 50, "person_ms": 50 } },
    }});
    let margin = |value: f64, unit: &str| json!({ "metric": "operating margin", "value": value, "unit": unit });
    let revenue = |unit: &str| json!({ "metric": "revenue", "value": 12.5, "unit": unit });
    let findings = [
        finding(margin(25.0, "%"), revenue("USD million")),
        finding(margin(0.3, "fraction"), revenue("EUR million")),
    ];
    let stage = Stage::decided(terms, findings).await;

    let decided = stage.event("case", "decided", |_| true).await;
    let decision = &decided["data"]["decision"];
    let conflicts = decision["conflicts"].as_array().expect("conflicts");
    let types: Vec<&Value> = conflicts.iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["estimate_disagreement"], "{decision}");
    let outcome = &decision["outcomes"][0];
    assert_eq!(outcome["status"], "provisional", "{outcome}");
    assert_eq!(
        outcome["resolution"]["value"],
        json!({ "value": 25.0, "unit": "%" })
    );

    let why = outcome["provisional"].to_string();
    assert!(
        why.contains("of operating margin the lowest value is the cautious one"),
        "{why}"
    );

    let shown = printed(&stage, &["case", "show"]);
    for line in [
        "Estimates of operating margin: 25 % to 0.3 fraction  estimate_disagreement",
        "not compared: estimates of revenue in units that cannot be converted",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    printed(&stage, &["replay"]);
    names_that_mean_the_same_are_no_conflict(stage).await;
}

/// Another case of the same installation: the policy knows two names, and the detector has no model for a third.
async fn names_that_mean_the_same_are_no_conflict(mut stage: Stage) {
    stage.case = unique("case");
    let vocabulary = json!({
        "recommendations": { "reject": ["do not sign"] },
        "topics": { "Governing Law": ["applicable law"] },
        "similarity_min": 0.7,
    });
    stage
        .open(json!({ "policy": { "rounds_max": 0, "vocabulary": vocabulary } }))
        .await;
    let finding = |advice: &str, clause: &str, present: bool| {
        json!({
            "summary": "Read.", "recommendation": advice,
            "clauses": [{ "type": clause, "present": present }],
        })
    };
    let findings = [
        finding("Do not sign", "Applicable Law", true),
        finding("reject", "governing law", false),
    ];
    stage.give_findings(findings).await;
    let case = stage.case.clone();
    let decided = stage.event_of(&case, "decided").await;
    let decision = &decided["data"]["decision"];
    let conflicts = decision["conflicts"].as_array().expect("conflicts");
    let types: Vec<&Value> = conflicts.iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["clause_presence_disagreement"], "{decision}");
    let outcome = &decision["outcome"];
    assert_eq!(outcome["recommendation"], "reject");
    let clauses = outcome["clauses"].as_object().expect("clauses");
    assert!(clauses.keys().eq(["Governing Law"]), "{outcome}");

    let shown = printed(&stage, &["case", "show"]);
    for line in [
        "taken as the same: \"applicable law\" is \"Governing Law\" (an alias in the policy)",
        "taken as the same: \"do not sign\" is \"reject\" (an alias in the policy)",
        "the conflict detector has no sentence model, which the policy asks for",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    printed(&stage, &["replay"]);
    stage.installation.holds(PATIENCE).await;
}
