//! The channel of addresses that are called, signed by the Standard Webhooks scheme.

use std::sync::Arc;

use bytes::Bytes;
use concord_protocol::payload::Contact;
use concord_runtime::clock;
use concord_runtime::consume::Chain;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use url::Host;

use super::Failure;
use super::address::{Allowed, Origin, Target};
use super::notice::{Audience, Notice, What};
use super::settings::{Error, NotifySettings, secret};
use super::sign::Key;

/// Answers that a server gives for a time only.
const PASSING: [StatusCode; 3] = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
const USER_AGENT: &str = concat!("concord/", env!("CARGO_PKG_VERSION"));

/// Calls addresses.
pub(crate) struct Caller {
    allowed: Allowed,
    key: Key,
    gate_url: Option<String>,
    tls: TlsConnector,
}

impl Caller {
    /// By these settings; none when nobody may be called.
    pub(crate) fn new(notify: &NotifySettings) -> Result<Option<Self>, Error> {
        let settings = &notify.webhook;
        if settings.hosts.is_empty() {
            let gate = settings.gate_url.as_ref();
            return gate
                .map_or(Ok(None), |_| Err(Error::new("webhook.gate_url", "its host is not among webhook.hosts")));
        }
        let origins = settings.hosts.iter().map(|text| {
            let form = "write example.org, example.org:8443 or http://10.0.0.7:8080";
            Origin::read(text).ok_or_else(|| Error::new("webhook.hosts", format!("{text:?} is no host; {form}")))
        });
        let allowed = Allowed { origins: origins.collect::<Result<_, _>>()?, private: settings.allow_private };
        if let Some(url) = &settings.gate_url {
            let target = allowed.target(url);
            target.map_err(|failure| Error::new("webhook.gate_url", failure.to_string()))?;
        }
        let secret = secret("webhook.secret", settings.secret.as_ref(), settings.secret_file.as_ref())?;
        let secret = secret.ok_or_else(|| Error::new("webhook.secret", "calls are signed, and there is no key"))?;
        let key = Key::read(&secret).map_err(|why| Error::new("webhook.secret", why))?;
        let tls = TlsConnector::from(Arc::new(tls(notify)?));
        Ok(Some(Self { allowed, key, gate_url: settings.gate_url.clone(), tls }))
    }

    /// The addresses for a notice.
    pub(crate) fn recipients(&self, notice: &Notice) -> Vec<String> {
        match &notice.to {
            Audience::Expert { contact: Contact { webhook, .. }, .. } => webhook.iter().cloned().collect(),
            Audience::Gate(_) => self.gate_url.iter().cloned().collect(),
        }
    }

    /// Calls one address.
    pub(crate) async fn send(&self, notice: &Notice, to: &str, prefix: &str) -> Result<(), Failure> {
        let target = self.allowed.target(to)?;
        let addresses = self.allowed.addresses(&target).await?;
        let request = self.request(notice, &target, prefix)?;
        // The first of them that answers.
        let stream = TcpStream::connect(&*addresses).await.map_err(|error| passing("connect", &error))?;
        let status = if target.is_tls {
            let name = server_name(&target)?;
            let stream = self.tls.connect(name, stream).await.map_err(|error| passing("speak TLS", &error))?;
            exchange(stream, request).await
        } else {
            exchange(stream, request).await
        };
        judge(status.map_err(|error| passing("exchange", &error))?)
    }

    fn request(&self, notice: &Notice, target: &Target, prefix: &str) -> Result<Request<Full<Bytes>>, Failure> {
        let unusable = |error: &dyn std::fmt::Display| Failure::Lasting(format!("no call can be made: {error}"));
        let body = serde_json::to_vec(&body(notice)).map_err(|error| unusable(&error))?;
        let id = notice.id(prefix, "webhook");
        let timestamp = clock::now().unix_millis().div_euclid(1_000);
        let request = Request::post(&target.path)
            .header(header::HOST, &target.authority)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", self.key.sign(&id, timestamp, &body));
        request.body(Full::from(body)).map_err(|error| unusable(&error))
    }
}

fn passing(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::Passing(format!("could not {what}: {}", Chain(error)))
}

fn tls(notify: &NotifySettings) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = &notify.tls_ca {
        let wrong = |error: &dyn std::fmt::Display| Error::new("tls_ca", format!("{}: {error}", path.display()));
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::new("webhook", error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn server_name(target: &Target) -> Result<ServerName<'static>, Failure> {
    match &target.host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|error| Failure::Lasting(format!("{name} cannot have a certificate: {error}"))),
        Host::Ipv4(ip) => Ok(ServerName::from(std::net::IpAddr::V4(*ip))),
        Host::Ipv6(ip) => Ok(ServerName::from(std::net::IpAddr::V6(*ip))),
    }
}

/// One request on a connection of its own. Its answer's body is not read: nothing in it could matter.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> hyper::Result<StatusCode>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ended with this function, whatever comes.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    Ok(sender.send_request(request).await?.status())
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
    let redirect = if status.is_redirection() { "; redirects are not followed" } else { "" };
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
        What::Assigned { priority, digest, positions } => {
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
    use concord_runtime::settings::Secret;

    use super::*;
    use crate::notify::settings::WebhookSettings;

    fn refused(webhook: WebhookSettings) -> String {
        let settings = NotifySettings { webhook, ..NotifySettings::default() };
        let Err(error) = Caller::new(&settings) else { panic!("{settings:?} are good") };
        error.to_string()
    }

    #[test]
    fn settings_that_could_not_work_are_refused_by_name() {
        let secret = || Some(Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        let usual = || WebhookSettings { hosts: vec!["a.example".into()], secret: secret(), ..Default::default() };
        let of = |webhook| Caller::new(&NotifySettings { webhook, ..NotifySettings::default() });
        assert!(of(WebhookSettings::default()).unwrap().is_none(), "it is off");
        assert!(of(WebhookSettings { gate_url: Some("https://a.example/x".into()), ..usual() }).unwrap().is_some());
        let url = |text: &str| Some(text.to_owned());
        for (webhook, key) in [
            (WebhookSettings { hosts: vec!["a.example/x".into()], ..usual() }, "hosts"),
            (WebhookSettings { gate_url: url("https://b.example/"), ..usual() }, "gate_url"),
            (WebhookSettings { gate_url: url("http://a.example/"), ..usual() }, "gate_url"),
            (WebhookSettings { gate_url: url("https://a.example/"), hosts: Vec::new(), ..usual() }, "gate_url"),
            (WebhookSettings { secret: None, ..usual() }, "secret"),
            (WebhookSettings { secret: Some(Secret::new("MfKQ9r8G")), ..usual() }, "secret"),
            (WebhookSettings { secret_file: Some("/x".into()), ..usual() }, "secret"),
            (WebhookSettings { secret: None, secret_file: Some("/nowhere".into()), ..usual() }, "secret_file"),
        ] {
            let error = refused(webhook);
            assert!(error.contains(&format!("\"service.notify.webhook.{key}\"")) && !error.contains("MfKQ"), "{error}");
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
