use concord_wire::payload::{Conflict, ConflictType, SetAsideReason, Status};
use concord_wire::policy::Policy;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::effect::Effect;
use crate::fixtures::*;
use crate::machine::Versioned;

mod challenging;
pub(crate) mod confirming;
mod endings;
pub(crate) mod flags;
pub(crate) mod gates;
pub(crate) mod joining;
mod opening;
mod outcome;
mod own_ids;
pub(crate) mod versions;

type CaseStory = Story<CaseMachine>;

const FINDINGS_DUE: u64 = 30_000;
const CASE_DUE: u64 = 900_000;

fn risk() -> Conflict {
    let held = [("ann", json!(30), 0.8), ("ben", json!(80), 0.6)];
    conflict(
        "d-risk",
        ConflictType::RiskScoreDisagreement,
        "risk_score",
        &held,
    )
}

fn advice() -> Conflict {
    let held = [("ann", json!("sign"), 0.8), ("ben", json!("reject"), 0.6)];
    conflict(
        "d-advice",
        ConflictType::RecommendationConflict,
        "recommendation",
        &held,
    )
}

fn resolved(conflict: &Conflict) -> CaseInput {
    let chosen = conflict.positions[0].value.clone();
    CaseInput::Resolved(Box::new(crate::fixtures::outcome(
        conflict,
        Status::Vote,
        chosen,
    )))
}

/// A case of ann and ben in the given phase, two conflicts being debated from `Deliberating` on.
fn story(phase: Phase) -> CaseStory {
    let mut story = CaseStory::of("c-1");
    if phase >= Phase::Collecting {
        assert_eq!(
            story.hears(&said("m-open", 0), &open_case(&["ben", "ann"], policy())),
            "opened"
        );
    }
    if phase >= Phase::Detecting {
        let ann = finding("ann", "m-ann", json!({"risk_score": 30}));
        let ben = finding("ben", "m-ben", json!({"risk_score": 80}));
        assert_eq!(story.hears(&said("m-ann", 10), &ann), "finding_recorded");
        assert_eq!(story.hears(&said("m-ben", 20), &ben), "findings_closed");
    }
    if phase >= Phase::Deliberating {
        let both = detected(vec![risk(), advice()], vec![]);
        assert_eq!(
            story.hears(&happened("e-det", 30), &both),
            "conflicts_received"
        );
    }
    if phase >= Phase::Decided {
        assert_eq!(
            story.hears(&happened("e-r1", 40), &resolved(&risk())),
            "debate_settled"
        );
        assert_eq!(
            story.hears(&happened("e-r2", 50), &resolved(&advice())),
            "decided"
        );
    }
    assert_eq!(story.state().phase, phase);
    story
}

const UNKNOWN: &str = "refused: /case_id";
const OTHER: &str = "refused: /payload/parameters/case_id";
const CLOSED: &str = "ignored: deadline_not_open";
const DONE: &str = "ignored: already_done";
const STRANGER: &str = "refused: /from_agent";

/// For each phase what follows from each input of the table of the module.
const TABLE: [(Phase, [&str; 9]); 5] = [
    (
        Phase::New,
        [
            "opened", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN,
        ],
    ),
    (
        Phase::Collecting,
        [
            OTHER,
            "finding_recorded",
            STRANGER,
            UNKNOWN,
            UNKNOWN,
            "debate_settled",
            "findings_closed",
            "decided",
            CLOSED,
        ],
    ),
    (
        Phase::Detecting,
        [
            OTHER,
            "finding_set_aside",
            STRANGER,
            "conflicts_received",
            "decided",
            "debate_settled",
            CLOSED,
            "decided",
            CLOSED,
        ],
    ),
    (
        Phase::Deliberating,
        [
            OTHER,
            "finding_set_aside",
            STRANGER,
            DONE,
            DONE,
            "debate_settled",
            CLOSED,
            "decided",
            CLOSED,
        ],
    ),
    (
        Phase::Decided,
        [
            OTHER,
            "finding_set_aside",
            STRANGER,
            DONE,
            DONE,
            DONE,
            CLOSED,
            CLOSED,
            CLOSED,
        ],
    ),
];

#[test]
fn every_cell_of_the_table() {
    let inputs: [(&str, CaseInput); 9] = [
        ("open otherwise", open_case(&["ann"], policy())),
        ("first finding", finding("ann", "m-1", json!({}))),
        ("finding of a stranger", finding("zoe", "m-2", json!({}))),
        ("conflicts", detected(vec![risk(), advice()], vec![])),
        ("no conflicts", detected(vec![], vec![])),
        ("a debate's end", resolved(&risk())),
        ("findings due", case_due(FINDINGS, after(FINDINGS_DUE))),
        ("case due", case_due(CASE, after(CASE_DUE))),
        ("findings due at another time", case_due(FINDINGS, after(1))),
    ];
    for (phase, row) in TABLE {
        for ((what, input), expected) in inputs.iter().zip(row) {
            let mut story = story(phase);
            assert_eq!(
                story.hears(&said("m-new", CASE_DUE), input),
                expected,
                "{phase:?}: {what}"
            );
        }
    }
}

#[test]
fn a_message_counts_once_and_ids_are_their_senders_own() {
    for phase in [Phase::Detecting, Phase::Deliberating, Phase::Decided] {
        let mut story = story(phase);
        for (what, input, expected) in [
            (
                "the same message",
                finding("ann", "m-ann", json!({"risk_score": 30})),
                "ignored: repetition",
            ),
            (
                "other contents",
                finding("ann", "m-ann", json!({"risk_score": 31})),
                "refused: /message_id",
            ),
            (
                "ben under ann's id",
                finding("ben", "m-ann", json!({"risk_score": 30})),
                "finding_set_aside",
            ),
            (
                "ann once more",
                finding("ann", "m-ann-2", json!({"risk_score": 31})),
                "finding_set_aside",
            ),
            (
                "and that repeated",
                finding("ann", "m-ann-2", json!({"risk_score": 31})),
                "ignored: repetition",
            ),
        ] {
            assert_eq!(
                story.hears(&said("m-x", 60), &input),
                expected,
                "{phase:?}: {what}"
            );
        }
        assert_eq!(story.state().findings.len(), 2);
        assert_eq!(
            story.state().findings[0].finding.risk_score,
            Some(30.0),
            "the first counts"
        );
    }
}

#[test]
fn a_second_finding_is_repeated_and_one_after_the_end_of_the_phase_is_late() {
    let mut story = story(Phase::Collecting);
    story.hears(&said("m-ann", 1), &finding("ann", "m-ann", json!({})));
    assert_eq!(
        story.hears(&said("m-ann-2", 2), &finding("ann", "m-ann-2", json!({}))),
        "finding_set_aside"
    );
    let elapsed = case_due(FINDINGS, after(FINDINGS_DUE));
    assert_eq!(
        story.hears(&happened("e-due", FINDINGS_DUE), &elapsed),
        "findings_closed"
    );
    assert_eq!(story.state().missing, [agent("ben")]);
    assert_eq!(
        story.hears(&said("m-ben", 30_001), &finding("ben", "m-ben", json!({}))),
        "finding_set_aside"
    );
    let CaseEvent::FindingSetAside(aside) = &story.last().event else {
        panic!()
    };
    assert_eq!(aside.reason, SetAsideReason::Late);
    let effects = CaseMachine::effects(story.last());
    assert!(
        matches!(&effects[..], [Effect::ReportSetAside { to, .. }] if *to == agent("ben")),
        "{effects:?}"
    );
    let reasons: Vec<SetAsideReason> = story
        .state()
        .set_aside
        .iter()
        .map(|(note, _)| note.reason)
        .collect();
    assert_eq!(reasons, [SetAsideReason::Repeated, SetAsideReason::Late]);
}

#[test]
fn what_is_set_aside_is_limited() {
    let mut story = CaseStory::of("c-1");
    story.hears(
        &said("m-open", 0),
        &open_case(
            &["ann", "ben"],
            Policy {
                set_aside_max: 1,
                ..policy()
            },
        ),
    );
    for (id, expected) in [
        ("m-1", "finding_recorded"),
        ("m-2", "finding_set_aside"),
        ("m-3", "refused: "),
    ] {
        assert_eq!(
            story.hears(&said(id, 1), &finding("ann", id, json!({}))),
            expected,
            "{id}"
        );
    }
}

#[test]
fn a_finding_at_the_deadline_counts_until_somebody_says_that_it_has_passed() {
    let mut story = story(Phase::Collecting);
    assert_eq!(
        story.hears(
            &said("m-1", FINDINGS_DUE),
            &finding("ann", "m-1", json!({}))
        ),
        "finding_recorded"
    );
    let elapsed = case_due(FINDINGS, after(FINDINGS_DUE));
    assert_eq!(
        story.hears(&happened("e-due", FINDINGS_DUE), &elapsed),
        "findings_closed"
    );
    assert_eq!(story.last().meta.closed, [token(FINDINGS)]);
    assert_eq!(
        story.hears(&happened("e-due-2", FINDINGS_DUE), &elapsed),
        "ignored: deadline_not_open"
    );
}

proptest! {
    #[test]
    fn the_decision_does_not_depend_on_who_answers_first(
        order in Just(vec![0usize, 1, 2, 3]).prop_shuffle(),
        scores in proptest::collection::vec(40u32..62, 4),
        confidence in proptest::collection::vec(1u32..=100, 4),
    ) {
        let decide = |order: &[usize]| {
            let names = ["ann", "ben", "cyd", "dan"];
            let mut case = Versioned::<CaseMachine>::default();
            let mut sequence = 0;
            let mut hear = |input: CaseInput| {
                let context = happened("e", sequence);
                let Decision::Append(event) = CaseMachine::decide(&case.state, &context, &input) else { panic!() };
                sequence += 1;
                let mut record = case.record(&case_id().token(), &context, event);
                record.sequence = sequence;
                case.apply(record);
                case.state.decision.clone()
            };
            hear(open_case(&names, policy()));
            for index in order {
                let (name, sure) = (names[*index], f64::from(confidence[*index]) / 100.0);
                let said = json!({"risk_score": scores[*index], "clauses": [{"type": "Term", "present": scores[*index] > 50}]});
                hear(CaseInput::Finding(Box::new(received(name, &format!("m-{name}"), sure, said))));
            }
            hear(case_due(CASE, after(CASE_DUE))).unwrap()
        };
        let (one, two) = (decide(&[0, 1, 2, 3]), decide(&order));
        prop_assert_eq!(one, two);
    }
}
