//! What to do about an input of a task that is open and no word of an agent about its part. The table is in the module above.

use concord_events::{
    ANSWER_MS_MIN, AgentLost, DeadlineElapsed, MemberMoved, TaskAssigned, TaskCancelled,
    TaskCaseEnded, TaskElapsed, TaskEvent, TaskOutcome, TaskStep,
};
use concord_wire::payload::Role;
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, MessageId};

use super::conclude::{conclude, ended, open_task, release};
use super::said::{repeated, result_bytes_max};
use super::strategy::TaskStrategy;
use super::{AGENTS_MAX, ATTEMPT, BIDS, DUE, Part, Stage, TaskMachine, TaskState};
use crate::aggregates::person::Authority;
use crate::machine::{Context, Decision, Ignored, Machine};
use crate::rules::size_budget::check_reason;

type TaskDecision = Decision<TaskEvent>;

pub(super) fn place(
    state: &TaskState,
    context: &Context,
    agent: &AgentId,
    gone: Option<&str>,
) -> TaskDecision {
    let (Some(opened), true) = (&state.opened, state.waits_for(agent)) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    if let Some(why) = gone {
        return lost(state, context, agent, why);
    }
    let part = state.parts.get(agent);
    let answer_ms = opened.terms.answer_ms.unwrap_or(u64::MAX);
    let strategy = state.strategy();
    let asks_one = strategy.is_some_and(TaskStrategy::asks_one);
    Decision::Append(TaskEvent::Assigned(TaskAssigned {
        agent: agent.clone(),
        task: opened.terms.task.clone(),
        due: match answer_ms {
            u64::MAX => opened.due,
            answer_ms => context.now.plus_millis(answer_ms).min(opened.due),
        },
        strategy: opened.terms.strategy.clone(),
        result_bytes_max: result_bytes_max(asks_one),
        handed_on: part.and_then(|part| part.handed.clone()),
        awarded: strategy.is_some_and(TaskStrategy::calls_for_proposals),
        bid: part.and_then(|part| Some(part.bid.as_ref()?.0.clone())),
    }))
}

pub(super) fn member(
    state: &TaskState,
    context: &Context,
    agent: &AgentId,
    request_id: &MessageId,
    joins: bool,
) -> TaskDecision {
    if let Some(earlier) = state.heard.get(&context.cause_in::<TaskMachine>(state)) {
        return repeated(earlier.as_ref(), agent);
    }
    const POINTER: &str = "/payload/parameters/task_id";
    if let Err(fault) = open_task(state, POINTER) {
        return Decision::Reject(fault);
    }
    let refused =
        |what: &str, advice: &str| Decision::Reject(Fault::invalid(POINTER, what, advice));
    if !state.strategy().is_some_and(TaskStrategy::has_members) {
        return refused("The task is no swarm.", "Only swarms are joined and left.");
    }
    let moved = |next| MemberMoved {
        agent: agent.clone(),
        request_id: request_id.clone(),
        next,
    };
    let has_opened = state
        .opened
        .as_ref()
        .is_some_and(|opened| opened.opened_by == *agent);
    let part = state.parts.get(agent);
    match (joins, part) {
        (true, _) if has_opened => refused(
            "You have opened the task, and whoever opens one is never given it.",
            "Wait for its result, or cancel it.",
        ),
        (true, Some(_)) => refused("You are, or were, a member.", "A member joins once."),
        (true, None) if state.parts.len() >= AGENTS_MAX => refused(
            "The swarm has no room for a further member.",
            "Wait for another task.",
        ),
        (true, None) => {
            let ask = vec![agent.clone()];
            Decision::Append(TaskEvent::Joined(moved(TaskStep {
                ask,
                ..TaskStep::default()
            })))
        }
        (false, Some(part)) if part.is_active() => {
            let own = Some(release(agent, None, None));
            Decision::Append(conclude(state, own, |next| TaskEvent::Left(moved(next))))
        }
        (false, _) => refused("You have nothing to do in it.", "Nothing need be done."),
    }
}

pub(super) fn lost(state: &TaskState, _: &Context, agent: &AgentId, why: &str) -> TaskDecision {
    if !state.needs_place(agent) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let worked = state.parts.get(agent).is_some_and(Part::is_working);
    let own = Some(release(agent, worked.then_some(false), None));
    Decision::Append(conclude(state, own, |next| {
        TaskEvent::Lost(AgentLost {
            agent: agent.clone(),
            why: why.chars().take(256).collect(),
            next,
        })
    }))
}

pub(super) fn elapsed(state: &TaskState, _: &Context, elapsed: &DeadlineElapsed) -> TaskDecision {
    let mut open = TaskMachine::deadlines(state).into_iter();
    // Each agent has its time, and of two that have passed the later may be heard of first. It elapses once, so it counts then.
    let is_due = |due| match elapsed.name.as_str() {
        ATTEMPT => due <= elapsed.due,
        _ => due == elapsed.due,
    };
    if !open.any(|one| one.name == elapsed.name && is_due(one.due)) {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    let is_silent = |part: &Part| match elapsed.name.as_str() {
        DUE => part.is_active() || part.stage == Stage::Called,
        BIDS => part.stage == Stage::Called,
        ATTEMPT => part.is_working() && part.due.is_some_and(|due| due <= elapsed.due),
        _ => false,
    };
    let silent = state.parts.iter().filter(|(_, part)| is_silent(part));
    let silent: Vec<(&AgentId, &Part)> = silent.collect();
    let own = silent.iter().filter(|(_, part)| part.is_active());
    let own = own.map(|(agent, part)| {
        let told = part
            .is_working()
            .then(|| "It was not done in time.".to_owned());
        // With what nobody can do in time whoever opens tasks would make others unreliable.
        let could = part.is_working() && part.given_ms >= ANSWER_MS_MIN;
        release(agent, could.then_some(false), told)
    });
    let agents: Vec<AgentId> = silent.iter().map(|(agent, _)| (*agent).clone()).collect();
    Decision::Append(conclude(state, own, |next| {
        TaskEvent::Elapsed(TaskElapsed {
            name: elapsed.name.clone(),
            silent: agents.clone(),
            next,
        })
    }))
}

pub(super) fn case_ended(
    state: &TaskState,
    case_id: &CaseId,
    outcome: &TaskOutcome,
) -> TaskDecision {
    let opens_case = state.strategy().is_some_and(TaskStrategy::opens_case);
    let (Some(opened), None, true) = (&state.opened, &state.ended, opens_case) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    Decision::Append(TaskEvent::CaseEnded(TaskCaseEnded {
        case_id: case_id.clone(),
        next: ended(state, opened, outcome.clone()),
    }))
}

pub(super) fn cancel(
    state: &TaskState,
    (by, sender): (&AgentId, &Authority),
    request_id: Option<&MessageId>,
    why: &str,
) -> TaskDecision {
    const POINTER: &str = "/payload/parameters/task_id";
    let opened = match open_task(state, POINTER) {
        Ok(opened) => opened,
        Err(_) if state.opened.is_none() => {
            return Decision::Reject(Fault::invalid(
                POINTER,
                "There is no such task.",
                "Name its task_id; `concord task list` shows the tasks.",
            ));
        }
        Err(fault) => return Decision::Reject(fault),
    };
    if opened.opened_by != *by && !sender.holds(Role::Operator) {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            POINTER,
            format!("The task was opened by {}.", opened.opened_by),
            "Whoever opened it, or an operator, can cancel it.",
        ));
    }
    if let Err(fault) = check_reason("/payload/parameters/why", why) {
        return Decision::Reject(fault);
    }
    let (by, why) = (by.clone(), why.to_owned());
    let next = ended(state, opened, TaskOutcome::Cancelled { by, why });
    Decision::Append(TaskEvent::Cancelled(TaskCancelled {
        request_id: request_id.cloned(),
        next,
    }))
}
