//! People are told when what they answer for changes: their ruling was overridden, a decision that they ruled in has changed,
//! something else proved right, or a debate that they let lie was taken from them.

use concord_testkit::{Message, command, concord, finish, programs_of, unique};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::notifications::HOUR;
use crate::notifications::server::header;
use crate::notifications::stage::{Servers, Stage, webhook_url};

/// The second debate about the margin: the one who was challenged challenges back.
async fn challenge_back(stage: &Stage) {
    let first = stage.event("case", "challenged").await["asked"]["terms"]["challenge"].clone();
    let challenge = json!({
        "challenge_id": "CH-002", "challenger": first["challenged"], "challenged": first["challenger"],
        "disputed_finding": "Margin again", "challenge_basis": "The forecast is old", "required_evidence": ["Forecast"],
        "priority": "critical-path", "metric": "operating margin", "challenged_value": 30, "position": "22 %", "value": 22,
    });
    let from = first["challenged"].as_str().expect("a name");
    Message::new(&stage.case, from, "coordinator", "challenge", challenge)
        .store(stage.installation.client())
        .await;
}

async fn register(stage: &Stage, name: &str, role: &str, mailbox: &str) {
    let person =
        json!({ "name": name, "roles": [{ "role": role }], "contact": { "email": mailbox } });
    stage.installation.register_person(&person).await;
}

fn text(mail: &Value) -> &str {
    mail["text"].as_str().expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_when_what_they_answer_for_changes() {
    let (stage, servers) = Servers::start("200").await;
    stage.register_eve(&webhook_url(servers.webhook_port)).await;
    stage.challenge("Margin", HOUR, HOUR).await;
    stage.rule(&stage.expert, 30).await;
    stage.event("case", "decision_changed").await;
    let fay = unique("fay");
    let expert = json!({ "agent_id": fay, "contact": { "email": "fay@example.org" } });
    stage.installation.register_expert(&expert).await;
    challenge_back(&stage).await;
    let debate = stage.rule(&fay, 24).await;
    let mail = servers
        .smtp
        .mail("[Concord] Your ruling was overridden: Margin again")
        .await;
    assert_eq!(mail["recipients"], json!(["eve@example.org"]));
    for part in [
        "Version 3 replaces version 2.".to_owned(),
        format!("Ended: ruling, by {fay}, on level 3\n"),
        format!("  concord case show {}\n", stage.case),
    ] {
        assert!(text(&mail).contains(&part), "{part}\n{}", text(&mail));
    }
    let call = servers.webhook.call("case.ruling_overridden", 200).await;
    let data = &call["body"]["data"];
    assert_eq!(
        (&data["person"], &data["change"]["version"]),
        (&json!(stage.expert), &json!(3))
    );
    let otto = unique("otto");
    register(&stage, &otto, "outcome_source", "otto@example.org").await;
    let right = json!({ "debate_id": debate, "position": "30 %", "value": 30, "explanation": "The year is over." });
    stage.say(&otto, "outcome", right).await;
    let mail = servers
        .smtp
        .mail("[Concord] Something else proved right: Margin again")
        .await;
    assert_eq!(mail["recipients"], json!(["fay@example.org"]));
    assert!(
        text(&mail).contains("Because: The year is over."),
        "{}",
        text(&mail)
    );
    stage.wait_until_all_are_told().await;
    // Two that they were given, and the two above; whoever brought a change about is not told of it.
    assert_eq!(servers.smtp.received_at_least(4).await.len(), 4);
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_who_does_not_act_is_told_that_somebody_else_was_given_the_debate() {
    let (stage, servers) = Servers::start("200").await;
    stage.register_eve(&webhook_url(servers.webhook_port)).await;
    stage.challenge("Margin", 20_000, HOUR).await;
    stage.event("debate", "assigned").await;
    let fay = unique("fay");
    let expert = json!({ "agent_id": fay, "contact": { "email": "fay@example.org" } });
    stage.installation.register_expert(&expert).await;
    let mail = servers
        .smtp
        .mail("[Concord] Taken back from you: Margin")
        .await;
    assert_eq!(mail["recipients"], json!(["eve@example.org"]));
    servers.webhook.call("debate.unassigned", 200).await;
    stage.rule(&fay, 24).await;
    let resolved = stage.event("debate", "resolved").await;
    assert_eq!(resolved["outcome"]["ruled_by"]["expert"], json!(fay));
    stage.holds().await;
}

/// Asks for another case, as somebody who is no operator.
async fn open(stage: &Stage, opener: &str) {
    let parameters = json!({ "participants": ["ann"], "task": { "type": "test" } });
    let request = json!({ "action": "open_case", "parameters": parameters });
    Message::new("_", opener, "coordinator", "request", request)
        .store(stage.installation.client())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opener_and_the_operators_are_told_that_a_quota_stopped_the_opener() {
    let (stage, servers) = Servers::start("200").await;
    let (opal, olga) = (unique("opal"), unique("olga"));
    register(&stage, &opal, "opener", "opal@example.org").await;
    register(&stage, &olga, "operator", "olga@example.org").await;
    for _ in 0..3 {
        open(&stage, &opal).await;
    }
    let subject = format!("[Concord] A quota is used up: open cases of {opal}");
    let mail = servers.smtp.mail(&subject).await;
    assert!(
        text(&mail).contains("Quota: 1 open cases"),
        "{}",
        text(&mail)
    );
    assert!(text(&mail).contains("  concord quota"), "{}", text(&mail));
    stage.wait_until_all_are_told().await;
    let mut told: Vec<Value> = servers.smtp.received_at_least(2).await;
    told.sort_by_key(|mail| mail["recipients"].to_string());
    let told: Vec<&Value> = told.iter().map(|mail| &mail["recipients"]).collect();
    // Twice refused, told once.
    let both = [json!(["olga@example.org"]), json!(["opal@example.org"])];
    assert_eq!(told, both.iter().collect::<Vec<_>>());
}

/// The broker's users: that of an arbiter as the command prints it, and one for the services.
fn users(arbiter: &str) -> String {
    let printed = concord(&["permissions", "--role", "arbiter", arbiter, "--json"]);
    let printed: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    let arbiter =
        json!({ "user": arbiter, "password": "x", "permissions": printed["permissions"] });
    let services = json!({ "user": "services", "password": "x" });
    let users = json!({ "users": [arbiter, services] });
    format!("authorization: {users}\nno_auth_user: services")
}

/// What the mail says to run shows an arbiter the alert, with the arbiter's own user.
async fn check_followed(stage: &Stage, arbiter: &str, mail: &str) {
    let named = mail
        .lines()
        .find_map(|line| line.strip_prefix("  concord alert show "));
    let alert = named.expect("the command").trim();
    let server = stage.installation.server_url();
    let server = server.replacen("nats://", &format!("nats://{arbiter}:x@"), 1);
    let arguments = [
        "alert", "show", alert, "--json", "--as", arbiter, "--server", &server,
    ];
    let program = programs_of(&["concord-cli"]).join("concord");
    let shown = finish(command(program).args(arguments)).await.json();
    assert_eq!(
        (&shown["alert"]["new_regime"], &shown["heard"]["agent_id"]),
        (&json!("BEAR"), &json!("macro")),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_rules_or_reviews_is_told_of_a_change_of_regime_and_of_a_missing_report() {
    let (eva, gail, olga) = (unique("eva"), unique("gail"), unique("olga"));
    let (stage, servers) = Servers::start_with_users("200", users(&eva)).await;
    register(&stage, &eva, "arbiter", "eva@example.org").await;
    register(&stage, &gail, "reviewer", "gail@example.org").await;
    register(&stage, &olga, "operator", "olga@example.org").await;
    stage.installation.register("macro", &["alerter"]).await;
    let rules = json!({
        "rules": { "regime_change": { "report_within_ms": 1_000 } }, "by": olga, "why": "soon",
    });
    let coordinator = Service::Coordinator;
    stage
        .installation
        .ask(coordinator, "put_alert_rules", &rules)
        .await
        .expect("they are stored");
    let alert = json!({
        "event_type": "regime_change", "old_regime": "BULL", "new_regime": "BEAR", "confidence": 0.85,
        "recommended_actions": ["Recalculate\nUntil: never"],
    });
    Message::new("_", "macro", "coordinator", "alert", alert)
        .with("/priority", "system_critical")
        .store(stage.installation.client())
        .await;
    let mail = servers
        .smtp
        .mail("[Concord] The regime has changed: BEAR")
        .await;
    for line in [
        "Regime: BULL -> BEAR",
        "Confidence: 0.85",
        "To do: Recalculate Until: never",
    ] {
        assert!(text(&mail).contains(line), "{}", text(&mail));
    }
    check_followed(&stage, &eva, text(&mail)).await;
    let mail = servers.smtp.mail("[Concord] A report is missing").await;
    assert!(text(&mail).contains("Awaited of: macro"), "{}", text(&mail));
    assert!(
        text(&mail).contains("  concord alert show "),
        "{}",
        text(&mail)
    );
    stage.wait_until_all_are_told().await;
    let told: Vec<Value> = servers.smtp.received_at_least(5).await;
    let many = |subject: &str| {
        let of = told
            .iter()
            .filter(|mail| header(mail, "subject").contains(subject));
        of.count()
    };
    assert_eq!(
        (many("The regime has changed"), many("A report is missing")),
        (2, 3),
        "{told:?}"
    );
}
