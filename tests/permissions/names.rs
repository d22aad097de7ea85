//! A name that becomes that of an agent and of a person at the same moment.

use concord_testkit::{TestInstallation, unique};
use concord_wire::AgentId;
use concord_wire::payload::Card;
use concord_wire::subject::Service;
use serde_json::{Value, json};

/// The first of them usually does.
const TRIES_MAX: usize = 50;

/// Has an operator of this name register somebody: the answer, or the refusal.
async fn register_as(installation: &TestInstallation, operator: &AgentId) -> Result<(), String> {
    let mia = json!({ "person": { "name": unique("mia"), "roles": [{ "role": "auditor" }] } });
    let subject = format!("concord.v1.api.coordinator.register_person.{operator}");
    let answer = installation
        .client()
        .request(subject, mia.to_string().into());
    let answer = answer.await.expect("an answer");
    let headers = answer.headers.as_ref();
    match headers.and_then(|headers| headers.get("Nats-Service-Error")) {
        Some(refusal) => Err(refusal.to_string()),
        None => Ok(()),
    }
}

/// A name under which both were registered: each finds it free, before the other is stored.
async fn of_both(installation: &TestInstallation) -> AgentId {
    let ask = async |verb, request: Value| {
        let answer = installation.ask(Service::Coordinator, verb, &request);
        answer.await.is_ok()
    };
    for _ in 0..TRIES_MAX {
        let name: AgentId = unique("eva").parse().expect("a name");
        let card = json!({ "card": Card::new(name.clone()), "by": "olga" });
        let roles = json!([{ "role": "operator" }]);
        let person = json!({ "person": { "name": name, "roles": roles }, "by": "olga" });
        let (agent, person) =
            tokio::join!(ask("register_agent", card), ask("register_person", person));
        if agent && person {
            return name;
        }
    }
    panic!("no name is that of both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_an_agent_and_of_a_person_has_no_role_until_the_agent_is_off_the_register() {
    let installation = TestInstallation::start_without_adapter().await;
    let eva = of_both(&installation).await;
    let refused = register_as(&installation, &eva).await;
    let refused = refused.expect_err("she may be an agent");
    assert!(refused.contains("UNAUTHORIZED"), "{refused}");
    let off = json!({ "agent_id": eva, "by": "olga" });
    let off = installation
        .ask(Service::Coordinator, "deregister_agent", &off)
        .await;
    off.expect("she is off the register");
    let done = register_as(&installation, &eva).await;
    done.expect("she is an operator, and no agent");
}
