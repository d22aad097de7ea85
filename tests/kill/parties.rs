//! The challenges of the ladder's storm, and the messages of challengers, challenged and experts, which follow from the message
//! that they answer alone.

use concord_testkit::{Message, ReceivedMessage};
use serde_json::{Value, json};

use crate::kill::cases::chance;

/// The number of challenges, spread evenly over the cases.
pub(crate) const CHALLENGES: usize = 150;
/// The number of challenges that come first: people rule on them, and so `sure` and `rash` get the track records by which
/// later ones are mediated.
pub(crate) const FIRST: usize = 60;
/// The number of cases.
pub(crate) const CASES: usize = 20;
/// The gate of every case.
pub(crate) const GATE: &str = "valuation";
/// The person who reviews at the gates.
pub(crate) const REVIEWER: &str = "gail";
/// Everyone who speaks. The analysts come first, then the experts.
pub(crate) const SPEAKERS: [&str; 11] = [
    "ann", "ben", "cyd", "dan", "sure", "rash", "eve", "fay", "hal", "gil", "ida",
];
/// The speakers that take part in the cases; one more participant is hosted by the agent adapter.
const ANALYSTS: &[&str] = SPEAKERS.split_at(6).0;
/// The experts and what they know about. `eve` and `fay` rule at once, `hal` twice; `gil` never does, `ida` too late.
pub(crate) const EXPERTS: [(&str, &str); 5] = [
    ("eve", "valuation"),
    ("fay", "valuation"),
    ("hal", "valuation"),
    ("gil", "law"),
    ("ida", "law"),
];

/// The id of a case by number.
pub(crate) fn case_id(number: usize) -> String {
    format!("ladder-{number}")
}

/// The request to open a case. Of the times only those of the ladder pass; a minute takes a second.
pub(crate) fn opening(number: usize) -> Message {
    let case = case_id(number);
    let participants: Vec<&str> = ANALYSTS.iter().copied().chain(["hosted"]).collect();
    let minutes = |minutes: u64| minutes * 60_000;
    let times = json!({
        "acknowledge_ms": minutes(3), "evidence_ms": minutes(5), "evaluation_ms": minutes(5), "opinion_ms": minutes(2),
        "mediation_ms": minutes(6), "person_ms": minutes(12), "provisional_ms": minutes(4),
    });
    let policy = json!({
        "finding_timeout_ms": 3_600_000, "case_timeout_ms": 7_200_000,
        "ladder": { "times": times, "time_scale": 60, "challenges_max": CHALLENGES.div_ceil(CASES),
                    "challenges_per_challenger": 16, "redebates_max": 1 },
    });
    let parameters = json!({
        "case_id": case, "participants": participants, "policy": policy, "gates": [GATE],
        "task": { "type": "test", "title": case },
    });
    let request = json!({ "action": "open_case", "parameters": parameters });
    Message::new("_", "opener", "coordinator", "request", request)
        .with("/message_id", format!("open-{case}"))
}

/// A challenge by number.
pub(crate) fn challenge(number: usize) -> Message {
    let one = ANALYSTS[number % 4];
    let (challenger, challenged, domain, priority) = match number % 6 {
        _ if number < FIRST => ("sure", "rash", "valuation", "valuation"),
        0 | 1 => ("sure", "rash", "valuation", "critical-path"),
        2 | 3 => (one, ANALYSTS[(number + 1) % 4], "valuation", "valuation"),
        4 => (one, ANALYSTS[(number + 2) % 4], "law", "valuation"),
        _ => (one, ANALYSTS[(number + 3) % 4], "law", "supporting"),
    };
    let challenge = json!({
        "challenge_id": format!("ch-{number}"), "challenger": challenger, "challenged": challenged,
        "disputed_finding": format!("Claim {number}"), "challenge_basis": "The figures do not support it.",
        "required_evidence": ["Historical data"], "priority": priority, "metric": "operating margin",
        "challenged_value": 20 + number % 10, "position": "Less", "value": 10, "domain": domain,
    });
    let case = case_id(number % CASES);
    let message = Message::new(&case, challenger, "coordinator", "challenge", challenge);
    message.with("/message_id", format!("challenge-{number}"))
}

/// The course of a challenge between parties that have no rule of their own.
enum Manner {
    /// Evidence is given and accepted.
    Settled,
    /// Nobody acknowledges it.
    Unacknowledged,
    /// It is acknowledged, and nothing follows.
    Unproven,
    /// Evidence is given and rejected.
    Rejected,
    /// Evidence is given, and the challenger says nothing.
    Unevaluated,
}

/// The manner of a debate, which follows from its id.
fn manner(debate: &str) -> Manner {
    match chance(&[debate, "manner"], 6) {
        0 | 1 => Manner::Settled,
        2 => Manner::Unacknowledged,
        3 => Manner::Unproven,
        4 => Manner::Rejected,
        _ => Manner::Unevaluated,
    }
}

/// The answers of one of the speakers to a message.
pub(crate) fn answers(heard: &ReceivedMessage) -> Vec<Message> {
    let asked = heard.body["message_id"].as_str().unwrap_or_default();
    let answers = match heard.kind() {
        "task_assignment" => {
            let finding = json!({ "summary": "What all found.", "risk_score": 50, "recommendation": "negotiate" });
            vec![heard.finding(finding, 0.8)]
        }
        "challenge" => challenged(heard),
        "question" => challenger(heard),
        "request" if heard.payload()["action"] == "rule" => expert(heard),
        _ => Vec::new(),
    };
    let named = answers.into_iter().enumerate();
    named
        .map(|(place, answer)| {
            answer.with("/message_id", format!("{asked}-{}-{place}", heard.agent))
        })
        .collect()
}

/// A message to the facilitator in the debate of another message.
fn in_debate(heard: &ReceivedMessage, kind: &str, payload: Value) -> Message {
    let debate = heard.body["correlation_id"].clone();
    Message::new(
        heard.case(),
        &heard.agent,
        "debate-facilitator",
        kind,
        payload,
    )
    .with("/correlation_id", debate)
}

/// The answers of a challenged agent.
fn challenged(heard: &ReceivedMessage) -> Vec<Message> {
    if heard.agent == "rash" {
        return Vec::new();
    }
    let acknowledgement = || in_debate(heard, "acknowledgement", json!({}));
    match manner(heard.body["correlation_id"].as_str().unwrap_or_default()) {
        Manner::Unacknowledged => Vec::new(),
        Manner::Unproven => vec![acknowledgement()],
        Manner::Settled | Manner::Rejected | Manner::Unevaluated => {
            let evidence = json!({ "statement": "As reported.", "evidence": ["10-K, page 45"] });
            vec![acknowledgement(), in_debate(heard, "evidence", evidence)]
        }
    }
}

/// The answers of a challenger to a question.
fn challenger(heard: &ReceivedMessage) -> Vec<Message> {
    match manner(heard.payload()["debate_id"].as_str().unwrap_or_default()) {
        Manner::Settled => {
            vec![heard.answer("agreement", json!({ "reasoning": "That settles it." }))]
        }
        Manner::Rejected => vec![heard.answer(
            "disagreement",
            json!({ "reasoning": "That is last year's." }),
        )],
        _ => Vec::new(),
    }
}

/// The rulings of an expert.
fn expert(heard: &ReceivedMessage) -> Vec<Message> {
    let parameters = &heard.payload()["parameters"];
    let held_by_sure = |position: &&Value| position.to_string().contains("\"agent_id\":\"sure\"");
    let positions = parameters["brief"]["positions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let chosen = positions
        .iter()
        .find(held_by_sure)
        .or(positions.first())
        .map(|one| one["position_id"].clone());
    let ruling = || {
        ruling(
            heard.case(),
            &heard.agent,
            &parameters["debate_id"],
            &parameters["digest"],
            &chosen,
        )
    };
    match heard.agent.as_str() {
        "eve" | "fay" => vec![ruling()],
        "hal" => vec![ruling(), ruling()],
        _ => Vec::new(),
    }
}

fn ruling(
    case: &str,
    expert: &str,
    debate: &Value,
    digest: &Value,
    position: &Option<Value>,
) -> Message {
    let ruling = json!({
        "debate_id": debate, "digest": digest, "position_id": position, "rationale": "The filing says so.",
    });
    Message::new(case, expert, "debate-facilitator", "ruling", ruling)
        .with("/correlation_id", debate.clone())
}

/// The ruling of an expert whose time is over.
pub(crate) fn late_ruling(case: &str, expert: &str, debate: &str, digest: &Value) -> Message {
    let ruling = ruling(case, expert, &json!(debate), digest, &Some(json!("p1")));
    ruling.with("/message_id", format!("late-{debate}"))
}

/// Whether a provisional decision is reviewed at once, or only when it waits for that.
pub(crate) fn is_reviewed_at_once(debate: &str) -> bool {
    chance(&[debate, "when"], 2) == 0
}

/// The review of a provisional decision; what was debated again is not debated a third time.
pub(crate) fn review(case: &str, debate: &str, again: bool) -> Message {
    let action =
        ["confirm", "override", "redebate"][chance(&[debate, "review"], if again { 2 } else { 3 })];
    let mut review = json!({ "gate": GATE, "action": action, "debate_id": debate, "rationale": "Management guidance." });
    if action == "override" {
        review["position"] = json!("In between");
        review["value"] = json!(15);
    }
    reviewed(case, review, &format!("review-{debate}"))
}

/// Lets a case pass its gate.
pub(crate) fn pass(case: &str) -> Message {
    reviewed(
        case,
        json!({ "gate": GATE, "action": "pass", "rationale": "All is reviewed." }),
        &format!("pass-{case}"),
    )
}

fn reviewed(case: &str, review: Value, id: &str) -> Message {
    Message::new(case, REVIEWER, "coordinator", "review", review).with("/message_id", id)
}
