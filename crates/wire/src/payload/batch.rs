//! Batches: related requests that are asked, and answered, as one (specification 5).
//!
//! Whoever is asked takes a batch apart: its agent is asked each request by itself, and what it answers becomes one response,
//! in the order of the requests. The client libraries and the agent adapter do that in the same way, with what stands here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::exchange::{sentences, why_refused};
use super::{ErrorReport, Request, Response, ResponseStatus, action_of, check_name};
use crate::envelope::from_json;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::timestamp::Timestamp;
use crate::{AgentId, Envelope, MessageId, MessageType};

/// The action of a request that carries several.
pub const BATCH: &str = "batch";
/// Most requests of a batch.
pub const BATCH_MAX: usize = 100;
/// How long before its deadline a batch is answered at the latest, in milliseconds: the answer must be stored in time.
const MARGIN_MS: u64 = 1_000;
/// How many characters of a request's error are repeated in the errors of the whole.
const WORDS_MAX: usize = 200;

/// Parameters of `batch`: related requests that are asked, and answered, as one. The result of the response is a
/// `BatchResult`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    /// The requests. None of them is a batch, and none has a callback of its own.
    #[schemars(length(min = 1, max = 100))]
    pub requests: Vec<Request>,
}

impl Batch {
    pub(super) fn check(&self, pointer: &str) -> Result<(), Fault> {
        let count = self.requests.len();
        if !(1..=BATCH_MAX).contains(&count) {
            let code = match count {
                0 => ErrorCode::InvalidRequest,
                _ => ErrorCode::CapacityExceeded,
            };
            return Err(Fault::new(
                code,
                format!("{pointer}/requests"),
                format!("There are {count} requests."),
                format!("Put 1 to {BATCH_MAX} requests into a batch."),
            ));
        }
        let mut requests = self.requests.iter().enumerate();
        requests.try_for_each(|(place, one)| one.check_part(&format!("{pointer}/requests/{place}")))
    }
}

impl Request {
    /// Checks a request of a batch, which stands at `pointer`.
    fn check_part(&self, pointer: &str) -> Result<(), Fault> {
        let action = format!("{pointer}/action");
        if self.action == BATCH {
            let advice = "Put all requests into one batch.";
            return Err(Fault::invalid(action, "A batch is in a batch.", advice));
        }
        if self.action.trim().is_empty() {
            return Err(Fault::invalid(
                action,
                "It is blank.",
                "Say what is to be done.",
            ));
        }
        check_name(&action, &self.action)?;
        if self.callback_url.is_some() {
            return Err(Fault::invalid(
                format!("{pointer}/callback_url"),
                "A request of a batch has a callback of its own.",
                "Give the callback to the batch: it is completed as a whole.",
            ));
        }
        super::action::check_action(
            &self.action,
            &self.parameters,
            &format!("{pointer}/parameters"),
        )
    }
}

/// The result of the response to a `batch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchResult {
    /// What came of each request, in the order of the requests.
    pub responses: Vec<PartResponse>,
}

/// What came of one request of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartResponse {
    /// The result.
    pub status: ResponseStatus,
    /// The result.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub result: Value,
    /// What went wrong, as sentences.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "sentences"
    )]
    pub errors: Vec<String>,
    /// Warnings, as sentences.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "sentences"
    )]
    pub warnings: Vec<String>,
    /// The error in place of a result, as a request by itself would have been answered with it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "ErrorReport::of_part"
    )]
    pub error: Option<ErrorReport>,
}

impl PartResponse {
    /// What an agent answered to one request: a response, an `error`, or anything else, which is then the result.
    pub fn of_answer(answer: &Envelope) -> Self {
        if answer.message_type == MessageType::Error {
            return Self::failed(ErrorReport::of(answer));
        }
        let response = match answer.message_type {
            MessageType::Refuse => Response {
                status: ResponseStatus::Failure,
                result: Value::Null,
                errors: vec![why_refused(answer)],
                warnings: Vec::new(),
            },
            _ => answer.payload().unwrap_or_else(|_| Response {
                status: ResponseStatus::Success,
                result: answer.payload().unwrap_or_default(),
                errors: Vec::new(),
                warnings: Vec::new(),
            }),
        };
        Self {
            status: response.status,
            result: response.result,
            errors: response.errors,
            warnings: response.warnings,
            error: None,
        }
    }

    /// A request without a result.
    pub fn failed(error: ErrorReport) -> Self {
        Self {
            status: ResponseStatus::Failure,
            result: Value::Null,
            errors: vec![error.error_message.clone()],
            warnings: Vec::new(),
            error: Some(error),
        }
    }

    /// A request that `agent` did not answer in the time of the batch.
    pub fn late(agent: &AgentId) -> Self {
        Self::failed(ErrorReport::from(&Fault::new(
            ErrorCode::Timeout,
            "",
            format!("{agent} gave no answer in the time of the batch."),
            "Ask again with a later deadline, or put fewer requests into the batch.",
        )))
    }

    fn without_room() -> Self {
        Self::failed(ErrorReport::from(&Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            "The result has no room in the answer to the batch.",
            "Ask this request by itself.",
        )))
    }
}

impl BatchResult {
    /// The response to the whole: a success if every request is one, a failure if none is even in part. Results that do not fit into
    /// `bytes` any more become errors, the last first.
    pub fn into_response(mut self, bytes: usize) -> Response {
        let size = |part: &PartResponse| serde_json::to_vec(part).map_or(0, |json| json.len() + 1);
        // What stands in place of a result must have room itself.
        let reserve = size(&PartResponse::without_room());
        let mut left = bytes.saturating_sub(reserve * self.responses.len());
        for part in &mut self.responses {
            let more = size(part).saturating_sub(reserve);
            if more > left {
                *part = PartResponse::without_room();
            } else {
                left -= more;
            }
        }
        let all = |status| self.responses.iter().all(|part| part.status == status);
        let status = if all(ResponseStatus::Success) {
            ResponseStatus::Success
        } else if all(ResponseStatus::Failure) {
            ResponseStatus::Failure
        } else {
            ResponseStatus::Partial
        };
        let mut errors = Vec::new();
        for (place, part) in self.responses.iter().enumerate() {
            if part.status == ResponseStatus::Failure {
                let why = part.errors.first().map_or("It failed.", String::as_str);
                errors.push(format!(
                    "requests/{place}: {}",
                    why.chars().take(WORDS_MAX).collect::<String>()
                ));
            }
        }
        Response {
            status,
            result: serde_json::to_value(self).unwrap_or_default(),
            errors,
            warnings: Vec::new(),
        }
    }
}

/// Whether a message is a batch.
pub fn is_batch(message: &Envelope) -> bool {
    message.message_type == MessageType::Request
        && action_of(message).is_ok_and(|action| action == BATCH)
}

/// When the answer to a batch is given at the latest that is due at `due`: a second before, or a tenth of the time that is left.
pub fn answered_by(due: Timestamp, now: Timestamp) -> Timestamp {
    let left = due.millis_since(now);
    now.plus_millis(left - MARGIN_MS.min(left / 10))
}

/// The requests of a batch as messages of their own, in their order, due at `due` or where one says so before. Their ids follow
/// from the batch's. Fails where the batch is none that can be carried out.
pub fn parts(batch: &Envelope, due: Timestamp) -> Result<Vec<Envelope>, Fault> {
    #[derive(Deserialize)]
    struct Whole {
        parameters: Parts,
    }
    #[derive(Deserialize)]
    struct Parts {
        // As they were written: what reads them may know more than this version.
        requests: Vec<Box<RawValue>>,
    }
    batch.payload::<Request>()?.check()?;
    let whole: Whole = from_json(batch.payload.get().as_bytes(), "/payload")?;
    let requests = whole.parameters.requests.into_iter().enumerate();
    requests
        .map(|(place, payload)| {
            let request: Request = from_json(payload.get().as_bytes(), "/payload")?;
            Ok(Envelope {
                message_id: MessageId::of_part(&batch.message_id, place),
                deadline: Some(request.deadline.map_or(due, |own| own.min(due))),
                requires_response: true,
                payload,
                ..batch.clone()
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(kind: &str, payload: &Value) -> Envelope {
        let message = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "ann", "to_agent": "bob",
            "message_type": kind, "case_id": "c-1", "payload": payload,
        });
        serde_json::from_value(message).unwrap()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(millis)
    }

    #[test]
    fn a_batch_is_taken_apart_into_requests_that_end_no_later_than_it() {
        let soon = at(5_000);
        let batch = message(
            "request",
            &json!({ "action": "batch", "parameters": { "requests": [
                { "action": "x", "x_unknown": 1 }, { "action": "y", "deadline": soon }] } }),
        );
        assert!(is_batch(&batch));
        let parts = parts(&batch, at(9_000)).unwrap();
        let ids: Vec<_> = parts.iter().map(|part| part.message_id.as_str()).collect();
        assert_eq!(ids, ["m-1-part-0", "m-1-part-1"]);
        let due: Vec<_> = parts.iter().map(|part| part.deadline.unwrap()).collect();
        assert_eq!(due, [at(9_000), soon]);
        assert_eq!(parts[0].payload.get(), r#"{"action":"x","x_unknown":1}"#);
        assert!(parts.iter().all(|part| part.requires_response
            && !is_batch(part)
            && part.case_id == batch.case_id));
    }

    #[test]
    fn what_is_no_batch_is_not_taken_apart() {
        for parameters in [
            json!({}),
            json!({ "requests": [] }),
            json!({ "requests": [{ "action": "batch" }] }),
            json!({ "requests": [1] }),
        ] {
            let batch = message(
                "request",
                &json!({ "action": "batch", "parameters": parameters }),
            );
            assert!(parts(&batch, at(9_000)).is_err(), "{parameters}");
        }
        assert!(!is_batch(&message("request", &json!({ "action": "x" }))));
        assert!(!is_batch(&message(
            "response",
            &json!({ "action": "batch" })
        )));
    }

    #[test]
    fn the_answer_has_the_parts_in_order_and_says_how_the_whole_went() {
        use ResponseStatus::{Failure, Partial, Success};
        let report = json!({ "error_code": "UNAUTHORIZED", "error_message": "Not you." });
        let done = message(
            "response",
            &json!({ "status": "success", "result": { "n": 1 } }),
        );
        let refused = message("error", &report);
        let other = message("task_result", &json!({ "content": "Four." }));
        for (answers, status, errors) in [
            (vec![&done, &other], Success, 0),
            (vec![&done, &refused], Partial, 1),
            (vec![&refused, &refused], Failure, 2),
        ] {
            let responses = answers
                .into_iter()
                .map(PartResponse::of_answer)
                .collect::<Vec<_>>();
            let whole = BatchResult {
                responses: responses.clone(),
            };
            let whole = whole.into_response(100_000);
            assert_eq!((whole.status, whole.errors.len()), (status, errors));
            let result: BatchResult = serde_json::from_value(whole.result).unwrap();
            assert_eq!(result.responses, responses);
        }
        // A failure is none the less one where its errors are no sentences, or its code is the agent's own.
        for (kind, payload, errors) in [
            (
                "response",
                json!({ "status": "failure", "errors": [{ "code": "X" }] }),
                json!([r#"{"code":"X"}"#]),
            ),
            (
                "response",
                json!({ "status": "failure", "errors": null }),
                json!([]),
            ),
            (
                "response",
                json!({ "status": "failure", "errors": "No." }),
                json!(["No."]),
            ),
            (
                "error",
                json!({ "error_code": "NO_GPU", "error_message": "Busy." }),
                json!(["NO_GPU: Busy."]),
            ),
            (
                "refuse",
                json!({ "why": "Not my field." }),
                json!(["Not my field."]),
            ),
        ] {
            let part = PartResponse::of_answer(&message(kind, &payload));
            assert_eq!(
                (part.status, json!(part.errors)),
                (Failure, errors),
                "{payload}"
            );
        }
        let part = PartResponse::of_answer(&refused);
        assert_eq!(part.error.unwrap().error_code, ErrorCode::Unauthorized);
        assert_eq!(
            PartResponse::of_answer(&other).result,
            json!({ "content": "Four." })
        );
    }

    #[test]
    fn what_has_no_room_is_an_error_and_the_rest_stays() {
        let part = |text: String| {
            PartResponse::of_answer(&message(
                "response",
                &json!({ "status": "success", "result": { "text": text } }),
            ))
        };
        let responses = vec![
            part("a".repeat(500)),
            part("b".repeat(5_000)),
            part("c".into()),
        ];
        let whole = BatchResult { responses }.into_response(2_000);
        let result: BatchResult = serde_json::from_value(whole.result.clone()).unwrap();
        let codes: Vec<_> = result
            .responses
            .iter()
            .map(|part| part.error.as_ref().map(|error| error.error_code))
            .collect();
        assert_eq!(codes, [None, Some(ErrorCode::CapacityExceeded), None]);
        assert!(whole.result.to_string().len() <= 2_000);
    }

    #[test]
    fn an_answer_is_given_before_its_time_is_over() {
        assert_eq!(answered_by(at(31_000), at(1_000)), at(30_000));
        assert_eq!(answered_by(at(2_000), at(1_000)), at(1_900));
        assert_eq!(answered_by(at(1_000), at(2_000)), at(2_000));
    }
}
