//! Challenges, provisional decisions, gates and the decision log.

use concord_events::{CaseEvent, Heard};
use concord_wire::id::GateName;
use concord_wire::payload::{
    ConflictOutcome, ConflictType, DebatePriority, Level, Provisional, ReviewAction, Role, Status,
};
use concord_wire::policy::{Decide, Policy};
use concord_wire::{DebateId, Timestamp};
use serde_json::json;

use crate::aggregates::case::{
    CASE, CaseInput, CaseMachine, Phase, ReceivedChallenge, ReceivedReview,
};
use crate::fixtures::{
    Story, agent, authority, case_due, conflict, detected, finding, happened, message,
    open_request, outcome, policy, said,
};

pub(crate) mod figures;
mod overriding;
mod passing;
mod redebating;
mod roles;
mod shown;
mod two_reviewers;

pub(super) fn gate_names(gates: &[&str]) -> Vec<GateName> {
    let parsed = gates.iter().map(|gate| GateName::parse(gate));
    parsed.collect::<Result<_, _>>().unwrap()
}

fn opened(gates: &[&str], policy: Policy) -> Story<CaseMachine> {
    let mut story = Story::<CaseMachine>::of("c-1");
    let mut request = open_request(&["finance", "strategy"], policy);
    request.request.gates = gate_names(gates);
    assert_eq!(
        story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request))),
        "opened"
    );
    story
}

fn heard(from: &str, id: &str) -> Heard {
    Heard {
        agent_id: agent(from),
        message_id: message(id),
        digest: format!("{from}-{id}"),
    }
}

pub(super) fn challenges(from: &str, id: &str, challenged: &str) -> CaseInput {
    let challenge = json!({
        "challenger": from, "challenged": challenged, "disputed_finding": "Management effectiveness",
        "challenge_basis": "ROI declining despite claims", "required_evidence": ["Historical ROI data"], "escalation_timer": 3_600,
        "priority": DebatePriority::CriticalPath, "metric": "risk_score", "value": 70, "evidence": ["10-K page 45"], "dependants": ["dcf"],
    });
    CaseInput::Challenge(Box::new(ReceivedChallenge {
        heard: heard(from, id),
        confidence: 0.7,
        challenge: serde_json::from_value(challenge).unwrap(),
        sender: authority(from, &[Role::Opener]),
    }))
}

fn reviews(
    by: &str,
    id: &str,
    gate: &str,
    action: ReviewAction,
    debate: Option<&DebateId>,
) -> CaseInput {
    let review = json!({
        "gate": gate, "action": action, "debate_id": debate, "position": "28", "value": 28, "rationale": "Guidance.",
        "context": "The new filing.",
    });
    CaseInput::Review(Box::new(ReceivedReview {
        is_signed: false,
        first: [].into(),
        heard: heard(by, id),
        review: serde_json::from_value(review).unwrap(),
        sender: authority(by, &[Role::Reviewer]),
    }))
}

/// What is said to whoever sends it.
fn refusal(story: &Story<CaseMachine>, input: &CaseInput) -> String {
    use crate::machine::{Decision, Machine};
    match CaseMachine::decide(story.state(), &said("m-x", 90), input) {
        Decision::Reject(fault) => fault.to_string(),
        other => panic!("{other:?}"),
    }
}

fn ended(story: &Story<CaseMachine>, debate: &DebateId, status: Status) -> ConflictOutcome {
    let conflict = story
        .state()
        .debated
        .iter()
        .find(|one| one.conflict_id == *debate)
        .unwrap();
    let provisional = Provisional {
        rationale: "Nobody ruled in time: the highest is cautious.".into(),
        alternatives: Vec::new(),
        review_at: story.state().gate().map(str::to_owned),
        until: Timestamp::parse("2026-11-22T20:00:00Z").unwrap(),
        dependants: vec!["dcf".into()],
        expert: None,
    };
    ConflictOutcome {
        level: Some(Level::Fallback),
        provisional: (status == Status::Provisional).then(|| Box::new(provisional)),
        ..outcome(conflict, status, Some(json!(70)))
    }
}

fn ends(story: &mut Story<CaseMachine>, id: &str, debate: &DebateId, status: Status) -> String {
    let outcome = ended(story, debate, status);
    story.hears(&happened(id, 50), &CaseInput::Resolved(Box::new(outcome)))
}

/// A case whose challenge stands provisionally, decided.
fn at_gate(policy: Policy) -> (Story<CaseMachine>, DebateId) {
    at_gate_with(policy, &challenges("strategy", "m-c", "finance"))
}

/// The same after this challenge, `m-c` of strategy.
fn at_gate_with(policy: Policy, challenge: &CaseInput) -> (Story<CaseMachine>, DebateId) {
    let mut story = opened(&["valuation", "release"], policy);
    story.hears(
        &said("m-1", 1),
        &finding("finance", "m-1", json!({"risk_score": 20})),
    );
    assert_eq!(story.hears(&said("m-c", 2), challenge), "challenged");
    let debate = story.state().debated[0].conflict_id.clone();
    assert_eq!(
        story.state().debated[0].positions[0].value,
        Some(json!(20.0)),
        "the finding's own value"
    );
    story.hears(&said("m-2", 3), &finding("strategy", "m-2", json!({})));
    assert_eq!(
        story.hears(&happened("e-d", 4), &detected(vec![], vec![])),
        "conflicts_received"
    );
    assert_eq!(
        ends(&mut story, "e-1", &debate, Status::Provisional),
        "decided",
        "the work goes on"
    );
    assert_eq!(
        (story.state().phase, story.state().gate()),
        (Phase::Decided, Some("valuation"))
    );
    (story, debate)
}

#[test]
fn who_and_what_can_be_challenged() {
    let mut story = opened(&[], policy());
    let early = challenges("strategy", "m-0", "finance");
    assert_eq!(
        story.hears(&said("m-0", 1), &early),
        "refused: /payload/challenged",
        "no finding yet"
    );
    story.hears(&said("m-1", 1), &finding("finance", "m-1", json!({})));
    let mut other = challenges("strategy", "m-3", "finance");
    if let CaseInput::Challenge(received) = &mut other {
        received.challenge.finding_id = Some(message("m-77"));
    }
    assert_eq!(
        story.hears(&said("m-3", 2), &other),
        "refused: /payload/finding_id"
    );
    let good = challenges("strategy", "m-4", "finance");
    assert_eq!(story.hears(&said("m-4", 3), &good), "challenged");
    assert_eq!(story.hears(&said("m-4", 3), &good), "ignored: repetition");
    assert_eq!(
        story.hears(&said("m-1", 3), &challenges("finance", "m-1", "finance")),
        "refused: /message_id"
    );
    story.hears(&said("m-2", 3), &finding("strategy", "m-2", json!({})));
    story.hears(&happened("e-d", 4), &detected(vec![], vec![]));
    let debate = story.state().debated[0].conflict_id.clone();
    assert_eq!(
        ends(&mut story, "e-1", &debate, Status::Accepted),
        "decided"
    );
    assert_eq!(
        story.hears(&said("m-5", 60), &challenges("strategy", "m-5", "finance")),
        "refused: ",
        "over"
    );
}

#[test]
fn no_more_challenges_than_the_policy_allows() {
    let mut rules = policy();
    rules.ladder.challenges_max = 1;
    let mut story = opened(&[], rules);
    story.hears(&said("m-1", 1), &finding("finance", "m-1", json!({})));
    assert_eq!(
        story.hears(&said("m-2", 2), &challenges("strategy", "m-2", "finance")),
        "challenged"
    );
    assert_eq!(
        story.hears(&said("m-3", 3), &challenges("zoe", "m-3", "finance")),
        "refused: "
    );
}

#[test]
fn the_log_is_a_chain_in_which_every_change_shows() {
    let (mut story, debate) = at_gate(policy());
    let confirm = reviews(
        "gail",
        "g-5",
        "valuation",
        ReviewAction::Confirm,
        Some(&debate),
    );
    story.hears(&said("g-5", 61), &confirm);
    ends(&mut story, "e-2", &debate, Status::Confirmed);
    let entries: Vec<_> = story
        .records
        .iter()
        .filter_map(|record| match &record.event {
            CaseEvent::DebateSettled(settled) => settled.entry.clone(),
            CaseEvent::Decided(decided) => decided.entry.clone(),
            CaseEvent::DecisionChanged(changed) => Some(changed.entry.clone()),
            _ => None,
        })
        .collect();
    let methods: Vec<_> = entries
        .iter()
        .map(|entry| (entry.entry_id.as_str(), entry.method))
        .collect();
    assert_eq!(
        methods,
        [("c-1-1", Status::Provisional), ("c-1-2", Status::Confirmed)]
    );
    assert_eq!(
        (entries[0].previous.as_str(), &entries[1].previous),
        ("", &entries[0].hash)
    );
    assert!(entries[0].provisional.is_some() && entries[0].impact == ["dcf"]);
    for entry in &entries {
        assert_eq!(entry.hash, entry.computed_hash());
        let mut changed = entry.clone();
        changed.topic.push('!');
        assert_ne!(changed.hash, changed.computed_hash());
    }
}

#[test]
fn an_operator_cancels_a_case_with_its_debates() {
    let (mut story, debate) = at_gate(policy());
    let cancel = CaseInput::Cancel {
        by: agent("olga"),
        why: "the deal is off".into(),
    };
    assert_eq!(story.hears(&said("o-1", 60), &cancel), "cancelled");
    let CaseEvent::Cancelled(cancelled) = &story.last().event else {
        panic!()
    };
    assert_eq!(cancelled.debates, std::slice::from_ref(&debate));
    // Its debate is cancelled because of that, and the decision stays as it was.
    let provisional = &story.state().outcomes[&debate];
    let ended = ConflictOutcome {
        status: Status::Cancelled,
        resolution: None,
        ..provisional.clone()
    };
    assert_eq!(
        story.hears(&happened("e-9", 60), &CaseInput::Resolved(Box::new(ended))),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(&said("o-2", 61), &cancel),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(&said("m-5", 62), &challenges("strategy", "m-5", "finance")),
        "refused: "
    );
    let mut early = opened(&[], policy());
    assert_eq!(early.hears(&said("o-1", 1), &cancel), "cancelled");
    assert_eq!(
        early.last().meta.closed.len(),
        2,
        "nothing is waited for any more"
    );
}

#[test]
fn challenges_and_detected_conflicts_stand_side_by_side() {
    let mut story = opened(&[], policy());
    story.hears(&said("m-1", 1), &finding("finance", "m-1", json!({})));
    story.hears(&said("m-c", 2), &challenges("strategy", "m-c", "finance"));
    story.hears(&said("m-2", 3), &finding("strategy", "m-2", json!({})));
    let held = [("finance", json!(20), 0.8), ("strategy", json!(70), 0.7)];
    let found = conflict(
        "d-9",
        ConflictType::RiskScoreDisagreement,
        "risk_score",
        &held,
    );
    assert_eq!(
        story.hears(&happened("e-d", 4), &detected(vec![found.clone()], vec![])),
        "conflicts_received"
    );
    let challenge = story.state().debated[1].conflict_id.clone();
    assert_eq!(
        ends(&mut story, "e-1", &challenge, Status::Ruling),
        "debate_settled"
    );
    assert_eq!(
        ends(&mut story, "e-2", &found.conflict_id, Status::Vote),
        "decided"
    );
    let CaseEvent::Decided(decided) = &story.last().event else {
        panic!()
    };
    assert_eq!(
        (
            decided.decision.conflicts.len(),
            decided.decision.outcomes.len()
        ),
        (2, 2)
    );
}

/// Stories in which every fact of this kind occurs.
pub(crate) fn stories() -> Vec<Story<CaseMachine>> {
    let (mut passed, debate) = at_gate(policy());
    let again = reviews(
        "gail",
        "g-1",
        "valuation",
        ReviewAction::Redebate,
        Some(&debate),
    );
    passed.hears(&said("g-1", 60), &again);
    let mut allowed = policy();
    allowed.ladder.pass_unreviewed = true;
    let (mut let_through, _) = at_gate(allowed);
    let_through.hears(
        &said("g-1", 60),
        &reviews("gail", "g-1", "valuation", ReviewAction::Pass, None),
    );
    let (mut changed, debate) = at_gate(policy());
    ends(&mut changed, "e-2", &debate, Status::Confirmed);
    let mut rules = policy();
    rules.decide = Decide::WhenSettled;
    let mut waiting = opened(&[], rules);
    let due = waiting.state().opened.as_ref().unwrap().case_due;
    waiting.hears(&happened("e-due", 900_000), &case_due(CASE, due));
    let mut two = policy();
    two.ladder.reviewers_min = 2;
    let (mut agreed, debate) = at_gate(two);
    for by in ["gail", "hal"] {
        let confirm = ReviewAction::Confirm;
        let review = reviews(by, by, "valuation", confirm, Some(&debate));
        agreed.hears(&said(by, 60), &review);
    }
    let mut cancelled = opened(&[], policy());
    cancelled.hears(
        &said("o-1", 1),
        &CaseInput::Cancel {
            by: agent("olga"),
            why: "off".into(),
        },
    );
    vec![passed, let_through, agreed, changed, waiting, cancelled]
}
