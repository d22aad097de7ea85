//! The reviewers on short contracts and on the sample: what they find, and what changes their
//! positions.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::collections::HashMap;
use std::sync::LazyLock;

use contract_review_panel::protocol::answer;
use contract_review_panel::reviewer::{ROLES, Reviewer};
use serde_json::{Value, json};

const LAW: &str = "This Agreement shall be governed by the laws of the State of Texas.";
const CAP: &str = "In no event shall the liability of Supplier exceed $100,000 in aggregate.";
const HIDDEN_CAP: &str =
    "Supplier may be asked for damages, but for no more than a maximum of the fees of one month.";
const QUIET_EXCLUSIVE: &str = "Buyer shall be served exclusively by Seller.";

static PANEL: LazyLock<HashMap<&str, Reviewer>> = LazyLock::new(|| {
    let load = |(role, _)| (role, Reviewer::load(role).unwrap());
    ROLES.map(load).into()
});

fn ask(role: &str, message_type: &str, payload: &Value) -> Value {
    let message = json!({ "message_type": message_type, "payload": payload });
    answer(&PANEL[role], &message.to_string())
}

fn task(sentences: &[&str]) -> Value {
    json!({ "type": "contract_review", "title": "Review", "input": { "title": "T", "sentences": sentences } })
}

fn finding(role: &str, sentences: &[&str]) -> Value {
    let reply = ask(role, "task_assignment", &json!({ "task": task(sentences) }));
    assert_eq!(reply["message_type"], "finding", "{reply}");
    reply["payload"].clone()
}

/// Returns true if the clause extractor finds `clause` in `text`.
fn finds(clause: &str, text: &str) -> bool {
    let finding = finding("clause_extractor", &[text]);
    let found = finding["affected_clauses"].as_array().unwrap();
    found.contains(&json!(clause))
}

/// The answer of the clause extractor, which has not found `clause`, to a colleague with `quotes`.
fn presence(clause: &str, sentences: &[&str], quotes: &[&str], with_task: bool) -> Value {
    let question = json!({
        "conflict": { "type": "clause_presence_disagreement", "subject": clause },
        "your_position": { "agent_id": "clause_extractor", "position": "not found", "value": false, "confidence": 0.8 },
        "other_positions": [
            { "agent_id": "risk_assessor", "position": "present", "value": true, "confidence": 0.99, "evidence": quotes },
        ],
        "task": if with_task { task(sentences) } else { Value::Null },
        "limits": { "max_tokens": 500 },
    });
    ask("clause_extractor", "question", &question)
}

#[test]
fn the_rules_tell_a_clause_from_its_neighbours() {
    for (clause, text) in [
        ("Governing Law", LAW),
        ("Cap On Liability", CAP),
        (
            "Exclusivity",
            "Seller grants Buyer the exclusive right to sell the Products.",
        ),
        (
            "Termination For Convenience",
            "Either party may terminate this Agreement without cause.",
        ),
        (
            "Non-Compete",
            "Buyer shall not sell products that compete with the Products.",
        ),
        (
            "Audit Rights",
            "Licensor may audit the books and records of Licensee.",
        ),
        (
            "Insurance",
            "Buyer shall maintain commercial general liability insurance.",
        ),
        (
            "Minimum Commitment",
            "Buyer guarantees a minimum annual purchase.",
        ),
        (
            "Renewal Term",
            "This Agreement shall automatically renew for one year.",
        ),
    ] {
        assert!(finds(clause, text), "{clause}: {text}");
    }
    for (clause, text) in [
        (
            "Governing Law",
            "The committee shall govern its own procedure.",
        ),
        (
            "Exclusivity",
            "Seller grants Buyer a non-exclusive right to sell the Products.",
        ),
        (
            "Exclusivity",
            "The courts of Paris have exclusive jurisdiction.",
        ),
        (
            "Termination For Convenience",
            "Buyer may terminate upon ten (10) days notice of a breach.",
        ),
        (
            "Warranty Duration",
            "Each party represents and warrants that it began ten years ago.",
        ),
    ] {
        assert!(!finds(clause, text), "{clause}: {text}");
    }
}

#[test]
fn the_check_is_wider_than_the_definition_and_narrower_than_any_sentence() {
    let clause = "Cap On Liability";
    assert!(!finds(clause, HIDDEN_CAP));
    for (quote, value) in [(HIDDEN_CAP, true), (LAW, false)] {
        let reply = presence(clause, &[quote], &[quote], true);
        assert_eq!(reply["payload"]["value"], value, "{quote}");
    }
}

#[test]
fn the_extractor_reports_every_type_and_gives_no_opinion() {
    let finding = finding("clause_extractor", &[CAP, LAW]);
    let clauses = finding["clauses"].as_array().unwrap();
    assert_eq!(clauses.len(), 20);
    let law = clauses
        .iter()
        .find(|clause| clause["type"] == "Governing Law")
        .unwrap();
    assert_eq!((&law["present"], &law["text"]), (&json!(true), &json!(LAW)));
    assert_eq!(finding["risk_score"], Value::Null);
    let facts = json!([
        { "subject": "agreement", "attribute": "governing_law", "value": "Texas" },
        { "subject": "liability", "attribute": "cap_amount", "value": 100_000, "unit": "USD" },
    ]);
    assert_eq!(finding["facts"], facts);
    assert_eq!(finding["evidence"], json!([LAW, CAP]));
}

#[test]
fn an_assessing_reviewer_scores_recommends_and_quotes() {
    let finding = finding(
        "risk_assessor",
        &[LAW, "Buyer shall pay liquidated damages of $5 a day."],
    );
    assert_eq!(finding["risk_score"], 28 + 12 + 12 + 4);
    assert_eq!(finding["recommendation"], "escalate");
    assert_eq!(finding["severity"], "high");
    let topics: Vec<&Value> = finding["critical_findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| &p["topic"])
        .collect();
    assert_eq!(topics, ["Cap On Liability", "Liquidated Damages"]);
    assert_eq!(finding["affected_clauses"], json!(["Liquidated Damages"]));
}

#[test]
fn a_missed_sentence_that_passes_the_check_changes_a_position() {
    let text = "Buyer shall be the sole distributor of the Products.";
    let reply = presence("Exclusivity", &[LAW, text], &[text], true);
    assert_eq!(reply["message_type"], "agreement", "{reply}");
    assert_eq!(reply["payload"]["value"], true);
    assert_eq!(reply["payload"]["agrees_with"], "risk_assessor");
    assert_eq!(reply["payload"]["evidence"], json!([text]));
    assert_eq!(
        presence("Exclusivity", &[], &[text], false)["message_type"],
        "agreement"
    );
}

#[test]
fn neither_confidence_nor_a_weak_quote_nor_an_invented_one_changes_a_position() {
    for (sentences, quotes) in [
        (vec![LAW, QUIET_EXCLUSIVE], vec![]),
        (vec![LAW, QUIET_EXCLUSIVE], vec![LAW]),
        (
            vec![LAW],
            vec!["Buyer shall be the sole distributor of the Products."],
        ),
    ] {
        let reply = presence("Exclusivity", &sentences, &quotes, true);
        assert_eq!(reply["message_type"], "disagreement", "{reply}");
        assert_eq!(reply["payload"]["value"], false);
        assert_eq!(reply["payload"]["revised_position"], "not found");
        assert_eq!(reply["payload"]["agrees_with"], Value::Null);
    }
}

#[test]
fn a_score_is_computed_again_with_the_new_sentence_and_by_own_weights() {
    let sentences = [LAW, HIDDEN_CAP];
    let before = finding("risk_assessor", &sentences)["risk_score"]
        .as_i64()
        .unwrap();
    let question = json!({
        "conflict": { "type": "risk_score_disagreement", "topic": "Risk score spread", "subject": null },
        "your_position": { "agent_id": "risk_assessor", "position": "44", "value": before, "confidence": 0.7 },
        "other_positions": [{ "agent_id": "x", "position": "5", "value": 5, "evidence": [HIDDEN_CAP] }],
        "task": task(&sentences),
    });
    let reply = ask("risk_assessor", "question", &question);
    assert_eq!(reply["message_type"], "revision");
    assert_eq!(reply["payload"]["value"], before - 24);
    assert_eq!(reply["payload"]["agrees_with_peer"], false);

    // Asked again in the second round, the reviewer keeps what it accepted in the first.
    let mut again = question.clone();
    again["your_position"]["value"] = json!(before - 24);
    again["your_position"]["evidence"] = json!([HIDDEN_CAP]);
    let reply = ask("risk_assessor", "question", &again);
    assert_eq!(reply["message_type"], "disagreement");
    assert_eq!(reply["payload"]["value"], before - 24);
}

#[test]
fn the_same_length_of_time_in_other_units_is_agreement() {
    let notice = "Either party may terminate this Agreement upon one (1) month prior notice.";
    let question = json!({
        "conflict": { "type": "factual_disagreement", "subject": "termination/notice_period" },
        "your_position": { "value": { "value": 1, "unit": "months" }, "evidence": [notice] },
        "other_positions": [{ "agent_id": "x", "value": { "value": 30, "unit": "days" }, "evidence": [notice] }],
    });
    let reply = ask("negotiation_advisor", "question", &question);
    assert_eq!(reply["message_type"], "agreement");
    assert_eq!(
        reply["payload"]["value"],
        json!({ "value": 1, "unit": "months" })
    );
}

#[test]
fn one_of_two_colleagues_with_the_same_position_is_not_agreement() {
    let question = json!({
        "conflict": { "type": "recommendation_conflict", "subject": "recommendation" },
        "your_position": { "value": "sign", "position": "sign" },
        "other_positions": [{ "agent_id": "x", "value": "sign" }, { "agent_id": "y", "value": "reject" }],
        "task": task(&[LAW, CAP]),
    });
    assert_eq!(
        ask("risk_assessor", "question", &question)["message_type"],
        "disagreement"
    );
}

#[test]
fn an_answer_keeps_to_its_limit() {
    let long = format!(
        "Buyer shall be the sole distributor of {}the Products.",
        "any and all of ".repeat(300)
    );
    let reply = presence("Exclusivity", &[&long], &[&long], true);
    assert_eq!(reply["message_type"], "agreement");
    let length = reply["payload"].to_string().chars().count();
    assert!(length < 500 * 4, "{length}");
    assert!(
        reply["payload"]["evidence"][0]
            .as_str()
            .unwrap()
            .ends_with('\u{2026}')
    );
}

#[test]
fn the_panel_disagrees_about_the_sample_contract() {
    let sample: Value = serde_json::from_str(include_str!("../sample-contract.json")).unwrap();
    let clauses = sample["clauses"].as_object().unwrap();
    let sentences: Vec<&str> = clauses
        .values()
        .flat_map(|list| list.as_array().unwrap())
        .map(|s| s.as_str().unwrap())
        .collect();
    assert!((20..=35).contains(&sentences.len()));
    let findings = ROLES.map(|(role, _)| finding(role, &sentences));
    let scores: Vec<i64> = findings
        .iter()
        .filter_map(|finding| finding["risk_score"].as_i64())
        .collect();
    assert!(
        scores.iter().max().unwrap() - scores.iter().min().unwrap() > 20,
        "{scores:?}"
    );
    assert_ne!(findings[1]["recommendation"], findings[2]["recommendation"]);
    let fact = |finding: &Value, name: &str| {
        let facts = finding["facts"].as_array().unwrap();
        facts
            .iter()
            .find(|fact| fact["attribute"] == name)
            .map(|fact| fact["value"].clone())
    };
    assert_ne!(
        fact(&findings[0], "governing_law"),
        fact(&findings[3], "governing_law")
    );
    let absent = findings[0]["clauses"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|clause| clause["present"] == false);
    let relied_on = findings[1]["affected_clauses"].as_array().unwrap();
    assert!(
        absent
            .clone()
            .any(|clause| relied_on.contains(&clause["type"]))
    );
}
