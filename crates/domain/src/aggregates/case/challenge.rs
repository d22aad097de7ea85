//! Challenges: one agent disputes the finding of another.

use concord_events::{CaseEvent, CaseOpened, Challenged, DebateAsked, ReceivedFinding};
use concord_wire::payload::{
    Challenge, ChallengeTerms, Conflict, ConflictType, DebateTerms, Finding, Position,
};
use concord_wire::policy::Policy;
use concord_wire::{CaseId, DebateId, ErrorCode, Fault, MessageId};
use serde_json::Value;

use super::ReceivedChallenge;
use super::decide::repetition;
use super::state::{CaseState, Phase};
use crate::aggregates::person::Act;
use crate::machine::Decision;
use crate::rules::canonical::{Allowance, canonical_estimate, in_unit_of, same};
use crate::rules::conflict_type::{check_party, value_in_words};
use crate::rules::conservative::metric_form;
use crate::rules::size_budget::{self, truncate};
use disputed::{Disputed, stated_in_words};

mod disputed;

type CaseDecision = Decision<CaseEvent>;

/// The subject of a challenge that names no metric.
pub(in crate::aggregates) const FINDING: &str = "finding";

pub(super) fn challenge(
    state: &CaseState,
    case_id: &CaseId,
    opened: &CaseOpened,
    received: &ReceivedChallenge,
) -> CaseDecision {
    if let Some(repeated) = repetition(state, opened, &received.heard) {
        return repeated;
    }
    let challenge = &received.challenge;
    let name = challenge
        .challenge_id
        .clone()
        .unwrap_or_else(|| received.heard.message_id.clone());
    let debate_id = DebateId::of_conflict(
        case_id,
        ConflictType::Challenge.as_str(),
        &format!("{}/{name}", challenge.challenger),
    );
    if let Err(fault) = check_challenger(state, opened, received)
        .and_then(|()| check_acceptable(state, opened, &debate_id))
    {
        return Decision::Reject(fault);
    }
    let finding = match disputed(state, challenge) {
        Ok(finding) => finding,
        Err(fault) => return Decision::Reject(fault),
    };
    let policy = &opened.policy;
    let disputed = Disputed::of(policy, &finding.finding, challenge.metric.as_deref());
    let quoted = match &disputed.stated {
        Some(stated) => check_quoted(stated, challenge),
        None => check_subject(policy, &finding.finding, challenge),
    };
    if let Err(fault) = quoted {
        return Decision::Reject(fault);
    }
    let confidence = state.confidence(finding);
    let conflict = conflict(debate_id, policy, received, (finding, confidence), disputed);
    if let Err(fault) = check_own(&conflict, policy, challenge) {
        return Decision::Reject(fault);
    }
    let terms = DebateTerms {
        opened_by: opened.opener_of_debates(),
        challenge: Some(terms(name, challenge)),
        priority: challenge.priority,
        // Who may review it, and whose record counts, the challenger does not choose where the policy has said it.
        domain: (policy.ladder.domain.clone()).or_else(|| challenge.domain.clone()),
        dependants: challenge.dependants.clone(),
        gate: state.reviewing_gate().map(str::to_owned),
        refers_to: None,
        added_context: None,
        circumstances: opened.circumstances.clone(),
        confirmed: (state.confirmed().into_iter())
            .filter(|(author, _)| *author == challenge.challenged)
            .collect(),
        answers_per_round_max: None,
    };
    Decision::Append(CaseEvent::Challenged(Box::new(Challenged {
        heard: received.heard.clone(),
        asked: DebateAsked {
            conflict: size_budget::debated_conflict(&conflict),
            policy: opened.policy.clone(),
            terms,
        },
    })))
}

/// Checks that the sender may challenge in this case, and has not done so too often.
fn check_challenger(
    state: &CaseState,
    opened: &CaseOpened,
    received: &ReceivedChallenge,
) -> Result<(), Fault> {
    let from = &received.heard.agent_id;
    let participant = opened.participants.contains(from);
    received
        .sender
        .allow(from, &Act::Challenge { participant })?;
    let limit = opened.policy.ladder.challenges_per_challenger;
    let own = state.asked.values().filter(|asked| {
        let terms = &asked.terms;
        let challenger = terms.challenge.as_ref().map(|terms| &terms.challenger);
        terms.refers_to.is_none() && challenger == Some(from)
    });
    if own.count() < limit as usize {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "",
        format!(
            "{limit} challenges of {from} were accepted in this case; its policy allows no more of one challenger."
        ),
        "Give evidence in the debates there are, or have another participant challenge it.",
    ))
}

/// Checks that the case can take another challenge, and this one.
fn check_acceptable(
    state: &CaseState,
    opened: &CaseOpened,
    debate_id: &DebateId,
) -> Result<(), Fault> {
    if state.phase == Phase::Cancelled || (state.phase == Phase::Decided && state.gate().is_none())
    {
        return Err(Fault::new(
            ErrorCode::Timeout,
            "",
            "The case is over; nothing can be challenged in it any more.",
            "Challenge before the decision, or before the last gate of a case that has gates.",
        ));
    }
    if state.asked.contains_key(debate_id) {
        return Err(Fault::invalid(
            "/payload/challenge_id",
            "There is a challenge of yours with this id in the case.",
            "Give every challenge an id of its own.",
        ));
    }
    let limit = opened.policy.ladder.challenges_max;
    if state
        .asked
        .values()
        .filter(|asked| asked.terms.refers_to.is_none())
        .count()
        >= limit as usize
    {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!("{limit} challenges were accepted in this case; its policy allows no more."),
            "Raise challenges_max in the policy's ladder when opening a case.",
        ));
    }
    Ok(())
}

/// The finding that the challenge disputes.
fn disputed<'a>(state: &'a CaseState, challenge: &Challenge) -> Result<&'a ReceivedFinding, Fault> {
    let of_agent = state
        .findings
        .iter()
        .find(|received| received.agent_id == challenge.challenged);
    let Some(finding) = of_agent else {
        return Err(Fault::invalid(
            "/payload/challenged",
            format!(
                "There is no finding of {} in this case.",
                challenge.challenged
            ),
            "Challenge a finding that was recorded; `concord case show` lists them.",
        ));
    };
    match &challenge.finding_id {
        Some(named) if *named != finding.message_id => Err(Fault::invalid(
            "/payload/finding_id",
            format!(
                "{named} is no finding of {} in this case.",
                challenge.challenged
            ),
            format!("Its finding is {}.", finding.message_id),
        )),
        _ => Ok(finding),
    }
}

fn terms(challenge_id: MessageId, challenge: &Challenge) -> ChallengeTerms {
    ChallengeTerms {
        challenge_id,
        challenger: challenge.challenger.clone(),
        challenged: challenge.challenged.clone(),
        basis: challenge.challenge_basis.clone(),
        required_evidence: challenge.required_evidence.clone(),
        escalation_timer: challenge
            .escalation_timer
            .and_then(|seconds| u64::try_from(seconds).ok()),
        provisional_resolution: challenge
            .provisional_resolution
            .as_ref()
            .map(truncate::value),
        historical_context: challenge.historical_context.clone(),
    }
}

/// The positions of challenger and challenged, in the form of a detected conflict.
fn conflict(
    conflict_id: DebateId,
    policy: &Policy,
    received: &ReceivedChallenge,
    (finding, confidence): (&ReceivedFinding, f64),
    disputed: Disputed,
) -> Conflict {
    let challenge = &received.challenge;
    let stated = disputed.stated;
    let in_words = || stated_in_words(policy, &disputed.subject, challenge, &finding.finding);
    let stated = stated.or_else(|| challenge.challenged_value.clone());
    let stated = stated.or_else(in_words);
    let own = challenge.value.as_ref();
    let own = own.map(|own| in_unit_of(own, stated.clone()));
    let challenged = Position {
        agent_id: challenge.challenged.clone(),
        position: challenge.disputed_finding.clone(),
        value: stated,
        confidence,
        evidence: finding.finding.evidence.clone(),
        reasoning: Some(finding.finding.summary.clone()),
        evidence_omitted: 0,
    };
    let doubt = || format!("Not established: {}", challenge.disputed_finding);
    let challenger = Position {
        agent_id: challenge.challenger.clone(),
        position: challenge.position.clone().unwrap_or_else(doubt),
        value: own,
        confidence: received.confidence,
        evidence: challenge.evidence.clone(),
        reasoning: Some(challenge.challenge_basis.clone()),
        evidence_omitted: 0,
    };
    let mut positions = vec![challenged, challenger];
    positions.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    let mut conflict = Conflict {
        conflict_id,
        kind: ConflictType::Challenge,
        topic: challenge.disputed_finding.clone(),
        subject: disputed.subject,
        weight: 1.0,
        positions,
        positions_omitted: 0,
    };
    let stated = |words: &String| value_in_words(&conflict, policy, words);
    let stated = challenge.position.as_ref().and_then(stated);
    for own in &mut conflict.positions {
        if own.agent_id == challenge.challenger && own.value.is_none() {
            own.value = stated.clone();
        }
    }
    conflict
}

/// Nobody says of a finding what it does not say: caution compares the two values, and the higher risk stands until a person rules.
fn check_quoted(stated: &Value, challenge: &Challenge) -> Result<(), Fault> {
    let Some(quoted) = &challenge.challenged_value else {
        return Ok(());
    };
    let read = canonical_estimate(&in_unit_of(quoted, [stated.clone()]), None);
    // A little apart, because 28 * 0.01 is not 0.28 in binary.
    let allowed = Allowance::relative(1e-9);
    if same(&canonical_estimate(stated, None), &read, &allowed) {
        return Ok(());
    }
    let challenged = &challenge.challenged;
    Err(Fault::invalid(
        "/payload/challenged_value",
        format!("The finding of {challenged} does not say {quoted} but {stated}."),
        "Leave `challenged_value` out: what the finding says is challenged.",
    ))
}

/// The challenger's value is one that the result can have, and can be compared with what is disputed; its words say nothing else.
fn check_own(conflict: &Conflict, policy: &Policy, challenge: &Challenge) -> Result<(), Fault> {
    let mut disputed = conflict.clone();
    disputed
        .positions
        .retain(|one| one.agent_id == challenge.challenged);
    // Words alone may doubt whatever they like.
    let words = challenge.position.as_deref();
    let words = words.filter(|_| challenge.value.is_some());
    check_party(&disputed, policy, (words, challenge.value.as_ref()))
}

/// Nobody says of an estimate of one thing that it is of another: a finding that says something of this metric, but of other things, is not
/// quoted.
fn check_subject(policy: &Policy, finding: &Finding, challenge: &Challenge) -> Result<(), Fault> {
    let metric = challenge.metric.as_deref().unwrap_or_default();
    let of_other = |(_, metric): (&str, &str)| {
        let estimates = finding.estimates.iter();
        let same =
            estimates.filter(|one| metric_form(policy, &one.metric) == metric_form(policy, metric));
        let subjects: Vec<String> = same
            .filter_map(|one| Some(format!("{}/{}", one.subject.as_ref()?, one.metric)))
            .collect();
        (!subjects.is_empty()).then(|| subjects.join(", "))
    };
    let others = metric.split_once('/').and_then(of_other);
    let Some(others) = others.filter(|_| challenge.challenged_value.is_some()) else {
        return Ok(());
    };
    let challenged = &challenge.challenged;
    Err(Fault::invalid(
        "/payload/metric",
        format!("The finding of {challenged} says nothing of {metric:?}."),
        format!("Name what it says: {others}."),
    ))
}
