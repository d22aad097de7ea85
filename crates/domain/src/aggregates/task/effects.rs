//! The messages that follow from the events of a task.

use std::sync::Arc;

use concord_events::{
    StoredEvent, TaskAssigned, TaskEnd, TaskEvent, TaskHandedOn, TaskOpened, TaskOutcome, TaskStep,
};
use concord_wire::payload::notification::{self, BidRejected, TaskCompleted, TaskWithdrawn};
use concord_wire::payload::{Award, CallForProposals, ErrorReport, TaskAssignment, Work};
use concord_wire::subject::Service;
use concord_wire::{AgentId, ErrorCode, MessageId, Recipient, Token};
use serde_json::{Map, Value, json};

use super::strategy::{self, TaskStrategy};
use crate::effect::Effect;

pub(super) fn effects(record: &StoredEvent<TaskEvent>) -> Vec<Effect> {
    let task_id = &record.meta.id;
    let mut all = match &record.event {
        TaskEvent::Opened(opened) => open(task_id, opened),
        TaskEvent::Assigned(assigned) => vec![assign(task_id, assigned)],
        TaskEvent::HandedOn(handed) => tell_of_handoff(task_id, handed),
        TaskEvent::Joined(moved) | TaskEvent::Left(moved) => vec![respond(
            &moved.agent,
            &moved.request_id,
            json!({ "task_id": task_id }),
        )],
        TaskEvent::Cancelled(cancelled) => {
            let by = cancelled.next.end.as_ref().and_then(canceller);
            let answered = by.zip(cancelled.request_id.as_ref());
            let answer = answered.map(|(by, id)| respond(by, id, json!({ "task_id": task_id })));
            answer.into_iter().collect()
        }
        TaskEvent::Reported(_)
        | TaskEvent::BidMade(_)
        | TaskEvent::Declined(_)
        | TaskEvent::Lost(_)
        | TaskEvent::Elapsed(_)
        | TaskEvent::CaseEnded(_) => Vec::new(),
    };
    if let Some(next) = record.event.next() {
        all.extend(follow(task_id, next));
    }
    // What the coordinator has opened itself it hears from the events.
    all.retain(|effect| !is_for_the_coordinator(effect));
    all
}

fn is_for_the_coordinator(effect: &Effect) -> bool {
    let own = Service::Coordinator.agent_id();
    match effect {
        Effect::Respond { to, .. } | Effect::FailRequest { to, .. } => *to == own,
        Effect::Notify { to, .. } => *to == Recipient::Agent(own),
        _ => false,
    }
}

fn respond(to: &AgentId, request_id: &MessageId, result: Value) -> Effect {
    Effect::Respond {
        to: to.clone(),
        request_id: request_id.clone(),
        result,
    }
}

fn canceller(end: &TaskEnd) -> Option<&AgentId> {
    match &end.outcome {
        TaskOutcome::Cancelled { by, .. } => Some(by),
        TaskOutcome::Completed { .. } | TaskOutcome::Failed { .. } => None,
    }
}

/// The answer to who opened it, and the calls for proposals.
fn open(task_id: &Token, opened: &TaskOpened) -> Vec<Effect> {
    let opens_case = strategy::named(&opened.terms.strategy).is_some_and(TaskStrategy::opens_case);
    let participants = opened.candidates.iter().filter(|_| opens_case);
    let asked = opened.next.ask.iter().chain(&opened.next.call);
    let asked: Vec<&AgentId> = asked.chain(participants.map(|one| &one.agent)).collect();
    let result = json!({
        "task_id": task_id, "strategy": opened.terms.strategy, "asked": asked,
        "deadline": opened.due,
    });
    let answer = respond(&opened.opened_by, &opened.request_id, result);
    let call = opened.bids_due.map(|bids_due| {
        Arc::new(CallForProposals {
            task_id: task_id.clone(),
            task: opened.terms.task.clone(),
            bids_due,
            deadline: opened.due,
            weights: opened.terms.weights,
            reply_with: vec![Token::fixed("bid"), Token::fixed("refuse")],
        })
    });
    let calls = call.iter().flat_map(|call| {
        let to_each = opened.next.call.iter();
        to_each.map(|agent| Effect::CallForProposals {
            to: agent.clone(),
            call: Arc::clone(call),
        })
    });
    std::iter::once(answer).chain(calls).collect()
}

fn assign(task_id: &Token, assigned: &TaskAssigned) -> Effect {
    let work = Work {
        task_id: task_id.clone(),
        strategy: assigned.strategy.clone(),
        result_bytes_max: assigned.result_bytes_max,
        handed_on: assigned.handed_on.clone(),
    };
    let reply_with = ["task_result", "refuse", "handoff"].map(Token::fixed);
    let (to, task, deadline) = (assigned.agent.clone(), assigned.task.clone(), assigned.due);
    if assigned.awarded {
        let award = Award {
            task,
            deadline,
            reply_with: reply_with.into(),
            work,
            bid: assigned.bid.clone(),
        };
        let award = Box::new(award);
        return Effect::Award { to, award };
    }
    let assignment = Arc::new(TaskAssignment {
        task,
        deadline,
        reply_with: reply_with.into(),
        participants: vec![to.clone()],
        work: Some(Box::new(work)),
    });
    Effect::AssignTask { to, assignment }
}

/// Who opened the task and who had it hear of it; who has it now gets its assignment.
fn tell_of_handoff(task_id: &Token, handed: &TaskHandedOn) -> Vec<Effect> {
    let data = notification::TaskHandedOn {
        task_id: task_id.clone(),
        from: handed.handed.from.clone(),
        to: handed.to.clone(),
        reason: handed.handed.reason.clone(),
        context: handed.handed.context.clone(),
    };
    let tell = |to: &AgentId| Effect::tell(to.clone(), data.clone());
    vec![tell(&handed.opened_by), tell(&handed.handed.from)]
}

fn follow(task_id: &Token, next: &TaskStep) -> Vec<Effect> {
    let withdrawn = next.release.iter().filter_map(|release| {
        let data = TaskWithdrawn {
            task_id: task_id.clone(),
            why: release.told.clone()?,
        };
        Some(Effect::tell(release.agent.clone(), data))
    });
    let rejected = next.reject.iter().map(|agent| {
        let data = BidRejected {
            task_id: task_id.clone(),
            in_reserve: next.end.is_none(),
        };
        Effect::tell(agent.clone(), data)
    });
    let end = next.end.iter().filter_map(|end| tell_end(task_id, end));
    withdrawn.chain(rejected).chain(end).collect()
}

/// What who opened the task is told of its end; nothing where it is known from the cancellation.
fn tell_end(task_id: &Token, end: &TaskEnd) -> Option<Effect> {
    let (to, request_id) = (end.opened_by.clone(), end.request_id.clone());
    match &end.outcome {
        TaskOutcome::Completed {
            result,
            by,
            partial,
        } => Some(Effect::tell(
            to,
            TaskCompleted {
                task_id: task_id.clone(),
                request_id,
                strategy: end.strategy.clone(),
                result: result.clone(),
                by: by.clone(),
                partial: *partial,
            },
        )),
        TaskOutcome::Failed {
            code,
            reason,
            why,
            advice,
        } => Some(fail(task_id, end, (*code, reason), (why, advice))),
        TaskOutcome::Cancelled { by, why } => (*by != to).then(|| {
            let why = format!("{by} has cancelled it: {why}");
            let advice = "Open it again if its result is still needed.";
            let code = ErrorCode::AgentUnavailable;
            fail(task_id, end, (code, "cancelled"), (&why, advice))
        }),
    }
}

/// The error in which a task ends for who opened it.
fn fail(
    task_id: &Token,
    end: &TaskEnd,
    (error_code, reason): (ErrorCode, &str),
    (why, advice): (&str, &str),
) -> Effect {
    let mut details = Map::new();
    details.insert("task_id".into(), json!(task_id));
    details.insert("strategy".into(), json!(end.strategy));
    details.insert("reason".into(), json!(reason));
    let report = ErrorReport {
        error_code,
        error_message: why.to_owned(),
        details,
        recovery_suggestions: vec![advice.to_owned()],
    };
    Effect::FailRequest {
        to: end.opened_by.clone(),
        request_id: end.request_id.clone(),
        report: Box::new(report),
    }
}
