//! A server that is called for a hosted agent: where it is, with which key, and what its failures mean.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use concord_domain::resilience::call_policy::Trouble;
use concord_outbound::{
    Allowed, Caller, HeaderMap, HeaderName, HeaderValue, Limits, Method, Origin, Request, Response,
    StatusCode, header,
};
use concord_runtime::service::settings::Secret;
use concord_runtime::{Trace, service::clock};
use url::Url;

use crate::hosted_agent::failure::Failure;
use crate::settings::check::Error;
use crate::settings::{HttpAgent, OpenAiAgent};

/// Most bytes of a model's answer.
const MODEL_ANSWER_BYTES_MAX: usize = 4_194_304;
/// A server that asks for more patience than this is not waited for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// The header by which a server knows a call that is made again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static(concord_wire::header::TRACEPARENT);

/// A server, ready to be called.
pub(crate) struct Endpoint {
    caller: Caller,
    url: String,
    headers: HeaderMap,
    answer_bytes_max: usize,
    idempotent: bool,
}

/// Where a key is.
pub(crate) struct KeyPlace<'a> {
    pub(crate) env: Option<&'a String>,
    pub(crate) file: Option<&'a PathBuf>,
    /// The names of the two settings.
    pub(crate) names: (&'static str, &'static str),
}

/// The settings of hosted agents.
const NAMES: (&str, &str) = ("api_key_env", "api_key_file");

impl Endpoint {
    /// That of a server that is sent messages; `key` is where its settings stand.
    pub(crate) fn of_server(key: &str, agent: &HttpAgent) -> Result<Self, Error> {
        let place = KeyPlace {
            env: agent.api_key_env.as_ref(),
            file: agent.api_key_file.as_ref(),
            names: NAMES,
        };
        let url = address(&format!("{key}.url"), &agent.url)?;
        let mut endpoint = Self::new(key, url, &place, agent.tls_ca.as_ref())?;
        for (name, value) in &agent.headers {
            let wrong = || {
                Error::new(
                    format!("{key}.headers"),
                    format!("{name:?} has no value that can be sent"),
                )
            };
            let name_read = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
            endpoint
                .headers
                .insert(name_read, hidden(value.reveal()).ok_or_else(wrong)?);
        }
        endpoint.answer_bytes_max = agent.answer_bytes_max;
        endpoint.idempotent = agent.idempotent;
        Ok(endpoint)
    }

    /// That of a model.
    pub(crate) fn of_model(key: &str, agent: &OpenAiAgent) -> Result<Self, Error> {
        let place = KeyPlace {
            env: agent.api_key_env.as_ref(),
            file: agent.api_key_file.as_ref(),
            names: NAMES,
        };
        let mut url = address(&format!("{key}.base_url"), &agent.base_url)?;
        let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let mut endpoint = Self::new(key, url, &place, agent.tls_ca.as_ref())?;
        endpoint.idempotent = agent.idempotent;
        Ok(endpoint)
    }

    fn new(
        key: &str,
        url: Url,
        place: &KeyPlace<'_>,
        tls_ca: Option<&PathBuf>,
    ) -> Result<Self, Error> {
        let origin = Origin::of(&url).into_iter().collect();
        // The operator wrote the address, and a model often runs on the next machine: where it leads is not a stranger's
        // choice. Redirects would be, and are not followed.
        let allowed = Allowed::new(origin, true, ("its own address", "nothing"));
        let caller = Caller::new(allowed, tls_ca.map(PathBuf::as_path));
        let caller =
            caller.map_err(|error| Error::new(format!("{key}.tls_ca"), error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((name, secret)) = secret(key, place)? {
            let wrong = || {
                Error::new(
                    format!("{key}.{name}"),
                    "the key cannot be sent in a header",
                )
            };
            let value = hidden(&format!("Bearer {}", secret.reveal())).ok_or_else(wrong)?;
            headers.insert(header::AUTHORIZATION, value);
        }
        let answer_bytes_max = MODEL_ANSWER_BYTES_MAX;
        Ok(Self {
            caller,
            url: url.into(),
            headers,
            answer_bytes_max,
            idempotent: false,
        })
    }

    /// Sends JSON once, with further headers and in a trace. The answer's status is one of success.
    pub(crate) async fn post(
        &self,
        body: Bytes,
        idempotency_key: &str,
        (further, trace): (HeaderMap, Option<&Trace>),
        within: Duration,
    ) -> Result<Response, Failure> {
        let mut headers = self.headers.clone();
        headers.extend(further);
        // A context that somebody else wrote may be one that cannot stand in a header.
        let beside = [
            (IDEMPOTENCY_KEY, Some(idempotency_key)),
            (TRACEPARENT, trace.map(|trace| &*trace.parent)),
        ];
        for (name, value) in beside {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let limits = Limits {
            timeout: within,
            body_bytes_max: Some(self.answer_bytes_max),
        };
        let request = Request {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body,
            limits,
        };
        let response = self
            .caller
            .call(request)
            .await
            .map_err(|error| self.failed(&error))?;
        if response.status.is_success() {
            Ok(response)
        } else {
            Err(self.refused(&response))
        }
    }

    fn failed(&self, error: &concord_outbound::Error) -> Failure {
        use concord_outbound::Error;
        let trouble = match *error {
            Error::Refused(_) => Trouble::NotAllowed,
            Error::Unreachable(_) => Trouble::Unreachable,
            Error::Broken(_) => Trouble::Broken,
            Error::Timeout {
                may_have_arrived, ..
            } => Trouble::Late { may_have_arrived },
            Error::TooLong(_) => Trouble::TooLong,
        };
        Failure::of(trouble, self.idempotent, error.to_string())
    }

    /// What a status means. Its body is not repeated: some servers write the key into it.
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
            ..Failure::of(Trouble::Status(status.as_u16()), self.idempotent, why)
        }
    }
}

fn address(key: &str, text: &str) -> Result<Url, Error> {
    let form = "write an address such as https://example.org/path, without a user name";
    let url = Url::parse(text).map_err(|error| Error::new(key, format!("{error}; {form}")))?;
    let plain = url.username().is_empty() && url.password().is_none();
    if Origin::of(&url).is_none() || !plain {
        Err(Error::new(key, form))
    } else {
        Ok(url)
    }
}

/// The key and the setting that led to it.
pub(crate) fn secret(
    key: &str,
    place: &KeyPlace<'_>,
) -> Result<Option<(&'static str, Secret)>, Error> {
    let (of_env, of_file) = place.names;
    let (name, text) = match (place.env, place.file) {
        (Some(_), Some(_)) => {
            return Err(Error::new(
                format!("{key}.{of_env}"),
                format!("leave out {of_env} or {of_file}"),
            ));
        }
        (None, None) => return Ok(None),
        (Some(variable), None) => {
            let missing = |_| {
                Error::new(
                    format!("{key}.{of_env}"),
                    format!("there is no variable {variable}"),
                )
            };
            (of_env, std::env::var(variable).map_err(missing)?)
        }
        (None, Some(file)) => {
            let unreadable = |error| format!("{} cannot be read: {error}", file.display());
            let text = std::fs::read_to_string(file);
            (
                of_file,
                text.map_err(|error| Error::new(format!("{key}.{of_file}"), unreadable(error)))?,
            )
        }
    };
    let text = text.trim();
    if text.is_empty() {
        Err(Error::new(format!("{key}.{name}"), "the key is empty"))
    } else {
        Ok(Some((name, Secret::new(text))))
    }
}

/// A header's value that is not shown.
fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// How long a server asks to be left alone: seconds, or a date.
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
