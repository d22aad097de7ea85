//! Which messages are about tasks.

use concord_domain::aggregates::case::CaseInput;
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::task::strategy::{self, panel};
use concord_domain::aggregates::task::{OpenedTask, Said, TaskInput, Word};
use concord_domain::effect::question_of;
use concord_domain::rules::size_budget::WHY_BYTES_MAX;
use concord_domain::text::beginning;
use concord_events::{StoredEvent, TaskEvent};
use concord_runtime::delivery::as_asked::declines;
use concord_wire::envelope::from_json;
use concord_wire::payload::{
    Bid, CANCEL_TASK, CancelTask, Decline, ErrorReport, FIND_AGENTS, FindAgents, Handoff,
    JOIN_TASK, LEAVE_TASK, OPEN_TASK, OpenTask, Response, TaskMember, TaskResult, action_of,
    parameters_of,
};
use concord_wire::{AgentId, Envelope, Fault, MessageType, Token};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::reruns::TASK_PREFIX;

/// Where the parameters of a request stand.
pub(crate) const PARAMETERS: &str = "/payload/parameters";

/// What a message wants of tasks.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskMessage {
    /// An input of a task. What must be read elsewhere is still missing.
    Step(Token, TaskInput),
    /// A question for agents that can do something.
    Find(FindAgents),
}

/// What an event of a task that is given to a panel means for its case, which has the same id: it is opened with the task, and cancelled
/// with a task that has ended without it. The stored policies must still be read.
pub fn case_input(record: &StoredEvent<TaskEvent>) -> Option<CaseInput> {
    let opens_case = |name: &str| strategy::named(name).is_some_and(|one| one.opens_case());
    match &record.event {
        TaskEvent::Opened(opened) if opens_case(&opened.terms.strategy) => {
            let asked = OpenedTask {
                opened_by: opened.opened_by.clone(),
                request_id: opened.request_id.clone(),
                terms: opened.terms.clone(),
                candidates: opened.candidates.clone(),
                sender: Authority::default(),
            };
            let request = panel::request(&record.meta.id, &asked, "/policy");
            Some(CaseInput::Open(Box::new(request)))
        }
        TaskEvent::CaseEnded(_) => None,
        event => {
            let end = event.end().filter(|end| opens_case(&end.strategy))?;
            Some(cancel_case(end.opened_by.clone()))
        }
    }
}

/// Cancels the case of a task of `opener` that has ended.
pub(crate) fn cancel_case(opener: AgentId) -> CaseInput {
    let why = "The task that was given to this panel has ended.".to_owned();
    CaseInput::Cancel { by: opener, why }
}

/// A message that is about a task; none when it is about something else.
pub fn from_message(envelope: &Envelope) -> Result<Option<TaskMessage>, Fault> {
    let word = match &envelope.message_type {
        MessageType::Request => return request(envelope),
        MessageType::TaskResult => Word::Result(TaskResult::of(envelope)?),
        MessageType::Bid => Word::Bid(envelope.payload::<Bid>()?, 0.0),
        MessageType::Refuse => Word::Refuse(envelope.payload::<Decline>()?.why),
        MessageType::Handoff => Word::HandOn(envelope.payload::<Handoff>()?, None),
        // It may be about anything: only who was asked by a task is heard about the task.
        MessageType::Error if named_task(envelope).is_none() => return Ok(None),
        MessageType::Error => Word::Failed(ErrorReport::of(envelope).error_message),
        _ => return Ok(None),
    };
    let Some((id, asked)) = named_task(envelope) else {
        return Err(Fault::invalid(
            "/reply_to",
            format!(
                "It is not said what this {} answers.",
                envelope.message_type
            ),
            "Give in reply_to the message_id of the message by which you were asked; a task_result may give the id of the task as correlation_id.",
        ));
    };
    let by = envelope.from_agent.clone();
    let said = Said { by, asked, word };
    Ok(Some(TaskMessage::Step(id, TaskInput::Say(Box::new(said)))))
}

/// What a response says to somebody whom a task has asked: some dialects have one word for all answers. It is a bid where it answers a call.
pub(crate) fn from_response(
    envelope: &Envelope,
    (id, asked): (Token, Option<u64>),
    is_bid: bool,
) -> Result<TaskMessage, Fault> {
    let response = envelope.payload::<Response>().ok();
    let why = response
        .as_ref()
        .map_or_else(String::new, |one| one.errors.join(" "));
    let why = beginning(&why, WHY_BYTES_MAX).to_owned();
    let word = match is_bid {
        true if declines(&envelope.payload().unwrap_or_default()) => Word::Refuse(why),
        true => {
            let read = |payload: &RawValue| from_json(payload.get().as_bytes(), "/payload");
            Word::Bid(envelope.answered(read)?, 0.0)
        }
        false => Word::Result(result_of(envelope, response.as_ref(), why)?),
    };
    let by = envelope.from_agent.clone();
    let said = Said { by, asked, word };
    Ok(TaskMessage::Step(id, TaskInput::Say(Box::new(said))))
}

fn result_of(
    envelope: &Envelope,
    response: Option<&Response>,
    why: String,
) -> Result<TaskResult, Fault> {
    let mut result = TaskResult::of(envelope)?;
    if result.why.is_empty() {
        result.why = why;
    }
    // Without a result the other fields are it, but for those of the response.
    if response.is_some_and(|one| one.result.is_null())
        && let Value::Object(fields) = &mut result.result
    {
        fields.remove("errors");
        fields.remove("warnings");
        if fields.is_empty() {
            result.result = Value::Null;
        }
    }
    Ok(result)
}

/// The task that a message answers, if it is one, and the sequence of the event by which its sender was asked. A result may name the
/// task alone, as its `correlation_id`.
pub(crate) fn named_task(envelope: &Envelope) -> Option<(Token, Option<u64>)> {
    if let Some((id, asked)) = question_of(envelope) {
        return Some((Token::new(id).ok()?, Some(asked)));
    }
    let is_result = matches!(
        envelope.message_type,
        MessageType::TaskResult | MessageType::Response
    );
    let names_task = is_result && envelope.reply_to.is_none();
    let id = envelope.correlation_id.as_deref().filter(|_| names_task)?;
    Some((Token::new(id).ok()?, None))
}

fn request(envelope: &Envelope) -> Result<Option<TaskMessage>, Fault> {
    let by = envelope.from_agent.clone();
    let request_id = envelope.message_id.clone();
    Ok(Some(match action_of(envelope)?.as_str() {
        OPEN_TASK => {
            let terms: OpenTask = parameters_of(envelope)?;
            check_task_id(terms.task_id.as_ref(), "/payload/parameters/task_id")?;
            let made = || Token::derived(&format!("task/{by}/{request_id}"));
            let id = terms.task_id.clone().unwrap_or_else(made);
            let asked = OpenedTask {
                opened_by: by,
                request_id,
                terms,
                candidates: Vec::new(),
                sender: Authority::default(),
            };
            TaskMessage::Step(id, TaskInput::Open(Box::new(asked)))
        }
        CANCEL_TASK => {
            let CancelTask { task_id, why } = parameters_of(envelope)?;
            let input = TaskInput::Cancel {
                by,
                sender: Box::default(),
                request_id: Some(request_id),
                why,
            };
            TaskMessage::Step(task_id, input)
        }
        action @ (JOIN_TASK | LEAVE_TASK) => {
            let TaskMember { task_id } = parameters_of(envelope)?;
            let input = TaskInput::Member {
                agent: by,
                request_id,
                joins: action == JOIN_TASK,
            };
            TaskMessage::Step(task_id, input)
        }
        FIND_AGENTS => TaskMessage::Find(parameters_of(envelope)?),
        _ => return Ok(None),
    }))
}

/// Refuses an id that is kept for the tasks of runs: what comes of those counts as an analysis.
pub(crate) fn check_task_id(id: Option<&Token>, pointer: &str) -> Result<(), Fault> {
    if id.is_none_or(|id| !id.as_str().starts_with(TASK_PREFIX)) {
        return Ok(());
    }
    Err(Fault::invalid(
        pointer,
        format!("Ids that begin with {TASK_PREFIX:?} are kept for analyses that are done again."),
        "Choose another task_id, or leave it out and one is made.",
    ))
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::ResultStatus;
    use concord_wire::subject::SubjectSpace;
    use serde_json::json;

    use super::*;

    fn result_naming(names: Value, payload: Value) -> Result<(Token, Said), Fault> {
        let mut message = json!({
            "message_id": "m-9", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": "coordinator",
            "message_type": "task_result", "payload": payload,
        });
        let fields = message.as_object_mut().unwrap();
        fields.extend(names.as_object().cloned().unwrap());
        let subject = SubjectSpace::default().parse("concord.v1.msg._.bob.coordinator.task_result");
        let message = Envelope::decode(message.to_string().as_bytes(), &subject.unwrap()).unwrap();
        match from_message(&message)? {
            Some(TaskMessage::Step(id, TaskInput::Say(said))) => Ok((id, *said)),
            other => panic!("no answer to a task: {other:?}"),
        }
    }

    fn result_of(payload: Value) -> (ResultStatus, Value) {
        let (_, said) = result_naming(json!({ "reply_to": "t-1-43-0" }), payload).unwrap();
        let Word::Result(result) = said.word else {
            panic!("{:?}", said.word);
        };
        (result.status, result.result)
    }

    #[test]
    fn a_result_names_its_assignment_or_its_task() {
        for (names, asked) in [
            (json!({ "reply_to": "t-1-43-0" }), Some(43)),
            (json!({ "correlation_id": "t-1-43-0" }), Some(43)),
            (json!({ "correlation_id": "t-1" }), None),
        ] {
            let (id, said) = result_naming(names, json!({})).unwrap();
            assert_eq!((id.as_str(), said.asked), ("t-1", asked));
        }
        for names in [
            json!({}),
            json!({ "reply_to": "t-1" }),
            json!({ "reply_to": "m-1", "correlation_id": "t-1" }),
        ] {
            let fault = result_naming(names, json!({})).unwrap_err();
            assert_eq!(fault.pointer, "/reply_to");
        }
    }

    #[test]
    fn no_result_of_any_form_is_lost() {
        for (payload, result) in [
            (json!({ "result": { "n": 1 } }), json!({ "n": 1 })),
            (json!({ "content": "In words." }), json!("In words.")),
            (json!({ "content": ["a", 1] }), json!(["a", 1])),
            (json!({ "content": 7 }), json!(7)),
            (json!({ "answer": "r1" }), json!({ "answer": "r1" })),
            (
                json!({ "status": "success", "answer": "r1", "why": "" }),
                json!({ "answer": "r1" }),
            ),
            (json!({ "result": 1, "note": "x" }), json!(1)),
            (json!({ "status": "success" }), Value::Null),
            (json!({}), Value::Null),
        ] {
            let read = result_of(payload.clone());
            assert_eq!(read, (ResultStatus::Success, result), "{payload}");
        }
        let (status, _) = result_of(json!({ "status": "failure", "why": "Out of order." }));
        assert_eq!(status, ResultStatus::Failure);
    }

    #[test]
    fn an_error_of_any_form_says_that_an_assignment_failed() {
        let error = |names: Value, payload: Value| {
            let mut message = json!({
                "message_id": "m-9", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": "coordinator",
                "message_type": "error", "payload": payload,
            });
            let fields = message.as_object_mut().unwrap();
            fields.extend(names.as_object().cloned().unwrap());
            let subject = SubjectSpace::default().parse("concord.v1.msg._.bob.coordinator.error");
            let read = Envelope::decode(message.to_string().as_bytes(), &subject.unwrap());
            from_message(&read.unwrap()).unwrap()
        };
        for (payload, why) in [
            (
                json!({ "error_code": "INTERNAL_ERROR", "error_message": "Out of order." }),
                "Out of order.",
            ),
            (
                json!({ "error_code": "OUT_OF_MEMORY", "error_message": "No room." }),
                "OUT_OF_MEMORY: No room.",
            ),
            (json!({ "content": "In words." }), "In words."),
            (json!({ "what": "ERROR" }), r#"{"what":"ERROR"}"#),
        ] {
            let answer = error(json!({ "reply_to": "t-1-43-0" }), payload.clone());
            let Some(TaskMessage::Step(_, TaskInput::Say(said))) = answer else {
                panic!("{payload} is no answer: {answer:?}");
            };
            assert_eq!(said.word, Word::Failed(why.to_owned()), "{payload}");
            // It may be about anything else.
            assert_eq!(error(json!({ "reply_to": "m-1" }), payload), None);
        }
    }

    #[test]
    fn the_ids_of_runs_are_nobody_elses() {
        let id = |text: &str| Token::new(text).unwrap();
        assert!(check_task_id(Some(&id("rerun-1")), "/p").is_err());
        assert!(check_task_id(Some(&id("rerun")), "/p").is_ok());
        assert!(check_task_id(None, "/p").is_ok());
    }
}
