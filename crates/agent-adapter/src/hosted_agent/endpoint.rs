//! A server that is called for a hosted agent, and the meaning of its failures.

use std::time::Duration;

use concord_domain::resilience::call_policy::CallFailure;
use concord_outbound::{
    Allowed, Caller, HeaderMap, HeaderName, HeaderValue, Limits, Method, Request, Response,
    StatusCode, header,
};
use concord_runtime::service::clock;
use concord_wire::Dialect;

use crate::hosted_agent::agent_caller::{AgentCall, AgentReply};
use crate::hosted_agent::failure::Failure;
use crate::settings::{EndpointConfig, HeaderFile};

/// A wait that a server asks for is cut to this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// The header by which a server recognizes a call that is made again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header with the address to which an answer may be posted later.
const CALLBACK_URL: HeaderName = HeaderName::from_static("concord-callback-url");
/// The header with the dialect of a message or an answer, as on NATS.
const DIALECT: HeaderName = HeaderName::from_static("concord-dialect");
const TRACEPARENT: HeaderName = HeaderName::from_static(concord_wire::header::TRACEPARENT);

/// A server, ready to be called.
pub(crate) struct Endpoint {
    caller: Caller,
    url: String,
    headers: HeaderMap,
    header_files: Vec<HeaderFile>,
    answer_bytes_max: usize,
    idempotent: bool,
}

impl Endpoint {
    pub(crate) fn new(config: EndpointConfig) -> Self {
        // The operator wrote the address, and a model often runs on the next machine: private addresses are allowed.
        // Redirects would be chosen by a stranger, and are not followed.
        let allowed = Allowed::new(vec![config.origin], true, ("its own address", "nothing"));
        Self {
            caller: Caller::trusting(allowed, config.authorities),
            url: config.url.into(),
            headers: config.headers,
            header_files: config.header_files,
            answer_bytes_max: config.answer_bytes_max,
            idempotent: config.idempotent,
        }
    }

    /// Sends JSON once. A status that is none of success is a failure.
    pub(crate) async fn post(&self, call: AgentCall<'_>) -> Result<AgentReply, Failure> {
        let dialect = (call.dialect != Dialect::Concord).then_some(call.dialect.as_str());
        let mut headers = self.headers.clone();
        self.read_files(&mut headers);
        let further = [
            (DIALECT, dialect),
            (CALLBACK_URL, call.callback_url),
            (IDEMPOTENCY_KEY, Some(call.idempotency_key)),
            (TRACEPARENT, call.trace.map(|trace| &*trace.parent)),
        ];
        for (name, value) in further {
            // A trace context that somebody else wrote may be one that no header can hold; it is left out.
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let request = Request {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body: call.body,
            limits: Limits {
                timeout: call.within,
                body_bytes_max: Some(self.answer_bytes_max),
            },
        };
        let response = self
            .caller
            .call(request)
            .await
            .map_err(|error| self.failed(&error))?;
        if !response.status.is_success() {
            return Err(self.refused(&response));
        }
        let named = response.headers.get(&DIALECT);
        Ok(AgentReply {
            status: response.status.as_u16(),
            dialect: named.map(|name| name.to_str().unwrap_or("?").to_owned()),
            body: response.body,
        })
    }

    /// Brings the headers whose values are in files to what the files have now.
    fn read_files(&self, headers: &mut HeaderMap) {
        for one in &self.header_files {
            if let Some(value) = one.read() {
                headers.insert(one.name.clone(), value);
            } else {
                let HeaderFile { name, file, .. } = one;
                tracing::warn!(header = %name, file = %file.display(), "The file of a header cannot be used; its value of the start is sent.");
            }
        }
    }

    fn failed(&self, error: &concord_outbound::Error) -> Failure {
        use concord_outbound::Error;
        let trouble = match *error {
            Error::Refused(_) => CallFailure::NotAllowed,
            Error::Unreachable(_) => CallFailure::Unreachable,
            Error::Broken(_) => CallFailure::Broken,
            Error::Timeout {
                may_have_arrived, ..
            } => CallFailure::Late { may_have_arrived },
            Error::TooLong(_) => CallFailure::TooLong,
        };
        Failure::of_call(trouble, self.idempotent, error.to_string())
    }

    /// The failure that a status means. The body is not repeated: some servers write the key into it.
    fn refused(&self, response: &Response) -> Failure {
        let status = response.status;
        let hint = match status {
            _ if status.is_redirection() => "; redirects are not followed",
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                "; its address or key in the adapter's settings is wrong"
            }
            _ => "",
        };
        let why = format!("the server answered {status}{hint}");
        let after = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                retry_after(&response.headers)
            }
            _ => None,
        };
        Failure {
            after,
            ..Failure::of_call(CallFailure::Status(status.as_u16()), self.idempotent, why)
        }
    }
}

/// How long a server asks not to be called: a number of seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date =
                time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc2822)
                    .ok()?;
            let millis = i64::try_from(date.unix_timestamp_nanos() / 1_000_000).ok()?;
            Duration::from_millis(u64::try_from(millis - clock::now().unix_millis()).unwrap_or(0))
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests;
