//! Rules over shared memory: what an agent writes raises an alert of which everybody is told, once.

use std::collections::BTreeMap;

use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, Stored, TestInstallation, dead_letters, event_data, settled, stored, unique, wait_for,
};
use concord_wire::subject::{Lane, Service};
use serde_json::{Value, json};

use crate::together::{PATIENCE, command, granted};

/// The specification's triggers, the last with hours in place of days.
fn rules() -> Value {
    json!({ "rules": [
        { "name": "regime", "topic": "regime", "field": "regime", "event_type": "regime_change",
          "when": { "confidence_above": { "confidence": 0.8 } },
          "recommended_actions": ["Review in-progress analyses for regime sensitivity"] },
        { "name": "rate", "topic": "policy_rate", "event_type": "rate_move",
          "when": { "moved_by": { "by": 25, "unit": "bp" } } },
        { "name": "shift", "topic": "monetary_policy", "event_type": "policy_shift", "when": { "changed": {} } },
        { "name": "extreme", "topic": "indicator_*", "event_type": "threshold_breach", "priority": "normal",
          "when": { "beyond_percentile": { "longer_than_ms": 1, "observations_min": 5 } } },
    ]})
}

fn put(from: &str, topic: &str, value: Value, confidence: f64) -> Message {
    let parameters =
        json!({ "topic": topic, "value": value, "importance": 0.9, "confidence": confidence });
    let payload = json!({ "action": "memory_put", "parameters": parameters });
    Message::new("_", from, "coordinator", "request", payload)
}

fn regime(name: &str) -> Value {
    json!({
        "regime": name,
        "implications": { "sector_favorability_changes": { "Technology": -15, "Healthcare": 10 },
                          "discount_rate_changes": { "Technology": 0.025, "Utilities": 0.015 } },
        "recommended_actions": ["Recalculate DCF models with new discount rates"],
    })
}

/// Registers who writes: one who may alert, and one who may not.
async fn installation() -> TestInstallation {
    let installation = TestInstallation::start_without_adapter().await;
    for name in ["macro", "ann"] {
        let payload = json!({ "action": "register_agent", "parameters": { "agent_id": name } });
        let message = Message::new("_", name, "coordinator", "request", payload);
        granted(installation.client(), &message).await;
    }
    let register = [
        "person", "register", "macro", "--agent", "--role", "alerter",
    ];
    command(&installation, &register).expect("it is registered");
    installation
}

/// Stores rules with the command: what it prints, or says is wrong.
fn store(installation: &TestInstallation, rules: &Value) -> Result<Value, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.json");
    std::fs::write(&file, rules.to_string()).expect("a file");
    let file = file.to_str().expect("a name");
    let set = [
        "alert",
        "rules",
        "set",
        file,
        "--by",
        "olga",
        "--why",
        "as the house does it",
    ];
    command(installation, &set)
}

/// All alerts of which everybody was told on a lane, as they were said.
async fn told(installation: &TestInstallation, lane: Lane) -> Vec<Value> {
    let subject = format!("concord.v1.{}._.coordinator._all.alert", lane.as_str());
    let stream = match lane {
        Lane::Urgent => StreamKind::Urgent,
        Lane::Normal => StreamKind::Messages,
    };
    let told = stored(installation.client(), stream, &subject).await;
    told.expect("they are read")
        .iter()
        .map(Stored::json)
        .collect()
}

/// Writes what fulfils each of the rules once, and much that fulfils none: the alert about the regime.
async fn write_all(client: &Client) -> String {
    let write = async |from: &str, topic: &str, value: Value, confidence: f64| {
        granted(client, &put(from, topic, value, confidence)).await
    };
    write("macro", "regime", regime("BEAR_HIGH_RATES"), 0.8).await;
    write("macro", "regime", regime("BULL_LOW_RATES"), 0.7).await;
    let kept = write("macro", "regime", regime("BEAR_HIGH_RATES"), 0.85).await;
    // Who may not alert raises none.
    write("ann", "policy_rate", json!("5.25 %"), 0.9).await;
    let unheard = write("ann", "policy_rate", json!("6 %"), 0.9).await;
    assert_eq!(unheard["alerts"], Value::Null, "{unheard}");
    for rate in ["5.25 %", "5.40 %", "5.65 %"] {
        write("macro", "policy_rate", json!(rate), 0.9).await;
    }
    for policy in ["QE", "QT"] {
        write("macro", "monetary_policy", json!(policy), 0.9).await;
    }
    for value in [15, 16, 14, 15, 16, 40, 41, 42] {
        write("macro", "indicator_vix", json!(value), 0.9).await;
    }
    kept["alerts"][0].as_str().expect("an alert").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_writes_is_told_to_everybody_where_a_rule_says_so() {
    let installation = installation().await;
    let client = installation.client();
    // Without rules nothing is raised.
    let first = put("macro", "regime", regime("BULL_LOW_RATES"), 0.9);
    granted(client, &first).await;
    refuses(&installation);
    let stored = store(&installation, &rules()).unwrap();
    assert_eq!(stored["version"], 1, "{stored}");
    let again = store(&installation, &rules()).unwrap();
    assert_eq!(again["version"], 1, "{again}");
    assert_eq!(again["done"]["fact"], Value::Null, "{again}");

    let id = write_all(client).await;
    wait_for("the alerts", PATIENCE, async || {
        let urgent = told(&installation, Lane::Urgent).await.len();
        match (urgent, told(&installation, Lane::Normal).await.len()) {
            (3, 1) => Ok(()),
            many => Err(format!("{many:?}")),
        }
    })
    .await;
    settled(client, PATIENCE).await.unwrap();
    let urgent = told(&installation, Lane::Urgent).await;
    check_printed(&installation, &id, &urgent);
    let normal = told(&installation, Lane::Normal).await;
    assert_eq!(normal[0]["payload"]["event_type"], "threshold_breach");

    let remove = ["alert", "rules", "remove", "--by", "olga", "--why", "quiet"];
    assert_eq!(command(&installation, &remove).unwrap()["version"], 2);
    granted(client, &put("macro", "monetary_policy", json!("QE"), 0.9)).await;
    settled(client, PATIENCE).await.unwrap();
    assert_eq!(told(&installation, Lane::Urgent).await.len(), 3);
    let first = ["alert", "rules", "show", "--version", "1"];
    let first = command(&installation, &first).unwrap();
    assert_eq!(first["rules"]["rules"].as_array().map(Vec::len), Some(4));
    assert_eq!(dead_letters(client).await.unwrap().len(), 0);
    installation.holds(PATIENCE).await;
}

/// The alerts at the highest priority say what the specification prints, and name the rule and the entry.
fn check_printed(installation: &TestInstallation, id: &str, urgent: &[Value]) {
    // They follow from several events, whose messages are published side by side.
    let events = urgent
        .iter()
        .map(|one| (one["payload"]["event_type"].as_str().unwrap(), one));
    let events: BTreeMap<&str, &Value> = events.collect();
    let names: Vec<&str> = events.keys().copied().collect();
    assert_eq!(names, ["policy_shift", "rate_move", "regime_change"]);
    assert_eq!(urgent.len(), 3, "{urgent:#?}");
    let payload = &events["regime_change"]["payload"];
    assert_eq!(events["regime_change"]["priority"], "system_critical");
    assert_eq!(payload["alert"], json!(id));
    assert_eq!(payload["implications"], regime("x")["implications"]);
    assert_eq!(payload["new_regime"], "BEAR_HIGH_RATES");
    assert_eq!(
        payload["recommended_actions"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(
        events["rate_move"]["payload"]["source"]["because"],
        "it has moved up by 25 bp since version 2"
    );
    let shown = command(installation, &["alert", "show", id]).unwrap();
    assert_eq!(shown["alert"]["source"]["rule"], "regime");
    assert_eq!(shown["alert"]["source"]["version"], 4);
}

/// What is wrong with rules is said at its place, and nothing is stored.
fn refuses(installation: &TestInstallation) {
    let with = |when: Value| json!({ "rules": [{ "name": "r", "topic": "t", "event_type": "e", "when": when }] });
    for (rules, expected) in [
        (with(json!({ "doubled": {} })), "\"doubled\" is no word"),
        (
            with(json!({ "beyond_percentile": { "above": 95 } })),
            "/rules/0/when/beyond_percentile/above",
        ),
        (
            with(json!({ "moved_by": {} })),
            "/rules/0/when/moved_by/by: The field \"by\" is missing",
        ),
        (
            json!({ "rules": [], "percentile": 3 }),
            "There is no field \"percentile\"",
        ),
    ] {
        let error = store(installation, &rules).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let shown = command(installation, &["alert", "rules", "show"]).unwrap();
    assert_eq!(shown["version"], 0, "{shown}");
}

/// An agent that writes in reaction to each alert what raises the next one is heard as often as the rules allow.
#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_alerts_ends_at_the_bound_and_a_killed_coordinator_raises_none_twice() {
    let installation = installation().await;
    let mut few = rules();
    few["per_hour_max"] = json!(3);
    store(&installation, &few).unwrap();
    for n in 0..8 {
        // What is written while nobody is there is held against the rules when somebody is.
        put("macro", "monetary_policy", json!(format!("QE {n}")), 0.9)
            .publish(installation.client())
            .await;
        if n == 3 {
            installation.kill(Service::Coordinator, 0).unwrap();
            installation.restart(Service::Coordinator, 0).await.unwrap();
        }
    }
    let client = installation.client();
    wait_for("all versions", PATIENCE, async || {
        let history = ["memory", "history", "macro", "monetary_policy"];
        let known = command(&installation, &history)?;
        match known["entries"].as_array().map(Vec::len) {
            Some(8) => Ok(()),
            many => Err(format!("{many:?}")),
        }
    })
    .await;
    settled(client, PATIENCE).await.unwrap();
    assert_eq!(told(&installation, Lane::Urgent).await.len(), 3);
    let last = granted(client, &put("macro", "monetary_policy", json!("QT"), 0.9)).await;
    assert_eq!(last["withheld"], json!(["shift"]), "{last}");
    installation.holds(PATIENCE).await;
}

/// Opens a case of two, in a regime of its own or in none.
async fn open(installation: &TestInstallation, case: &str, regime: Option<&str>) {
    let opening = json!({
        "case_id": case, "participants": ["ann", "ben"], "gates": ["gate 1", "gate 2"],
        "policy": { "preset": "contract-review", "case_timeout_ms": 600_000, "finding_timeout_ms": 600_000 },
        "circumstances": { "regime": regime }, "task": { "type": "test" },
    });
    installation.open_case(&opening).await;
}

/// The two find different risks, so that there is a debate: the regime in which it is held.
async fn debated_in(installation: &TestInstallation, case: &str) -> Value {
    let client = installation.client();
    for (agent, risk) in [("ann", 20), ("ben", 90)] {
        let finding = json!({
            "summary": "s", "risk_score": risk,
            "critical_findings": [{ "topic": "Discount Rate", "severity": "high", "description": "d" }],
        });
        Message::new(case, agent, "coordinator", "finding", finding)
            .publish(client)
            .await;
    }
    wait_for("the debate", PATIENCE, async || {
        let opened = event_data(client, "debate.*.opened").await?;
        let mut of_case = opened.into_iter().filter(|data| data["case_id"] == case);
        let opened = of_case.next().ok_or_else(|| "none".to_owned())?;
        Ok::<_, String>(opened["terms"]["circumstances"]["regime"].clone())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_regime_flags_open_cases_and_later_debates_are_held_in_it() {
    let installation = installation().await;
    let client = installation.client();
    let mut rules = rules();
    rules["regime_change"] = json!({ "report_within_ms": 600_000, "gates": ["gate 1"] });
    store(&installation, &rules).unwrap();
    let cases = ["before", "named", "after", "own"].map(unique);
    let [before, named, after, own] = &cases;
    open(&installation, before, Some("BULL_LOW_RATES")).await;
    open(&installation, named, Some("BULL_LOW_RATES")).await;
    assert_eq!(debated_in(&installation, before).await, "BULL_LOW_RATES");
    let write =
        async |name: &str| granted(client, &put("macro", "regime", regime(name), 0.85)).await;
    write("BULL_LOW_RATES").await;
    let kept = write("BEAR_HIGH_RATES").await;
    let id = kept["alerts"][0].as_str().expect("an alert").to_owned();
    let told = crate::together::told(client, (named, "_all"), "case_flagged", |_| true).await;
    assert_eq!(told["new_regime"], "BEAR_HIGH_RATES", "{told}");
    open(&installation, after, None).await;
    open(&installation, own, Some("BULL_LOW_RATES")).await;
    for (case, expected) in [
        (named, "BEAR_HIGH_RATES"),
        (after, "BEAR_HIGH_RATES"),
        (own, "BULL_LOW_RATES"),
    ] {
        assert_eq!(debated_in(&installation, case).await, expected, "{case}");
    }
    let show = |arguments: &[&str]| command(&installation, arguments).expect("it is shown");
    let flags = |case: &str| show(&["case", "show", case])["alerts"].clone();
    assert_eq!(flags(named)[0]["alert"], json!(id));
    assert_eq!(flags(before).as_array().map(Vec::len), Some(1));
    assert_eq!(flags(after), Value::Null);
    let shown = show(&["alert", "show", &id]);
    assert_eq!(
        (&shown["is_present"], &shown["report"]),
        (&json!(true), &Value::Null)
    );
    // Somebody else may not report, and there is one report.
    let report = |by: &str| {
        command(
            &installation,
            &["alert", "report", &id, "Sectors, version 7", "--by", by],
        )
    };
    assert!(report("ann").is_err());
    report("macro").unwrap();
    let shown = show(&["alert", "show", &id]);
    assert_eq!(shown["report"]["report"], "Sectors, version 7");
    let present = show(&["alert", "rules", "show"]);
    assert_eq!(present["regime"]["before"], Value::Null);
    assert_eq!(present["regime"]["regime"], "BEAR_HIGH_RATES");
    installation.holds(PATIENCE).await;
}
