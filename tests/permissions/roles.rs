//! Roles: who has none rules, reviews and passes nothing, whatever the broker lets it say; who has one does what it is for, as
//! the user that `concord permissions --role` prints.

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, concord, events, unique, wait_for};
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::replies::message_to;
use crate::permissions::user::{User, agents, start};

/// The user of the broker that the command prints for somebody with a role, or for an agent.
pub(crate) fn user(name: &AgentId, role: Option<&str>) -> Value {
    let role = role.map(|role| ["--role", role]);
    let arguments: Vec<&str> = ["permissions", name.as_str(), "--json"]
        .into_iter()
        .chain(role.into_iter().flatten())
        .collect();
    let output = concord(&arguments);
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json!({ "user": name, "password": "x", "permissions": printed["permissions"] })
}

/// An installation with two reviewers, an operator, and an agent; and a case at its gate that wants two reviewers.
struct Stage {
    installation: TestInstallation,
    case: String,
    debate: String,
    eva: AgentId,
    hal: AgentId,
    olga: AgentId,
    mallory: AgentId,
}

impl Stage {
    async fn start() -> Self {
        let [eva, hal, olga, mallory] = agents(["eva", "hal", "olga", "mallory"]);
        let users = json!({ "users": [
            user(&eva, Some("reviewer")), user(&hal, Some("reviewer")), user(&olga, Some("operator")), user(&mallory, None),
            { "user": "services", "password": "x" },
        ] });
        let config = format!("authorization: {users}\nno_auth_user: services");
        let installation = start(config).await;
        for (name, role) in [(&eva, "reviewer"), (&hal, "reviewer"), (&olga, "operator")] {
            installation.register(name.as_str(), &[role]).await;
        }
        let (case, debate) = provisional(&installation).await;
        Self {
            installation,
            case,
            debate,
            eva,
            hal,
            olga,
            mallory,
        }
    }

    /// Sends a review under a name, by its own user.
    async fn review(&self, user: &User, by: &AgentId, mut review: Value) {
        review["gate"] = json!("valuation");
        if review["action"] != "pass" {
            review["debate_id"] = json!(self.debate);
        }
        let message = Message::new(&self.case, by.as_str(), "coordinator", "review", review);
        message.send(&user.client).await;
    }

    /// Waits for an event of the case.
    async fn event(&self, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let filter = format!("case.{}.{name}", self.case);
        wait_for(&filter, PATIENCE, async || {
            let events = events(self.installation.client(), &filter).await?;
            let mut data = events.iter().map(|event| event.json()["data"].clone());
            data.find(|data| is_it(data)).ok_or_else(|| "none".into())
        })
        .await
    }

    /// Asks a service under a name: the answer, or what the service says in its place.
    async fn ask(&self, client: &Client, subject: &str, request: &Value) -> Result<Value, String> {
        let subject = format!("concord.v1.api.{subject}");
        let answer = client.request(subject, request.to_string().into());
        let answer = answer.await.expect("an answer");
        let refusal = answer
            .headers
            .as_ref()
            .and_then(|headers| headers.get("Nats-Service-Error"));
        match refusal {
            Some(refusal) => Err(refusal.to_string()),
            None => Ok(serde_json::from_slice(&answer.payload).expect("JSON")),
        }
    }
}

/// Opens a case whose challenge nobody answers and nobody rules on: the case, and the debate that stands provisionally.
async fn provisional(installation: &TestInstallation) -> (String, String) {
    let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
    let opening = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" }, "gates": ["valuation"],
        "policy": { "ladder": { "time_scale": 14_400, "reviewers_min": 2 } },
    });
    installation.open_case(&opening).await;
    for agent in [&ann, &ben] {
        Message::finding(&case, agent, json!({ "summary": "Seen." }), 0.8)
            .store(installation.client())
            .await;
    }
    // What is challenged after the decision is settled by a new version of it.
    let id = case.parse().expect("an id");
    installation.decision(&id, PATIENCE).await;
    let challenge = json!({
        "challenger": ann, "challenged": ben, "disputed_finding": "Operating margin of 25 %",
        "challenge_basis": "ROI declining despite claims", "metric": "operating margin", "value": 30,
    });
    Message::new(&case, &ann, "coordinator", "challenge", challenge)
        .store(installation.client())
        .await;
    let settled = format!("case.{case}.decision_changed");
    let debate = wait_for(&settled, PATIENCE, async || {
        let events = events(installation.client(), &settled).await?;
        let event = events.first().ok_or("none")?.json();
        assert_eq!(event["data"]["outcome"]["status"], "provisional");
        Ok(event["data"]["outcome"]["conflict_id"].clone())
    })
    .await;
    (case, debate.as_str().expect("an id").to_owned())
}

/// What an AI agent can do that took no part in the case: it can say everything, and nothing of it counts.
async fn check_agent(stage: &Stage) {
    let (mallory, name) = (&stage.mallory, stage.mallory.as_str());
    let user = User::connect(&stage.installation, mallory).await;
    let over =
        json!({ "action": "override", "position": "10", "value": 10, "rationale": "Trust me." });
    stage.review(&user, mallory, over).await;
    let error = message_to(&stage.installation, &stage.case, mallory, "error").await;
    assert_eq!(error["payload"]["error_code"], "UNAUTHORIZED", "{error}");
    let advice = error["payload"]["recovery_suggestions"].to_string();
    let said = format!("concord person register {name} --role reviewer --gate valuation");
    assert!(advice.contains(&said), "{advice}");
    stage
        .review(&user, mallory, json!({ "action": "pass" }))
        .await;
    let subject = format!("coordinator.status.{name}");
    // The user of an agent is not even let ask.
    let mut user = user;
    user.may_not_publish(format!("concord.v1.api.{subject}"), b"{}", "a question")
        .await;
}

/// Two reviewers, each with their own user, override the decision and let the case pass the gate.
async fn check_reviewers(stage: &Stage, eva: &User, hal: &User) {
    let over = |value: u32| json!({ "action": "override", "position": "28 %", "value": value, "rationale": "Guidance." });
    stage.review(eva, &stage.eva, over(28)).await;
    let first = stage.event("review_recorded", |_| true).await;
    assert_eq!(first["heard"]["agent_id"], stage.eva.as_str());
    stage.review(eva, &stage.eva, over(28)).await;
    let error = message_to(&stage.installation, &stage.case, &stage.eva, "error").await;
    assert_eq!(error["payload"]["error_code"], "UNAUTHORIZED", "{error}");
    stage.review(hal, &stage.hal, over(28)).await;
    let counted = stage.event("gate_reviewed", |_| true).await;
    assert_eq!(
        (&counted["heard"]["agent_id"], &counted["review"]["value"]),
        (&json!(stage.hal), &json!(28))
    );
}

/// What the services answer to people under their names.
async fn check_api(stage: &Stage, eva: &mut User, olga: &User) {
    let [eva_id, olga_id] = [&stage.eva, &stage.olga];
    let status = format!("coordinator.status.{eva_id}");
    let answer = stage.ask(&eva.client, &status, &json!({})).await;
    assert_eq!(answer.expect("eva has a role")["ready"], true);
    let register = |name: &AgentId| format!("coordinator.register_person.{name}");
    let mia = json!({ "person": { "name": unique("mia"), "roles": [{ "role": "auditor" }] } });
    // Her user is not even let ask for that; the service asks for the role besides.
    let subject = format!("concord.v1.api.{}", register(eva_id));
    eva.may_not_publish(subject, b"{}", "a verb of operators")
        .await;
    let any = stage.installation.client();
    let refused = stage.ask(any, &register(eva_id), &mia).await.unwrap_err();
    assert!(
        refused.contains("UNAUTHORIZED") && refused.contains("operator"),
        "{refused}"
    );
    let done = stage.ask(&olga.client, &register(olga_id), &mia).await;
    assert_eq!(done.expect("olga is an operator")["fact"], "registered");
    let mut as_eva = mia.clone();
    as_eva["by"] = json!(eva_id);
    let refused = stage
        .ask(&olga.client, &register(olga_id), &as_eva)
        .await
        .unwrap_err();
    assert!(refused.contains("/by"), "{refused}");
    // Nor by a list, in which fields have no names.
    let listed = json!([mia["person"], eva_id]);
    let refused = stage.ask(&olga.client, &register(olga_id), &listed).await;
    let refused = refused.expect_err("a list is no order");
    assert!(refused.contains("JSON object"), "{refused}");
    // Nobody asks under the name of another, or under none.
    for subject in [
        "coordinator.status".to_owned(),
        format!("coordinator.status.{olga_id}"),
    ] {
        let subject = format!("concord.v1.api.{subject}");
        eva.may_not_publish(subject, b"{}", "another name").await;
    }
}

/// An operator suspends a reviewer from the command line, as the user that is printed; then the review does not count.
async fn check_suspended(stage: &Stage, eva: &User, hal: &User) {
    let (name, olga) = (stage.hal.as_str(), stage.olga.as_str());
    let address = stage.installation.server_url();
    let server = address.replacen("nats://", &format!("nats://{olga}:x@"), 1);
    let command = |arguments: &[&str]| {
        let own = ["--as", olga, "--server", &server];
        let output = concord(&[arguments, &own].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    command(&["person", "suspend", name, "--why", "left the firm"]);
    stage
        .review(eva, &stage.eva, json!({ "action": "pass" }))
        .await;
    stage
        .event("review_recorded", |data| data["review"]["action"] == "pass")
        .await;
    stage
        .review(hal, &stage.hal, json!({ "action": "pass" }))
        .await;
    let error = message_to(&stage.installation, &stage.case, &stage.hal, "error").await;
    let text = error["payload"]["error_message"].to_string();
    assert!(text.contains("left the firm"), "{error}");
    // Nor does that of the first of the two, who is suspended meanwhile.
    let first = stage.eva.as_str();
    command(&["person", "suspend", first, "--why", "on leave"]);
    command(&["person", "resume", name]);
    let pass = || json!({ "action": "pass" });
    stage.review(hal, &stage.hal, pass()).await;
    let by_hal =
        |data: &Value| data["heard"]["agent_id"] == name && data["review"]["action"] == "pass";
    stage.event("review_recorded", by_hal).await;
    command(&["person", "resume", first]);
    stage.review(eva, &stage.eva, pass()).await;
    let passed = stage.event("gate_passed", |_| true).await;
    assert_eq!(passed["heard"]["agent_id"], first);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_has_the_role_overrides_and_passes() {
    let stage = Stage::start().await;
    check_agent(&stage).await;
    let mut eva = User::connect(&stage.installation, &stage.eva).await;
    let hal = User::connect(&stage.installation, &stage.hal).await;
    let inbox = SubjectSpace::replies(&stage.olga);
    let olga = User::connect_with_inbox(&stage.installation, &stage.olga, &inbox).await;
    check_reviewers(&stage, &eva, &hal).await;
    check_suspended(&stage, &eva, &hal).await;
    check_api(&stage, &mut eva, &olga).await;
    let passed = events(stage.installation.client(), "case.*.gate_passed").await;
    assert_eq!(passed.expect("readable").len(), 1, "by nobody else");
    stage.installation.holds(PATIENCE).await;
}
