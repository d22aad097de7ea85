//! What follows from an event: the strategy is asked, and says it is over or who is next.

use concord_events::{Release, TaskEnd, TaskEvent, TaskOpened, TaskOutcome, TaskStep};
use concord_wire::{AgentId, ErrorCode, Fault};

use super::strategy::{Failure, Next};
use super::{DUE, Part, Stage, TaskState};

/// The opening of a task that has not ended; a fault at `pointer` for any other.
pub(super) fn open_task<'a>(state: &'a TaskState, pointer: &str) -> Result<&'a TaskOpened, Fault> {
    let Some(opened) = &state.opened else {
        return Err(Fault::invalid(
            pointer,
            "There is no such task.",
            "Name the task_id, or reply to the message by which you were asked; the assignment of a case is answered with a finding.",
        ));
    };
    match &state.ended {
        None => Ok(opened),
        Some(_) => Err(Fault::new(
            ErrorCode::Timeout,
            pointer,
            "The task has ended.",
            "Nothing need be done for it any more.",
        )),
    }
}

pub(super) fn release(agent: &AgentId, done: Option<bool>, told: Option<String>) -> Release {
    Release {
        agent: agent.clone(),
        done,
        told,
    }
}

/// The event with what follows from it: the strategy is asked about the state after it. `own` are the assignments that the event
/// itself ends.
pub(super) fn conclude(
    state: &TaskState,
    own: impl IntoIterator<Item = Release>,
    make: impl Fn(TaskStep) -> TaskEvent,
) -> TaskEvent {
    let event = make(TaskStep::default());
    let mut after = state.clone();
    after.take_in(&event, 0);
    let is_over = matches!(&event, TaskEvent::Elapsed(elapsed) if elapsed.name.as_str() == DUE);
    let (Some(opened), Some(strategy), Some(progress)) =
        (&state.opened, state.strategy(), after.progress())
    else {
        return event;
    };
    let next = match is_over {
        true => strategy.at_deadline(&progress),
        false => strategy.after(&progress),
    };
    let mut step = match next {
        Next::Wait => TaskStep::default(),
        Next::Ask(agent) => asked(&after, agent),
        Next::Complete {
            result,
            by,
            partial,
        } => ended(
            &after,
            opened,
            TaskOutcome::Completed {
                result,
                by,
                partial,
            },
        ),
        Next::Fail(failure) => ended(&after, opened, failed(failure)),
    };
    step.release.extend(own);
    make(step)
}

/// One more agent is asked. Where it is awarded the task, the other bidders are told so once.
fn asked(state: &TaskState, agent: AgentId) -> TaskStep {
    let is_bidder = |part: &Part| part.bid.is_some();
    let was_awarded = |part: &Part| is_bidder(part) && part.stage != Stage::Bidding;
    let is_first = !state.parts.values().any(was_awarded);
    let others = state
        .parts
        .iter()
        .filter(|(other, part)| is_first && **other != agent && part.stage == Stage::Bidding);
    TaskStep {
        reject: others.map(|(other, _)| other.clone()).collect(),
        ask: vec![agent],
        ..TaskStep::default()
    }
}

fn failed(failure: Failure) -> TaskOutcome {
    TaskOutcome::Failed {
        code: failure.code,
        reason: failure.reason.to_owned(),
        why: failure.why,
        advice: failure.advice.to_owned(),
    }
}

/// The end: who still works is told that it need not go on, and bidders that they were not awarded.
pub(super) fn ended(state: &TaskState, opened: &TaskOpened, outcome: TaskOutcome) -> TaskStep {
    let active = state.parts.iter().filter(|(_, part)| part.is_active());
    let told = |part: &Part| part.is_working().then(|| "The task has ended.".to_owned());
    let bidders = state.parts.iter();
    let bidders = bidders.filter(|(_, part)| part.stage == Stage::Bidding);
    TaskStep {
        release: active
            .map(|(agent, part)| release(agent, None, told(part)))
            .collect(),
        reject: bidders.map(|(agent, _)| agent.clone()).collect(),
        end: Some(TaskEnd {
            opened_by: opened.opened_by.clone(),
            request_id: opened.request_id.clone(),
            strategy: opened.terms.strategy.clone(),
            outcome,
        }),
        ..TaskStep::default()
    }
}
