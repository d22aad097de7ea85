use concord_wire::payload::track_record::{Context as RecordContext, Source};
use concord_wire::payload::{ConflictType, Decision, Observation, Outcome, Status};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::aggregates::case::{Cancellation, Phase};
use crate::aggregates::track_record::{Observe, TrackRecordMachine};
use crate::fixtures::*;

/// A decided case of these findings: agent, confidence, recommendation.
fn case(findings: &[(&str, f64, &str)], risk: Option<f64>, decided: &str) -> DecisionPackage {
    let outcome = Outcome {
        risk_score: risk,
        recommendation: Some(decided.into()),
        ..Outcome::default()
    };
    let decision: Decision = serde_json::from_value(json!({
        "version": 1, "outcome": outcome, "findings": [], "missing": ["zoe"], "set_aside": [], "conflicts": [], "outcomes": [],
        "deferred": [], "reason": "settled", "policy_digest": "d",
    }))
    .unwrap();
    DecisionPackage {
        cancelled: None,
        case_id: case_id(),
        phase: Phase::Decided,
        opened_by: agent("lead"),
        opened_at: start(),
        decided_at: Some(after(1_000)),
        participants: findings.iter().map(|(name, ..)| agent(name)).collect(),
        task: task(),
        policy: policy(),
        decision: Some(decision),
        changes: Vec::new(),
        findings: findings
            .iter()
            .map(|(name, confidence, recommendation)| {
                let finding = json!({ "recommendation": recommendation, "assumptions": ["the lease is signed"] });
                received(name, &format!("m-{name}"), *confidence, finding)
            })
            .collect(),
        confirmed: Vec::new(),
        counted: Default::default(),
        set_aside: Vec::new(),
        alerts: Vec::new(),
    }
}

/// The record of an agent that was right so often, of so many times, in one domain.
fn record(name: &str, domain: &str, right: usize, of: usize) -> TrackRecordState {
    let mut story = Story::<TrackRecordMachine>::of(name);
    for place in 0..of {
        let id = format!("{name}-{place}");
        let observe = Observe {
            observation: Observation {
                at: start(),
                correct: place < right,
                domain: domain.into(),
                regime: None,
                context: RecordContext::default(),
                source: Source::Outcome,
                overridden: false,
            },
            debate_id: Some(DebateId::new(&id).unwrap()),
            case_id: None,
            opened_by: None,
            by: agent("source"),
            imported: None,
            tell: None,
        };
        story.hears(&said(&id, 0), &observe);
    }
    story.state().clone()
}

fn earlier(id: &str, position: &str, proved: Option<&str>, millis: u64) -> EarlierDecision {
    EarlierDecision {
        debate_id: DebateId::new(id).unwrap(),
        topic: "Sign or not".into(),
        position: position.into(),
        status: "vote".into(),
        at: after(millis),
        proved: proved.map(str::to_owned),
        explanation: proved.map(|right| format!("It turned out to be {right}.")),
        was_right: proved.map(|right| right == position),
    }
}

fn debate(earlier: Vec<EarlierDecision>) -> DebateMatter {
    let kind = ConflictType::RecommendationConflict;
    let held = [("ann", json!("sign"), 0.6), ("ben", json!("reject"), 0.9)];
    let conflict = conflict("d-1", kind, "recommendation", &held);
    let mut ended = outcome(&conflict, Status::Vote, Some(json!("reject")));
    let chosen = ended.resolution.as_mut().unwrap();
    chosen.supporters = vec![agent("ben")];
    DebateMatter {
        terms: DebateTerms {
            domain: Some("leases".into()),
            ..DebateTerms::default()
        },
        outcome: Some(ended),
        conflict,
        opened: None,
        earlier,
    }
}

fn sources(earlier: Vec<EarlierDecision>) -> Sources {
    Sources {
        now: after(2_000),
        debates: vec![debate(earlier)],
        ..Sources::default()
    }
}

const TWO: [(&str, f64, &str); 2] = [("ann", 0.6, "sign"), ("ben", 0.9, "Reject")];

#[test]
fn without_a_record_a_confidence_is_what_the_agent_says() {
    for (stated, credibility, points, expected) in [
        (0.9, 0.5, 0.0, 0.9),
        (0.9, 0.5, 15.0, 0.7),
        (0.9, 0.3, 45.0, 0.45),
        (0.2, 1.0, 15.0, 0.6),
    ] {
        assert!((calibrated(stated, credibility, points) - expected).abs() < 1e-9);
    }
    let package = meeting_package(case(&TWO, None, "reject"), sources(Vec::new()));
    let [ann, ben] = &package.findings[..] else {
        panic!("{:?}", package.findings)
    };
    assert_eq!((ann.calibrated, ben.calibrated), (0.6, 0.9));
    assert_eq!((ann.interval.low, ann.interval.high), (0.0, 1.0));
    assert_eq!(package.recommendation.weighted.as_deref(), Some("Reject"));
    assert!(!package.recommendation.differs(&policy()));
}

#[test]
fn confirmations_that_count_are_part_of_a_confidence() {
    let mut case = case(&TWO, None, "reject");
    case.counted = [(agent("ann"), 0.9)].into();
    let package = meeting_package(case, sources(Vec::new()));
    let ann = &package.findings[0];
    assert_eq!(ann.stated, 0.6);
    assert!((ann.calibrated - 0.96).abs() < 1e-9, "{ann:?}");
    assert_eq!(package.recommendation.weighted.as_deref(), Some("sign"));
}

#[test]
fn records_of_the_domain_correct_what_agents_say_of_themselves() {
    let mut sources = sources(Vec::new());
    sources.records = [
        (agent("ann"), record("ann", "Leases", 30, 30)),
        (agent("ben"), record("ben", "leases", 6, 30)),
    ]
    .into();
    let package = meeting_package(case(&TWO, None, "reject"), sources.clone());
    let [ann, ben] = &package.findings[..] else {
        panic!("{:?}", package.findings)
    };
    assert!(
        ann.calibrated > 0.8 && ben.calibrated < 0.5,
        "{ann:?} {ben:?}"
    );
    let ours = &package.recommendation;
    assert_eq!(ours.risk_adjusted.as_deref(), Some("sign"));
    assert!(ours.differs(&policy()));
    assert!(
        package
            .uncertainty
            .iter()
            .any(|line| line.contains("something else"))
    );
    let known = &package.credibility[&agent("ann")][0].credibility;
    assert!(known.factors.len() > 4, "{known:?}");

    // A record in another field says nothing here.
    sources.records = [(agent("ann"), record("ann", "tax", 30, 30))].into();
    let package = meeting_package(case(&TWO, None, "reject"), sources);
    assert_eq!(package.findings[0].calibrated, 0.6);
    let thin = "Fewer than 15 data points in this field: ann, ben.";
    assert!(
        package
            .uncertainty
            .iter()
            .any(|line| line.starts_with(thin)),
        "{:?}",
        package.uncertainty
    );
}

#[test]
fn risk_speaks_against_the_less_cautious_option() {
    let shares = |risk| {
        let package = meeting_package(
            case(
                &[
                    ("ann", 0.9, "sign"),
                    ("ben", 0.6, "reject"),
                    ("cat", 0.3, "negotiate"),
                ],
                risk,
                "sign",
            ),
            sources(Vec::new()),
        );
        let ours = package.recommendation;
        let adjusted = |name: &str| {
            let option = ours
                .options
                .iter()
                .find(|option| option.recommendation == name)
                .unwrap();
            (option.distance, (option.risk_adjusted * 1e6).round() / 1e6)
        };
        (
            adjusted("reject"),
            adjusted("negotiate"),
            adjusted("sign"),
            ours.weighted.clone(),
            ours.risk_adjusted.clone(),
        )
    };
    let (reject, negotiate, sign, weighted, adjusted) = shares(None);
    assert_eq!(
        (reject, negotiate, sign),
        ((0.0, 0.333_333), (0.5, 0.166_667), (1.0, 0.5))
    );
    assert_eq!(
        (weighted.as_deref(), adjusted.as_deref()),
        (Some("sign"), Some("sign"))
    );
    let (reject, negotiate, sign, weighted, adjusted) = shares(Some(80.0));
    assert_eq!((reject.1, negotiate.1, sign.1), (0.333_333, 0.1, 0.1));
    assert_eq!(
        (weighted.as_deref(), adjusted.as_deref()),
        (Some("sign"), Some("reject"))
    );
}

#[test]
fn what_a_finding_says_of_its_impact_is_in_the_package() {
    let printed = include_str!("../../../wire/src/dialect/examples/analyst_finding.json");
    let printed: serde_json::Value = serde_json::from_str(printed).unwrap();
    let finding = printed["canonical"]["payload"].clone();
    let mut case = case(&[], None, "sign");
    case.findings = vec![received("ann", "m-1", 0.85, finding)];
    let package = serde_json::to_value(meeting_package(case, Sources::default())).unwrap();
    for finding in [
        &package["case"]["findings"][0]["finding"],
        &package["findings"][0],
    ] {
        assert_eq!(finding["impact"], "Adjust FCF projections", "{finding}");
    }
}

#[test]
fn options_are_the_words_of_the_policy_s_vocabulary() {
    let findings = [
        ("ann", 0.9, "do not sign"),
        ("ben", 0.9, "Do not sign."),
        ("cyd", 0.95, "sign"),
    ];
    let mut case = case(&findings, Some(80.0), "do not sign");
    let aliases = vec!["do not sign".to_owned()];
    let words = &mut case.policy.vocabulary.recommendations;
    words.insert("reject".to_owned(), aliases);
    let rules = case.policy.clone();
    let past = vec![
        earlier("d-9", "Do not sign", Some("reject"), 900),
        earlier("d-8", "sign", Some("do not sign"), 800),
    ];
    let ours = meeting_package(case, sources(past)).recommendation;
    assert_eq!(ours.risk_adjusted.as_deref(), Some("reject"), "{ours:?}");
    assert!(!ours.differs(&rules));
    let [reject, sign] = &ours.options[..] else {
        panic!("{:?}", ours.options)
    };
    assert_eq!((reject.distance, sign.distance), (0.0, 1.0));
    assert_eq!(reject.held_by, [agent("ann"), agent("ben")]);
    let of = |option: &SupportedOption| (option.precedents.right, option.precedents.known);
    assert_eq!((of(reject), of(sign)), ((2, 2), (0, 1)));
}

#[test]
fn whoever_abstains_speaks_for_an_option_only_where_nobody_recommends_one() {
    for (ann, ben, expected) in [
        ("sign", "cannot tell", "sign"),
        ("unknown", "unknown", "unknown"),
    ] {
        let findings = [("ann", 0.6, ann), ("ben", 0.9, ben)];
        let case = case(&findings, Some(50.0), expected);
        let rules = case.policy.clone();
        let ours = meeting_package(case, sources(Vec::new())).recommendation;
        assert_eq!(ours.risk_adjusted.as_deref(), Some(expected), "{ours:?}");
        assert_eq!((ours.options.len(), ours.differs(&rules)), (1, false));
    }
}

#[test]
fn what_proved_right_before_speaks_for_an_option() {
    let past = vec![
        earlier("d-9", "reject", Some("sign"), 900),
        earlier("d-8", "reject", Some("sign"), 800),
        earlier("d-7", "sign", Some("sign"), 700),
        earlier("d-6", "reject", None, 600),
    ];
    let package = meeting_package(case(&TWO, None, "reject"), sources(past));
    let history = &package.disputes[0].history;
    assert_eq!((history.success.right, history.success.known), (1, 3));
    let option = |name: &str| {
        let options = &package.recommendation.options;
        options
            .iter()
            .find(|option| option.recommendation == name)
            .unwrap()
    };
    let (sign, reject) = (option("sign"), option("Reject"));
    assert_eq!((sign.precedents.right, sign.precedents.known), (3, 3));
    assert_eq!((reject.precedents.right, reject.precedents.known), (0, 2));
    assert!(sign.precedent_factor > 1.0 && reject.precedent_factor < 1.0);
    assert!((sign.weight - 0.6 * sign.precedent_factor).abs() < 1e-12);
    let cautionary: Vec<&str> = package
        .cautionary
        .iter()
        .map(|one| one.debate_id.as_str())
        .collect();
    assert_eq!(cautionary, ["d-9", "d-8"]);
    assert_eq!(
        (
            package.lessons.len(),
            package.lessons[0].explanation.as_str()
        ),
        (3, "It turned out to be sign.")
    );
}

#[test]
fn dissent_and_what_is_missing_are_named() {
    let package = meeting_package(case(&TWO, None, "reject"), sources(Vec::new()));
    let dissent: Vec<&str> = package.disputes[0]
        .dissent
        .iter()
        .map(|held| held.agent_id.as_str())
        .collect();
    assert_eq!(dissent, ["ann"]);
    for part in [
        "No finding came from zoe.",
        "ann assumes: the lease is signed",
        "No outcome of an earlier decision like it",
    ] {
        assert!(
            package.uncertainty.iter().any(|line| line.contains(part)),
            "{part}: {:?}",
            package.uncertainty
        );
    }
    let nothing = meeting_package(case(&[], None, "reject"), Sources::default());
    assert!(nothing.recommendation.options.is_empty() && nothing.recommendation.weighted.is_none());
    assert_eq!(nothing.formulas.len(), FORMULAS.len());
}

proptest! {
    #[test]
    fn shares_add_up_and_stay_within_their_bounds(
        findings in prop::collection::vec((0.0..=1.0_f64, prop::sample::select(vec!["sign", "reject", "wait", "negotiate"])), 1..6),
        risk in prop::option::of(0.0..=100.0_f64), proved in prop::collection::vec(prop::sample::select(vec!["sign", "reject"]), 0..5),
    ) {
        let names: Vec<String> = (0..findings.len()).map(|n| format!("a{n}")).collect();
        let given: Vec<(&str, f64, &str)> = names.iter().zip(&findings).map(|(name, (sure, what))| (name.as_str(), *sure, *what)).collect();
        let past = proved.iter().enumerate().map(|(n, right)| earlier(&format!("d-{}", n + 5), "sign", Some(right), 100)).collect();
        let ours = meeting_package(case(&given, risk, "sign"), sources(past)).recommendation;
        let sum: f64 = ours.options.iter().map(|option| option.share).sum();
        prop_assert!(sum.abs() < 1e-9 || (sum - 1.0).abs() < 1e-9, "{sum}");
        for option in &ours.options {
            prop_assert!((0.0..=1.0).contains(&option.distance) && option.risk_adjusted <= option.share);
            prop_assert!((0.0..=2.0).contains(&option.precedent_factor) && option.risk_adjusted >= 0.0);
            prop_assert!(option.interval.low <= option.share + 1e-9 && option.share <= option.interval.high + 1e-9);
        }
        prop_assert!(ours.options.windows(2).all(|pair| pair[0].risk_adjusted >= pair[1].risk_adjusted));
    }
}

#[test]
fn of_a_cancelled_case_nothing_waits_for_a_review() {
    let mut cancelled = case(&TWO, None, "reject");
    cancelled.phase = Phase::Cancelled;
    cancelled.cancelled = Some(Cancellation {
        at: after(3_000),
        by: agent("olga"),
        why: "the deal is off".into(),
    });
    let decision = cancelled.decision.as_mut().unwrap();
    decision.provisional = vec![debate(Vec::new()).conflict.conflict_id];
    let package = meeting_package(cancelled, sources(Vec::new()));
    assert!(package.uncertainty[0].starts_with("The case was cancelled: nobody reviews"));
    let provisional = &package.uncertainty[1];
    assert!(
        provisional.starts_with("Provisional, and not reviewed: "),
        "{provisional}"
    );
}
