//! Whatever is said, in whatever order and however often: no machine fails, every fact keeps its
//! word ([`Story`] looks at each), the same facts give the same state, and time alone brings every
//! case and debate to its end.

use std::collections::BTreeSet;

use concord_events::Aggregate;
use concord_events::{AggregateEvent, Deadline, FiredBy};
use concord_wire::payload::{Answer, Conflict, ConflictType, Status};
use concord_wire::policy::{Policy, VoteRule};
use concord_wire::{Timestamp, Token};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::aggregates::case::{CaseInput, CaseMachine, Phase};
use crate::aggregates::deadline::{DeadlineMachine, Fire};
use crate::aggregates::debate::{AnswerMessage, DebateInput, DebateMachine};
use crate::aggregates::detection::DetectionMachine;
use crate::assurance::replay;
use crate::effect;
use crate::fixtures::*;
use crate::machine::Machine;

mod consumers;

const NAMES: [&str; 4] = ["ann", "ben", "cyd", "zoe"];

fn any_policy() -> impl Strategy<Value = Policy> {
    let rules = [
        VoteRule::Confidence,
        VoteRule::Majority,
        VoteRule::Reconcile,
        VoteRule::Unanimous,
    ];
    let limits = (0u32..4, 0u32..4, 2u32..5, 1u32..40, 2u32..4, 0u32..4);
    (
        limits,
        1u64..100,
        0u64..100,
        1u64..100,
        proptest::sample::select(rules.to_vec()),
    )
        .prop_map(
            |(
                (conflicts, rounds, messages, tokens, answers, aside),
                finding_ms,
                more_ms,
                answer_ms,
                vote_rule,
            )| Policy {
                conflicts_max: conflicts,
                rounds_max: rounds,
                messages_per_round_max: messages,
                tokens_per_message_max: tokens,
                answers_min: answers,
                set_aside_max: aside,
                finding_timeout_ms: finding_ms,
                case_timeout_ms: finding_ms + more_ms,
                answer_timeout_ms: answer_ms,
                vote_rule,
                // Some debates begin with the parties writing into memory.
                memory_sync_ms: answer_ms % 3,
                ..policy()
            },
        )
}

fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&NAMES)
}

/// A message id among few, so that many are used twice.
fn id() -> impl Strategy<Value = String> {
    (0u32..12).prop_map(|n| format!("m-{n}"))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0.0..=100.0f64).prop_map(|n| json!(n)),
        (0u32..3).prop_map(|n| json!(n * 30)),
        proptest::sample::select(vec!["sign", "Reject.", "60", "yes", ""])
            .prop_map(|text| json!(text)),
        any::<bool>().prop_map(|flag| json!(flag)),
        any::<f64>()
            .prop_filter("JSON has no infinity", |n| n.is_finite())
            .prop_map(|n| json!(n)),
        Just(json!({"value": 3, "unit": "days"})),
        Just(json!([1, null])),
    ]
}

fn any_conflict() -> impl Strategy<Value = Conflict> {
    let held = proptest::collection::vec((value(), 0.0..=1.0f64), 2..4);
    (
        0u32..3,
        proptest::sample::select(&ConflictType::DETECTED),
        held,
    )
        .prop_map(|(n, kind, held)| {
            let held: Vec<_> = NAMES
                .into_iter()
                .zip(held)
                .map(|(name, (value, sure))| (name, value, sure))
                .collect();
            let subject = match kind {
                ConflictType::RiskScoreDisagreement => "risk_score",
                ConflictType::RecommendationConflict => "recommendation",
                _ => "Term",
            };
            conflict(&format!("d-{n}"), kind, subject, &held)
        })
}

fn any_finding() -> impl Strategy<Value = Value> {
    let advice = proptest::sample::select(vec!["sign", "reject", ""]);
    (proptest::option::of(0.0..=100.0f64), proptest::option::of(advice), any::<bool>()).prop_map(
        |(score, advice, present)| {
            json!({"risk_score": score, "recommendation": advice, "clauses": [{"type": "Term", "present": present}]})
        },
    )
}

/// One of the deadlines that are open now, or one that is not.
#[derive(Debug, Clone)]
enum Due {
    Open(usize),
    Other(&'static str, u64),
}

fn due() -> impl Strategy<Value = Due> {
    let names = proptest::sample::select(vec!["findings", "case", "round-1", "round-2", "lunch"]);
    prop_oneof![
        (0usize..2).prop_map(Due::Open),
        (names, 0u64..200).prop_map(|(name, at)| Due::Other(name, at))
    ]
}

impl Due {
    fn among(&self, open: &[Deadline]) -> (String, Timestamp) {
        match self {
            Self::Open(place) if !open.is_empty() => {
                let deadline = &open[place % open.len()];
                (deadline.name.to_string(), deadline.due)
            }
            Self::Open(_) => ("round-1".into(), start()),
            Self::Other(name, at) => ((*name).to_owned(), after(*at)),
        }
    }
}

#[derive(Debug, Clone)]
enum CaseStep {
    Input(CaseInput),
    Due(Due),
}

fn case_step() -> impl Strategy<Value = CaseStep> {
    let open =
        (1usize..4, any_policy()).prop_map(|(count, policy)| open_case(&NAMES[..count], policy));
    let found = (name(), id(), 0.0..=1.0f64, any_finding()).prop_map(|(name, id, sure, found)| {
        CaseInput::Finding(Box::new(received(name, &id, sure, found)))
    });
    let conflicts = || proptest::collection::vec(any_conflict(), 0..3);
    let detected =
        (conflicts(), conflicts()).prop_map(|(debated, deferred)| detected(debated, deferred));
    let statuses = vec![Status::Discussion, Status::Vote, Status::Unresolved];
    let resolved = (
        any_conflict(),
        proptest::sample::select(statuses),
        proptest::option::of(value()),
    )
        .prop_map(|(conflict, status, chosen)| {
            CaseInput::Resolved(Box::new(outcome(&conflict, status, chosen)))
        });
    prop_oneof![
        1 => open.prop_map(CaseStep::Input),
        6 => found.prop_map(CaseStep::Input),
        2 => detected.prop_map(CaseStep::Input),
        2 => resolved.prop_map(CaseStep::Input),
        2 => due().prop_map(CaseStep::Due),
    ]
}

fn opening() -> impl Strategy<Value = CaseStep> {
    (1usize..4, any_policy())
        .prop_map(|(count, policy)| CaseStep::Input(open_case(&NAMES[..count], policy)))
}

fn case_steps() -> impl Strategy<Value = Vec<(CaseStep, u64)>> {
    let rest = proptest::collection::vec((case_step(), 0u64..300), 0..25);
    // Mostly the case is opened first; without that everything is refused.
    let first = prop_oneof![9 => opening(), 1 => case_step()];
    (first, rest).prop_map(|(first, rest)| std::iter::once((first, 0)).chain(rest).collect())
}

fn play_case(steps: &[(CaseStep, u64)]) -> Story<CaseMachine> {
    let mut story = Story::of("c-1");
    for (place, (step, now)) in steps.iter().enumerate() {
        let context = said(&format!("x-{place}"), *now);
        match step {
            CaseStep::Input(input) => story.hears(&context, input),
            CaseStep::Due(due) => {
                let (name, due) = due.among(&CaseMachine::deadlines(story.state()));
                story.hears(&context, &case_due(&name, due))
            }
        };
    }
    story
}

/// Lets every open deadline elapse, the earliest first, and says how many did.
fn let_time_pass<M: Machine>(
    story: &mut Story<M>,
    input: impl Fn(&Token, &Deadline) -> M::Input,
) -> usize {
    for count in 0..100 {
        let open = M::deadlines(story.state());
        let Some(first) = open.iter().min_by_key(|deadline| deadline.due) else {
            return count;
        };
        let context = crate::Context::of_event(first.due, message(&format!("t-{count}")));
        let heard = story.hears(&context, &input(&story.id.clone(), first));
        assert!(
            !heard.contains(' '),
            "an open deadline is acted on: {heard}"
        );
    }
    panic!("time does not end it")
}

fn replays<M: Machine>(story: &Story<M>) {
    let (rebuilt, differences) = replay::rebuild::<M>(&story.records);
    assert_eq!(differences, []);
    assert_eq!(&*rebuilt.state, story.state());
    assert_eq!(rebuilt.sequences, story.versioned.sequences);
}

#[derive(Debug, Clone)]
enum DebateStep {
    Open(Box<(Conflict, Policy)>),
    Answer {
        given: Box<AnswerMessage>,
        to_question: Option<usize>,
    },
    Due(Due),
}

fn debate_opening() -> impl Strategy<Value = DebateStep> {
    (any_conflict(), any_policy()).prop_map(|opening| DebateStep::Open(Box::new(opening)))
}

fn any_answer() -> impl Strategy<Value = Answer> {
    (
        proptest::option::of(proptest::sample::select(vec![
            "sign",
            "60",
            "Something new",
        ])),
        proptest::option::of(value()),
        proptest::option::of(0.0..=1.0f64),
        proptest::option::of(any::<bool>()),
        proptest::option::of(name()),
        proptest::sample::select(vec![
            "",
            "because",
            "because it says so in so many words that this is too long",
        ]),
    )
        .prop_map(
            |(words, value, confidence, agrees_with_peer, peer, reasoning)| Answer {
                revised_position: words.map(Into::into),
                value,
                confidence,
                agrees_with_peer,
                agrees_with: peer.map(agent),
                reasoning: reasoning.into(),
                evidence: vec![],
                answered_by: None,
            },
        )
}

fn debate_step() -> impl Strategy<Value = DebateStep> {
    let kind = proptest::sample::select(vec!["agreement", "disagreement", "revision"]);
    let round = proptest::option::of(0u32..4);
    let answer = (
        name(),
        id(),
        kind,
        any_answer(),
        round,
        proptest::option::of(0usize..4),
    )
        .prop_map(
            |(name, id, kind, answer, round, to_question)| DebateStep::Answer {
                given: Box::new(AnswerMessage {
                    round,
                    ..given(name, &id, kind, answer)
                }),
                to_question,
            },
        );
    prop_oneof![1 => debate_opening(), 8 => answer, 2 => due().prop_map(DebateStep::Due)]
}

fn debate_steps() -> impl Strategy<Value = Vec<(DebateStep, u64)>> {
    let rest = proptest::collection::vec((debate_step(), 0u64..300), 0..25);
    let first = prop_oneof![9 => debate_opening(), 1 => debate_step()];
    (first, rest).prop_map(|(first, rest)| std::iter::once((first, 0)).chain(rest).collect())
}

fn play_debate(steps: &[(DebateStep, u64)]) -> Story<DebateMachine> {
    let mut story = Story::<DebateMachine>::of("d-1");
    for (place, (step, now)) in steps.iter().enumerate() {
        let context = said(&format!("x-{place}"), *now);
        let input = match step {
            DebateStep::Open(opening) => open_debate(opening.0.clone(), opening.1.clone()),
            DebateStep::Answer { given, to_question } => {
                let question = to_question.and_then(|n| Some(story.records.get(n)?.sequence));
                answers(AnswerMessage {
                    question_sequence: question,
                    ..(**given).clone()
                })
            }
            DebateStep::Due(due) => {
                let (name, due) = due.among(&DebateMachine::deadlines(story.state()));
                DebateInput::Elapsed(elapsed(Aggregate::Debate, &story.id, &name, due))
            }
        };
        story.hears(&context, &input);
    }
    story
}

fn fires() -> impl Strategy<Value = Vec<(Fire, u64)>> {
    let fired_by = proptest::sample::select(vec![FiredBy::Scheduler, FiredBy::Watchdog]);
    let fire = (0u64..5, fired_by).prop_map(|(due, fired_by)| Fire {
        aggregate: Aggregate::Case,
        id: token("c-1"),
        deadline: Deadline {
            name: token("case"),
            due: after(due),
        },
        fired_by,
    });
    proptest::collection::vec((fire, 0u64..6), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_case_keeps_its_word_and_time_decides_it(steps in case_steps()) {
        let mut story = play_case(&steps);
        replays(&story);
        let elapsed = let_time_pass(&mut story, |_, deadline| case_due(deadline.name.as_str(), deadline.due));
        prop_assert!(elapsed <= 2);
        let expected = if story.state().opened.is_some() { Phase::Decided } else { Phase::New };
        prop_assert_eq!(story.state().phase, expected);
        replays(&story);
    }

    #[test]
    fn a_debate_keeps_its_word_and_time_resolves_it(steps in debate_steps()) {
        let mut story = play_debate(&steps);
        replays(&story);
        let elapsed = let_time_pass(&mut story, |id, deadline| {
            DebateInput::Elapsed(crate::fixtures::elapsed(Aggregate::Debate, id, deadline.name.as_str(), deadline.due))
        });
        if let Some(opened) = story.state().opened.clone() {
            let outcome = story.state().outcome.clone().expect("resolved");
            let rounds_max = opened.policy.rounds_max as usize;
            prop_assert!(outcome.rounds.len() <= rounds_max && elapsed <= rounds_max.max(1) + usize::from(opened.sync_until.is_some()));
            prop_assert_eq!(outcome.status == Status::Unresolved, outcome.resolution.is_none());
        }
        replays(&story);
        prop_assert_eq!(replay::recount::<DebateMachine>(&story.records), vec![]);
    }

    #[test]
    fn a_detection_keeps_its_word(
        found in proptest::collection::vec((any_finding(), 0.0..=1.0f64), 0..4), rules in any_policy(),
    ) {
        let mut story = Story::<DetectionMachine>::of("c-1");
        let findings = NAMES.iter().zip(found)
            .map(|(name, (found, sure))| received(name, &format!("m-{name}"), sure, found)).collect();
        let input = detection_of(findings, rules.clone());
        prop_assert_eq!(story.hears(&happened("e-1", 0), &input), "completed");
        prop_assert_eq!(story.hears(&happened("e-2", 0), &input), "ignored: already_done");
        prop_assert!(story.state().detected.clone().unwrap().debated.len() <= rules.conflicts_max as usize);
        replays(&story);
    }

    #[test]
    fn a_deadline_keeps_its_word(fires in fires()) {
        let mut story = Story::<DeadlineMachine>::of("x");
        for (fire, now) in &fires {
            story.hears(&said("m", *now), fire);
        }
        replays(&story);
        prop_assert_eq!(story.records.len(), story.state().elapsed.len(), "once for each instant");
    }
}
