//! Who may review at a gate, and how many must agree.

use concord_events::{CaseEvent, CaseOpened, ReviewRecorded};
use concord_wire::payload::{Conflict, ConflictOutcome, Level, Resolution, Review, ReviewAction};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{AgentId, DebateId, ErrorCode, Fault};

use super::ReceivedReview;
use super::state::CaseState;
use crate::aggregates::person::{Act, Authority};
use crate::machine::Decision;
use crate::rules::canonical::normalise;
use crate::rules::conflict_type::is_same_resolution;

/// Checks that the sender is a reviewer of the gate and the domain, and neither argued nor decided
/// what is reviewed.
pub(super) fn check(
    state: &CaseState,
    opened: &CaseOpened,
    received: &ReceivedReview,
) -> Result<(), Fault> {
    let (review, by) = (&received.review, &received.heard.agent_id);
    let act = Act::Review {
        gate: &review.gate,
        domain: domain(state, opened, review.debate_id.as_ref()),
    };
    received.sender.allow(by, &act)?;
    check_part(state, review, by).map_err(|what| {
        let advice = "Have it reviewed by somebody who neither argued nor decided; an operator knows who can.";
        Fault::new(ErrorCode::Unauthorized, "/from_agent", what, advice)
    })
}

/// Checks that somebody neither argued nor decided what is reviewed; else what they did.
fn check_part(state: &CaseState, review: &Review, by: &AgentId) -> Result<(), String> {
    if argued(state, by) {
        return Err(format!(
            "{by} has argued in this case and cannot review it."
        ));
    }
    let decided = match &review.debate_id {
        Some(debate_id) => {
            let taken_up = state.taken_up(debate_id);
            let mut outcomes = taken_up.filter_map(|id| state.outcomes.get(id));
            outcomes.any(|outcome| decided(outcome, by))
        }
        None => state.outcomes.values().any(|outcome| ruled(outcome, by)),
    };
    if decided {
        return Err(format!(
            "{by} was the one to decide what is reviewed here, and nobody reviews themselves."
        ));
    }
    Ok(())
}

/// The domain that the policy states; without one, that of the debate. Challenges once stated their own before it.
fn domain<'a>(
    state: &'a CaseState,
    opened: &'a CaseOpened,
    debate_id: Option<&DebateId>,
) -> Option<&'a str> {
    let asked = || debate_id.and_then(|id| state.asked.get(id));
    let stated = opened.policy.ladder.domain.as_deref();
    stated.or_else(|| asked()?.terms.domain.as_deref())
}

/// Whether somebody has said something in the case, or challenged in it. Services take part in all. To be among the participants is not enough,
/// from the beginning or later: by naming reviewers there nobody chooses who is left to review.
fn argued(state: &CaseState, by: &AgentId) -> bool {
    let mut challenges = state
        .asked
        .values()
        .filter_map(|asked| asked.terms.challenge.as_ref());
    has_said_something(state, by)
        || Service::parse(by.as_str()).is_ok()
        || challenges.any(|terms| terms.challenger == *by)
}

/// Whether somebody has found, estimated or confirmed something in the case, or was heard in a debate.
fn has_said_something(state: &CaseState, by: &AgentId) -> bool {
    let used = state.findings.iter();
    let mut found = used.chain(state.set_aside.iter().map(|(_, received)| received));
    let mut confirmed = state.confirmations.values();
    let mut debated = state.outcomes.values().flat_map(|one| &one.positions);
    let mut noted = state.noted.keys();
    found.any(|received| received.agent_id == *by)
        || noted.any(|(agent, _)| agent == by)
        || confirmed.any(|of| of.contains_key(by))
        || debated.any(|position| position.agent_id == *by)
}

/// Whether somebody ruled in a debate, or had it for a ruling when its time was over.
fn decided(outcome: &ConflictOutcome, by: &AgentId) -> bool {
    let had_it = outcome
        .provisional
        .as_ref()
        .and_then(|one| one.expert.as_ref());
    ruled(outcome, by) || had_it == Some(by)
}

fn ruled(outcome: &ConflictOutcome, by: &AgentId) -> bool {
    // At the gate it is a reviewer who is named here.
    outcome.level == Some(Level::Person)
        && outcome
            .ruled_by
            .as_ref()
            .is_some_and(|ruled| ruled.expert == *by)
}

/// The review of another reviewer that this one says the same as; none where the policy wants one reviewer only. Where it wants two and this is
/// the first who says so, it does not count yet, and what to do about it is the error. Who has said so and may not review any more is not one of the two.
pub(super) fn first_of_two<'a>(
    state: &'a CaseState,
    opened: &CaseOpened,
    received: &ReceivedReview,
) -> Result<Option<&'a (AgentId, Review)>, Box<Decision<CaseEvent>>> {
    if opened.policy.ladder.reviewers_min < 2 {
        return Ok(None);
    }
    let (review, by) = (&received.review, &received.heard.agent_id);
    let may = |agent: &AgentId| {
        let now = received.first.get(agent);
        is_reviewer(state, opened, review, (agent, now))
    };
    let about = about(state, review);
    let mut said = state
        .first_reviews
        .iter()
        .filter(|(agent, earlier)| agree(about, &opened.policy, earlier, review) && may(agent));
    if let Some(first) = said.clone().find(|(agent, _)| agent != by) {
        return Ok(Some(first));
    }
    if said.any(|(agent, _)| agent == by) {
        return Err(Box::new(Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{by} has said so already, and this case wants two reviewers."),
            "Have another reviewer send the same; an operator knows who can.",
        ))));
    }
    Err(Box::new(Decision::Append(CaseEvent::ReviewRecorded(
        Box::new(ReviewRecorded {
            heard: received.heard.clone(),
            review: review.clone(),
        }),
    ))))
}

/// Whether somebody who was the first of two reviewers may review that still; what they have said counts only then.
pub fn may_review_still(
    state: &CaseState,
    review: &Review,
    (by, now): (&AgentId, &Authority),
) -> bool {
    let opened = state.opened.as_ref();
    opened.is_some_and(|opened| is_reviewer(state, opened, review, (by, Some(now))))
}

/// Whether somebody may review this, as far as it is known what they may do now.
fn is_reviewer(
    state: &CaseState,
    opened: &CaseOpened,
    review: &Review,
    (by, now): (&AgentId, Option<&Authority>),
) -> bool {
    let act = Act::Review {
        gate: &review.gate,
        domain: domain(state, opened, review.debate_id.as_ref()),
    };
    // Who was first may have challenged or ruled since.
    now.is_none_or(|now| now.allow(by, &act).is_ok()) && check_part(state, review, by).is_ok()
}

/// The conflict that a review is about.
fn about<'a>(state: &'a CaseState, review: &Review) -> Option<&'a Conflict> {
    let debate = review.debate_id.as_ref()?;
    let mut debated = state.debated.iter();
    debated.find(|conflict| conflict.conflict_id == *debate)
}

/// Whether two reviews ask for the same: gate, debate and action, of overriding ones the words and the value, and on what, where both say what
/// they have seen. Reasons may differ.
fn agree(conflict: Option<&Conflict>, policy: &Policy, one: &Review, other: &Review) -> bool {
    let seen = one.digest.as_ref().zip(other.digest.as_ref());
    let same = seen.is_none_or(|(one, other)| one == other)
        && (&one.gate, &one.debate_id, one.action) == (&other.gate, &other.debate_id, other.action);
    if !same || one.action != ReviewAction::Override {
        return same;
    }
    conflict.is_some_and(|conflict| {
        is_same_resolution(conflict, policy, &overriding(one), &overriding(other))
    })
}

/// What a review would put in the place of a provisional decision.
pub(super) fn overriding(review: &Review) -> Resolution {
    Resolution {
        position: review.position.clone().unwrap_or_default(),
        value: review.value.clone(),
        supporters: Vec::new(),
    }
}

/// What the parties did not know before, by both reviewers where the second one says something else than the first.
pub(super) fn context_of_both(
    (first, earlier): &(AgentId, Review),
    received: &ReceivedReview,
) -> Option<String> {
    let second = &received.heard.agent_id;
    match (&earlier.context, &received.review.context) {
        (Some(one), Some(other)) if normalise(one) != normalise(other) => {
            Some(format!("{first}: {one}\n\n{second}: {other}"))
        }
        (one, other) => one.as_ref().or(other.as_ref()).cloned(),
    }
}
