//! What to do about an input to a debate. Split by input; the table is in the module above.

use concord_events::{
    AnswerSetAside, Answered, CloseReason, DeadlineElapsed, DebateEvent, DebateOpened, Heard,
    ReceivedAnswer,
};
use concord_wire::payload::{
    Answer, Conflict, OpenDebate, Position, SetAsideReason, json_text_bytes,
};
use concord_wire::policy::Policy;
use concord_wire::{AgentId, ErrorCode, Fault};

use super::state::DebateState;
use super::{DebateInput, GivenAnswer, Opening, close, ground_truth, position, round_name};
use crate::aggregates::case::{PARTICIPANTS_MAX, reused_message_id};
use crate::aggregates::escalation::{self, Order, Word};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::{self, ANSWER_BYTES_MAX, SUBJECT_BYTES_MAX, json_bytes};

type DebateDecision = Decision<DebateEvent>;

pub(super) fn decide(
    state: &DebateState,
    context: &Context,
    input: &DebateInput,
) -> DebateDecision {
    match (input, &state.opened) {
        (DebateInput::Open(opening), None) => open(context, opening),
        (DebateInput::Open(_), Some(_)) => Decision::Ignore(Ignored::AlreadyDone),
        (input, None) => Decision::Reject(unknown(input)),
        (DebateInput::Answer(given), Some(opened)) => answer(state, opened, context, given),
        (DebateInput::Said(said), Some(opened)) => {
            escalation::said(state, opened, state.ladder.as_deref(), context, said)
        }
        (DebateInput::Order(order), Some(opened)) => self::order(state, opened, context, order),
        (DebateInput::Outcome(told), Some(opened)) => {
            ground_truth::told(state, opened, context, told)
        }
        (DebateInput::Elapsed(deadline), Some(opened)) => elapsed(state, opened, context, deadline),
    }
}

/// The fault stands where the message names its debate.
fn unknown(input: &DebateInput) -> Fault {
    const NONE: &str = "There is no such debate.";
    let named = match input {
        DebateInput::Outcome(_) => true,
        DebateInput::Said(said) => matches!(said.word, Word::Ruling(_)),
        _ => false,
    };
    if named {
        return Fault::invalid(
            "/payload/debate_id",
            NONE,
            "Name a debate; `concord decisions list` and the brief give its id.",
        );
    }
    let advice = "Answer with reply_to set to the question's message_id, or correlation_id to its debate_id.";
    Fault::invalid("/reply_to", NONE, advice)
}

fn order(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    order: &Order,
) -> DebateDecision {
    if let Order::Cancel { by, why } = order {
        return escalation::cancel(state, opened, context, by, why);
    }
    let Some(on) = state.ladder.as_deref() else {
        return Decision::Reject(Fault::invalid(
            "",
            "This debate is discussed in rounds and is on no level of the ladder.",
            "Wait for the end of its rounds.",
        ));
    };
    match order {
        Order::Assigned { .. } | Order::Unassigned { .. }
            if state.queued_by.contains(&context.cause) =>
        {
            Decision::Ignore(Ignored::Repetition)
        }
        Order::Assigned { expert, contact } => {
            escalation::assigned(state, opened, on, expert, contact)
        }
        Order::Unassigned { expert } => escalation::unassigned(state, opened, on, expert),
        Order::Overflowed { handling } => {
            escalation::overflowed(state, opened, on, context, *handling)
        }
        Order::Reviewed { by, review, again } => {
            escalation::reviewed(state, opened, on, context, by, review, again.as_ref())
        }
        Order::Deadlines {
            control,
            later_ms,
            by,
            why,
        } => escalation::control(state, opened, on, context, (*control, *later_ms), by, why),
        Order::Cancel { .. } => Decision::Ignore(Ignored::AlreadyDone),
    }
}

fn open(context: &Context, opening: &Opening) -> DebateDecision {
    let OpenDebate {
        case_id,
        conflict,
        policy,
        terms,
    } = &opening.request;
    if let Err(fault) = check_conflict(conflict) {
        return Decision::Reject(fault);
    }
    let conflict = size_budget::debated_conflict(conflict);
    // A challenge is settled by those two, not in rounds.
    let held = policy.rounds_max > 0 && terms.challenge.is_none();
    // Without rounds the first round is due at once and asks nobody, so that the vote follows from the deadline.
    let wait_ms = if held { policy.answer_timeout_ms } else { 0 };
    let asked = if held {
        asked(policy, &conflict.positions)
    } else {
        Vec::new()
    };
    let due = terms
        .challenge
        .is_none()
        .then(|| context.now.plus_millis(wait_ms));
    let mut opened = DebateOpened {
        case_id: case_id.clone(),
        conflict,
        policy: policy.clone(),
        asked,
        due,
        terms: terms.clone(),
        credibility: opening.known.credibility.clone(),
        precedents: opening.known.precedents.clone(),
        waits_for: Vec::new(),
    };
    if let Some(challenge) = &terms.challenge {
        opened.waits_for = escalation::opening_deadlines(context.now, &opened, challenge);
    }
    Decision::Append(DebateEvent::Opened(Box::new(opened)))
}

/// A detection finds no such conflict; facts of the debate would have no room for it.
fn check_conflict(conflict: &Conflict) -> Result<(), Fault> {
    let parties = conflict.positions.len();
    let (field, what) = if parties > PARTICIPANTS_MAX {
        (
            "positions",
            format!(
                "The conflict has {parties} positions; at most {PARTICIPANTS_MAX} are accepted."
            ),
        )
    } else if json_text_bytes(&conflict.subject) > SUBJECT_BYTES_MAX {
        (
            "subject",
            format!("The conflict's subject has more than {SUBJECT_BYTES_MAX} bytes."),
        )
    } else {
        return Ok(());
    };
    let pointer = format!("/payload/parameters/conflict/{field}");
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        what,
        "Have findings debated by opening a case.",
    ))
}

/// Who is asked in a round: everyone, up to the policy's number of messages, the surest first.
pub(super) fn asked(policy: &Policy, positions: &[Position]) -> Vec<AgentId> {
    let mut by_confidence: Vec<&Position> = positions.iter().collect();
    by_confidence.sort_by(|a, b| {
        b.confidence
            .total_cmp(&a.confidence)
            .then_with(|| a.agent_id.cmp(&b.agent_id))
    });
    let first = by_confidence
        .into_iter()
        .take(policy.messages_per_round_max as usize);
    let mut asked: Vec<AgentId> = first.map(|position| position.agent_id.clone()).collect();
    asked.sort();
    asked
}

fn answer(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    given: &GivenAnswer,
) -> DebateDecision {
    if let Some((agent_id, digest)) = state.seen.get(&given.message_id) {
        // The digest is that of the payload: the same words of another sender are no repetition.
        let same = (agent_id, digest) == (&given.agent_id, &given.digest);
        return if same {
            Decision::Ignore(Ignored::Repetition)
        } else {
            Decision::Reject(reused_message_id())
        };
    }
    let Some(held) = state
        .positions
        .iter()
        .find(|held| held.agent_id == given.agent_id)
    else {
        return Decision::Reject(not_a_party(&given.agent_id));
    };
    if let Err(fault) = check_size(&given.answer) {
        return Decision::Reject(fault);
    }
    let tokens = given.answer.estimated_tokens();
    if tokens > opened.policy.tokens_per_message_max as usize {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload",
            format!(
                "The answer has about {tokens} tokens; at most {} are allowed.",
                opened.policy.tokens_per_message_max
            ),
            "Shorten reasoning and evidence and answer again, with a new message_id, before the deadline.",
        ));
    }
    if let Some(on) = state.ladder.as_deref() {
        let agrees = given.answer.agrees_with_peer.unwrap_or(given.is_agreement);
        let revised = position::after(&state.positions, held, given, agrees);
        return escalation::answer(state, opened, on, context, given, held, Some(&revised));
    }
    if let Some(reason) = unusable(state, given) {
        return set_aside(
            state,
            opened,
            escalation::heard_answer(given),
            given.answer.clone(),
            reason,
        );
    }
    if !state.asked.contains(&given.agent_id) {
        return Decision::Reject(not_asked(&given.agent_id));
    }
    let received = received(state, given, held);
    if state.answers.len() + 1 < state.asked.len() {
        return Decision::Append(DebateEvent::Answered(Answered { received }));
    }
    Decision::Append(close::close(
        state,
        opened,
        context,
        Some(received),
        CloseReason::AllAnswered,
    ))
}

/// Tokens are an estimate; what counts for the facts is bytes.
fn check_size(answer: &Answer) -> Result<(), Fault> {
    let bytes = json_bytes(answer);
    if bytes <= ANSWER_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload",
        format!("The answer has {bytes} bytes; at most {ANSWER_BYTES_MAX} are accepted."),
        "Shorten reasoning and evidence and answer again, with a new message_id, before the deadline.",
    ))
}

/// Why an answer of a party cannot be used.
fn unusable(state: &DebateState, given: &GivenAnswer) -> Option<SetAsideReason> {
    let earlier_question = given
        .question_sequence
        .is_some_and(|sequence| sequence < state.round_sequence);
    let earlier_round = given
        .round
        .is_some_and(|round| round > 0 && round < state.round);
    if state.outcome.is_some() || earlier_question || earlier_round {
        return Some(SetAsideReason::Late);
    }
    let answered = state
        .answers
        .iter()
        .any(|answer| answer.agent_id == given.agent_id);
    answered.then_some(SetAsideReason::Repeated)
}

/// A late or repeated answer is recorded, if there is room for it.
pub(crate) fn set_aside(
    state: &DebateState,
    opened: &DebateOpened,
    heard: Heard,
    answer: Answer,
    reason: SetAsideReason,
) -> DebateDecision {
    if state.set_aside.len() >= opened.policy.set_aside_max as usize {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            "This debate has recorded as many late and repeated answers as its policy allows.",
            "Give one answer to each question, before its deadline.",
        ));
    }
    let Heard {
        agent_id,
        message_id,
        digest,
    } = heard;
    let case_id = opened.case_id.clone();
    Decision::Append(DebateEvent::AnswerSetAside(AnswerSetAside {
        case_id,
        agent_id,
        message_id,
        digest,
        answer,
        reason,
    }))
}

fn received(state: &DebateState, given: &GivenAnswer, held: &Position) -> ReceivedAnswer {
    let agrees = given.answer.agrees_with_peer.unwrap_or(given.is_agreement);
    ReceivedAnswer {
        agent_id: given.agent_id.clone(),
        message_id: given.message_id.clone(),
        digest: given.digest.clone(),
        round: state.round,
        agrees,
        position: position::after(&state.round_positions, held, given, agrees),
        answer: given.answer.clone(),
    }
}

fn not_a_party(agent: &AgentId) -> Fault {
    Fault::new(
        ErrorCode::Unauthorized,
        "/from_agent",
        format!("{agent} is no party to this debate."),
        "Only agents whose findings conflict are asked.",
    )
}

fn not_asked(agent: &AgentId) -> Fault {
    Fault::new(
        ErrorCode::Unauthorized,
        "/from_agent",
        format!("{agent} was not asked in this round."),
        "Answer only questions that were addressed to you.",
    )
}

fn elapsed(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    deadline: &DeadlineElapsed,
) -> DebateDecision {
    if let Some(on) = state.ladder.as_deref() {
        return escalation::elapsed(state, opened, on, context, deadline);
    }
    let open = state.outcome.is_none()
        && state.due == Some(deadline.due)
        && deadline.name == round_name(state.round);
    if !open {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    Decision::Append(close::close(
        state,
        opened,
        context,
        None,
        CloseReason::Deadline,
    ))
}
