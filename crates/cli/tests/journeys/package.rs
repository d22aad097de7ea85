//! The decision package of a case, as its readers get it: operators, the opener, and nobody else.

use std::path::Path;

use concord_testkit::{
    Agent, COMMAND_MAX, Stored, TestInstallation, events, message_bodies, until,
};
use serde_json::{Value, json};

use crate::command::{Session, case, length};

/// Two agents who differ about everything, one of whom writes what a browser would run.
async fn panel(client: &async_nats::Client) -> Vec<Agent> {
    let low = json!({
        "summary": "Harmless.", "risk_score": 20, "recommendation": "sign", "assumptions": ["The roof holds."],
    });
    let high = json!({
        "summary": "Dangerous <script>alert(1)</script> *now*.", "risk_score": 80, "recommendation": "reject",
        "evidence": ["Clause 7: no cap on liability"],
        "historical_context": {
            "pattern_success_rate": 0.95, "observations": 40, "my_accuracy_on_pattern": 0.81,
            "similar_patterns": [{ "company": "MSFT <b>", "year": 2016, "outcome": "Cloud investment paid off" }],
        },
    });
    vec![
        Agent::steadfast(client, "ann", low, 0.6).await,
        Agent::steadfast(client, "ben", high, 0.9).await,
    ]
}

/// The records of both in the field of the dispute.
fn records() -> String {
    let row = |agent: &str, n: u32, right: bool| {
        let outcome = if right { "right" } else { "wrong" };
        format!("{agent}-{n},{agent},recommendation,{outcome},2026-01-01T00:00:00Z,audit\n")
    };
    let rows = (0..30).map(|n| row("ann", n, true) + &row("ben", n, n % 5 == 0));
    "id,agent,domain,outcome,at,source\n".to_owned() + &rows.collect::<String>()
}

async fn decided(session: &Session, id: &str) -> Value {
    let request = case(id, &["ann", "ben"]).to_string();
    let opened = session.with_input("case open - --wait --json", &request);
    opened.await.json()
}

fn debate_about(package: &Value, subject: &str) -> String {
    let conflicts = package["decision"]["conflicts"].as_array().unwrap();
    let about = conflicts.iter().find(|one| one["subject"] == subject);
    about.unwrap()["conflict_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_meeting_gets_what_is_known_of_a_case_and_of_cases_before_it() {
    let installation = TestInstallation::start().await;
    let _agents = panel(installation.client()).await;
    let session = Session::new(installation.server_url());
    let directory = tempfile::tempdir().unwrap();
    for (name, role) in [
        ("eva", "outcome_source"),
        ("rosa", "reviewer"),
        ("otto", "opener"),
    ] {
        session
            .good(&format!("person register {name} --role {role}"))
            .await;
    }
    let file = directory.path().join("records.csv");
    std::fs::write(&file, records()).unwrap();
    session
        .good(&format!("record import {} --by root", file.display()))
        .await;

    let first = decided(&session, "c-1").await;
    history_is_shown(&session).await;
    let debate = debate_about(&first, "recommendation");
    let outcome =
        format!("outcome {debate} --held-by ann --from eva --because 'The roof held for a year.'");
    session.good(&outcome).await;
    precedents_are_entered(installation.client()).await;
    decided(&session, "c-2").await;
    parties_are_told(installation.client()).await;
    for_programs(&session).await;
    for_people(&session, directory.path()).await;
    by_rights(&session).await;
    lessons_are_found(&session).await;
    weighed_in_the_present_regime(&session).await;
    session.refused("case package c-none", "c-none").await;
}

/// What agents say of earlier cases is shown where nothing is known here.
async fn history_is_shown(session: &Session) {
    let text = session.good("case package c-1").await;
    for part in [
        "ben claims 95 % of 40, own accuracy 81 %",
        "ben: company: MSFT &lt;b&gt;, outcome: Cloud investment paid off, year: 2016",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let text = session.good("case show c-1").await;
    let named = "ben names earlier cases: company: MSFT <b>, outcome: Cloud investment paid off, year: 2016";
    assert!(text.contains(named), "{text}");
}

/// A case that is opened after the regime has changed, and names none, is weighed in the new one.
async fn weighed_in_the_present_regime(session: &Session) {
    let regime = |package: &Value| {
        let known = &package["credibility"]["ann"][0]["credibility"]["factors"];
        let known = known.as_array().unwrap().iter();
        let found = known.clone().find(|one| one["name"] == "regime_adjustment");
        found.unwrap()["explanation"].as_str().unwrap().to_owned()
    };
    let before = regime(&session.json("case package c-2").await);
    assert!(before.contains("no present regime is given"), "{before}");
    session
        .good("person register mia --agent --role alerter")
        .await;
    session
        .good("alert raise regime_change --by mia --old BULL_LOW --new BEAR_LOW")
        .await;
    let shown = |shown: &Value| shown["regime"] == "BEAR_LOW";
    session.until("record show ann", shown).await;
    decided(session, "c-4").await;
    for case in ["c-2", "c-4"] {
        let after = regime(&session.json(&format!("case package {case}")).await);
        let is_present =
            !after.contains("no present regime") && after.contains("the present regime");
        assert!(is_present, "{case}: {after}");
    }
}

/// What proved right is in the precedents, under what was disputed and under its field.
async fn precedents_are_entered(client: &async_nats::Client) {
    let entered = until("the precedents", COMMAND_MAX, async || {
        let events = events(client, "precedent.*.recorded").await?;
        let proved = |event: &&Stored| event.json()["data"]["precedent"]["proved"].is_object();
        match events.iter().filter(proved).count() {
            2 => Ok(()),
            other => Err(format!("{other} entries")),
        }
    });
    entered.await.unwrap_or_else(|error| panic!("{error}"));
}

/// Who is asked in a round is told what came of disputes like it.
async fn parties_are_told(client: &async_nats::Client) {
    let asked = message_bodies(client, "concord.v1.msg.c-2.debate-facilitator.ann.*").await;
    let asked = asked.unwrap();
    let mut known = asked.iter().map(|body| &body["payload"]["guidance"]);
    let known = known.find(|known| known.is_object()).unwrap();
    assert_eq!(
        (&known["found"], &known["chosen"]["right"]),
        (&json!(1), &json!(0))
    );
    let positions = known["positions"].as_array().unwrap();
    let sign = positions.iter().find(|one| one["position"] == "sign");
    assert_eq!(sign.unwrap()["rate"]["right"], 1);
}

async fn for_programs(session: &Session) {
    // What proved right becomes a precedent after it was said.
    let is_known = |package: &Value| package["lessons"] != json!([]);
    let package = session.until("case package c-2", is_known).await;
    let [ann, ben] = [&package["findings"][0], &package["findings"][1]];
    assert_eq!((&ann["stated"], &ben["stated"]), (&json!(0.6), &json!(0.9)));
    assert!(ann["calibrated"].as_f64().unwrap() > 0.7, "{ann}");
    assert!(ben["calibrated"].as_f64().unwrap() < 0.6, "{ben}");
    let ours = &package["recommendation"];
    assert_eq!(ours["weighted"], "sign");
    let disputes = package["disputes"].as_array().unwrap();
    let about = disputes
        .iter()
        .find(|one| one["domain"] == "recommendation");
    let about = about.unwrap();
    let history = &about["history"];
    assert_eq!(history["success"]["known"], 1, "{history}");
    assert_eq!(history["earlier"][0]["proved"], "sign");
    assert_eq!(
        package["lessons"][0]["explanation"],
        "The roof held for a year."
    );
    assert_eq!(package["case"]["decision"]["version"], 1);
    assert_eq!(package["withheld"], json!([]));
    let factors = &package["credibility"]["ann"][0]["credibility"]["factors"];
    assert!(length(factors) > 4, "{factors}");
}

async fn for_people(session: &Session, directory: &Path) {
    let page = directory.join("c-2.html");
    let written = session
        .good(&format!("case package c-2 --out {}", page.display()))
        .await;
    assert!(written.contains("is written"), "{written}");
    let other = directory.join("c-2.pdf");
    let line = format!("case package c-2 --out {}", other.display());
    let refused = session.run(&line).await.refused(2);
    assert!(refused.contains("--format") && !other.exists(), "{refused}");
    let page = std::fs::read_to_string(page).unwrap();
    let text = session.good("case package c-2").await;
    for part in [
        "Lease of a warehouse",
        "In short",
        "What is not certain",
        "ann assumes: The roof holds.",
        "Lessons",
    ] {
        assert!(
            page.contains(part) && text.contains(part),
            "{part}:\n{text}"
        );
    }
    assert!(page.starts_with("<!doctype html>") && !page.contains("<script"));
    assert!(
        text.starts_with("# Lease of a warehouse") && text.contains("&lt;script&gt;"),
        "{text}"
    );
}

/// What was learned is found again, by its words and its domain, and only by who may read it.
async fn lessons_are_found(session: &Session) {
    for line in [
        "record lessons",
        "record lessons ROOF year",
        "record lessons --as rosa",
    ] {
        let found = session.json(line).await;
        assert_eq!(length(&found), 1, "{line}: {found}");
        assert_eq!(
            (&found[0]["proved"], &found[0]["was_right"]),
            (&json!("sign"), &json!(false))
        );
    }
    let text = session.good("record lessons roof").await;
    assert!(text.contains("The roof held for a year."), "{text}");
    for line in ["record lessons cellar", "record lessons --domain tax"] {
        assert_eq!(session.json(line).await, json!([]), "{line}");
        let text = session.good(line).await;
        assert!(text.contains("No such lesson"), "{text}");
    }
    session
        .refused("record lessons --as otto", "UNAUTHORIZED")
        .await;
}

/// Who may read the case gets what they may read; who may not gets nothing.
async fn by_rights(session: &Session) {
    let all = session.json("case package c-2 --as rosa").await;
    assert_eq!(all["withheld"], json!([]));
    let refused = session.run("case package c-2 --as otto").await.refused(1);
    assert!(refused.contains("UNAUTHORIZED"), "{refused}");
    let mut request = case("c-3", &["ann", "ben"]);
    request["policy"] = json!("contract-review");
    let request = request.to_string();
    let own = session.with_input("case open - --as otto --wait --json", &request);
    own.await.json();
    let some = session.json("case package c-3 --as otto").await;
    assert_eq!(
        (length(&some["withheld"]), &some["credibility"]),
        (2, &json!({}))
    );
    let finding = &some["findings"][1];
    assert_eq!(finding["calibrated"], finding["stated"]);
}
