//! Challenges: one agent disputes the finding of another.

use concord_events::{CaseEvent, CaseOpened, Challenged, DebateAsked, ReceivedFinding};
use concord_wire::payload::{
    Challenge, ChallengeTerms, Conflict, ConflictType, DebateTerms, Position,
};
use concord_wire::policy::Policy;
use concord_wire::{CaseId, DebateId, ErrorCode, Fault, MessageId};
use serde_json::{Value, json};

use super::ReceivedChallenge;
use super::decide::repetition;
use super::state::{CaseState, Phase};
use crate::aggregates::person::Act;
use crate::machine::Decision;
use crate::rules::canonical::{canonical, normalise};
use crate::rules::conflict_type::{RECOMMENDATION, RISK_SCORE, SEVERITY, value_in_words};
use crate::rules::size_budget::{self, truncate};

type CaseDecision = Decision<CaseEvent>;

/// The subject of a challenge that names no metric.
const FINDING: &str = "finding";

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
    if let Err(fault) = check_quoted(finding, challenge) {
        return Decision::Reject(fault);
    }
    let conflict = conflict(debate_id, &opened.policy, received, finding);
    let terms = DebateTerms {
        opened_by: opened.opener_of_debates(),
        challenge: Some(terms(name, challenge)),
        priority: challenge.priority,
        domain: challenge
            .domain
            .clone()
            .or_else(|| opened.policy.ladder.domain.clone()),
        dependants: challenge.dependants.clone(),
        gate: state.reviewing_gate().map(str::to_owned),
        refers_to: None,
        added_context: None,
        circumstances: opened.circumstances.clone(),
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
    finding: &ReceivedFinding,
) -> Conflict {
    let challenge = &received.challenge;
    let challenged = Position {
        agent_id: challenge.challenged.clone(),
        position: challenge.disputed_finding.clone(),
        value: stated_value(finding, challenge).or_else(|| challenge.challenged_value.clone()),
        confidence: finding.confidence,
        evidence: finding.finding.evidence.clone(),
        reasoning: Some(finding.finding.summary.clone()),
        evidence_omitted: 0,
    };
    let doubt = || format!("Not established: {}", challenge.disputed_finding);
    let challenger = Position {
        agent_id: challenge.challenger.clone(),
        position: challenge.position.clone().unwrap_or_else(doubt),
        value: challenge.value.clone(),
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
        subject: challenge
            .metric
            .as_deref()
            .map_or_else(|| FINDING.to_owned(), subject_of),
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

/// What the finding says itself of the challenged metric.
fn stated_value(finding: &ReceivedFinding, challenge: &Challenge) -> Option<Value> {
    value_of(finding, challenge.metric.as_deref()?)
}

/// Nobody says of a finding what it does not say: caution compares the two values, and the higher risk stands until a person rules.
fn check_quoted(finding: &ReceivedFinding, challenge: &Challenge) -> Result<(), Fault> {
    let stated = stated_value(finding, challenge);
    let (Some(stated), Some(quoted)) = (stated, &challenge.challenged_value) else {
        return Ok(());
    };
    if canonical(&stated, None) == canonical(quoted, None) {
        return Ok(());
    }
    let challenged = &challenge.challenged;
    Err(Fault::invalid(
        "/payload/challenged_value",
        format!("The finding of {challenged} does not say {quoted} but {stated}."),
        "Leave `challenged_value` out: what the finding says is challenged.",
    ))
}

/// The name under which a metric is disputed: that of the result where it is one of the result, however it is spelled.
fn subject_of(metric: &str) -> String {
    let spaced = normalise(metric).replace(['_', '-', '/'], " ");
    match spaced.as_str() {
        "risk score" => RISK_SCORE.to_owned(),
        RECOMMENDATION => RECOMMENDATION.to_owned(),
        SEVERITY => SEVERITY.to_owned(),
        _ => metric.to_owned(),
    }
}

/// The value that the finding states for a metric.
fn value_of(finding: &ReceivedFinding, metric: &str) -> Option<Value> {
    let (finding, metric) = (&finding.finding, normalise(&subject_of(metric)));
    match metric.as_str() {
        RISK_SCORE => finding.risk_score.map(|score| json!(score)),
        SEVERITY => finding.severity.map(|severity| json!(severity)),
        RECOMMENDATION => finding.recommendation.as_ref().map(|words| json!(words)),
        _ => {
            let mut estimates = finding.estimates.iter();
            let mut clauses = finding.clauses.iter();
            let mut relied_on = finding.affected_clauses.iter();
            let estimate = estimates.find(|estimate| normalise(&estimate.metric) == metric);
            let clause = clauses.find(|clause| normalise(&clause.kind) == metric);
            let is_relied_on = relied_on.any(|name| normalise(name) == metric);
            estimate
                .map(|estimate| json!(estimate.value))
                .or_else(|| clause.map(|clause| json!(clause.present)))
                .or_else(|| is_relied_on.then_some(json!(true)))
        }
    }
}
