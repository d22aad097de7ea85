//! What answers a message about a task that a strategy hands out: a result, or a bid. The task of a case is answered by a finding.

use concord_domain::aggregates::task::strategy;
use concord_domain::rules::size_budget::{WHY_BYTES_MAX, json_bytes};
use concord_domain::text::beginning;
use concord_wire::envelope::from_json;
use concord_wire::payload::{Bid, Decline, ResponseStatus, ResultStatus, TaskResult, Work};
use concord_wire::{Envelope, ErrorCode, Fault, MessageType};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// What a message about a task asks for. It travels in the addresses of later answers, so it is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskAnswer {
    /// The result of a task.
    Result,
    /// A bid, or the refusal to make one.
    Bid,
}

/// The part of an assignment or an award that says that it is one of a task.
#[derive(Deserialize)]
struct Assigned {
    #[serde(default)]
    work: Option<Work>,
}

/// The task that a message gives to an agent, unless it is the task of a case.
fn work_of(incoming: &Envelope) -> Option<Work> {
    use MessageType::{Award, TaskAssignment};
    let is_given = matches!(incoming.message_type, TaskAssignment | Award);
    let assigned: Option<Assigned> = serde_json::from_str(incoming.payload.get()).ok();
    assigned?.work.filter(|_| is_given)
}

impl TaskAnswer {
    /// What a message asks for about a task. None where it asks for something else.
    pub(crate) fn of(incoming: &Envelope) -> Option<Self> {
        match incoming.message_type {
            MessageType::CallForProposals => Some(Self::Bid),
            _ => work_of(incoming).map(|_| Self::Result),
        }
    }

    /// The answer that a message of a type without a place in a task stands for: what it says is the result, or the bid. None where it
    /// is of a type that says more.
    pub(crate) fn replaced(
        self,
        kind: &MessageType,
        payload: &RawValue,
        confidence: Option<f64>,
    ) -> Result<Option<(MessageType, Box<RawValue>)>, Fault> {
        let has_no_place = match self {
            // Some agents know no other answer to an assignment than a finding.
            Self::Result => matches!(kind, MessageType::Response | MessageType::Finding),
            Self::Bid => *kind == MessageType::Response,
        };
        if !has_no_place {
            return Ok(None);
        }
        let fields = from_json(payload.get().as_bytes(), "/payload")?;
        self.answer(fields, confidence).map(Some)
    }

    /// The answer that has these fields. `confidence` stands beside them.
    pub(crate) fn answer(
        self,
        fields: Map<String, Value>,
        confidence: Option<f64>,
    ) -> Result<(MessageType, Box<RawValue>), Fault> {
        let (kind, payload) = match self {
            Self::Result => (MessageType::TaskResult, to_raw_value(&result(fields))),
            Self::Bid => match bid(fields, confidence)? {
                Ok(bid) => (MessageType::Bid, to_raw_value(&bid)),
                Err(decline) => (MessageType::Refuse, to_raw_value(&decline)),
            },
        };
        Ok((kind, payload.map_err(|error| unreadable("", &error))?))
    }
}

/// Checks a result as the coordinator will, so that a model can mend it.
pub(crate) fn check_result(incoming: &Envelope, payload: &RawValue) -> Result<(), Fault> {
    let (Some(work), Ok(result)) = (
        work_of(incoming),
        serde_json::from_str::<TaskResult>(payload.get()),
    ) else {
        return Ok(());
    };
    let (bytes, most) = (json_bytes(&result.result), work.result_bytes_max);
    if bytes > most {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/result",
            format!("The result has {bytes} bytes as JSON; at most {most} are accepted."),
            "Be shorter.",
        ));
    }
    match strategy::named(&work.strategy) {
        Some(strategy) if result.status == ResultStatus::Success => {
            strategy.read_result(&result.result).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// The result that is said by fields with `status` or `result`, or by all of them where they have neither.
fn result(fields: Map<String, Value>) -> TaskResult {
    let status = match status(&fields) {
        Some(status) => status,
        None if fields.contains_key("result") && !fields.contains_key("status") => {
            ResponseStatus::Success
        }
        None => return task_result(ResultStatus::Success, whole(fields), String::new()),
    };
    let mut fields = fields;
    fields.remove("status");
    let why = reason(&mut fields);
    let result = fields.remove("result").unwrap_or_else(|| whole(fields));
    let status = match status {
        ResponseStatus::Success => ResultStatus::Success,
        ResponseStatus::Failure => ResultStatus::Failure,
        ResponseStatus::Partial => ResultStatus::Partial,
    };
    task_result(status, result, why)
}

fn task_result(status: ResultStatus, result: Value, why: String) -> TaskResult {
    let content = None;
    TaskResult {
        status,
        result,
        why,
        content,
    }
}

/// The bid that the fields are, by themselves or as the result of a response; or the refusal of who says why there is none.
fn bid(
    mut fields: Map<String, Value>,
    confidence: Option<f64>,
) -> Result<Result<Bid, Decline>, Fault> {
    let failed = status(&fields) == Some(ResponseStatus::Failure);
    if failed || !fields.contains_key("price") && fields.contains_key("why") {
        let why = reason(&mut fields);
        return Ok(Err(Decline { why }));
    }
    let mut terms = match fields.remove("result") {
        Some(Value::Object(terms)) => terms,
        _ => fields,
    };
    if let Some(confidence) = confidence {
        terms
            .entry("confidence")
            .or_insert_with(|| confidence.into());
    }
    let bytes = serde_json::to_vec(&terms).map_err(|error| unreadable("/payload", &error))?;
    let bid: Bid = from_json(&bytes, "/payload")?;
    bid.check()?;
    Ok(Ok(bid))
}

/// How it went, where the fields say so as a response or a result does.
pub(super) fn status(fields: &Map<String, Value>) -> Option<ResponseStatus> {
    let status = fields.get("status")?;
    serde_json::from_value(status.clone()).ok()
}

/// Takes what the fields say of why something was not done, as a result or as a response does; no more than there is room for.
fn reason(fields: &mut Map<String, Value>) -> String {
    let why = fields.remove("why");
    let errors = fields.remove("errors");
    fields.remove("warnings");
    let texts = match (why, errors) {
        (Some(Value::String(why)), _) if !why.is_empty() => why,
        (_, Some(Value::Array(errors))) => {
            let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
            errors.join(" ")
        }
        _ => String::new(),
    };
    beginning(&texts, WHY_BYTES_MAX).to_owned()
}

/// All that was said. Of words alone the words: dialects keep them in `content`.
fn whole(mut fields: Map<String, Value>) -> Value {
    match fields.len() {
        0 => Value::Null,
        1 => fields.remove("content").unwrap_or(Value::Object(fields)),
        _ => Value::Object(fields),
    }
}

fn unreadable(pointer: &str, error: &serde_json::Error) -> Fault {
    let what = format!("It cannot be written: {error}.");
    Fault::invalid(pointer, what, "Answer with JSON.")
}
