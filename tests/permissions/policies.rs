//! Policies: an opener, as the user that `concord permissions --role opener` prints, changes nothing that loosens; operators say
//! what the rules are, and are not held by them.

use std::io::Write as _;

use concord_testkit::{
    Message, TestInstallation, concord, events, message_bodies, unique, wait_for,
};
use concord_wire::AgentId;
use concord_wire::subject::{Service, SubjectSpace};
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::roles::user;
use crate::permissions::user::{User, agents, start};

/// An installation with an opener and an operator.
struct Stage {
    installation: TestInstallation,
    opal: AgentId,
    olga: AgentId,
}

impl Stage {
    async fn start() -> Self {
        let [opal, olga] = agents(["opal", "olga"]);
        let users = json!({ "users": [
            user(&opal, Some("opener")), user(&olga, Some("operator")), { "user": "services", "password": "x" },
        ] });
        let config = format!("authorization: {users}\nno_auth_user: services");
        let installation = start(config).await;
        installation.register(opal.as_str(), &["opener"]).await;
        installation.register(olga.as_str(), &["operator"]).await;
        Self {
            installation,
            opal,
            olga,
        }
    }

    async fn connect(&self, name: &AgentId) -> User {
        let inbox = SubjectSpace::replies(name);
        User::connect_with_inbox(&self.installation, name, &inbox).await
    }

    /// Runs a command as the printed user of a person: what it prints.
    fn command(&self, name: &AgentId, arguments: &[&str]) -> String {
        let address = self.installation.server_url();
        let server = address.replacen("nats://", &format!("nats://{name}:x@"), 1);
        let own = ["--as", name.as_str(), "--server", &server];
        let output = concord(&[arguments, &own].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Waits until the opener has had so many errors about this place: the last of them.
    async fn error(&self, pointer: &str, number: usize) -> Value {
        let filter = format!("concord.v1.msg.*.coordinator.{}.error", self.opal);
        wait_for(pointer, PATIENCE, async || {
            let errors = message_bodies(self.installation.client(), &filter).await?;
            let about = errors.into_iter();
            let about = about.filter(|error| error["payload"]["details"]["pointer"] == pointer);
            let about: Vec<Value> = about.collect();
            let last = about.get(number - 1).cloned();
            last.ok_or_else(|| format!("{} of them", about.len()))
        })
        .await
    }

    /// The contents of the case's `opened` event.
    async fn opened(&self, case: &str) -> Value {
        let filter = format!("case.{case}.opened");
        wait_for(&filter, PATIENCE, async || {
            let events = events(self.installation.client(), &filter).await?;
            let opened = events.first().ok_or("none")?.json();
            Ok(opened["data"].clone())
        })
        .await
    }
}

fn opening(case: &str, policy: Value) -> Value {
    json!({ "case_id": case, "participants": ["ann"], "task": { "type": "test" }, "policy": policy })
}

/// Opens a case by message, by the user of a person.
async fn open(user: &User, by: &AgentId, case: &str, policy: Value) {
    let request = json!({ "action": "open_case", "parameters": opening(case, policy) });
    Message::new("_", by.as_str(), "coordinator", "request", request)
        .send(&user.client)
        .await;
}

/// The opener loosens a limit of a preset, by message and by the API.
async fn check_refused(stage: &Stage, opal: &User) {
    let by = &stage.opal;
    for (policy, field) in [
        (
            json!({ "ladder": { "time_scale": 60 } }),
            "ladder/time_scale",
        ),
        (
            json!({ "preset": "incident", "rounds_max": 9 }),
            "rounds_max",
        ),
    ] {
        let case = unique("loose");
        open(opal, by, &case, policy.clone()).await;
        let pointer = format!("/payload/parameters/policy/{field}");
        let error = stage.error(&pointer, 1).await;
        assert_eq!(error["payload"]["error_code"], "UNAUTHORIZED", "{error}");
        let advice = error["payload"]["recovery_suggestions"].to_string();
        assert!(advice.contains("ask an operator"), "{error}");
        let subject = format!("concord.v1.api.coordinator.open_case.{by}");
        let request = opening(&case, policy).to_string();
        let answer = opal.client.request(subject, request.into()).await;
        let headers = answer.expect("an answer").headers.expect("headers");
        let refusal = headers
            .get("Nats-Service-Error")
            .expect("a refusal")
            .to_string();
        let report: Value = serde_json::from_str(&refusal).expect("JSON");
        assert_eq!(
            report["details"]["pointer"],
            format!("/policy/{field}"),
            "{report}"
        );
        assert_eq!(report["error_code"], "UNAUTHORIZED");
    }
}

/// What is within the bounds, and what operators open.
async fn check_opened(stage: &Stage, opal: &User) {
    let tight = unique("tight");
    open(
        opal,
        &stage.opal,
        &tight,
        json!({ "case_timeout_ms": 600_000 }),
    )
    .await;
    let opened = stage.opened(&tight).await;
    assert_eq!(opened["policy_version"], 0);
    assert_eq!(
        (&opened["by_operator"], &opened["opened_by"]),
        (&Value::Null, &json!(stage.opal))
    );
    let loose = json!({ "ladder": { "time_scale": 60 } });
    let by_olga = unique("loose");
    let request = file(stage, &opening(&by_olga, loose.clone()));
    stage.command(&stage.olga, &["case", "open", &request]);
    let opened = stage.opened(&by_olga).await;
    assert_eq!(opened["by_operator"], true);
    assert_eq!(opened["opened_by"], json!(stage.olga));
    // Under no name it is the installation's own operator.
    let request = opening(&unique("loose"), loose);
    let case = stage.installation.open_case(&request).await;
    let opened = stage.opened(case.as_str()).await;
    assert_eq!(opened["by_operator"], true);
    assert_eq!(opened["opened_by"], "operator");
}

/// A file with a policy.
fn file(stage: &Stage, contents: &Value) -> String {
    let path = stage.installation.directory().join(unique("policy"));
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(contents.to_string().as_bytes())
        .expect("written");
    path.display().to_string()
}

/// An operator stores a policy with bounds of its own, in two versions, and the opener reads and uses it.
async fn check_stored(stage: &Stage, opal: &User) {
    let bounds = json!({ "rounds_max": { "within": [0, 3] }, "ladder.queue_max": "any" });
    let first = json!({ "name": "house rules", "policy": { "preset": "quick", "rounds_max": 2 }, "bounds": bounds });
    let first = file(stage, &first);
    let by = stage.olga.as_str();
    let said = ["--by", by, "--why", "as agreed in May"];
    let put = [&["policy", "put", &first][..], &said].concat();
    assert_eq!(
        stage.command(&stage.olga, &put),
        "house rules is stored as version 1\n"
    );
    let again = stage.command(&stage.olga, &put);
    assert_eq!(
        again,
        "house rules has this content already, as version 1\n"
    );
    let three_rounds = json!({ "preset": "house rules", "rounds_max": 3 });
    let case = unique("house");
    open(opal, &stage.opal, &case, three_rounds.clone()).await;
    let opened = stage.opened(&case).await;
    assert_eq!(opened["policy_version"], 1);
    assert_eq!(
        (&opened["policy"]["preset"], &opened["policy"]["rounds_max"]),
        (&json!("house rules"), &json!(3))
    );
    let second = file(
        stage,
        &json!({ "policy": { "preset": "quick", "rounds_max": 1 } }),
    );
    let said = ["--by", by, "--why", "too slow", "--json"];
    let put = ["policy", "put", &second, "--name", "house rules"];
    let put = [&put[..], &said].concat();
    let done: Value = serde_json::from_str(&stage.command(&stage.olga, &put)).expect("JSON");
    assert_eq!(done["version"], 2);
    // The bounds are those of the version that stands now.
    open(opal, &stage.opal, &unique("house"), three_rounds).await;
    stage
        .error("/payload/parameters/policy/rounds_max", 2)
        .await;
}

/// What the opener sees of both versions.
fn check_views(stage: &Stage) {
    let listed = stage.command(&stage.opal, &["policy", "list"]);
    assert!(
        listed.contains("contract-review  shipped") && listed.contains("too slow"),
        "{listed}"
    );
    let shown = stage.command(
        &stage.opal,
        &["policy", "show", "house rules", "--version", "1"],
    );
    assert!(
        shown.contains("may be 0 to 3") && shown.contains("as agreed in May"),
        "{shown}"
    );
    let diff = ["policy", "diff", "house rules@1", "house rules"];
    let diff = stage.command(&stage.opal, &diff);
    for line in [
        "house rules (1) -> house rules (2)",
        "rounds_max  2    -> 1",
    ] {
        assert!(diff.contains(line), "{line}: {diff}");
    }
    assert!(!diff.contains("conflicts_max"), "{diff}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_own_the_rules() {
    let stage = Stage::start().await;
    let opal = stage.connect(&stage.opal).await;
    check_refused(&stage, &opal).await;
    check_opened(&stage, &opal).await;
    check_stored(&stage, &opal).await;
    check_views(&stage);
    // An opener stores nothing, whatever a broker lets them ask.
    let subject = format!("concord.v1.api.coordinator.put_policy.{}", stage.opal);
    let request = json!({ "name": "mine", "bounds": { "*": "any" }, "why": "mine" });
    let anybody = stage.installation.client();
    let answer = anybody.request(subject, request.to_string().into()).await;
    let refused = answer.expect("an answer").headers.expect("headers");
    let refused = refused
        .get("Nats-Service-Error")
        .expect("a refusal")
        .to_string();
    assert!(
        refused.contains("UNAUTHORIZED") && refused.contains("operator"),
        "{refused}"
    );
    let policies = stage
        .installation
        .ask(Service::Coordinator, "policies", &json!({}))
        .await
        .expect("an answer");
    let mine = policies["policies"].as_array().expect("a list").iter();
    assert!(mine.map(|one| &one["name"]).all(|name| name != "mine"));
    stage.installation.holds(PATIENCE).await;
}
