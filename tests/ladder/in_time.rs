//! What was said in a debate before a deadline counts, also where the facilitator was dead when it was said and when the deadline passed.

use concord_events::topology::StreamKind;
use concord_testkit::{Message, consumer_is_done, event_data, unique, wait_for};
use concord_wire::subject::Service;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::ladder::PATIENCE;
use crate::ladder::ruling::Debate;
use crate::ladder::stage::Stage;

/// So many messages are sent without waiting for the ones before.
const SENT_AT_ONCE: usize = 500;
/// More than the facilitator reads in the time in which it applies a deadline that waits for nothing.
const FLOOD: usize = 15_000;

/// Kills the facilitator, has something said, and starts it again when the deadline has passed.
async fn say_while_dead(stage: &Stage, deadline: &str, messages: &[Message]) {
    let installation = &stage.installation;
    let kill = installation.kill(Service::DebateFacilitator, 0);
    kill.expect("it dies");
    for some in messages.chunks(SENT_AT_ONCE) {
        join_all(some.iter().map(|message| stage.send(message))).await;
    }
    let passed = |all: &[Value]| all.iter().any(|data| data["name"] == deadline);
    let elapsed = async || event_data(installation.client(), "deadline.*.debate_elapsed").await;
    let early = elapsed().await.expect("the events");
    assert!(!passed(&early), "all was said in time: {early:?}");
    wait_for(deadline, PATIENCE, async || {
        let all = elapsed().await?;
        passed(&all).then_some(()).ok_or_else(|| format!("{all:?}"))
    })
    .await;
    let launch = installation.launch(Service::DebateFacilitator, 0);
    launch.expect("it starts again");
}

/// Nothing was late.
async fn check_nothing_set_aside(stage: &Stage) {
    let client = stage.installation.client();
    let set_aside = event_data(client, "debate.*.answer_set_aside").await;
    assert_eq!(set_aside, Ok(Vec::new()));
    stage.holds().await;
}

/// A case of two that disagree, whose debate has one round of `answer_timeout_ms`, and the questions that they are asked.
async fn asked(answer_timeout_ms: u64) -> (Stage, [String; 2]) {
    let stage = Stage::empty().await;
    let policy = json!({
        "finding_timeout_ms": 60_000, "answer_timeout_ms": answer_timeout_ms, "rounds_max": 1,
    });
    stage.open(json!({ "policy": policy })).await;
    let finding = |score| json!({ "summary": "Seen.", "risk_score": score });
    stage.give_findings([finding(10), finding(90)]).await;
    let question = async |agent| {
        let question = stage.message_to(agent, "question", |_| true).await;
        question["message_id"].as_str().expect("an id").to_owned()
    };
    let questions = [
        question(&stage.finance).await,
        question(&stage.strategy).await,
    ];
    (stage, questions)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_time_counts_although_the_facilitator_was_dead() {
    let (stage, [of_finance, of_strategy]) = asked(8_000).await;
    let kept = json!({ "reasoning": "I keep mine." });
    let agreed = json!({ "agrees_with": stage.finance, "reasoning": "They are right." });
    // Answers need not name the case.
    let answers = [
        Message::answer("_", &stage.finance, "disagreement", &of_finance, kept),
        Message::answer("_", &stage.strategy, "agreement", &of_strategy, agreed),
    ];
    say_while_dead(&stage, "round-1", &answers).await;
    let resolved = stage.event("debate", "resolved", |_| true).await;
    let outcome = &resolved["data"]["outcome"];
    assert_eq!(outcome["status"], "discussion", "{outcome}");
    check_nothing_set_aside(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_by_others_delays_no_deadline() {
    let (stage, _) = asked(20_000).await;
    let of_others = |number: usize| {
        let case = if number.is_multiple_of(2) {
            "_"
        } else {
            &stage.case
        };
        let told = json!({ "content": number });
        Message::new(case, "mallory", "debate-facilitator", "info_update", told)
    };
    let flood: Vec<Message> = (0..FLOOD).map(of_others).collect();
    say_while_dead(&stage, "round-1", &flood).await;
    stage.event("debate", "resolved", |_| true).await;
    let client = stage.installation.client();
    let inbox = consumer_is_done(client, StreamKind::Messages, "debate-facilitator-inbox");
    let waiting = inbox
        .await
        .expect_err("the flood waits, and the deadline did not");
    assert!(waiting.contains("wait"), "{waiting}");
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ruling_in_time_counts_although_the_facilitator_was_dead() {
    let stage = Stage::empty().await;
    stage.installation.register("gail", &["reviewer"]).await;
    let expert = unique("eve");
    let registration = json!({ "agent_id": expert, "domains": ["valuation"] });
    stage.installation.register_expert(&registration).await;
    let times = json!({ "opinion_ms": 200, "mediation_ms": 60_000, "person_ms": 8_000 });
    stage
        .open(json!({ "gates": ["valuation"], "policy": { "ladder": { "times": times } } }))
        .await;
    let finding = || json!({ "summary": "Seen." });
    stage.give_findings([finding(), finding()]).await;
    stage.event("case", "decided", |_| true).await;
    stage.challenge().await;
    let debate = Debate::opened(&stage).await;
    debate.escalate().await;
    let digest = debate.digest_other_than(&expert, &Value::Null).await;
    let ruling = debate.ruling(&expert, "p2", &digest);
    say_while_dead(&stage, "person", &[ruling]).await;
    let resolved = stage.event("debate", "resolved", |_| true).await;
    let outcome = &resolved["data"]["outcome"];
    assert_eq!(
        (&outcome["status"], &outcome["resolution"]["value"]),
        (&json!("ruling"), &json!(30)),
        "{outcome}"
    );
    check_nothing_set_aside(&stage).await;
}
