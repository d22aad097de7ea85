//! What an agent says about its part of a task: a result, a refusal, a bid, or that it hands the task on.

use concord_events::{BidMade, TaskDeclined, TaskEvent, TaskHandedOn, TaskReported, TaskStep};
use concord_wire::payload::{
    Bid, HandedContext, Handoff, ResultStatus, TaskResult, json_text_bytes,
};
use concord_wire::{AgentId, ErrorCode, Fault};
use serde_json::Value;

use super::conclude::{conclude, open_task, release};
use super::strategy::TaskStrategy;
use super::{
    AGENTS_MAX, HeardWord, Part, Said, Stage, TaskMachine, TaskState, Word, digest_of_result,
};
use crate::aggregates::case::reused_message_id;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::{WHY_BYTES_MAX, check_reason, json_bytes};
use crate::text::beginning;

/// Most bytes of the result of one agent that alone has the task.
const ALONE_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of the results of all agents together.
const TOGETHER_BYTES_MAX: usize = 384 * 1024;
/// Most bytes of the context with which a task is handed on.
const CONTEXT_BYTES_MAX: usize = 16 * 1024;
/// How often an agent may give a part of its result.
const REPORTS_MAX: usize = 16;
/// How often a task may be handed on.
const HANDOFFS_MAX: usize = 16;

/// Most bytes of the result of one agent, so that the results of all fit into one event.
pub(super) fn result_bytes_max(asks_one: bool) -> usize {
    match asks_one {
        true => ALONE_BYTES_MAX,
        false => TOGETHER_BYTES_MAX / AGENTS_MAX,
    }
}

pub(super) fn say(state: &TaskState, context: &Context, said: &Said) -> Decision<TaskEvent> {
    if let Some(earlier) = state.heard.get(&context.cause_in::<TaskMachine>(state)) {
        return match (earlier, &said.word) {
            (Some(earlier), Word::Result(result))
                if earlier.by == said.by && is_another(state, earlier, result) =>
            {
                Decision::Reject(reused_message_id())
            }
            _ => repeated(earlier.as_ref(), &said.by),
        };
    }
    let heard = open_task(state, "/reply_to").and_then(|opened| {
        let part = part_of(state, said)?;
        match &said.word {
            Word::Result(result) => report(state, &said.by, part, result),
            Word::Refuse(why) => decline(state, &said.by, part, why),
            Word::Failed(why) => fail(state, &said.by, part, why),
            Word::Bid(bid, reliability) => {
                let is_late = opened.bids_due.is_none_or(|due| context.now > due);
                make_bid(state, said, part, (bid, *reliability), is_late)
            }
            Word::HandOn(handoff, refusal) => {
                hand_on(state, &said.by, part, handoff, refusal.as_deref())
            }
        }
    });
    match heard {
        Ok(event) => Decision::Append(event),
        Err(fault) => Decision::Reject(fault),
    }
}

/// What to do about a message under an id that was heard before.
pub(super) fn repeated(earlier: Option<&HeardWord>, by: &AgentId) -> Decision<TaskEvent> {
    if earlier.is_none_or(|earlier| earlier.by == *by) {
        return Decision::Ignore(Ignored::Repetition);
    }
    Decision::Reject(Fault::invalid(
        "/message_id",
        "Another agent of the task has sent a message with this id.",
        "Give every message an id of its own.",
    ))
}

/// The result as the strategy of the task reads it.
fn as_it_counts(state: &TaskState, result: &TaskResult) -> Result<Value, Fault> {
    match state.strategy() {
        Some(strategy) if result.status == ResultStatus::Success => {
            strategy.read_result(&result.result)
        }
        _ => Ok(result.result.clone()),
    }
}

/// Whether a result is another one than was given under its id.
fn is_another(state: &TaskState, earlier: &HeardWord, result: &TaskResult) -> bool {
    let counts = as_it_counts(state, result).unwrap_or_default();
    let again = digest_of_result(result.status, &counts, &result.why);
    earlier
        .result
        .as_ref()
        .is_some_and(|earlier| *earlier != again)
}

/// The part that a message is about: that of its sender, if it answers how the sender was asked.
fn part_of<'a>(state: &'a TaskState, said: &Said) -> Result<&'a Part, Fault> {
    let answers_call = |part: &Part| match said.word {
        Word::Bid(..) => true,
        Word::Refuse(_) | Word::Failed(_) => part.assignment.is_none(),
        Word::Result(_) | Word::HandOn(..) => false,
    };
    let part = state
        .parts
        .get(&said.by)
        .filter(|part| match answers_call(part) {
            true => said.asked == Some(state.opened_sequence),
            // An agent has a task once at a time.
            false => {
                part.assignment.is_some() && (said.asked.is_none() || part.assignment == said.asked)
            }
        });
    part.ok_or_else(|| {
        Fault::new(
            ErrorCode::Unauthorized,
            "/reply_to",
            format!("{} was not asked so.", said.by),
            "Reply to the message by which the task was given to you.",
        )
    })
}

/// Checks that the agent has the task.
fn must_work(part: &Part, by: &AgentId) -> Result<(), Fault> {
    let (code, what) = match part.stage {
        Stage::Working => return Ok(()),
        Stage::Done | Stage::Failed | Stage::Declined => (
            ErrorCode::InvalidRequest,
            format!("{by} has answered already."),
        ),
        Stage::HandedOn => (
            ErrorCode::Unauthorized,
            format!("{by} has handed the task on."),
        ),
        Stage::Silent | Stage::Lost | Stage::Withdrawn => (
            ErrorCode::Timeout,
            format!("{by} has the task no longer: {}", part.why),
        ),
        Stage::Called | Stage::Bidding | Stage::Waiting => (
            ErrorCode::Unauthorized,
            format!("The task was not given to {by} yet."),
        ),
    };
    Err(Fault::new(
        code,
        "/reply_to",
        what,
        "An assignment has one answer, from the agent that has it, until it is over.",
    ))
}

fn report(
    state: &TaskState,
    by: &AgentId,
    part: &Part,
    result: &TaskResult,
) -> Result<TaskEvent, Fault> {
    must_work(part, by)?;
    let strategy = state.strategy();
    let most = result_bytes_max(strategy.is_some_and(TaskStrategy::asks_one));
    let bytes = json_bytes(&result.result);
    if bytes > most {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/result",
            format!("The result has {bytes} bytes as JSON; at most {most} are accepted."),
            "Give a reference to what is large instead of the thing itself.",
        ));
    }
    check_reason("/payload/why", &result.why)?;
    if result.status == ResultStatus::Partial && part.reports >= REPORTS_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/status",
            format!("{REPORTS_MAX} parts were given already."),
            "Give the result.",
        ));
    }
    let counts = as_it_counts(state, result)?;
    let done = match result.status {
        ResultStatus::Success => Some(true),
        ResultStatus::Failure => Some(false),
        ResultStatus::Partial => None,
    };
    let own = done.map(|done| release(by, Some(done), None));
    Ok(conclude(state, own, |next| {
        TaskEvent::Reported(TaskReported {
            by: by.clone(),
            status: result.status,
            result: counts.clone(),
            why: result.why.clone(),
            next,
        })
    }))
}

fn fail(state: &TaskState, by: &AgentId, part: &Part, why: &str) -> Result<TaskEvent, Fault> {
    // An error is written for whoever asked, who may have room for more.
    let mut most = WHY_BYTES_MAX;
    while json_text_bytes(beginning(why, most)) > WHY_BYTES_MAX {
        most /= 2;
    }
    let why = beginning(why, most);
    if part.assignment.is_none() {
        return decline(state, by, part, why);
    }
    let result = TaskResult {
        status: ResultStatus::Failure,
        result: Value::Null,
        why: why.to_owned(),
        content: None,
    };
    report(state, by, part, &result)
}

fn decline(state: &TaskState, by: &AgentId, part: &Part, why: &str) -> Result<TaskEvent, Fault> {
    if part.stage != Stage::Called {
        must_work(part, by)?;
    }
    check_reason("/payload/why", why)?;
    let own = part.is_working().then(|| release(by, None, None));
    Ok(conclude(state, own, |next| {
        TaskEvent::Declined(TaskDeclined {
            by: by.clone(),
            why: why.to_owned(),
            next,
        })
    }))
}

fn make_bid(
    state: &TaskState,
    said: &Said,
    part: &Part,
    (bid, reliability): (&Bid, f64),
    is_late: bool,
) -> Result<TaskEvent, Fault> {
    let by = &said.by;
    let fault = |code, what: String| {
        let advice =
            "A call for proposals has one bid of each agent that was called, before it is due.";
        Err(Fault::new(code, "/reply_to", what, advice))
    };
    match part.stage {
        Stage::Called if is_late || !state.bids_open => {
            return fault(ErrorCode::Timeout, "The time for bids is over.".to_owned());
        }
        Stage::Called => {}
        Stage::Silent => {
            return fault(ErrorCode::Timeout, "The time for bids is over.".to_owned());
        }
        _ => {
            return fault(
                ErrorCode::InvalidRequest,
                format!("{by} has answered already."),
            );
        }
    }
    bid.check()?;
    Ok(conclude(state, None, |next| {
        TaskEvent::BidMade(BidMade {
            by: by.clone(),
            bid: bid.clone(),
            reliability,
            next,
        })
    }))
}

fn hand_on(
    state: &TaskState,
    by: &AgentId,
    part: &Part,
    handoff: &Handoff,
    refusal: Option<&str>,
) -> Result<TaskEvent, Fault> {
    must_work(part, by)?;
    let invalid = |what: String, advice: &str| Err(Fault::invalid("/payload/to", what, advice));
    let Some(to) = &handoff.to else {
        return invalid(
            "It is not said to whom.".to_owned(),
            "Name the agent that is to have the task.",
        );
    };
    if to == by {
        return invalid(
            format!("{by} hands the task on to itself."),
            "Name another agent, or keep it.",
        );
    }
    if state.parts.contains_key(to) {
        return invalid(
            format!("{to} has been asked about this task before, so it would go in a circle."),
            "Name an agent that has had nothing to do with it.",
        );
    }
    let opened = open_task(state, "/reply_to")?;
    if *to == opened.opened_by {
        return invalid(
            format!("{to} has opened the task."),
            "Refuse it, or say that it has failed.",
        );
    }
    if let Some(refusal) = refusal {
        return Err(Fault::new(
            ErrorCode::AgentUnavailable,
            "/payload/to",
            refusal,
            "Ask with find_agents who there is.",
        ));
    }
    check_handoff(state, handoff)?;
    Ok(TaskEvent::HandedOn(TaskHandedOn {
        opened_by: opened.opened_by.clone(),
        to: to.clone(),
        handed: HandedContext {
            from: by.clone(),
            context: handoff.context.clone(),
            reason: handoff.reason.clone(),
        },
        next: TaskStep {
            ask: vec![to.clone()],
            release: vec![release(by, None, None)],
            ..TaskStep::default()
        },
    }))
}

/// Checks that a task was not handed on too often, and what is given with it.
fn check_handoff(state: &TaskState, handoff: &Handoff) -> Result<(), Fault> {
    let handed = state.parts.values().filter(|part| part.handed.is_some());
    if handed.count() >= HANDOFFS_MAX || state.parts.len() >= AGENTS_MAX * 2 {
        return Err(Fault::invalid(
            "/payload/to",
            "The task was handed on too often.",
            "Do it, or say that it has failed.",
        ));
    }
    check_reason("/payload/reason", &handoff.reason)?;
    let bytes = json_bytes(&handoff.context);
    if bytes > CONTEXT_BYTES_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/context",
            format!(
                "The context has {bytes} bytes as JSON; at most {CONTEXT_BYTES_MAX} are accepted."
            ),
            "Give a reference to what is large instead of the thing itself.",
        ));
    }
    Ok(())
}
