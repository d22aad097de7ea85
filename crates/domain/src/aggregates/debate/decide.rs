//! What to do about an input of a debate. The table is in the module above.

use concord_events::{
    Answered, CloseReason, DeadlineElapsed, DebateEvent, DebateOpened, HeardBy, ReceivedAnswer,
};
use concord_wire::payload::{
    Answer, Conflict, DebatePriority, DebateTerms, OpenDebate, Position, Snapshot, json_text_bytes,
};
use concord_wire::policy::Policy;
use concord_wire::{AgentId, ErrorCode, Fault};

use super::escalation::{self, OnLadder};
use super::input::{AnswerMessage, Command, DebateInput, MessageBody, Opening};
use super::state::DebateState;
use super::{admission, ground_truth, memory_sync, position, round_name, rounds, strategy};
use crate::aggregates::case::PARTICIPANTS_MAX;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::conflict_type::check_party;
use crate::rules::proved;
use crate::rules::size_budget::{self, ANSWER_BYTES_MAX, SUBJECT_BYTES_MAX, json_bytes};

type DebateDecision = Decision<DebateEvent>;

pub(super) fn decide(
    state: &DebateState,
    context: &Context,
    input: &DebateInput,
) -> DebateDecision {
    if let Err(fault) = memory_sync::check_snapshot(state, named_snapshot(input)) {
        return Decision::Reject(fault);
    }
    match (input, &state.opened) {
        (DebateInput::Open(opening), None) => open(context, opening),
        (DebateInput::Open(_), Some(_)) => Decision::Ignore(Ignored::AlreadyDone),
        (input, None) => Decision::Reject(unknown_debate(input)),
        (input, Some(opened)) if is_of_other_case(opened, input) => {
            Decision::Reject(of_other_case(opened))
        }
        (DebateInput::Answer(answer), Some(opened)) => {
            decide_answer(state, opened, context, answer)
        }
        (DebateInput::Message(message), Some(opened)) => match &state.sync {
            Some(sync) => memory_sync::message(state, sync, opened, context, message),
            None => escalation::message(state, opened, context, message),
        },
        (DebateInput::Command(command), Some(opened)) => {
            decide_command(state, opened, context, command)
        }
        (DebateInput::Outcome(message), Some(opened)) => {
            ground_truth::report(state, opened, context, message)
        }
        (DebateInput::Elapsed(deadline), Some(opened)) => match &state.sync {
            Some(sync) => memory_sync::elapsed(sync, opened, context, deadline),
            None => decide_elapsed(state, opened, context, deadline),
        },
    }
}

/// Whether a message was sent in a case that the debate does not belong to: whoever reads its transcript would look for it in vain.
fn is_of_other_case(opened: &DebateOpened, input: &DebateInput) -> bool {
    let case = match input {
        DebateInput::Answer(answer) => &answer.case_id,
        DebateInput::Message(message) => &message.case_id,
        _ => return false,
    };
    case.as_ref().is_some_and(|case| *case != opened.case_id)
}

/// The debate belongs to another case than the message.
pub(super) fn of_other_case(opened: &DebateOpened) -> Fault {
    Fault::invalid(
        "/case_id",
        format!("The debate belongs to the case {}.", opened.case_id),
        "Send it in that case: the case is a part of the subject.",
    )
}

/// The snapshot that a message refers to.
fn named_snapshot(input: &DebateInput) -> Option<Snapshot> {
    match input {
        DebateInput::Answer(answer) => answer.snapshot,
        DebateInput::Message(message) => message.snapshot,
        _ => None,
    }
}

/// The fault points at the field that names the debate.
fn unknown_debate(input: &DebateInput) -> Fault {
    const NONE: &str = "There is no such debate.";
    let is_named_in_payload = match input {
        DebateInput::Outcome(_) => true,
        DebateInput::Message(message) => matches!(message.body, MessageBody::Ruling(_)),
        _ => false,
    };
    if is_named_in_payload {
        return Fault::invalid(
            "/payload/debate_id",
            NONE,
            "Name a debate; `concord decisions list` and the brief give its id. One that is archived with its case takes nothing more.",
        );
    }
    let advice = "Answer with reply_to set to the question's message_id, or correlation_id to its debate_id.";
    Fault::invalid("/reply_to", NONE, advice)
}

fn decide_command(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    command: &Command,
) -> DebateDecision {
    if let Command::Cancel { by, why } = command {
        return escalation::cancel(state, opened, context, by, why);
    }
    let Some(on) = OnLadder::new(state, opened, context) else {
        return Decision::Reject(Fault::invalid(
            "",
            "This debate is discussed in rounds and is on no level of the ladder.",
            "Wait for the end of its rounds.",
        ));
    };
    match command {
        Command::Assigned { .. } | Command::Unassigned { .. }
            if state.queued_by.contains(&context.cause) =>
        {
            Decision::Ignore(Ignored::Repetition)
        }
        Command::Assigned {
            expert,
            contact,
            background,
        } => escalation::assigned(&on, expert, contact, background.as_deref()),
        Command::Unassigned { expert, reason } => escalation::unassigned(&on, expert, *reason),
        Command::Overflowed { handling } => escalation::overflowed(&on, *handling),
        Command::Reviewed {
            by,
            first,
            first_rationale,
            review,
            again,
        } => {
            let first = first.as_ref().map(|by| (by, first_rationale.as_deref()));
            escalation::reviewed(&on, (by, first), review, again.as_ref())
        }
        Command::Deadlines {
            control,
            later_ms,
            by,
            why,
        } => escalation::control(&on, *control, *later_ms, by, why),
        Command::Cancel { .. } => Decision::Ignore(Ignored::AlreadyDone),
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
    let request = OpenDebate {
        case_id: case_id.clone(),
        conflict: size_budget::debated_conflict(conflict),
        policy: policy.clone(),
        terms: in_regime(
            with_dependants(terms, policy, &opening.prior_knowledge.dependants),
            opening.prior_knowledge.regime.as_ref(),
        ),
    };
    let beginning = strategy::of_debate(policy, &request.terms).begin(context.now, &request);
    debug_assert!(
        beginning.due.is_some() == beginning.waits_for.is_empty(),
        "a debate begins either with a round or on the ladder"
    );
    // A challenge is presented at once: its own deadlines begin with it.
    let sync_ms = Some(policy.memory_sync_ms).filter(|millis| *millis > 0);
    let sync_until = beginning
        .due
        .and(sync_ms)
        .map(|millis| context.now.plus_millis(millis));
    Decision::Append(DebateEvent::Opened(Box::new(DebateOpened {
        case_id: request.case_id,
        conflict: request.conflict,
        policy: request.policy,
        asked: beginning.asked,
        due: beginning.due,
        terms: request.terms,
        credibility: opening.prior_knowledge.credibility.clone(),
        precedents: opening.prior_knowledge.precedents.clone(),
        waits_for: beginning.waits_for,
        sync_until,
    })))
}

/// The terms with the analyses that rest on what is disputed, after those that a challenger has named. Where the policy says so, a
/// detected conflict that something rests on is on the critical path.
fn with_dependants(terms: &DebateTerms, policy: &Policy, known: &[String]) -> DebateTerms {
    let mut terms = terms.clone();
    let is_detected = terms.challenge.is_none();
    if is_detected && policy.ladder.critical_where_used && !known.is_empty() {
        terms.priority = DebatePriority::CriticalPath;
    }
    let new = known.iter().filter(|one| !terms.dependants.contains(one));
    let new: Vec<String> = new.cloned().collect();
    terms.dependants.extend(new);
    terms
}

/// The terms in the present regime, where that is another than the case's. The debate keeps it, whatever comes later.
fn in_regime(mut terms: DebateTerms, present: Option<&String>) -> DebateTerms {
    if let Some(present) = present {
        terms.circumstances.regime = Some(present.clone());
    }
    terms
}

/// Detection finds no conflict of this size. Events of the debate would have no room for it.
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

fn decide_answer(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    message: &AnswerMessage,
) -> DebateDecision {
    let AnswerMessage {
        agent_id,
        message_id,
        digest,
        answer,
        ..
    } = message;
    if let Some(repeated) = admission::repetition(state, agent_id, message_id, digest) {
        return repeated;
    }
    let Some(held) = state
        .positions
        .iter()
        .find(|held| held.agent_id == *agent_id)
    else {
        return Decision::Reject(not_a_party(agent_id));
    };
    if state.sync.is_some() {
        return Decision::Reject(memory_sync::not_yet());
    }
    if let Err(fault) = check_size(answer, opened.policy.tokens_per_message_max) {
        return Decision::Reject(fault);
    }
    let said = (answer.revised_position.as_deref(), answer.value.as_ref());
    if state.outcome.is_none()
        && let Err(fault) = check_party(&opened.conflict, &opened.policy, said)
    {
        return Decision::Reject(fault);
    }
    if let Some(on) = OnLadder::new(state, opened, context) {
        let revised = position::after(opened, &state.positions, held, message, message.agrees());
        return escalation::answer(&on, message, held, &revised);
    }
    if let Some(fault) = admission::wrong_round(state, message) {
        return Decision::Reject(fault);
    }
    if let Some(reason) = admission::unusable(state, message) {
        return admission::set_aside(state, opened, message.reference(), answer.clone(), reason);
    }
    if !state.asked.contains(agent_id) {
        return Decision::Reject(not_asked(agent_id));
    }
    if let Err(fault) = position::check_peer(&state.positions, message) {
        return Decision::Reject(fault);
    }
    let received = received(state, opened, message, held);
    if state.answers.len() + 1 < state.asked.len() {
        return Decision::Append(DebateEvent::Answered(Answered {
            case_id: Some(opened.case_id.clone()),
            received,
        }));
    }
    Decision::Append(rounds::close(
        state,
        opened,
        context,
        Some(received),
        CloseReason::AllAnswered,
    ))
}

/// Checks tokens, which are an estimate, and bytes, for which events have limited room.
fn check_size(answer: &Answer, tokens_max: u32) -> Result<(), Fault> {
    const ADVICE: &str = "Shorten reasoning and evidence and answer again, with a new message_id, before the deadline.";
    let bytes = json_bytes(answer);
    let tokens = answer.estimated_tokens();
    let what = if bytes > ANSWER_BYTES_MAX {
        format!("The answer has {bytes} bytes; at most {ANSWER_BYTES_MAX} are accepted.")
    } else if tokens > tokens_max as usize {
        format!("The answer has about {tokens} tokens; at most {tokens_max} are allowed.")
    } else {
        return Ok(());
    };
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload",
        what,
        ADVICE,
    ))
}

fn received(
    state: &DebateState,
    opened: &DebateOpened,
    message: &AnswerMessage,
    held: &Position,
) -> ReceivedAnswer {
    // Who agrees with nobody in particular, where the others differ, holds what it held.
    let agrees = message.agrees() && position::is_said(&state.round_positions, held, message);
    let position = position::after(opened, &state.round_positions, held, message, agrees);
    ReceivedAnswer {
        agent_id: message.agent_id.clone(),
        message_id: message.message_id.clone(),
        digest: message.digest.clone(),
        round: state.round,
        agrees,
        heard_by: opened
            .policy
            .hear_answers
            .then(|| heard_by(state, opened, &position)),
        position,
        answer: message.answer.clone(),
    }
}

/// The parties that are told an answer after which its party holds `answered`. It is compared with
/// what each held when the round began, as the asked parties were shown it; so the order of arrival
/// decides nothing.
fn heard_by(state: &DebateState, opened: &DebateOpened, answered: &Position) -> HeardBy {
    let others = state
        .round_positions
        .iter()
        .filter(|held| held.agent_id != answered.agent_id);
    let (agreed_with, disagreed_with): (Vec<_>, Vec<_>) = others
        .partition(|held| proved::holds(opened, held, &answered.position, answered.value.as_ref()));
    let ids = |held: Vec<&Position>| held.into_iter().map(|held| held.agent_id.clone()).collect();
    HeardBy {
        agreed_with: ids(agreed_with),
        disagreed_with: ids(disagreed_with),
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

fn decide_elapsed(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    deadline: &DeadlineElapsed,
) -> DebateDecision {
    if let Some(on) = OnLadder::new(state, opened, context) {
        return escalation::elapsed(&on, deadline);
    }
    let is_open = state.outcome.is_none()
        && state.due == Some(deadline.due)
        && deadline.name == round_name(state.round);
    if !is_open {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    Decision::Append(rounds::close(
        state,
        opened,
        context,
        None,
        CloseReason::Deadline,
    ))
}
