//! The channel of addresses that are called, signed by the Standard Webhooks scheme.

use bytes::Bytes;
use concord_outbound::{
    Caller as Outbound, HeaderMap, HeaderName, HeaderValue, Key, Limits, Method, Request,
    StatusCode, header,
};
use concord_runtime::service::clock;
use concord_wire::payload::Contact;
use serde_json::{Map, Value, json};

use super::Failure;
use super::notice::{Audience, Notice, What};
use crate::settings::WebhookConfig;

/// Answers that a server gives for a time only.
const PASSING: [StatusCode; 3] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
];

/// Calls addresses.
pub(crate) struct Caller {
    outbound: Outbound,
    key: Key,
    gate_url: Option<String>,
    limits: Limits,
}

impl Caller {
    pub(crate) fn new(config: WebhookConfig) -> Self {
        // Nothing in the body of an answer could matter.
        let limits = Limits {
            timeout: config.timeout,
            body_bytes_max: None,
        };
        Self {
            outbound: Outbound::trusting(config.allowed, config.authorities),
            key: config.key,
            gate_url: config.gate_url,
            limits,
        }
    }

    /// The addresses for a notice.
    pub(crate) fn recipients(&self, notice: &Notice) -> Vec<String> {
        match &notice.to {
            Audience::Expert {
                contact: Contact { webhook, .. },
                ..
            }
            | Audience::Person {
                contact: Contact { webhook, .. },
                ..
            } => webhook.iter().cloned().collect(),
            Audience::Gate(_) => self.gate_url.iter().cloned().collect(),
        }
    }

    /// Calls one address.
    pub(crate) async fn send(
        &self,
        notice: &Notice,
        to: &str,
        prefix: &str,
    ) -> Result<(), Failure> {
        self.post(notify_body(notice)?, notice.id(prefix, "webhook"), to)
            .await
    }

    /// Posts a body to an address, signed, under an id that is the same each time.
    pub(crate) async fn post(&self, body: Vec<u8>, id: String, to: &str) -> Result<(), Failure> {
        let request = self.request(body, id, to)?;
        judge(self.outbound.call(request).await?.status)
    }

    fn request(&self, body: Vec<u8>, id: String, to: &str) -> Result<Request, Failure> {
        let timestamp = clock::now().unix_millis().div_euclid(1_000);
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| unusable(&error));
        let headers = HeaderMap::from_iter([
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            ),
            (HeaderName::from_static("webhook-id"), value(&id)?),
            (
                HeaderName::from_static("webhook-timestamp"),
                HeaderValue::from(timestamp),
            ),
            (
                HeaderName::from_static("webhook-signature"),
                value(&self.key.sign(&id, timestamp, &body))?,
            ),
        ]);
        Ok(Request {
            method: Method::POST,
            url: to.to_owned(),
            headers,
            body: Bytes::from(body),
            limits: self.limits,
        })
    }
}

fn unusable(error: &dyn std::fmt::Display) -> Failure {
    Failure::Lasting(format!("no call can be made: {error}"))
}

fn notify_body(notice: &Notice) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(&body(notice)).map_err(|error| unusable(&error))
}

impl From<concord_outbound::Error> for Failure {
    fn from(error: concord_outbound::Error) -> Self {
        let why = error.to_string();
        if error.is_lasting() {
            Self::Lasting(why)
        } else {
            Self::Passing(why)
        }
    }
}

/// Judges an answer by its status. A redirect is not followed, because it could lead to a host that may not be called.
fn judge(status: StatusCode) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let why = format!("the answer was {status}");
    if status.is_server_error() || PASSING.contains(&status) {
        return Err(Failure::Passing(why));
    }
    let redirect = if status.is_redirection() {
        "; redirects are not followed"
    } else {
        ""
    };
    Err(Failure::Lasting(why + redirect))
}

/// The body: the scheme's usual three fields.
fn body(notice: &Notice) -> Value {
    let mut data = Map::new();
    let mut add = |name: &str, value: Value| {
        data.insert(name.to_owned(), value);
    };
    if let Some(debate_id) = &notice.debate_id {
        add("debate_id", json!(debate_id));
    }
    if let Some(case_id) = &notice.case_id {
        add("case_id", json!(case_id));
    }
    if let Some(task_id) = &notice.task_id {
        add("task_id", json!(task_id));
    }
    add("topic", json!(notice.topic));
    add("sequence", json!(notice.sequence));
    match &notice.to {
        Audience::Expert { expert, .. } => add("expert", json!(expert)),
        Audience::Person { name, .. } => add("person", json!(name)),
        Audience::Gate(gate) => add("gate", json!(gate)),
    }
    if let Some(until) = notice.until {
        add("until", json!(until));
    }
    match &notice.what {
        What::Assigned {
            priority,
            digest,
            positions,
            matter,
        } => {
            add("priority", json!(priority));
            add("digest", json!(digest));
            add("positions", json!(positions));
            if let Some(matter) = matter {
                add("matter", json!(matter));
            }
        }
        What::Reminded(percent) => add("percent", json!(percent)),
        What::FellBack(position) => add("provisional", json!(position)),
        What::AwaitsGate | What::TakenBack(_) => {}
        What::Cancelled(order) => add("cancelled", json!(order)),
        What::DeadlinesMoved(control, order) => {
            add("control", json!(control));
            add("by", json!(order.by));
            add("why", json!(order.why));
        }
        What::Changed { change, .. } => add("change", json!(change)),
        What::QuotaReached(reached) => {
            add("opener", json!(reached.opener));
            add("quota", json!(reached.quota));
            add("limit", json!(reached.limit));
        }
        what @ (What::Alerted { .. } | What::ReportMissed { .. }) => {
            of_alert(what)
                .into_iter()
                .for_each(|(name, value)| add(name, value));
        }
        What::Disproved {
            right,
            by,
            explanation,
        } => {
            add("proved_right", json!(right));
            add("by", json!(by));
            add("explanation", json!(explanation));
        }
    }
    json!({ "type": notice.kind(), "timestamp": notice.at, "data": data })
}

/// What is said about an alert.
fn of_alert(what: &What) -> Vec<(&'static str, Value)> {
    match what {
        What::Alerted { alert, raised } => vec![
            ("alert", json!(alert)),
            ("said", json!(raised.alert)),
            ("raised_by", json!(raised.heard.agent_id)),
            ("report_due", json!(raised.report_due)),
        ],
        What::ReportMissed { alert, missed } => {
            vec![("alert", json!(alert)), ("missed", json!(missed))]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let of = |code| judge(StatusCode::from_u16(code).unwrap());
        for code in [200, 202, 204] {
            assert!(of(code).is_ok(), "{code}");
        }
        for code in [408, 425, 429, 500, 502, 503] {
            assert!(matches!(of(code), Err(Failure::Passing(_))), "{code}");
        }
        for code in [301, 302, 307, 400, 401, 404, 410, 422] {
            assert!(matches!(of(code), Err(Failure::Lasting(_))), "{code}");
        }
    }
}
