//! The table of the ladder, its timeouts, and that whatever is said no debate goes back or ends
//! twice.

use std::collections::BTreeMap;

use concord_events::Aggregate;
use concord_events::{DeadlineControl, DebateEvent, EscalationReason};
use concord_wire::Timestamp;
use concord_wire::payload::notification::UnassignedReason;
use concord_wire::payload::{
    ChallengeTerms, ConflictType, Contact, Credibility, DebatePriority, DebateTerms, Evidence,
    Level, OpenDebate, Overflow, Review, ReviewAction, Role, Ruling, Status,
};
use concord_wire::policy::{ConflictHandling, Policy};
use serde_json::{Value, json};

use super::*;
use crate::aggregates::debate::{
    Command, DebateInput, DebateMachine, LadderMessage, MessageBody, Opening, PriorKnowledge,
};
use crate::fixtures::{
    Story, after, agent, authority, case_id, conflict, elapsed, happened, joins, keeps, message,
    moves_to, open_debate, policy, said,
};
use crate::machine::Machine;
use crate::rules::credibility;

mod briefing;
mod conceding;
mod notified;
mod operators;
mod outcome;
mod people;
mod random;
mod recounted;
mod returning;
mod settling;
mod sides;

pub(crate) use random::stories;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn terms(gate: Option<&str>) -> DebateTerms {
    DebateTerms {
        challenge: Some(ChallengeTerms {
            challenge_id: message("CH-001"),
            challenger: agent("strategy"),
            challenged: agent("finance"),
            basis: "ROI declining despite claims".into(),
            required_evidence: vec!["Historical ROI data".into(), "Peer comparison".into()],
            escalation_timer: None,
            provisional_resolution: None,
            historical_context: None,
        }),
        priority: DebatePriority::CriticalPath,
        gate: gate.map(str::to_owned),
        dependants: vec!["dcf".into()],
        ..DebateTerms::default()
    }
}

fn known(points: f64, finance: f64, strategy: f64) -> PriorKnowledge {
    let of = |score| Credibility {
        score,
        data_points: points,
        ..half_width(0.05, score)
    };
    let credibility = BTreeMap::from([
        (agent("finance"), of(finance)),
        (agent("strategy"), of(strategy)),
    ]);
    PriorKnowledge {
        credibility,
        precedents: Vec::new(),
        dependants: Vec::new(),
        regime: None,
    }
}

fn half_width(half: f64, score: f64) -> Credibility {
    let mut known = credibility::unknown();
    (known.interval.low, known.interval.high) = (score - half, score + half);
    known
}

fn opening(policy: Policy, terms: DebateTerms, known: PriorKnowledge) -> DebateInput {
    let held = [("finance", json!(25), 0.8), ("strategy", json!(30), 0.7)];
    let conflict = conflict("d-1", ConflictType::Challenge, "operating margin", &held);
    let request = OpenDebate {
        case_id: case_id(),
        conflict,
        policy,
        terms,
    };
    DebateInput::Open(Box::new(Opening {
        request,
        prior_knowledge: known,
    }))
}

fn challenged() -> Story<DebateMachine> {
    challenged_with(
        policy(),
        terms(Some("valuation review")),
        PriorKnowledge::default(),
    )
}

fn challenged_with(
    policy: Policy,
    terms: DebateTerms,
    known: PriorKnowledge,
) -> Story<DebateMachine> {
    let mut story = Story::<DebateMachine>::of("d-1");
    assert_eq!(
        story.hears(&said("m-open", 0), &opening(policy, terms, known)),
        "opened"
    );
    story
}

fn says(from: &str, id: &str, body: MessageBody) -> DebateInput {
    DebateInput::Message(Box::new(LadderMessage {
        signed_for: None,
        agent_id: agent(from),
        message_id: message(id),
        digest: format!("{body:?}"),
        case_id: None,
        body,
        snapshot: None,
        sender: authority(from, &[Role::Arbiter]),
    }))
}

fn evidence(from: &str, id: &str) -> DebateInput {
    let given = Evidence {
        statement: "See the ROI table.".into(),
        evidence: vec![format!("10-K page {id}")],
        limitation: None,
    };
    says(from, id, MessageBody::Evidence(given))
}

fn command(command: Command) -> DebateInput {
    DebateInput::Command(Box::new(command))
}

fn assigned_to(expert: &str) -> DebateInput {
    command(Command::Assigned {
        expert: agent(expert),
        contact: contact_of(expert),
        background: None,
    })
}

fn contact_of(expert: &str) -> Contact {
    Contact {
        email: Some(format!("{expert}@example.org")),
        webhook: None,
    }
}

fn rules(expert: &str, id: &str, digest: &str, position_id: &str) -> DebateInput {
    let ruling = Ruling {
        signature: None,
        debate_id: concord_wire::DebateId::new("d-1").unwrap(),
        digest: digest.into(),
        position_id: Some(position_id.into()),
        position: None,
        value: None,
        rationale: "The filing says so.".into(),
    };
    says(expert, id, MessageBody::Ruling(Box::new(ruling)))
}

fn reviews(action: ReviewAction) -> DebateInput {
    let review = Review {
        digest: None,
        signature: None,
        gate: "valuation review".into(),
        action,
        debate_id: Some(concord_wire::DebateId::new("d-1").unwrap()),
        position: Some("28".into()),
        value: Some(json!(28)),
        rationale: "Management guidance.".into(),
        context: None,
    };
    command(Command::Reviewed {
        by: agent("gail"),
        first: None,
        first_rationale: None,
        review: Box::new(review),
        again: None,
    })
}

fn ladder(story: &Story<DebateMachine>) -> &Ladder {
    story.state().ladder.as_ref().unwrap()
}

/// Lets the deadline of this name pass; it must be due then.
fn passes(story: &mut Story<DebateMachine>, name: &str, due: Timestamp) -> String {
    let id = story.id.clone();
    let open = DebateMachine::deadlines(story.state());
    assert!(
        open.iter()
            .any(|one| one.name.as_str() == name && one.due == due),
        "{name} at {due} of {open:?}"
    );
    let millis = due.millis_since(after(0));
    let input = DebateInput::Elapsed(elapsed(Aggregate::Debate, &id, name, due));
    story.hears(&happened(&format!("e-{name}"), millis), &input)
}

fn escalation(story: &Story<DebateMachine>) -> (Level, EscalationReason) {
    let DebateEvent::Escalated(escalated) = &story.last().event else {
        panic!("{:?}", story.last().event)
    };
    (escalated.to, escalated.reason)
}

/// A debate that waits for a person, given to `eve`; the digest of the brief.
fn with_eve() -> (Story<DebateMachine>, String) {
    let mut story = challenged();
    passes(&mut story, "acknowledge", after(15 * MINUTE));
    passes(&mut story, "compare", after(15 * MINUTE));
    assert_eq!(
        story.hears(&happened("q-1", 16 * MINUTE), &assigned_to("eve")),
        "assigned"
    );
    let digest = ladder(&story).digest.clone().unwrap();
    (story, digest)
}

/// From level 3 on, reached after an hour, nobody does anything.
fn person_to_gate(mut story: Story<DebateMachine>) {
    // 3: a person 6 hours, reminded at half and at nine tenths: level 4.
    assert_eq!(
        passes(&mut story, "person-half", after(4 * HOUR)),
        "reminded"
    );
    assert_eq!(
        passes(&mut story, "person-nearly", after(6 * HOUR + 24 * MINUTE)),
        "reminded"
    );
    assert_eq!(passes(&mut story, "person", after(7 * HOUR)), "fell_back");
    let DebateEvent::FellBack(fell) = &story.last().event else {
        panic!()
    };
    assert_eq!(
        fell.outcome.resolution.as_ref().unwrap().value,
        Some(json!(25)),
        "the lower margin is cautious"
    );
    // 4: 24 hours: it goes on with the conservative default, and waits for the gate.
    assert_eq!(
        passes(&mut story, "provisional", after(31 * HOUR)),
        "awaits_gate"
    );
    assert_eq!(
        (
            ladder(&story).level,
            DebateMachine::deadlines(story.state()).len()
        ),
        (Level::Gate, 0)
    );
    // 5: until the gate.
    assert_eq!(
        story.hears(&happened("g-1", 40 * HOUR), &reviews(ReviewAction::Confirm)),
        "resolved"
    );
    assert_eq!(
        story.state().outcome.as_ref().unwrap().status,
        Status::Confirmed
    );
    assert_eq!(
        crate::assurance::replay::recount::<DebateMachine>(&story.records),
        vec![]
    );
}

#[test]
fn the_table_of_timeouts_in_the_specification() {
    // 1: acknowledgement 15 minutes, evidence 1 hour: level 2.
    let mut story = challenged();
    assert_eq!(
        passes(&mut story, "acknowledge", after(15 * MINUTE)),
        "escalated"
    );
    assert_eq!(
        escalation(&story),
        (Level::Mediation, EscalationReason::Unacknowledged)
    );
    let mut story = challenged();
    let seen = says(
        "finance",
        "m-1",
        MessageBody::Acknowledgement { commit_by: None },
    );
    assert_eq!(story.hears(&said("m-1", MINUTE), &seen), "acknowledged");
    assert_eq!(passes(&mut story, "evidence", after(HOUR)), "escalated");
    assert_eq!(
        escalation(&story),
        (Level::Mediation, EscalationReason::NoEvidence)
    );
    // 2: mediation 1 hour: level 3.
    let mut overdue = challenged();
    passes(&mut overdue, "acknowledge", after(15 * MINUTE));
    assert_eq!(
        passes(&mut overdue, "mediation", after(75 * MINUTE)),
        "escalated"
    );
    assert_eq!(
        escalation(&overdue),
        (Level::Person, EscalationReason::MediationOverdue)
    );
    assert_eq!(passes(&mut story, "compare", after(HOUR)), "escalated");
    assert_eq!(
        escalation(&story),
        (Level::Person, EscalationReason::CredibilityInconclusive)
    );
    person_to_gate(story);
}

#[test]
fn of_two_deadlines_that_are_over_the_earlier_is_the_reason() {
    let mut story = challenged();
    passes(&mut story, "evidence", after(HOUR));
    assert_eq!(
        escalation(&story),
        (Level::Mediation, EscalationReason::Unacknowledged)
    );
    let mut story = challenged();
    let word = says(
        "finance",
        "m-1",
        MessageBody::Acknowledgement { commit_by: None },
    );
    assert_eq!(story.hears(&said("m-1", MINUTE), &word), "acknowledged");
    passes(&mut story, "evidence", after(HOUR));
    assert_eq!(
        escalation(&story),
        (Level::Mediation, EscalationReason::NoEvidence)
    );
}

#[test]
fn without_a_gate_the_default_becomes_final() {
    let mut story = challenged_with(policy(), terms(None), PriorKnowledge::default());
    passes(&mut story, "acknowledge", after(15 * MINUTE));
    passes(&mut story, "compare", after(15 * MINUTE));
    passes(&mut story, "person", after(6 * HOUR + 15 * MINUTE));
    assert_eq!(
        passes(&mut story, "provisional", after(30 * HOUR + 15 * MINUTE)),
        "resolved"
    );
    assert_eq!(
        story.state().outcome.as_ref().unwrap().status,
        Status::Fallback
    );
}

#[test]
fn operators_hold_resume_and_extend() {
    let mut story = challenged();
    let control = |control, later_ms| {
        command(Command::Deadlines {
            control,
            later_ms,
            by: agent("olga"),
            why: "maintenance".into(),
        })
    };
    assert_eq!(
        story.hears(&said("o-1", MINUTE), &control(DeadlineControl::Hold, 0)),
        "deadlines_moved"
    );
    assert_eq!(DebateMachine::deadlines(story.state()), vec![]);
    assert_eq!(
        story.hears(&said("o-2", MINUTE), &control(DeadlineControl::Hold, 0)),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(
            &said("o-3", 11 * MINUTE),
            &control(DeadlineControl::Resume, 0)
        ),
        "deadlines_moved"
    );
    assert_eq!(ladder(&story).due("acknowledge"), Some(after(25 * MINUTE)));
    assert_eq!(
        story.hears(
            &said("o-4", 12 * MINUTE),
            &control(DeadlineControl::Extend, HOUR)
        ),
        "deadlines_moved"
    );
    assert_eq!(ladder(&story).due("acknowledge"), Some(after(85 * MINUTE)));
    assert_eq!(
        story.hears(
            &said("o-5", 12 * MINUTE),
            &control(DeadlineControl::Extend, 0)
        ),
        "refused: /later_ms"
    );
    let cancel = command(Command::Cancel {
        by: agent("olga"),
        why: "the deal is off".into(),
    });
    assert_eq!(story.hears(&said("o-6", 13 * MINUTE), &cancel), "resolved");
    assert_eq!(
        story.state().outcome.as_ref().unwrap().status,
        Status::Cancelled
    );
    assert_eq!(
        story.hears(
            &said("o-7", 13 * MINUTE),
            &control(DeadlineControl::Hold, 0)
        ),
        "refused: "
    );
}
