//! Gates: people review provisional decisions and let the case pass.

use concord_events::{CaseEvent, CaseOpened, DebateAsked, GatePassed, GateReviewed};
use concord_wire::id::GateName;
use concord_wire::payload::{
    Conflict, ConflictOutcome, DebateTerms, Position, Review, ReviewAction,
};
use concord_wire::{AgentId, CaseId, DebateId, ErrorCode, Fault};

use super::ReceivedReview;
use super::decide::repetition;
use super::state::{CaseState, Phase};
use super::{reviewers, shown};
use crate::aggregates::person::Signed;
use crate::machine::Decision;
use crate::rules::conflict_type::{check_resolution, value_wanted, valued};
use crate::rules::size_budget;

type CaseDecision = Decision<CaseEvent>;

pub(super) fn review(
    state: &CaseState,
    case_id: &CaseId,
    opened: &CaseOpened,
    received: &ReceivedReview,
) -> CaseDecision {
    if let Some(repeated) = repetition(state, opened, &received.heard) {
        return repeated;
    }
    let review = &received.review;
    if let Err(fault) = reviewers::check(state, opened, received)
        .and_then(|()| check_signature(opened, received))
        .and_then(|()| check_at_gate(state, received))
    {
        return Decision::Reject(fault);
    }
    let Some(debate_id) = &review.debate_id else {
        return pass(state, opened, received);
    };
    let outcome = match unreviewed(state, debate_id) {
        Ok(outcome) => outcome,
        Err(fault) => return Decision::Reject(fault),
    };
    if let Err(fault) = shown::check(state, opened, review)
        .and_then(|()| check_overriding(state, opened, debate_id, review))
    {
        return Decision::Reject(fault);
    }
    let mut again = match review.action {
        ReviewAction::Redebate => match redebate(state, case_id, opened, outcome, review) {
            Ok(asked) => Some(Box::new(asked)),
            Err(fault) => return Decision::Reject(fault),
        },
        ReviewAction::Confirm | ReviewAction::Override | ReviewAction::Pass => None,
    };
    let first = match reviewers::first_of_two(state, opened, received) {
        Ok(first) => first,
        Err(is_first) => return *is_first,
    };
    if let (Some(first), Some(asked)) = (first, &mut again) {
        asked.terms.added_context = reviewers::context_of_both(first, received);
    }
    Decision::Append(CaseEvent::GateReviewed(Box::new(GateReviewed {
        heard: received.heard.clone(),
        debate_id: debate_id.clone(),
        review: review.clone(),
        first_reviewer: first.map(|(agent, _)| agent.clone()),
        first_rationale: first
            .map(|(_, review)| review.rationale.clone())
            .filter(|reason| !reason.is_empty()),
        again,
    })))
}

fn check_signature(opened: &CaseOpened, received: &ReceivedReview) -> Result<(), Fault> {
    let signed = Signed {
        signature: received.review.signature.as_ref(),
        fits: received.is_signed,
        required: opened.policy.ladder.signed,
        how: "concord gate review --key FILE",
    };
    let by = &received.heard.agent_id;
    received.sender.check_signature(by, &signed)
}

/// The review of a gate that is passed, where there is more to keep of it than its reason.
fn kept(review: &Review) -> Option<Box<Review>> {
    let has_more = review.signature.is_some() || review.digest.is_some();
    has_more.then(|| Box::new(review.clone()))
}

/// Most gates of a case.
const GATES_MAX: usize = 16;

/// Checks the gates that a request to open a case states.
pub(super) fn check_names(gates: &[GateName]) -> Result<(), Fault> {
    const POINTER: &str = "/payload/parameters/gates";
    if gates.len() > GATES_MAX {
        let what = format!("A case has at most {GATES_MAX} gates, not {}.", gates.len());
        return Err(Fault::invalid(POINTER, what, "Name fewer."));
    }
    for (place, gate) in gates.iter().enumerate() {
        if gates.iter().take(place).any(|earlier| earlier == gate) {
            return Err(Fault::invalid(
                format!("{POINTER}/{place}"),
                format!("The gate {gate} is named twice."),
                "Name each gate once.",
            ));
        }
    }
    Ok(())
}

/// Checks that the case is at the gate that the review names.
fn check_at_gate(state: &CaseState, received: &ReceivedReview) -> Result<(), Fault> {
    let gate = &received.review.gate;
    if state.phase == Phase::Cancelled {
        return Err(Fault::invalid(
            "",
            "The case is cancelled.",
            "Open another case.",
        ));
    }
    match state.gate() {
        Some(ahead) if ahead == gate => Ok(()),
        Some(ahead) => Err(Fault::invalid(
            "/payload/gate",
            format!("The case is not at the gate {gate:?}."),
            format!("The gate ahead is {ahead:?}."),
        )),
        None => Err(Fault::invalid(
            "/payload/gate",
            format!("The case has no gate {gate:?} ahead."),
            "Gates are named when a case is opened, in `gates`; this case has none left.",
        )),
    }
}

fn unreviewed<'a>(
    state: &'a CaseState,
    debate_id: &DebateId,
) -> Result<&'a ConflictOutcome, Fault> {
    let found = state
        .unreviewed()
        .find(|outcome| outcome.conflict_id == *debate_id);
    found.ok_or_else(|| {
        let open: Vec<&str> = state
            .unreviewed()
            .map(|outcome| outcome.conflict_id.as_str())
            .collect();
        let advice = match (open.as_slice(), in_the_way(state)) {
            ([], None) => "Nothing is to be reviewed at this gate; pass it.".to_owned(),
            ([], Some(what)) => {
                format!("Nothing is to be reviewed at this gate yet: {what}.")
            }
            (open, _) => format!("To be reviewed: {}.", open.join(", ")),
        };
        Fault::invalid(
            "/payload/debate_id",
            format!("{debate_id} is no provisional decision of this case that waits for a review."),
            advice,
        )
    })
}

/// Checks what is put in the place of a provisional decision.
fn check_overriding(
    state: &CaseState,
    opened: &CaseOpened,
    debate_id: &DebateId,
    review: &Review,
) -> Result<(), Fault> {
    let mut debated = state.debated.iter();
    let conflict = debated.find(|conflict| conflict.conflict_id == *debate_id);
    let (ReviewAction::Override, Some(conflict)) = (review.action, conflict) else {
        return Ok(());
    };
    let policy = &opened.policy;
    let resolution = valued(conflict, policy, reviewers::overriding(review));
    check_resolution(conflict, policy, &conflict.positions, &resolution)?;
    // Once it has counted nobody can add the value any more.
    let said = (resolution.position.as_str(), resolution.value.as_ref());
    value_wanted(conflict, policy, said).map_or(Ok(()), |wanted| {
        Err(Fault::invalid(
            "/payload/value",
            format!(
                "The words state no value of {:?}, so nothing would follow from them.",
                conflict.subject
            ),
            format!("Give {wanted} as `value` beside them (`--value`)."),
        ))
    })
}

/// The debate that takes a provisional decision up again.
fn redebate(
    state: &CaseState,
    case_id: &CaseId,
    opened: &CaseOpened,
    outcome: &ConflictOutcome,
    review: &Review,
) -> Result<DebateAsked, Fault> {
    let earlier = state
        .debated
        .iter()
        .find(|conflict| conflict.conflict_id == outcome.conflict_id);
    let earlier = earlier
        .ok_or_else(|| Fault::invalid("/payload/debate_id", "The debate is not known.", "Pass."))?;
    let times = state.taken_up(&outcome.conflict_id).count();
    let limit = opened.policy.ladder.redebates_max;
    if times > limit as usize {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/action",
            format!("This was debated again {limit} times; the policy allows no more."),
            "Confirm or override it.",
        ));
    }
    let conflict_id = DebateId::of_conflict(
        case_id,
        "redebate",
        &format!("{}/{times}", outcome.conflict_id),
    );
    let conflict = Conflict {
        conflict_id,
        positions: outcome.positions.clone(),
        ..earlier.clone()
    };
    let asked_before = state
        .asked
        .get(&outcome.conflict_id)
        .map(|asked| asked.terms.clone());
    let confirmed = asked_before.as_ref().map(|before| before.confirmed.clone());
    let mut confirmed = confirmed.unwrap_or_else(|| state.confirmed());
    confirmed.retain(|party, _| keeps(party, earlier, outcome));
    let terms = DebateTerms {
        refers_to: Some(outcome.conflict_id.clone()),
        confirmed,
        added_context: review.context.clone(),
        gate: state.gate().map(str::to_owned),
        ..asked_before.unwrap_or_else(|| DebateTerms {
            opened_by: opened.opener_of_debates(),
            priority: opened.policy.ladder.priority,
            domain: opened.policy.ladder.domain.clone(),
            circumstances: opened.circumstances.clone(),
            ..DebateTerms::default()
        })
    };
    Ok(DebateAsked {
        conflict: size_budget::debated_conflict(&conflict),
        policy: opened.policy.clone(),
        terms,
    })
}

/// Whether a party holds at the end of a debate what it held at its beginning.
fn keeps(party: &AgentId, before: &Conflict, after: &ConflictOutcome) -> bool {
    let of = |positions: &[Position]| {
        let mut held = positions.iter().filter(|held| held.agent_id == *party);
        held.next()
            .map(|held| (held.position.clone(), held.value.clone()))
    };
    of(&before.positions).is_some_and(|held| of(&after.positions) == Some(held))
}

/// What has to come before anybody can let the case pass its gate, besides reviews.
fn in_the_way(state: &CaseState) -> Option<String> {
    if state.phase < Phase::Decided {
        return Some("it is not decided yet".to_owned());
    }
    match state.open_debates().count() {
        0 => None,
        1 => Some("1 debate is under way".to_owned()),
        number => Some(format!("{number} debates are under way")),
    }
}

fn require_review(number: usize) -> String {
    match number {
        1 => "1 provisional decision requires review".to_owned(),
        number => format!("{number} provisional decisions require review"),
    }
}

fn pass(state: &CaseState, opened: &CaseOpened, received: &ReceivedReview) -> CaseDecision {
    let gate = &received.review.gate;
    if let Some(what) = in_the_way(state) {
        return Decision::Reject(Fault::invalid(
            "/payload/action",
            format!("The case cannot pass the gate {gate:?}: {what}."),
            "Wait for its decision and its debates; `concord gate show` says what is open.",
        ));
    }
    let unreviewed: Vec<DebateId> = state
        .unreviewed()
        .map(|outcome| outcome.conflict_id.clone())
        .collect();
    if !unreviewed.is_empty() && !opened.policy.ladder.pass_unreviewed {
        let names: Vec<&str> = unreviewed.iter().map(DebateId::as_str).collect();
        return Decision::Reject(Fault::invalid(
            "/payload/action",
            format!("{} at the gate {gate:?}.", require_review(unreviewed.len())),
            format!("Confirm, override or debate again: {}.", names.join(", ")),
        ));
    }
    if let Err(fault) = shown::check(state, opened, &received.review) {
        return Decision::Reject(fault);
    }
    let first = match reviewers::first_of_two(state, opened, received) {
        Ok(first) => first,
        Err(is_first) => return *is_first,
    };
    debug_assert!(
        state.gate() == Some(gate.as_str()),
        "a case passes the gate that is ahead"
    );
    Decision::Append(CaseEvent::GatePassed(GatePassed {
        heard: received.heard.clone(),
        gate: gate.clone(),
        first_reviewer: first.map(|(agent, _)| agent.clone()),
        next: opened.gates.get(state.gates_passed + 1).cloned(),
        unreviewed,
        rationale: received.review.rationale.clone(),
        review: kept(&received.review),
    }))
}
