//! What stands as long as the installation, and remembers messages: agents, commitments and conversations.

use concord_events::{Heard, LeaseBounds, LoopBroken, Remembered, SilenceBounds};
use concord_wire::payload::track_record::Circumstances;
use concord_wire::payload::{
    AgentStatus, Card, CardAction, Commitment, CommitmentAct, ConflictType, Precedent,
    PrecedentMatter,
};
use concord_wire::{DebateId, Recipient};
use serde_json::Value;

use super::*;
use crate::activation::conversation::{DecidedMessage, WakeInput, WakeMachine};
use crate::activation::{Decision as Weighed, Decisions, LoopBounds, Outcome, Reason, WINDOW_MAX};
use crate::aggregates::agent::{AgentInput, AgentMachine};
use crate::aggregates::commitment::{CommitmentInput, CommitmentMachine, ReceivedCommitment};
use crate::aggregates::precedent::PrecedentMachine;
use crate::rules::size_budget::EVENT_BYTES_MAX;

/// So many that the messages that are remembered have room.
const EVERY: std::ops::Range<usize> = 100..120;
const NAMES: [&str; 4] = ["ann", "ben", "cleo", "dan"];

fn card(minimum: f64) -> Card {
    let schema = json!({ "type": "number", "minimum": minimum, "enum": [1.0, 0.1, minimum] });
    let action = CardAction {
        name: "price".into(),
        parameters: schema.as_object().cloned(),
        ..CardAction::default()
    };
    Card {
        actions: vec![action],
        ..Card::new(agent("ann"))
    }
}

fn register(card: Card) -> AgentInput {
    AgentInput::Register {
        card: Box::new(card),
        by: agent("ann"),
        request_id: Some(message("m-ask")),
        must_exist: false,
    }
}

fn status(status: AgentStatus) -> AgentInput {
    AgentInput::Status {
        agent_id: agent("ann"),
        status,
        why: format!("{status:?}"),
    }
}

fn agent_input() -> impl Strategy<Value = AgentInput> {
    let agent_id = agent("ann");
    (0..9u8, 0..3usize).prop_map(move |(kind, other)| match kind {
        0 | 1 => register(card([0.1, 2.5, 1e-7][other])),
        2 => AgentInput::Deregister {
            agent_id: agent_id.clone(),
            by: agent_id.clone(),
            why: "done".into(),
            request_id: None,
        },
        3 | 4 => AgentInput::Silent {
            agent_id: agent_id.clone(),
            about: token("t-1"),
            asked_by: [None, Some(agent("ben")), Some(agent("cleo"))][other].clone(),
            bounds: SilenceBounds {
                silent_max: 2,
                open_ms: 3,
                open_max_ms: 9,
                answer_ms_min: 0,
            },
        },
        5 => AgentInput::Answered {
            agent_id: agent_id.clone(),
        },
        6 => AgentInput::Retry {
            agent_id: agent_id.clone(),
        },
        _ => status(
            [
                AgentStatus::Available,
                AgentStatus::Busy,
                AgentStatus::Unavailable,
            ][other],
        ),
    })
}

fn commitment_input() -> impl Strategy<Value = CommitmentInput> {
    let acts = [
        CommitmentAct::Commit,
        CommitmentAct::Renew,
        CommitmentAct::Renew,
    ];
    let one = (0..9u8, 0..2usize, 0..3usize, any::<bool>(), 0..500u32);
    one.prop_map(move |(kind, from, act, in_case, number)| match kind {
        0 => CommitmentInput::Gone(agent(NAMES[from])),
        1 => CommitmentInput::Done(agent(NAMES[from]), "build".into()),
        _ => CommitmentInput::Said(Box::new(ReceivedCommitment {
            heard: Heard {
                agent_id: agent(NAMES[from]),
                message_id: message(&format!("c-{number}")),
                digest: crate::digest(number.to_string().as_bytes()),
            },
            case_id: in_case.then(case_id),
            said: Commitment {
                act: acts[act],
                resource: "build".into(),
                lease_ms: None,
                why: "release".into(),
            },
            bounds: LeaseBounds {
                lease_ms: 5_000,
                lease_max_ms: 20_000,
                per_agent: 2,
            },
        })),
    })
}

/// A message that wakes everybody else.
fn decided(number: u64, (from, to): (&str, &str), text: &str, content: Value) -> DecidedMessage {
    let woken = Weighed {
        outcome: Outcome::Wake,
        reason: Reason::Semantic("tax".into()),
        score: Some(0.1 + 0.2),
        runner_up: None,
    };
    let others = NAMES.into_iter().filter(|name| *name != from);
    DecidedMessage {
        said: Remembered {
            message_id: message(&format!("m-{number}")),
            from: agent(from),
            to: Recipient::new(to).unwrap(),
            message_type: "group_query".into(),
            at: after(number),
            reply_to: None,
            text: text.into(),
        },
        case_id: None,
        from_outside: false,
        message: content,
        decisions: Decisions {
            decisions: others.map(|name| (agent(name), woken.clone())).collect(),
            named_beyond: 0,
        },
        with_model: true,
        question: None,
        thread: "t-1".into(),
        bounds: Some(LoopBounds {
            depth_max: 5,
            window_ms: 60,
            pause_ms: 20,
        }),
        context_max: WINDOW_MAX,
    }
}

fn wake_input() -> impl Strategy<Value = WakeInput> {
    (0..9u8, 0..4usize, 0..5usize, 0..900u64).prop_map(|(kind, from, to, number)| {
        let to = NAMES.get(to).copied().unwrap_or("_all");
        let one = |from| decided(number, (from, to), "And?", json!({ "a": 1 }));
        match kind {
            0 => WakeInput::BreakLoop(Box::new(LoopBroken {
                thread: "t-1".into(),
                case_id: None,
                message_id: message("m-x"),
                from: agent(NAMES[from]),
                to: agent("eve"),
                depth: 65,
                window_ms: 60_000,
                at: after(number),
                until: after(number + 10),
            })),
            // Somebody joins.
            1 => {
                let mut briefing = one("coordinator");
                briefing.said.message_type = "session_briefing".into();
                WakeInput::Message(Box::new(briefing))
            }
            2 => WakeInput::Message(Box::new(DecidedMessage {
                from_outside: true,
                ..one(NAMES[from])
            })),
            _ => WakeInput::Message(Box::new(one(NAMES[from]))),
        }
    })
}

/// How a debate ended, of which an entry may come again, later, and with what proved right.
fn precedent_input() -> impl Strategy<Value = Precedent> {
    (0..90u32, 0..200u64, 1..6u8, any::<bool>()).prop_map(|(debate, at, level, has_matter)| {
        let matter = PrecedentMatter {
            kind: ConflictType::RiskScoreDisagreement,
            subject: format!("risk score {}", debate % 7),
            policy: "default".into(),
            domain: Some("tax".into()),
            circumstances: Circumstances::default(),
        };
        Precedent {
            debate_id: DebateId::new(format!("d-{debate}")).unwrap(),
            topic: "Risk score spread: 35-80".into(),
            position: format!("{level}"),
            level,
            status: "vote".into(),
            at: after(at),
            matter: has_matter.then_some(matter),
            proved: None,
        }
    })
}

/// A precedent of the score, of which every case has a debate.
#[test]
fn a_precedent_of_many_years_is_loaded_from_its_last_state() {
    let mut inputs = Vec::new();
    for number in 0..3_000u32 {
        inputs.push(Precedent {
            debate_id: DebateId::new(format!("d-{number}")).unwrap(),
            topic: "Risk score spread: 35-80, ".repeat(20),
            position: "80, because of the debts. ".repeat(20),
            level: 3,
            status: "vote".into(),
            at: after(u64::from(number)),
            matter: None,
            proved: None,
        });
    }
    let (versioned, records) = life::<PrecedentMachine>(&inputs, 64);
    assert_eq!(records.len(), 3_000);
    let new = from_state(records, form::<PrecedentMachine>());
    assert!(new.len() <= 64, "{}", new.len());
    let mut other = Versioned::<PrecedentMachine>::default();
    assert!(catch_up(&mut other, new));
    assert_eq!(other.state, versioned.state);
    assert!(json_bytes(&*other.state) < PrecedentMachine::state_bytes_max(&other.state));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_agent_is_known_from_its_last_state(inputs in vec(agent_input(), 0..400), every in EVERY, known in 0..150usize) {
        check::<AgentMachine>(&inputs, every, known)?;
    }

    #[test]
    fn commitments_are_known_from_their_last_state(inputs in vec(commitment_input(), 0..400), every in EVERY, known in 0..150usize) {
        check::<CommitmentMachine>(&inputs, every, known)?;
    }

    #[test]
    fn a_conversation_is_known_from_its_last_state(inputs in vec(wake_input(), 0..300), every in EVERY, known in 0..150usize) {
        check::<WakeMachine>(&inputs, every, known)?;
    }

    #[test]
    fn a_precedent_is_known_from_its_last_state(inputs in vec(precedent_input(), 0..400), every in EVERY, known in 0..150usize) {
        check::<PrecedentMachine>(&inputs, every, known)?;
    }

    /// The schemas of a card have numbers with fractions.
    #[test]
    fn a_card_is_carried_to_the_last_digit(minimum in any::<f64>().prop_filter("a number of JSON", |one| one.is_finite())) {
        let changes = [AgentStatus::Busy, AgentStatus::Available];
        let changes = changes.map(status).into_iter().cycle().take(9);
        let inputs: Vec<AgentInput> = [register(card(minimum))].into_iter().chain(changes).collect();
        let (versioned, records) = life::<AgentMachine>(&inputs, 8);
        prop_assert_eq!(replay::rebuild::<AgentMachine>(&records).1, vec![]);
        let new = from_state(records, form::<AgentMachine>());
        prop_assert!(new.len() < 3, "it is not among them that it registered");
        let mut other = Versioned::<AgentMachine>::default();
        prop_assert!(catch_up(&mut other, new));
        let text = |of: &Versioned<AgentMachine>| serde_json::to_string(&of.state.card).unwrap();
        prop_assert_eq!(text(&other), text(&versioned));
    }
}

/// The largest event with a state of a conversation in which everybody writes so many characters, each of which takes six bytes as JSON. The last
/// messages are as large as they can be.
fn largest_with_state(characters: usize) -> Option<usize> {
    let text = "\u{1}".repeat(characters);
    let content = json!({ "content": "x".repeat(262_100) });
    let one = |number: u64| {
        let (from, to) = match number % 4 {
            0 => ("ann", "ben"),
            1 => ("cleo", "dan"),
            _ => ("ann", "_all"),
        };
        let content = if number < 1_000 {
            json!({})
        } else {
            content.clone()
        };
        WakeInput::Message(Box::new(decided(number, (from, to), &text, content)))
    };
    let inputs: Vec<WakeInput> = (0..1_100).map(one).collect();
    let (_, records) = life::<WakeMachine>(&inputs, 64);
    let with_state = records.iter().filter(|one| one.meta.state.is_some());
    with_state.map(|one| one.encode().unwrap().len()).max()
}

#[test]
fn an_event_of_a_conversation_has_room_for_the_state() {
    // What takes more than is carried has no state: the first that has one is the largest.
    let lengths = [1_024, 768, 640, 512, 448, 384, 320, 256];
    let largest = lengths.into_iter().find_map(largest_with_state);
    assert!(
        largest.is_some_and(|bytes| (500_000..EVENT_BYTES_MAX).contains(&bytes)),
        "{largest:?}"
    );
}

/// A lease that is renewed for hours, and the remembered messages with it.
#[test]
fn a_lease_that_is_renewed_for_ever_is_loaded_from_its_last_state() {
    let said = |number: u32| {
        CommitmentInput::Said(Box::new(ReceivedCommitment {
            heard: Heard {
                agent_id: agent("ann"),
                message_id: message(&format!("01926e4f-b1a5-7cc0-8a00-{number:012}")),
                digest: crate::digest(number.to_string().as_bytes()),
            },
            case_id: None,
            said: Commitment {
                act: CommitmentAct::Commit,
                resource: "deploy/production".into(),
                lease_ms: None,
                why: String::new(),
            },
            bounds: LeaseBounds {
                lease_ms: 60_000,
                lease_max_ms: 60_000,
                per_agent: 2,
            },
        }))
    };
    let inputs: Vec<CommitmentInput> = (0..1_500).map(said).collect();
    let (versioned, records) = life::<CommitmentMachine>(&inputs, 64);
    assert_eq!(records.len(), 1_500);
    let new = from_state(records, form::<CommitmentMachine>());
    assert!(new.len() <= 320, "{}", new.len());
    let mut other = Versioned::<CommitmentMachine>::default();
    assert!(catch_up(&mut other, new));
    assert_eq!(other.state, versioned.state);
    let bytes = json_bytes(&*other.state);
    let counted = CommitmentMachine::state_bytes_max(&other.state);
    assert!((64 << 10..counted).contains(&bytes), "{bytes}, {counted}");
}
