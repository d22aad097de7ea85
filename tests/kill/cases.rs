//! The cases that are decided twice, once undisturbed: the findings and answers of the agents follow from the message alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_nats::{Client, jetstream};
use concord_testkit::{Message, ReceivedMessage, Stored, events, settled, until};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::kill::agents::{Agents, store};
use crate::kill::blows::{last_event, start};
use crate::kill::storm::{CASES, check};

/// The participants of every case. The last is hosted by the agent adapter.
pub(crate) const AGENTS: [&str; 5] = ["ann", "ben", "cyd", "dan", "hosted"];

/// The id of a case by number.
pub(crate) fn case_id(number: usize) -> String {
    format!("case-{number}")
}

/// A hash of words: FNV-1a.
fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A number below `of` that follows from words alone, and differs by them as if by chance.
pub(crate) fn chance(words: &[&str], of: usize) -> usize {
    usize::try_from(hash(words) % of as u64).unwrap_or(0)
}

/// The request to open a case, with limits that no run reaches.
pub(crate) fn opening(number: usize) -> Message {
    let case = case_id(number);
    let policy = json!({
        "finding_timeout_ms": 3_600_000, "answer_timeout_ms": 3_600_000, "case_timeout_ms": 7_200_000,
        "conflicts_max": 3, "vote_rule": (["confidence", "majority", "reconcile"][number % 3]),
    });
    let parameters = json!({
        "case_id": case, "participants": AGENTS, "policy": policy, "task": { "type": "test", "title": case },
    });
    let request = json!({ "action": "open_case", "parameters": parameters });
    Message::new("_", "opener", "coordinator", "request", request)
        .with("/message_id", format!("open-{case}"))
}

/// The answers of an agent to a message; the same whenever, and however often, it receives the message.
pub(crate) fn answers(heard: &ReceivedMessage) -> Vec<Message> {
    let asked = heard.body["message_id"].as_str().unwrap_or_default();
    let answer = match heard.kind() {
        "task_assignment" => heard.finding(
            finding(heard.case(), &heard.agent),
            confidence(heard.case(), &heard.agent),
        ),
        "question" => {
            let (kind, answer) = answer(heard.case(), &heard.agent, heard.payload());
            heard.answer(kind, answer)
        }
        _ => return Vec::new(),
    };
    vec![answer.with("/message_id", format!("{asked}-{}", heard.agent))]
}

fn confidence(case: &str, agent: &str) -> f64 {
    [0.5, 0.6, 0.7, 0.8, 0.9][chance(&[case, agent, "confidence"], 5)]
}

/// A finding whose scores, recommendations, severities, clauses and facts agree with those of others by chance.
fn finding(case: &str, agent: &str) -> Value {
    if agent == "hosted" {
        return json!({ "summary": "Said by a program.", "risk_score": 50, "recommendation": "negotiate" });
    }
    let chance = |what: &str, of: usize| chance(&[case, agent, what], of);
    json!({
        "summary": format!("What {agent} found."),
        "risk_score": 10 * chance("score", 8),
        "recommendation": (["sign", "negotiate", "sign", "reject"][chance("do", 4)]),
        "critical_findings": [{ "topic": "liability", "severity": if chance("how bad", 3) == 0 { "high" } else { "low" } }],
        "clauses": [{ "type": "Governing Law", "present": chance("clause", 4) != 0 }],
        "facts": [{ "subject": "contract", "attribute": "term", "value": 12 + chance("term", 2), "unit": "months" }],
        "evidence": [format!("§ {}", chance("place", 9))],
    })
}

/// The answer to a question: its type and its payload.
fn answer(case: &str, agent: &str, question: &Value) -> (&'static str, Value) {
    let subject = question["conflict"]["subject"].to_string();
    let round = question["round"].to_string();
    match chance(&[case, agent, &subject, &round], 4) {
        0 | 1 => {
            let peers = question["other_positions"]
                .as_array()
                .map_or(1, Vec::len)
                .max(1);
            let peer =
                &question["other_positions"][chance(&[case, agent, &subject], peers)]["agent_id"];
            (
                "agreement",
                json!({ "agrees_with": peer, "reasoning": "They are right." }),
            )
        }
        2 => (
            "disagreement",
            json!({ "reasoning": "I keep my position." }),
        ),
        _ => {
            let value = question["your_position"]["value"].clone();
            (
                "revision",
                json!({ "value": value, "confidence": 0.95, "reasoning": "Surer than before." }),
            )
        }
    }
}

/// The parts of a decision that must not depend on what happened to the processes: everything but the time.
fn lasting(decided: &Value) -> Value {
    let mut decision = decided["data"]["decision"].clone();
    for outcome in decision["outcomes"].as_array_mut().into_iter().flatten() {
        outcome
            .as_object_mut()
            .expect("an outcome")
            .remove("resolved_at");
    }
    // The id of a finding names the assignment it answers, and so the place of that in the stream.
    for finding in decision["findings"].as_array_mut().into_iter().flatten() {
        finding
            .as_object_mut()
            .expect("a finding")
            .remove("message_id");
    }
    decision
}

/// All decisions so far, ordered by case.
async fn decisions(client: &Client) -> Result<Vec<(String, Value)>, String> {
    let events = events(client, "case.*.decided").await?;
    let mut decisions: Vec<_> = events.iter().map(decision).collect();
    decisions.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(decisions)
}

/// Waits until so many cases are decided: the decisions, ordered by case. When it waits in vain it says how far each other case came.
pub(crate) async fn wait_for_decisions(
    client: &Client,
    count: usize,
    patience: Duration,
) -> Vec<(String, Value)> {
    let waited = until("all decisions", patience, async || {
        let decisions = decisions(client).await?;
        if decisions.len() == count {
            Ok(decisions)
        } else {
            Err(format!("{} decisions", decisions.len()))
        }
    });
    match waited.await {
        Ok(decisions) => decisions,
        Err(missing) => panic!("{missing}\n{}", undecided(client).await),
    }
}

/// What a run comes to that nothing disturbs.
pub(crate) struct Undisturbed {
    decisions: Vec<(String, Value)>,
    /// How many events it has.
    pub(crate) events: u64,
}

impl Undisturbed {
    /// The decisions of the first so many cases, ordered by case.
    pub(crate) fn of_first(&self, cases: usize) -> Vec<(String, Value)> {
        let first: BTreeSet<String> = (0..cases).map(case_id).collect();
        let decisions = self.decisions.iter().filter(|(id, _)| first.contains(id));
        decisions.cloned().collect()
    }
}

/// Decides at least so many cases undisturbed. No more than those of the storm are decided once for all tests.
pub(crate) async fn undisturbed(cases: usize) -> &'static Undisturbed {
    static USUAL: OnceCell<&Undisturbed> = OnceCell::const_new();
    if cases <= CASES {
        USUAL.get_or_init(|| decide(CASES)).await
    } else {
        decide(cases).await
    }
}

async fn decide(cases: usize) -> &'static Undisturbed {
    let (begun, patience) = (Instant::now(), Duration::from_secs(180 + cases as u64));
    let installation = start().await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS[..4], answers);
    for number in 0..cases {
        store(&jetstream, &opening(number)).await;
    }
    let decisions = wait_for_decisions(&client, cases, patience).await;
    let all_done = settled(&client, patience).await;
    all_done.unwrap_or_else(|error| panic!("{error}"));
    check(&installation).await;
    let events = last_event(&jetstream).await.expect("the stream is there");
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seconds:6.2} s: {cases} cases are decided, undisturbed");
    Box::leak(Box::new(Undisturbed { decisions, events }))
}

/// The events of each case that is not decided, a line a case, and what is still under way.
async fn undecided(client: &Client) -> String {
    let mut cases = BTreeMap::<String, Vec<String>>::new();
    for event in events(client, "case.>").await.unwrap_or_default() {
        let mut parts = event.subject.split('.').skip(4).map(str::to_owned);
        let case = cases.entry(parts.next().unwrap_or_default()).or_default();
        case.extend(parts.next());
    }
    cases.retain(|_, events| !events.iter().any(|event| event == "decided"));
    let lines = cases
        .iter()
        .map(|(case, events)| format!("{case}: {}", events.join(", ")));
    let under_way = settled(client, Duration::from_secs(5)).await;
    let under_way = under_way.err().map(|missing| missing.to_string());
    lines.chain(under_way).collect::<Vec<_>>().join("\n")
}

fn decision(event: &Stored) -> (String, Value) {
    let case = event.subject.split('.').nth(4).unwrap_or_default();
    (case.to_owned(), lasting(&event.json()))
}
