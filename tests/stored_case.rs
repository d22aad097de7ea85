//! What one case leaves on the broker: how many messages and events, and how many bytes. Five
//! agents, two conflicts, one round, a vote each. Run it with `--nocapture` for the tables.

use std::collections::BTreeMap;
use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_testkit::{Agent, Message, Stored, TestInstallation, settled, stored, stored_from};
use concord_wire::CaseId;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

/// A case, and the most that it may leave on the broker. Each message and event costs an append, and a delivery to every reader.
struct Measured {
    case: &'static str,
    /// The score and the recommendation of each agent, where it states one.
    findings: [(Option<u32>, Option<&'static str>); 5],
    messages_max: usize,
    /// Of their bodies.
    bytes_max: usize,
}

/// Each conflict is between three of the agents.
const THREE_PARTIES: Measured = Measured {
    case: "three-parties",
    findings: [
        (Some(20), None),
        (Some(50), None),
        (Some(80), Some("sign")),
        (None, Some("negotiate")),
        (None, Some("reject")),
    ],
    messages_max: 47,
    bytes_max: 49_500,
};

/// Both conflicts are between all agents.
const FIVE_PARTIES: Measured = Measured {
    case: "five-parties",
    findings: [
        (Some(20), Some("sign")),
        (Some(35), Some("sign")),
        (Some(50), Some("negotiate")),
        (Some(65), Some("negotiate")),
        (Some(80), Some("reject")),
    ],
    messages_max: 59,
    bytes_max: 70_500,
};

/// The name of the line for all; it sorts last.
const TOGETHER: &str = "~ together";

/// What is stored under one name.
#[derive(Default)]
struct Line {
    messages: usize,
    body_bytes: usize,
    all_bytes: usize,
}

/// The bytes of a message as the stream counts them, without what the stream adds: subject, headers, body.
fn all_bytes(message: &Stored) -> usize {
    let fields = message.headers.iter();
    let values = fields.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let header: usize = values
        .map(|(name, value)| name.to_string().len() + value.as_str().len() + ": \r\n".len())
        .sum();
    let frame = if header == 0 {
        0
    } else {
        "NATS/1.0\r\n\r\n".len()
    };
    message.subject.len() + message.payload.len() + header + frame
}

/// The name of what is stored: `event case.opened`, `question`, `notification of a debate`.
fn name_of(message: &Stored) -> String {
    let tokens: Vec<&str> = message.subject.split('.').collect();
    match tokens.as_slice() {
        [_, _, "event", aggregate, _, event, ..] => format!("event {aggregate}.{event}"),
        [_, _, _, _, "debate-facilitator", "_all", kind, ..] => format!("{kind} of a debate"),
        [_, _, _, _, "coordinator", "_all", kind, ..] => format!("{kind} of the case"),
        [_, _, _, _, _, "debate-facilitator", "request", ..] => "open_debate".to_owned(),
        [.., kind] => (*kind).to_owned(),
        [] => String::new(),
    }
}

fn table(all: &[Stored]) -> BTreeMap<String, Line> {
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for message in all {
        for name in [name_of(message), TOGETHER.to_owned()] {
            let line = lines.entry(name).or_default();
            line.messages += 1;
            line.body_bytes += message.payload.len();
            line.all_bytes += all_bytes(message);
        }
    }
    lines
}

/// Decides the case: everything that is stored meanwhile.
async fn decide(installation: &TestInstallation, measured: &Measured) -> Vec<Stored> {
    let client = installation.client();
    let streams = [StreamKind::Messages, StreamKind::Events];
    let mut first = Vec::new();
    for kind in streams {
        let before = stored(client, kind, ">").await.unwrap();
        first.push(before.last().map_or(1, |last| last.sequence + 1));
    }
    let (mut agents, mut participants) = (Vec::new(), Vec::new());
    for (number, (score, recommendation)) in measured.findings.into_iter().enumerate() {
        let name = format!("bench-{number}");
        let mut finding = json!({
            "summary": "Measured.", "evidence": ["The Supplier may terminate at any time."]
        });
        if let Some(score) = score {
            finding["risk_score"] = score.into();
        }
        if let Some(recommendation) = recommendation {
            finding["recommendation"] = recommendation.into();
        }
        agents.push(Agent::steadfast(client, &name, finding, 0.8).await);
        participants.push(name);
    }
    let policy = json!({ "preset": "contract-review", "rounds_max": 1, "hear_answers": false });
    let payload = json!({ "action": "open_case", "parameters": {
        "case_id": measured.case, "policy": policy, "participants": participants,
        "task": { "type": "bench", "title": "Measured", "input": {} }
    } });
    Message::new(measured.case, "bench", "coordinator", "request", payload)
        .publish(client)
        .await;
    let case = CaseId::new(measured.case).unwrap();
    let decided = installation.decision(&case, PATIENCE).await;
    let outcomes = decided["decision"]["outcomes"].as_array();
    assert_eq!(outcomes.map(Vec::len), Some(2));
    installation.holds(PATIENCE).await;
    let mut all = Vec::new();
    for (kind, first) in streams.into_iter().zip(first) {
        all.extend(stored_from(client, kind, ">", first).await.unwrap());
    }
    all
}

fn print(measured: &Measured, lines: &BTreeMap<String, Line>) {
    println!(
        "{:38} {:>3} {:>7} {:>7}",
        measured.case, "n", "bodies", "all"
    );
    for (name, line) in lines {
        let Line {
            messages,
            body_bytes,
            all_bytes,
        } = line;
        println!("{name:38} {messages:>3} {body_bytes:>7} {all_bytes:>7}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_leaves_no_more_than_it_did() {
    let installation = TestInstallation::start_without_adapter().await;
    installation.free_openers().await;
    settled(installation.client(), PATIENCE).await.unwrap();
    let mut judged = Vec::new();
    for measured in [THREE_PARTIES, FIVE_PARTIES] {
        let lines = table(&decide(&installation, &measured).await);
        print(&measured, &lines);
        let Line {
            messages,
            body_bytes,
            ..
        } = lines[TOGETHER];
        judged.push((measured, messages, body_bytes));
    }
    for (measured, messages, bytes) in judged {
        let case = measured.case;
        assert!(messages <= measured.messages_max, "{case}: {messages}");
        assert!(bytes <= measured.bytes_max, "{case}: {bytes} bytes");
    }
}
