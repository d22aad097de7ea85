//! What to do about an answer, a deadline that has passed, and a synthesis. The table is in the module above.

use concord_events::{
    DeadlineElapsed, QuestionAnswered, QuestionElapsed, QuestionEvent, QuestionOpened,
    QuestionSynthesised,
};
use concord_wire::payload::{GivenAnswer, SynthesisStatus};
use concord_wire::{AgentId, ErrorCode, Fault};
use serde_json::Value;

use super::{ANSWERS, QuestionState, SYNTHESIS, conclude};
use crate::machine::{Decision, Ignored};
use crate::rules::size_budget::json_bytes;

pub(super) fn answer(state: &QuestionState, answer: &GivenAnswer) -> Decision<QuestionEvent> {
    let Some(opened) = &state.opened else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let answer = fitted(answer, opened);
    let is_same = |known: &GivenAnswer| {
        (&known.message_id, &known.by) == (&answer.message_id, &answer.by)
            && (&known.message_type, &known.payload) == (&answer.message_type, &answer.payload)
    };
    if state.answers.iter().any(is_same) {
        return Decision::Ignore(Ignored::Repetition);
    }
    if let Err(fault) = check(state, opened, &answer) {
        return Decision::Reject(fault);
    }
    let answers = [state.answers.as_slice(), std::slice::from_ref(&answer)].concat();
    Decision::Append(QuestionEvent::Answered(QuestionAnswered {
        case_id: opened.case_id.clone(),
        answer,
        next: conclude::after(opened, &answers, false),
    }))
}

/// The answer as it is repeated to whoever asked: without its payload where that is too large.
fn fitted(answer: &GivenAnswer, opened: &QuestionOpened) -> GivenAnswer {
    if json_bytes(&answer.payload) <= opened.answer_bytes_max {
        return answer.clone();
    }
    GivenAnswer {
        payload: Value::Null,
        too_large: true,
        ..answer.clone()
    }
}

fn is_asked(opened: &QuestionOpened, agent: &AgentId) -> bool {
    opened.asked.iter().any(|asked| asked.agent == *agent)
}

fn check(
    state: &QuestionState,
    opened: &QuestionOpened,
    answer: &GivenAnswer,
) -> Result<(), Fault> {
    let (by, asker) = (&answer.by, &opened.asker);
    let refused =
        |code, what: String, advice: &str| Err(Fault::new(code, "/reply_to", what, advice));
    if !is_asked(opened, by) {
        return refused(
            ErrorCode::Unauthorized,
            format!("{by} was not asked: the question of {asker} has not woken it."),
            "Answer questions that wake you; what you know beside them goes into an expertise_offer or an info_update.",
        );
    }
    if state.has_answer_of(by) {
        return refused(
            ErrorCode::InvalidRequest,
            format!("{by} has answered the question of {asker} already."),
            "The first answer counts. Say more in another message.",
        );
    }
    if state.awaiting_answers().is_none() {
        return refused(
            ErrorCode::Timeout,
            format!("The question of {asker} has ended, or its answers are being put together."),
            "Nothing need be answered any more.",
        );
    }
    if answer.at > opened.answers_due {
        return refused(
            ErrorCode::Timeout,
            format!(
                "Answers to the question of {asker} counted until {}.",
                opened.answers_due
            ),
            "Answer earlier, or say in time that you have no answer.",
        );
    }
    Ok(())
}

pub(super) fn elapsed(
    state: &QuestionState,
    elapsed: &DeadlineElapsed,
    unread: &[GivenAnswer],
) -> Decision<QuestionEvent> {
    let not_open = Decision::Ignore(Ignored::DeadlineNotOpen);
    let Some(opened) = state.opened.as_ref().filter(|_| !state.is_ended) else {
        return not_open;
    };
    let event = |answers, next| {
        Decision::Append(QuestionEvent::Elapsed(QuestionElapsed {
            case_id: opened.case_id.clone(),
            name: elapsed.name.clone(),
            answers,
            next,
        }))
    };
    match (elapsed.name.as_str(), &state.synthesis) {
        (ANSWERS, None) if elapsed.due == opened.answers_due => {
            let found = in_time(state, opened, unread);
            let answers = [state.answers.as_slice(), &found].concat();
            let next = conclude::after(opened, &answers, true);
            event(found, next)
        }
        (SYNTHESIS, Some(synthesis)) if elapsed.due == synthesis.due => {
            let missed = SynthesisStatus::Missed;
            event(
                Vec::new(),
                conclude::synthesised(opened, &state.answers, missed, None),
            )
        }
        _ => not_open,
    }
}

/// The answers that count of those that were stored and not handled: the first in time of each agent that is asked.
fn in_time(
    state: &QuestionState,
    opened: &QuestionOpened,
    unread: &[GivenAnswer],
) -> Vec<GivenAnswer> {
    let mut found: Vec<GivenAnswer> = Vec::new();
    for answer in unread {
        let is_new = found.iter().all(|known| known.by != answer.by);
        if is_new && check(state, opened, answer).is_ok() {
            found.push(fitted(answer, opened));
        }
    }
    found
}

pub(super) fn synthesis(
    state: &QuestionState,
    answer: &GivenAnswer,
    asked: u64,
) -> Decision<QuestionEvent> {
    let Some(opened) = &state.opened else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    if state.synthesised.as_ref() == Some(&answer.message_id) {
        return Decision::Ignore(Ignored::Repetition);
    }
    let awaited = state.synthesis.as_ref();
    let is_awaited = awaited.is_some_and(|one| one.by == answer.by && one.sequence == asked);
    if !is_awaited {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/reply_to",
            format!("{} was not asked for this synthesis.", answer.by),
            "Answer only what was asked of you.",
        ));
    }
    if state.is_ended {
        return Decision::Reject(Fault::new(
            ErrorCode::Timeout,
            "/reply_to",
            "The question has ended; its answers were given as they are.",
            "Answer before the deadline of the request.",
        ));
    }
    let answer = fitted(answer, opened);
    let status = match answer.declines {
        true => SynthesisStatus::Declined,
        false => SynthesisStatus::Done,
    };
    Decision::Append(QuestionEvent::Synthesised(QuestionSynthesised {
        case_id: opened.case_id.clone(),
        message_id: answer.message_id.clone(),
        status,
        next: conclude::synthesised(opened, &state.answers, status, Some(answer)),
    }))
}

/// What is wrong with an event, given the state before it.
pub(super) fn misplaced(before: &QuestionState, event: &QuestionEvent) -> Option<String> {
    let answers = match event {
        QuestionEvent::Opened(_) => return None,
        QuestionEvent::Answered(answered) => std::slice::from_ref(&answered.answer),
        QuestionEvent::Elapsed(elapsed) => &elapsed.answers,
        QuestionEvent::Synthesised(_) => {
            let is_awaited = before.synthesis.is_some();
            return (!is_awaited).then(|| "No synthesis was asked for.".to_owned());
        }
    };
    let opened = before.opened.as_ref()?;
    answers.iter().find_map(|answer| {
        let fault = check(before, opened, answer).err()?;
        Some(format!("An answer counts that does not: {}", fault.message))
    })
}
