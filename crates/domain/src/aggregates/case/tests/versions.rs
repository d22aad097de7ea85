//! A decision is always what its latest resolutions say.

use concord_wire::payload::{Decision, Level, Resolution, RuledBy};
use concord_wire::policy::Decide;

use std::collections::BTreeMap;

use super::*;
use crate::aggregates::answerable::{self, Concern};
use crate::aggregates::case::FINAL_GATE;
use concord_events::DecisionChanged;
use concord_wire::payload::{Conflict, ConflictOutcome};

mod caution;
mod standing;

/// An outcome of the debate about the risk score, with the value that stands after it.
fn risk_is(status: Status, value: u32, at: u64) -> ConflictOutcome {
    let mut outcome = crate::fixtures::outcome(&risk(), status, Some(json!(value)));
    outcome.resolved_at = after(at);
    outcome.level = Some(Level::Person);
    outcome
}

fn ruling(value: u32) -> ConflictOutcome {
    ConflictOutcome {
        ruled_by: Some(RuledBy {
            expert: agent("eva"),
            first_reviewer: None,
            first_rationale: None,
            rationale: "Read the annex.".into(),
            digest: None,
            key: None,
        }),
        ..risk_is(Status::Ruling, value, CASE_DUE + 50)
    }
}

fn settle(story: &mut CaseStory, id: &str, outcome: ConflictOutcome) -> String {
    let at = CASE_DUE + 100;
    story.hears(&happened(id, at), &CaseInput::Resolved(Box::new(outcome)))
}

/// Whom the last event tells of this.
fn told(story: &CaseStory, event: &str) -> Vec<String> {
    let effects = CaseMachine::effects(story.last());
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Notify { to, data } if data.event() == event => Some(to.to_string()),
        _ => None,
    });
    told.collect()
}

/// A case with a debate that mediation has settled, while another goes on.
pub(crate) fn mediated() -> CaseStory {
    let mut story = story(Phase::Deliberating);
    let resolved = CaseInput::Resolved(Box::new(risk_is(Status::Mediation, 80, 100)));
    story.hears(&happened("e-1", 100), &resolved);
    story
}

#[test]
fn nobody_is_told_alone_of_what_the_parties_have_settled() {
    for status in [Status::Discussion, Status::Vote, Status::Unresolved] {
        let mut story = story(Phase::Deliberating);
        let resolved = CaseInput::Resolved(Box::new(risk_is(status, 80, 100)));
        assert_eq!(
            story.hears(&happened("e-1", 100), &resolved),
            "debate_settled"
        );
        assert!(CaseMachine::effects(story.last()).is_empty());
    }
}

#[test]
fn each_in_a_case_is_told_once_how_a_debate_has_ended_at_high_priority() {
    let mut story = story(Phase::Deliberating);
    let risk = risk_is(Status::Mediation, 80, 100);
    let advised = crate::fixtures::outcome(&advice(), Status::Mediation, Some(json!("sign")));
    for (id, outcome, event) in [
        ("e-1", &risk, "debate_settled"),
        ("e-2", &advised, "decided"),
    ] {
        let resolved = CaseInput::Resolved(Box::new(outcome.clone()));
        assert_eq!(story.hears(&happened(id, 100), &resolved), event);
        assert_eq!(told(&story, "debate_concluded"), ["ann", "ben", "olga"]);
        let messages = crate::effect::messages::<CaseMachine>(story.last()).unwrap();
        let concluded = messages
            .iter()
            .filter(|message| message.priority == concord_wire::Priority::High);
        assert!(concluded.clone().all(|message| {
            message.correlation_id.as_deref() == Some(outcome.conflict_id.as_str())
        }));
        assert_eq!(concluded.count(), 3);
        assert_eq!(story.hears(&happened("e-3", 101), &resolved), DONE);
    }
}

fn current(story: &CaseStory) -> Decision {
    story.state().decision.clone().unwrap()
}

/// A case whose time was over while both of its debates were open.
fn decided_in_time() -> CaseStory {
    let mut story = story(Phase::Deliberating);
    let due = case_due(CASE, after(CASE_DUE));
    assert_eq!(story.hears(&happened("e-due", CASE_DUE), &due), "decided");
    story
}

#[test]
fn a_ruling_after_the_decision_gives_it_a_new_version() {
    let mut story = decided_in_time();
    let first = current(&story);
    assert_eq!((first.version, first.outcome.risk_score), (1, Some(80.0)));
    assert_eq!(first.open.len(), 2, "both are on the ladder");
    assert_eq!(settle(&mut story, "e-1", ruling(20)), "decision_changed");
    let CaseEvent::DecisionChanged(changed) = &story.last().event else {
        panic!()
    };
    let (change, entry) = (&changed.change, &changed.entry);
    assert_eq!((change.version, change.replaces), (2, 1));
    assert_eq!(
        (change.status, change.level, change.by.as_ref()),
        (Status::Ruling, Level::Person, Some(&agent("eva")))
    );
    let parts: Vec<_> = change.changed.iter().map(|one| one.part.as_str()).collect();
    assert_eq!(parts, ["risk_score"]);
    assert_eq!(
        (&change.changed[0].before, &change.changed[0].after),
        (&json!(80.0), &json!(20.0))
    );
    assert_eq!(
        (entry.decision_version, entry.replaces_version),
        (Some(2), Some(1))
    );
    let now = current(&story);
    assert_eq!((now.version, now.outcome.risk_score), (2, Some(20.0)));
    assert_eq!(now.open, [advice().conflict_id]);
    let everyone = ["ann", "ben", "olga"];
    assert_eq!(told(&story, "case_decision_changed"), everyone);
    assert_eq!(told(&story, "debate_concluded"), everyone);
    assert_eq!(CaseMachine::effects(story.last()).len(), 6);
    assert_eq!(settle(&mut story, "e-2", ruling(20)), DONE);
}

#[test]
fn each_outcome_gives_a_version_until_nothing_is_open() {
    let mut story = decided_in_time();
    let cautious = risk_is(Status::Provisional, 80, CASE_DUE + 10);
    let over = risk_is(Status::Overridden, 10, CASE_DUE + 20);
    let advised = crate::fixtures::outcome(&advice(), Status::Vote, Some(json!("sign")));
    for (number, outcome, score, is_final) in [
        (2, cautious, 80.0, false),
        (3, over, 10.0, false),
        (4, advised, 10.0, true),
    ] {
        let id = format!("e-{number}");
        assert_eq!(settle(&mut story, &id, outcome), "decision_changed");
        let now = current(&story);
        assert_eq!((now.version, now.outcome.risk_score), (number, Some(score)));
        assert_eq!(now.is_final(), is_final);
        assert_eq!(now.provisional.is_empty(), number > 2);
    }
    let versions: Vec<u32> = story
        .state()
        .changes
        .iter()
        .map(|(_, change)| change.version)
        .collect();
    assert_eq!(versions, [2, 3, 4]);
}

#[test]
fn a_case_without_gates_has_the_final_gate_as_long_as_something_is_provisional() {
    let mut story = decided_in_time();
    assert_eq!(story.state().gate(), None);
    assert_eq!(story.state().reviewing_gate(), Some(FINAL_GATE));
    settle(
        &mut story,
        "e-1",
        risk_is(Status::Provisional, 80, CASE_DUE),
    );
    assert_eq!(story.state().gate(), Some(FINAL_GATE));
    assert_eq!(current(&story).gates, [FINAL_GATE]);
    settle(
        &mut story,
        "e-2",
        risk_is(Status::Confirmed, 80, CASE_DUE + 9),
    );
    assert_eq!(story.state().gate(), None);
    assert!(current(&story).gates.is_empty());

    let mut rules = policy();
    rules.ladder.pass_unreviewed = true;
    let mut unseen = CaseStory::of("c-1");
    unseen.hears(&said("m-open", 0), &open_case(&["ann"], rules));
    assert_eq!(unseen.state().reviewing_gate(), None, "the policy says so");
}

#[test]
fn a_case_can_wait_until_its_debates_are_settled() {
    let mut rules = policy();
    rules.decide = Decide::WhenSettled;
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ben", "ann"], rules));
    story.hears(
        &said("m-ann", 10),
        &finding("ann", "m-ann", json!({"risk_score": 30})),
    );
    story.hears(
        &said("m-ben", 20),
        &finding("ben", "m-ben", json!({"risk_score": 80})),
    );
    story.hears(&happened("e-d", 30), &detected(vec![risk()], vec![]));
    let due = case_due(CASE, after(CASE_DUE));
    assert_eq!(
        story.hears(&happened("e-due", CASE_DUE), &due),
        "decision_awaited"
    );
    let record = story.last();
    assert!(record.meta.deadlines.is_empty() && record.meta.closed.len() == 1);
    assert!(CaseMachine::may_rest(story.state()));
    assert_eq!(story.hears(&happened("e-due-2", CASE_DUE), &due), CLOSED);
    assert_eq!(settle(&mut story, "e-1", ruling(20)), "decided");
    let decision = current(&story);
    assert_eq!((decision.version, decision.reason.as_str()), (1, "settled"));
    assert_eq!(decision.outcome.risk_score, Some(20.0));
}

#[test]
fn a_changed_version_is_recounted() {
    let mut story = decided_in_time();
    settle(&mut story, "e-1", ruling(20));
    let mut record = story.last().clone();
    assert_eq!(
        CaseMachine::recount(story.state(), &record),
        Vec::<String>::new()
    );
    let CaseEvent::DecisionChanged(changed) = &mut record.event else {
        panic!()
    };
    changed.decision.outcome.risk_score = Some(80.0);
    let mut state = story.state().clone();
    state.decision = Some(changed.decision.clone());
    let found = CaseMachine::recount(&state, &record);
    assert!(found[0].starts_with("Version 2 of the decision says"));
}

/// A case in which ann's finding was challenged, and the conflict about the same has ended so; and what the challenge disputes.
fn challenged(found: [serde_json::Value; 2], first: ConflictOutcome) -> (CaseStory, Conflict) {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ben", "ann"], policy()));
    let [ann, ben] = found;
    story.hears(&said("m-ann", 10), &finding("ann", "m-ann", ann));
    let challenge = super::gates::challenges("ben", "m-c", "ann");
    assert_eq!(story.hears(&said("m-c", 15), &challenge), "challenged");
    let challenged = story.state().debated[0].clone();
    story.hears(&said("m-ben", 20), &finding("ben", "m-ben", ben));
    story.hears(&happened("e-d", 30), &detected(vec![risk()], vec![]));
    settle(&mut story, "e-1", first);
    (story, challenged)
}

/// The challenge ends so, after everything else.
fn challenge_ends(challenged: &Conflict, value: u32) -> ConflictOutcome {
    let mut outcome = crate::fixtures::outcome(challenged, Status::Ruling, None);
    outcome.resolved_at = after(CASE_DUE + 200);
    outcome.resolution = Some(Resolution {
        position: value.to_string(),
        value: Some(json!(value)),
        supporters: vec![],
    });
    outcome
}

/// What the decision says after a challenge of ann's finding was settled with this value, at this time.
fn after_challenge(found: [serde_json::Value; 2], stated: u32, value: u32) -> Option<f64> {
    let (mut story, challenged) = challenged(found, risk_is(Status::Vote, 80, 100));
    assert_eq!(
        challenged.positions[0].value,
        Some(json!(f64::from(stated)))
    );
    settle(&mut story, "e-2", challenge_ends(&challenged, value));
    current(&story).outcome.risk_score
}

#[test]
fn a_challenge_that_succeeds_after_the_vote_replaces_it_and_one_that_fails_does_not() {
    let found = [json!({"risk_score": 30}), json!({"risk_score": 80})];
    assert_eq!(after_challenge(found.clone(), 30, 55), Some(55.0));
    assert_eq!(after_challenge(found, 30, 30), Some(80.0), "it failed");
}

/// Whom the last event concerns, by what was before it.
fn concerned(story: &CaseStory) -> BTreeMap<AgentId, Concern> {
    let (last, before) = story.records.split_last().unwrap();
    let CaseEvent::DecisionChanged(changed) = &last.event else {
        panic!("{last:?}")
    };
    answerable::of_change(before, changed)
}

#[test]
fn whoever_answers_for_a_decision_is_concerned_by_its_change_but_not_who_brought_it_about() {
    let mut story = decided_in_time();
    settle(&mut story, "e-1", ruling(20));
    assert_eq!(concerned(&story), BTreeMap::new(), "eva has ruled herself");
    let advised = crate::fixtures::outcome(&advice(), Status::Vote, Some(json!("sign")));
    assert_eq!(settle(&mut story, "e-2", advised), "decision_changed");
    let answers = BTreeMap::from([(agent("eva"), Concern::Answers)]);
    assert_eq!(concerned(&story), answers);
}

#[test]
fn whoever_ruled_on_the_very_subject_is_overridden_by_another_result() {
    let mut story = decided_in_time();
    settle(&mut story, "e-1", ruling(20));
    let CaseEvent::DecisionChanged(changed) = &story.last().event else {
        panic!()
    };
    let later = |value: u32, by: Option<&str>| {
        let mut changed = changed.clone();
        changed.outcome.resolution = risk_is(Status::Vote, value, 0).resolution;
        changed.change.by = by.map(agent);
        answerable::of_change(&story.records, &changed)
    };
    let eva = |concern| BTreeMap::from([(agent("eva"), concern)]);
    assert_eq!(later(10, Some("finn")), eva(Concern::Overridden));
    assert_eq!(later(10, None), eva(Concern::Overridden));
    assert_eq!(later(20, Some("finn")), eva(Concern::Answers));
    assert_eq!(later(10, Some("eva")), BTreeMap::new());
}

#[test]
fn both_of_two_reviewers_answer_for_what_they_decided() {
    let mut story = decided_in_time();
    let mut overridden = ConflictOutcome {
        status: Status::Overridden,
        ..ruling(20)
    };
    let ruled = overridden.ruled_by.as_mut().unwrap();
    ruled.first_reviewer = Some(agent("gail"));
    settle(&mut story, "e-1", overridden);
    assert_eq!(concerned(&story), BTreeMap::new(), "they did it themselves");
    let otherwise = changed_by(risk_is(Status::Vote, 10, CASE_DUE + 300));
    let both = [agent("eva"), agent("gail")].map(|name| (name, Concern::Overridden));
    let concerned = answerable::of_change(&story.records, &otherwise);
    assert_eq!(concerned, BTreeMap::from(both));
}

/// The change of a decision by this outcome, as far as it matters whom it concerns.
fn changed_by(outcome: ConflictOutcome) -> DecisionChanged {
    let mut story = decided_in_time();
    settle(&mut story, "e-1", ruling(20));
    let CaseEvent::DecisionChanged(changed) = &story.last().event else {
        panic!()
    };
    let mut changed = changed.clone();
    changed.outcome = outcome;
    changed.change.by = None;
    *changed
}

#[test]
fn a_challenge_in_vain_overrides_nobody_and_takes_nobody_their_place() {
    let found = [json!({"risk_score": 30}), json!({"risk_score": 80})];
    let (mut story, about) = challenged(found, ruling(80));
    let eva = |concern| BTreeMap::from([(agent("eva"), concern)]);
    let concerned =
        |story: &CaseStory, outcome| answerable::of_change(&story.records, &changed_by(outcome));
    let in_vain = challenge_ends(&about, 30);
    assert_eq!(concerned(&story, in_vain.clone()), eva(Concern::Answers));
    let succeeds = challenge_ends(&about, 55);
    assert_eq!(
        concerned(&story, succeeds.clone()),
        eva(Concern::Overridden)
    );
    let by_default = ConflictOutcome {
        status: Status::Provisional,
        ..succeeds
    };
    assert_eq!(concerned(&story, by_default), eva(Concern::Answers));
    settle(&mut story, "e-2", in_vain);
    let otherwise = risk_is(Status::Vote, 10, CASE_DUE + 300);
    assert_eq!(concerned(&story, otherwise), eva(Concern::Overridden));
}

#[test]
fn what_is_decided_about_one_finding_overrides_no_ruling_about_another() {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ben", "ann"], policy()));
    for (from, id) in [("ann", "m-ann"), ("ben", "m-ben")] {
        story.hears(&said(id, 10), &finding(from, id, json!({})));
    }
    for (from, id, challenged) in [("ben", "m-c", "ann"), ("ann", "m-d", "ben")] {
        let CaseInput::Challenge(mut vague) = super::gates::challenges(from, id, challenged) else {
            panic!()
        };
        (vague.challenge.metric, vague.challenge.value) = (None, None);
        let vague = CaseInput::Challenge(vague);
        assert_eq!(story.hears(&said(id, 15), &vague), "challenged");
    }
    let [one, other] = [0, 1].map(|at| story.state().debated[at].clone());
    let ruled = ConflictOutcome {
        ruled_by: ruling(0).ruled_by,
        ..challenge_ends(&one, 1)
    };
    settle(&mut story, "e-1", ruled);
    let changed = changed_by(challenge_ends(&other, 2));
    let concerned = answerable::of_change(&story.records, &changed);
    let eva = BTreeMap::from([(agent("eva"), Concern::Answers)]);
    assert_eq!(concerned, eva);
}
