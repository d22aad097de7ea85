//! The channel of addresses that are called, signed by the Standard Webhooks scheme.

use std::time::Duration;

use bytes::Bytes;
use concord_outbound::{
    Allowed, Caller as Outbound, HeaderMap, HeaderName, HeaderValue, Key, Limits, Method, Origin,
    Request, StatusCode, TlsError, header,
};
use concord_runtime::service::clock;
use concord_wire::payload::Contact;
use serde_json::{Map, Value, json};

use super::Failure;
use super::notice::{Audience, Notice, What};
use crate::settings::notify::{Error, NotifySettings, secret};

/// Answers that a server gives for a time only.
const PASSING: [StatusCode; 3] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
];
/// Who may be called, as refusals name it.
const SETTINGS: (&str, &str) = ("notify.webhook.hosts", "notify.webhook.allow_private");

/// Calls addresses.
pub(crate) struct Caller {
    outbound: Outbound,
    key: Key,
    gate_url: Option<String>,
    limits: Limits,
}

impl Caller {
    /// By these settings; none when nobody may be called.
    pub(crate) fn new(notify: &NotifySettings) -> Result<Option<Self>, Error> {
        let settings = &notify.webhook;
        if settings.hosts.is_empty() {
            let gate = settings.gate_url.as_ref();
            return gate.map_or(Ok(None), |_| {
                Err(Error::new(
                    "webhook.gate_url",
                    "its host is not among webhook.hosts",
                ))
            });
        }
        let origins = settings.hosts.iter().map(|text| {
            let form = "write example.org, example.org:8443 or http://10.0.0.7:8080";
            Origin::read(text)
                .ok_or_else(|| Error::new("webhook.hosts", format!("{text:?} is no host; {form}")))
        });
        let allowed = Allowed::new(
            origins.collect::<Result<_, _>>()?,
            settings.allow_private,
            SETTINGS,
        );
        if let Some(url) = &settings.gate_url {
            let target = allowed.target(url);
            target.map_err(|error| Error::new("webhook.gate_url", error.to_string()))?;
        }
        let secret = secret(
            "webhook.secret",
            settings.secret.as_ref(),
            settings.secret_file.as_ref(),
        )?;
        let secret = secret
            .ok_or_else(|| Error::new("webhook.secret", "calls are signed, and there is no key"))?;
        let key = Key::read(secret.reveal()).map_err(|why| Error::new("webhook.secret", why))?;
        let outbound =
            Outbound::new(allowed, notify.tls_ca.as_deref()).map_err(|error| match error {
                TlsError::Authorities { .. } => Error::new("tls_ca", error.to_string()),
                TlsError::Setup(_) => Error::new("webhook", error.to_string()),
            })?;
        // Nothing in an answer's body could matter.
        let limits = Limits {
            timeout: Duration::from_millis(notify.timeout_ms),
            body_bytes_max: None,
        };
        Ok(Some(Self {
            outbound,
            key,
            gate_url: settings.gate_url.clone(),
            limits,
        }))
    }

    /// The addresses for a notice.
    pub(crate) fn recipients(&self, notice: &Notice) -> Vec<String> {
        match &notice.to {
            Audience::Expert {
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

/// What an answer means. A redirect is not followed: it could lead to who may not be called.
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
    add("debate_id", json!(notice.debate_id));
    add("case_id", json!(notice.case_id));
    add("topic", json!(notice.topic));
    add("sequence", json!(notice.sequence));
    match &notice.to {
        Audience::Expert { expert, .. } => add("expert", json!(expert)),
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
        } => {
            add("priority", json!(priority));
            add("digest", json!(digest));
            add("positions", json!(positions));
        }
        What::Reminded(percent) => add("percent", json!(percent)),
        What::FellBack(position) => add("provisional", json!(position)),
        What::AwaitsGate => {}
    }
    json!({ "type": notice.kind(), "timestamp": notice.at, "data": data })
}

#[cfg(test)]
mod tests {
    use concord_runtime::service::settings::Secret;

    use super::*;
    use crate::settings::notify::WebhookSettings;

    fn refused(webhook: WebhookSettings) -> String {
        let settings = NotifySettings {
            webhook,
            ..NotifySettings::default()
        };
        let Err(error) = Caller::new(&settings) else {
            panic!("{settings:?} are good")
        };
        error.to_string()
    }

    #[test]
    fn settings_that_could_not_work_are_refused_by_name() {
        let secret = || Some(Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        let usual = || WebhookSettings {
            hosts: vec!["a.example".into()],
            secret: secret(),
            ..Default::default()
        };
        let of = |webhook| {
            Caller::new(&NotifySettings {
                webhook,
                ..NotifySettings::default()
            })
        };
        assert!(
            of(WebhookSettings::default()).unwrap().is_none(),
            "it is off"
        );
        assert!(
            of(WebhookSettings {
                gate_url: Some("https://a.example/x".into()),
                ..usual()
            })
            .unwrap()
            .is_some()
        );
        let url = |text: &str| Some(text.to_owned());
        for (webhook, key) in [
            (
                WebhookSettings {
                    hosts: vec!["a.example/x".into()],
                    ..usual()
                },
                "hosts",
            ),
            (
                WebhookSettings {
                    gate_url: url("https://b.example/"),
                    ..usual()
                },
                "gate_url",
            ),
            (
                WebhookSettings {
                    gate_url: url("http://a.example/"),
                    ..usual()
                },
                "gate_url",
            ),
            (
                WebhookSettings {
                    gate_url: url("https://a.example/"),
                    hosts: Vec::new(),
                    ..usual()
                },
                "gate_url",
            ),
            (
                WebhookSettings {
                    secret: None,
                    ..usual()
                },
                "secret",
            ),
            (
                WebhookSettings {
                    secret: Some(Secret::new("MfKQ9r8G")),
                    ..usual()
                },
                "secret",
            ),
            (
                WebhookSettings {
                    secret_file: Some("/x".into()),
                    ..usual()
                },
                "secret",
            ),
            (
                WebhookSettings {
                    secret: None,
                    secret_file: Some("/nowhere".into()),
                    ..usual()
                },
                "secret_file",
            ),
        ] {
            let error = refused(webhook);
            assert!(
                error.contains(&format!("\"service.notify.webhook.{key}\""))
                    && !error.contains("MfKQ"),
                "{error}"
            );
        }
    }

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
