//! Completions of requests with a callback: each is posted to the address that the request names, signed as all webhooks are.

use std::sync::Arc;

use concord_events::{RequestEvent, StoredEvent};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler, RetryPolicy};
use concord_runtime::service::settings::WorkSettings;
use serde_json::{Value, json};

use super::Failure;
use super::webhook::Caller;
use crate::metrics::{AdapterMetrics, NoticeLabels};
use crate::settings::NotifySettings;

/// The channel's name in metrics.
const CHANNEL: &str = "callback";

/// Handles the events that complete requests.
pub(super) struct CompletionHandler {
    metrics: AdapterMetrics,
    caller: Option<Arc<Caller>>,
    settings: NotifySettings,
}

impl CompletionHandler {
    pub(super) fn new(
        metrics: &AdapterMetrics,
        caller: Option<Arc<Caller>>,
        settings: &NotifySettings,
    ) -> Self {
        Self {
            metrics: metrics.clone(),
            caller,
            settings: settings.clone(),
        }
    }

    fn count(&self, result: &'static str) {
        self.metrics
            .notifications
            .get_or_create(&NoticeLabels {
                channel: CHANNEL,
                result,
            })
            .inc();
    }
}

/// The address of a request's callback, and the body to post there. None where no completion is asked for.
fn completion(event: &RequestEvent) -> Option<(&str, Value)> {
    let (kind, request, data) = match event {
        RequestEvent::Answered(answered) => {
            let answer = &answered.answer;
            let data = json!({
                "by": answer.by, "form": answer.form, "status": answer.status, "error_code": answer.error_code,
                "payload": answer.payload, "took_ms": answered.took_ms,
            });
            ("request.answered", &answered.request, data)
        }
        RequestEvent::Failed(failed) => {
            let data = json!({
                "error_code": failed.error_code, "error_message": failed.why,
                "recovery_suggestions": failed.recovery_suggestions,
            });
            ("request.failed", &failed.request, data)
        }
        _ => return None,
    };
    let url = request.callback_url.as_deref()?;
    let about = json!({
        "type": kind, "request_id": request.request_id, "action": request.action, "from": request.from,
        "to": request.to.as_str(), "case_id": request.case_id, "data": data,
    });
    Some((url, about))
}

impl Handler for CompletionHandler {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let event = StoredEvent::<RequestEvent>::decode(&delivery.payload, delivery.sequence)?;
        let Some((url, body)) = completion(&event.event) else {
            return Ok(Ack::Acknowledge);
        };
        let Some(caller) = &self.caller else {
            self.count("off");
            let why = "no address may be called: the adapter's settings notify.webhook.hosts and secret are not set";
            return Err(HandleError::DeadLetter(why.into()));
        };
        // The same each time it is tried, so that a receiver knows a repetition.
        let id = format!("{}-callback", event.meta.event_id);
        match caller.post(serde_json::to_vec(&body)?, id, url).await {
            Ok(()) => {
                self.count("delivered");
                Ok(Ack::Acknowledge)
            }
            Err(Failure::Passing(why)) => {
                self.count("failed");
                Err(HandleError::retry(why))
            }
            Err(Failure::Lasting(why)) => {
                self.count("undeliverable");
                Err(HandleError::DeadLetter(why))
            }
        }
    }

    fn patience(&self, _: &WorkSettings) -> RetryPolicy {
        super::retry_policy(&self.settings)
    }

    fn exhausted(&self) {
        self.count("undeliverable");
    }
}
