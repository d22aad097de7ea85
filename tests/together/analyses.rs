//! The analyses of a case, and what they rest on: agents publish them with nothing but their own users of the broker.

use async_nats::ConnectOptions;
use concord_testkit::{Message, TestInstallation, concord, message_bodies, wait_for};
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use serde_json::{Value, json};

use crate::together::{PATIENCE, all_kept, answer_to, case_of, command};

fn publish(case: &str, from: &str, id: &str, figures: Value, depends_on: Value) -> Message {
    let parameters = json!({
        "analysis_id": id, "type": "valuation", "figures": figures, "depends_on": depends_on, "rerun_minutes": 5,
    });
    let payload = json!({ "action": "publish_analysis", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload).with("/metadata/confidence", 0.8)
}

/// An installation in which each of these agents is a user with the permissions that `concord permissions` prints.
async fn start(agents: &[&str]) -> TestInstallation {
    let space = SubjectSpace::default();
    let user = |name: &&str| {
        let permissions = space.permissions(&AgentId::new(*name).expect("an id"));
        json!({ "user": name, "password": "x", "permissions": permissions })
    };
    let mut users: Vec<Value> = agents.iter().map(user).collect();
    users.push(json!({ "user": "services", "password": "x" }));
    let config = format!(
        "authorization: {}\nno_auth_user: services",
        json!({ "users": users })
    );
    TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan
    })
    .await
}

/// What an agent is told that publishes as its own user: the type of the answer and its payload.
async fn hears(installation: &TestInstallation, message: &Message) -> (String, Value) {
    let name = message.from.to_string();
    let agent = ConnectOptions::with_user_and_password(name, "x".into())
        .custom_inbox_prefix(SubjectSpace::replies(
            &AgentId::new(message.from.as_str()).expect("an id"),
        ))
        .connect(installation.server_url())
        .await
        .expect("the agent's user is known");
    agent
        .publish(message.subject(), message.bytes().into())
        .await
        .expect("it is sent");
    agent.flush().await.expect("it is there");
    answer_to(installation.client(), message).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_analyses_rest_on_is_kept_and_no_circle_is_taken() {
    let installation = start(&["ann", "ben", "mallory"]).await;
    let case = case_of(&installation, &["ann", "ben"]).await;
    let margin = json!([{ "kind": "assumption", "id": "operating_margin", "value": 25 }]);
    let price = json!([{ "kind": "analysis", "id": "dcf", "metric": "target_price" }]);

    let dcf = publish(
        &case,
        "ann",
        "dcf",
        json!({ "target_price": 85 }),
        margin.clone(),
    );
    let (kind, answer) = hears(&installation, &dcf).await;
    assert_eq!(
        (kind.as_str(), &answer["result"]["version"]),
        ("response", &json!(1))
    );
    // What ben does not say is what stands: the price, and how sure ann was of it.
    let peers = publish(&case, "ben", "peers", json!({ "rank": 2 }), price.clone());
    let (_, answer) = hears(&installation, &peers).await;
    let used = &answer["result"]["depends_on"][0];
    assert_eq!(
        (&used["value"], &used["confidence"]),
        (&json!(85.0), &json!(0.8))
    );

    let refused = check_refusals(&installation, &case).await;
    all_kept(installation.client(), refused).await;
    check_graph(&installation, &case);
    check_resting(&installation, &case).await;
    installation.holds(PATIENCE).await;
}

/// Two scores that differ are debated: the parties hear which analyses rest on it, and `concord case show` says it, before anything is
/// decided.
async fn check_resting(installation: &TestInstallation, case: &str) {
    let score = json!([{ "kind": "decision", "id": case, "metric": "risk_score" }]);
    let limits = publish(case, "ann", "limits", json!({ "limit": 5 }), score);
    let order = json!([{ "kind": "analysis", "id": "limits" }]);
    let order = publish(case, "ben", "order", json!({}), order);
    for analysis in [limits, order] {
        assert_eq!(hears(installation, &analysis).await.0, "response");
    }
    for (agent, risk_score) in [("ann", 20), ("ben", 80)] {
        let finding = json!({ "summary": "Seen.", "risk_score": risk_score });
        let said = Message::finding(case, agent, finding, 0.8);
        said.store(installation.client()).await;
    }
    let subject = format!("concord.v1.msg.{case}.debate-facilitator.ben.question");
    let question = wait_for("a question", PATIENCE, async || {
        let asked = message_bodies(installation.client(), &subject).await?;
        asked.into_iter().next().ok_or_else(|| "not yet".to_owned())
    })
    .await;
    assert_eq!(
        question["payload"]["dependants"],
        json!(["limits", "order"])
    );
    let server = installation.server_url();
    let shown = concord(&["case", "show", case, "--server", server]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("rest on it: limits, order"), "{shown}");
}

/// What is wrong is said with its place, and what there is; the number of messages.
async fn check_refusals(installation: &TestInstallation, case: &str) -> usize {
    let uses = |id: &str| json!([{ "kind": "analysis", "id": id }]);
    let place = |field: &str| format!("/payload/parameters/{field}");
    let refused = [
        (
            publish(case, "ann", "dcf", json!({}), uses("peers")),
            place("depends_on/0"),
            "dcf -> peers -> dcf",
        ),
        (
            publish(case, "ben", "own", json!({}), uses("nowhere")),
            place("depends_on/0/id"),
            "nowhere",
        ),
        (
            publish(
                case,
                "ben",
                "own",
                json!({}),
                json!([{ "kind": "analysis", "id": "dcf", "metric": "rating" }]),
            ),
            place("depends_on/0/metric"),
            "no figure \"rating\"",
        ),
        (
            publish(
                case,
                "ben",
                "own",
                json!({}),
                json!([{ "kind": "decision", "id": "d-1" }]),
            ),
            place("depends_on/0/id"),
            "no debate",
        ),
        (
            publish(case, "ben", "dcf", json!({}), json!([])),
            place("analysis_id"),
            "is that of ann",
        ),
        (
            publish(case, "mallory", "own", json!({}), json!([])),
            "/from_agent".to_owned(),
            "not in this case",
        ),
    ];
    for (message, pointer, why) in &refused {
        let (kind, error) = hears(installation, message).await;
        assert_eq!(kind, "error", "{error}");
        assert_eq!(error["details"]["pointer"], *pointer, "{error}");
        let told = error["error_message"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
    }
    refused.len()
}

/// The command draws the graph, and gives it to programs.
fn check_graph(installation: &TestInstallation, case: &str) {
    let shown = command(installation, &["impact", "graph", case]).unwrap();
    let analyses = shown["analyses"].as_array().unwrap();
    let ids: Vec<&Value> = analyses.iter().map(|one| &one["analysis_id"]).collect();
    assert_eq!(ids, ["dcf", "peers"]);
    assert_eq!(analyses[0]["used_by"], json!(["peers"]));
    let server = installation.server_url().to_owned();
    for (format, arrow) in [
        ("dot", "n1 -> n2 [label=\"target_price 85\"]"),
        ("mermaid", "n1 -->|\"target_price 85\"| n2"),
    ] {
        let drawn = concord(&[
            "impact", "graph", case, "--format", format, "--server", &server,
        ]);
        let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
        assert!(drawn.contains(arrow), "{drawn}");
    }
    let none = command(installation, &["impact", "graph", "case-nowhere"]).unwrap_err();
    assert!(none.contains("there is no case case-nowhere"), "{none}");
}
