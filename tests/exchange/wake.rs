//! A message to the group wakes agents: it is decided once which, the decision is recorded, the woken agents are told, and a
//! hosted agent answers the asker.

use concord_testkit::{
    Message, TestInstallation, concord, event_data, message_bodies, settled, wait_for,
    with_adapter_settings,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{answer_to, http_answers, names, register, wait_for_status};

/// A program that answers with the reason for which it was woken.
const ANSWERS: &str = r#"
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    print(json.dumps({"message_type": "info_update", "payload": {"reason": m.get("reason"), "context": m.get("context")}}), flush=True)
"#;

fn skills(of: &str) -> Value {
    let examples = match of {
        "tax" => [
            "Who bears the value added tax?",
            "Is VAT included in the price?",
            "Does reverse charge apply here?",
        ],
        _ => [
            "Which indexes does this query need?",
            "How large should the connection pool be?",
            "Normalise this schema.",
        ],
    };
    json!({ "skills": [{ "name": of, "examples": examples }] })
}

/// An installation, and in it an agent `program` that the adapter hosts and that the word coffee wakes.
async fn start(program: &str) -> TestInstallation {
    let name = program.to_owned();
    let installation = TestInstallation::start_with(move |plan| {
        let file = plan.directory.join("answers.py");
        std::fs::write(&file, ANSWERS).unwrap();
        let settings = format!(
            "[[service.agents]]\nagent_id = {name:?}\ntriggers = [\"coffee\"]\ncommand = [\"python3\", {:?}]\n",
            file.display().to_string()
        );
        with_adapter_settings(plan, &settings)
    })
    .await;
    wait_for_status(&installation, program, Some("available")).await;
    installation
}

fn query(from: &str, text: &str) -> Message {
    Message::new("_", from, "_any", "group_query", json!({ "content": text }))
}

/// Publishes a message and waits until it is decided whom it wakes.
pub(crate) async fn decision(installation: &TestInstallation, message: &Message) -> Value {
    message.publish(installation.client()).await;
    let what = format!("a decision about {}", message.id());
    wait_for(what, PATIENCE, async || {
        let all = event_data(installation.client(), "wake.*.decided").await?;
        all.into_iter()
            .find(|one| one["said"]["message_id"] == message.id())
            .ok_or_else(|| "there is none".to_owned())
    })
    .await
}

/// A field of each agent that a decision wakes.
fn woken<'a>(decision: &'a Value, field: &str) -> Vec<&'a Value> {
    let woken = decision["woken"].as_array().unwrap();
    woken.iter().map(|one| &one[field]).collect()
}

/// A question of ann wakes the agent that knows about tax, which is told of it: the question.
async fn check_skill(installation: &TestInstallation, ann: &str, tax: &str) -> Message {
    let question = query(ann, "Is the value added tax included in the price?");
    let decided = decision(installation, &question).await;
    assert_eq!(woken(&decided, "agent_id"), [tax], "{decided}");
    assert_eq!(decided["woken"][0]["reason"], "semantic:tax");
    let filter = format!("concord.v1.msg.*.*.{tax}.notification");
    let told = wait_for("the agent to be told", PATIENCE, async || {
        let notifications = message_bodies(installation.client(), &filter).await?;
        notifications
            .into_iter()
            .next()
            .ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let message = &told["payload"]["data"]["message"];
    assert_eq!(message["message_id"], question.id(), "{told}");
    question
}

/// Operators see in the metrics and in the readiness how messages are matched with skills.
async fn check_matching_is_shown(installation: &TestInstallation) {
    let adapter = (Service::AgentAdapter, 1);
    let metrics = http_answers(installation, adapter, "/metrics")
        .await
        .concat();
    for (way, is) in [("letters", 1), ("model", 0), ("server", 0)] {
        assert!(
            metrics.contains(&format!("concord_wake_matching{{by=\"{way}\"}} {is}\n")),
            "{metrics}"
        );
    }
    // Not while the broker stands still.
    wait_for("the adapter to be ready", PATIENCE, async || {
        let ready = http_answers(installation, adapter, "/readyz")
            .await
            .concat();
        let is_said = ready.contains(r#""ready":true,"reasons":[],"notes":["there is no model"#);
        is_said.then_some(()).ok_or(ready)
    })
    .await;
}

/// `concord wake explain` of a message: its exit code, what it prints and what it prints as an error.
fn explain(installation: &TestInstallation, message: &str) -> (Option<i32>, String, String) {
    let server = installation.server_url();
    let output = concord(&["wake", "explain", message, "--server", server]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The command tells how each decision was made.
fn check_explanations(
    installation: &TestInstallation,
    coffee: &Message,
    note: &Message,
    who: &str,
) {
    for (message, how) in [
        (coffee, "compared by letters, without a model"),
        (note, "by whom it names"),
    ] {
        let (code, text, _) = explain(installation, message.id());
        assert!(
            code == Some(0) && text.contains(how) && text.contains(who),
            "{text}"
        );
    }
    let (code, _, error) = explain(installation, "no-such-message");
    assert!(
        code == Some(1) && error.contains("nothing was decided about no-such-message"),
        "{error}"
    );
}

/// A message that concerns two wakes both; an objection wakes who holds a position; a request for help wakes whom the assignment
/// concerns that its sender works on.
async fn check_several(installation: &TestInstallation, [ann, tax, base]: [&str; 3]) {
    let said = "Is VAT included in the price, and which indexes does this query need?";
    let decided = decision(installation, &query(ann, said)).await;
    let mut both = [tax, base];
    both.sort_unstable();
    assert_eq!(woken(&decided, "agent_id"), both, "{decided}");

    let payload = json!({ "content": "Normalise this schema." });
    let assignment = Message::new("_", ann, tax, "task_assignment", payload);
    let decided = decision(installation, &assignment).await;
    assert_eq!(woken(&decided, "reason"), ["direct_target"], "{decided}");
    let in_thread = |message: Message| message.with("/correlation_id", json!(assignment.id()));
    let help = Message::new(
        "_",
        tax,
        "_any",
        "peer_request",
        json!({ "content": "I am stuck" }),
    );
    let decided = decision(installation, &in_thread(help)).await;
    assert_eq!(woken(&decided, "agent_id"), [base], "{decided}");
    assert_eq!(woken(&decided, "reason"), ["context:database"], "{decided}");
    let objections = query(ann, "Does anyone disagree with this plan?");
    let decided = decision(installation, &in_thread(objections)).await;
    assert_eq!(woken(&decided, "agent_id"), [tax], "{decided}");
    assert_eq!(woken(&decided, "reason"), ["position"], "{decided}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_to_the_group_wakes_whom_it_concerns_and_a_mention_wakes_whom_it_names() {
    let [ann, tax, base, prog] = names(["ann", "tax", "base", "prog"]);
    let installation = start(&prog).await;
    let client = installation.client();
    register(&installation, &tax, &skills("tax")).await;
    register(&installation, &base, &skills("database")).await;
    let about_tax = check_skill(&installation, &ann, &tax).await;

    // A mention wakes the hosted agent. It is given the thread so far, and its answer goes to the asker.
    query(&ann, &format!("@{prog} what do you say?"))
        .with("/correlation_id", json!(about_tax.id()))
        .publish(client)
        .await;
    let (kind, answer) = answer_to(client, &about_tax).await;
    assert_eq!(
        (kind.as_str(), &answer["reason"]),
        ("info_update", &json!("mention")),
        "{answer}"
    );
    check_matching_is_shown(&installation).await;

    // Without skills that fit, its phrase wakes it.
    let coffee = query(&ann, "Is there any coffee left?");
    let decided = decision(&installation, &coffee).await;
    assert_eq!(woken(&decided, "reason"), ["keyword:coffee"], "{decided}");

    // A message to everyone, of whatever type, is observed and wakes the agents that it names.
    let text = json!({ "text": format!("Done, as @{prog} knows.") });
    let note = Message::new("_", &ann, "_all", "note", text);
    let decided = decision(&installation, &note).await;
    assert_eq!(
        (woken(&decided, "agent_id"), &decided["observing"]),
        (vec![&json!(prog)], &json!(2)),
        "{decided}"
    );
    check_explanations(&installation, &coffee, &note, &prog);

    check_several(&installation, [&ann, &tax, &base]).await;

    // A question that concerns nobody wakes nobody.
    let nobody = query(&ann, "Nice weather today, isn't it?");
    assert_eq!(decision(&installation, &nobody).await["woken"], Value::Null);
    settled(client, PATIENCE).await.unwrap();
    installation.holds(PATIENCE).await;
}

/// An installation in which an agent may cause six hundred kilobytes at once, and next to nothing after that.
async fn start_bounded() -> TestInstallation {
    TestInstallation::start_with(|plan| {
        plan.with_setting("work.agent_bytes_max=10")
            .with_setting("work.agent_bytes_burst_max=600000")
    })
    .await
}

/// Registers these agents: a text of so many bytes that names them.
async fn naming(installation: &TestInstallation, agents: &[String], bytes: usize) -> String {
    for agent in agents {
        register(installation, agent, &json!({})).await;
    }
    let named: Vec<String> = agents.iter().map(|agent| format!("@{agent}")).collect();
    format!("{} {}", named.join(" "), "x".repeat(bytes))
}

/// The errors that the adapter has sent to an agent.
async fn errors_to(installation: &TestInstallation, agent: &str) -> Vec<Value> {
    let errors = format!("concord.v1.msg.*.agent-adapter.{agent}.error");
    message_bodies(installation.client(), &errors)
        .await
        .unwrap()
}

/// What those are told who wake counts against whoever wakes them: the messages are few, and what they cause is not.
#[tokio::test(flavor = "multi_thread")]
async fn who_wakes_others_causes_no_more_bytes_than_they_may() {
    let installation = start_bounded().await;
    let client = installation.client();
    let [mallory, a, b, c, d] = names(["mallory", "a", "b", "c", "d"]);
    let all = [a, b, c, d];
    let text = naming(&installation, &all, 100_000).await;
    // The first takes five hundred kilobytes with what is told of it, and the second is over.
    let decided = decision(&installation, &query(&mallory, &text)).await;
    assert_eq!(woken(&decided, "agent_id").len(), all.len());
    for _ in 0..3 {
        query(&mallory, &text).store(client).await;
    }
    settled(client, PATIENCE).await.unwrap();
    let told = "concord.v1.msg.*.agent-adapter.*.notification";
    let told = message_bodies(client, told).await.unwrap();
    let is_woken = |body: &&Value| body["payload"]["event"] == "woken";
    assert_eq!(told.iter().filter(is_woken).count(), all.len());
    let errors = errors_to(&installation, &mallory).await;
    let [error] = &errors[..] else {
        panic!("{errors:?}");
    };
    let report = &error["payload"];
    assert_eq!(report["error_code"], "CAPACITY_EXCEEDED", "{report}");
    let why = report["error_message"].as_str().unwrap();
    assert!(why.contains("causes more than 10 bytes"), "{why}");
}

/// A message to one agent of somebody who has no bytes left reaches that one and wakes nobody else: an error would be taken for its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_one_agent_wakes_nobody_else_where_its_sender_has_no_bytes_left() {
    let installation = start_bounded().await;
    let [mallory, a, b, c, d] = names(["mallory", "a", "b", "c", "d"]);
    let all = [a, b, c, d];
    let text = naming(&installation, &all, 135_000).await;
    // The first takes nearly all with what the other three are told.
    for expected in [all.len(), 0] {
        let payload = json!({ "content": text });
        let to_one = Message::new("_", &mallory, &all[0], "info_update", payload);
        let decided = decision(&installation, &to_one).await;
        let woken = decided["woken"].as_array().map_or(0, Vec::len);
        assert_eq!(woken, expected, "{}", decided["woken"]);
    }
    settled(installation.client(), PATIENCE).await.unwrap();
    let errors = errors_to(&installation, &mallory).await;
    assert!(errors.is_empty(), "{errors:?}");
}
