//! The effects of the events of a request.

use concord_events::{AnswerForm, RequestAnswered, RequestEvent, RequestFailed};
use concord_wire::payload::ErrorReport;
use concord_wire::payload::notification::RequestCompleted;
use serde_json::{Map, json};

use crate::effect::Effect;

pub(super) fn effects(event: &RequestEvent) -> Vec<Effect> {
    match event {
        RequestEvent::Failed(failed) => vec![fail(failed)],
        RequestEvent::Answered(answered) => completed(answered).into_iter().collect(),
        RequestEvent::Opened(_)
        | RequestEvent::HeardEarly(_)
        | RequestEvent::Acknowledged(_)
        | RequestEvent::AnsweredLate(_) => Vec::new(),
    }
}

fn fail(failed: &RequestFailed) -> Effect {
    let request = &failed.request;
    let mut details = Map::new();
    details.insert("action".into(), json!(request.action));
    details.insert("asked".into(), json!(request.to.as_str()));
    details.insert("message_id".into(), json!(request.request_id));
    if !failed.pointer.is_empty() {
        details.insert("pointer".into(), json!(failed.pointer));
    }
    let report = ErrorReport {
        error_code: failed.error_code,
        error_message: failed.why.clone(),
        details,
        recovery_suggestions: failed.recovery_suggestions.clone(),
    };
    Effect::FailRequest {
        to: request.from.clone(),
        request_id: request.request_id.clone(),
        report: Box::new(report),
    }
}

/// A request with a callback: the completion is reported, unless the agent that was asked has done
/// so in that form.
fn completed(answered: &RequestAnswered) -> Option<Effect> {
    let RequestAnswered {
        request,
        answer,
        took_ms,
    } = answered;
    if !request.is_asynchronous() || answer.form == AnswerForm::Notification {
        return None;
    }
    let data = RequestCompleted {
        request_id: request.request_id.clone(),
        action: request.action.clone(),
        by: answer.by.clone(),
        status: answer.status,
        error_code: answer.error_code,
        took_ms: *took_ms,
        payload: answer.payload.clone(),
    };
    Some(Effect::tell(request.from.clone(), data))
}
