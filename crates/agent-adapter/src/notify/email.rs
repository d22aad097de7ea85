//! The channel of mailboxes.

use std::time::Duration;

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls as Security, TlsParameters};
use lettre::transport::smtp::{self, AsyncSmtpTransport};
use lettre::{Address, AsyncTransport, Tokio1Executor};

use super::notice::{Audience, Notice};
use super::{Failure, text};
use crate::settings::notify::{Error, NotifySettings, Tls, secret};

/// A mailer by RFC 3834: no program answers it.
const AUTO_SUBMITTED: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");
/// Answers of a server that does not accept how we log in: the mail itself is not refused by them.
const LOGIN_REFUSED: [u16; 4] = [530, 534, 535, 538];

/// Sends mails by one SMTP server.
pub(crate) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    gate_to: Vec<String>,
}

impl Mailer {
    /// By these settings; none when no server is named.
    pub(crate) fn new(notify: &NotifySettings) -> Result<Option<Self>, Error> {
        let settings = &notify.email;
        let Some(host) = settings
            .host
            .as_deref()
            .map(str::trim)
            .filter(|host| !host.is_empty())
        else {
            return Ok(None);
        };
        let from = settings
            .from
            .as_deref()
            .ok_or_else(|| Error::new("email.from", "say who the mails are from"))?;
        let from: Mailbox = from
            .parse()
            .map_err(|error| Error::new("email.from", format!("{from:?}: {error}")))?;
        for mailbox in &settings.gate_to {
            let address: Result<Address, _> = mailbox.parse();
            address
                .map_err(|error| Error::new("email.gate_to", format!("{mailbox:?}: {error}")))?;
        }
        let security = match settings.tls {
            Tls::None => Security::None,
            Tls::Starttls => Security::Required(tls(host, notify)?),
            Tls::Tls => Security::Wrapper(tls(host, notify)?),
        };
        let port = settings.port.unwrap_or(match settings.tls {
            Tls::None => smtp::SMTP_PORT,
            Tls::Starttls => smtp::SUBMISSION_PORT,
            Tls::Tls => smtp::SUBMISSIONS_PORT,
        });
        let timeout = Duration::from_millis(notify.timeout_ms);
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .tls(security)
            .port(port)
            .timeout(Some(timeout));
        if let Some(credentials) = credentials(notify)? {
            builder = builder.credentials(credentials);
        }
        Ok(Some(Self {
            transport: builder.build(),
            from,
            gate_to: settings.gate_to.clone(),
        }))
    }

    /// The mailboxes for a notice.
    pub(crate) fn recipients(&self, notice: &Notice) -> Vec<String> {
        match &notice.to {
            Audience::Expert { contact, .. } => contact.email.iter().cloned().collect(),
            Audience::Gate(_) => self.gate_to.clone(),
        }
    }

    /// Gives the server one mail for one mailbox.
    pub(crate) async fn send(
        &self,
        notice: &Notice,
        to: &str,
        prefix: &str,
    ) -> Result<(), Failure> {
        let message = message(notice, &self.from, to, prefix)?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) => {
                // With its causes: that is how this library writes its errors.
                let why = error.to_string();
                let login = error
                    .status()
                    .is_some_and(|code| LOGIN_REFUSED.contains(&u16::from(code)));
                Err(if error.is_permanent() && !login {
                    Failure::Lasting(why)
                } else {
                    Failure::Passing(why)
                })
            }
        }
    }
}

fn tls(host: &str, notify: &NotifySettings) -> Result<TlsParameters, Error> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = &notify.tls_ca {
        let wrong = |error: &dyn std::fmt::Display| {
            Error::new("tls_ca", format!("{}: {error}", path.display()))
        };
        let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
        parameters = parameters
            .add_root_certificate(Certificate::from_pem(&pem).map_err(|error| wrong(&error))?);
    }
    parameters
        .build_rustls()
        .map_err(|error| Error::new("email.tls", error.to_string()))
}

fn credentials(notify: &NotifySettings) -> Result<Option<Credentials>, Error> {
    let settings = &notify.email;
    let password = secret(
        "email.password",
        settings.password.as_ref(),
        settings.password_file.as_ref(),
    )?;
    match (&settings.username, password) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) if settings.tls == Tls::None => Err(Error::new(
            "email.tls",
            "a password is not sent without TLS: set starttls or tls, or leave out username",
        )),
        (Some(user), Some(password)) => Ok(Some(Credentials::new(
            user.clone(),
            password.reveal().to_owned(),
        ))),
        (Some(_), None) => Err(Error::new("email.username", "there is no password for it")),
        (None, Some(_)) => Err(Error::new("email.password", "there is no username for it")),
    }
}

/// A mail. The library encodes what is in headers; what strangers wrote has become one line before.
fn message(notice: &Notice, from: &Mailbox, to: &str, prefix: &str) -> Result<Message, Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::Lasting(format!("no mail can be made for {to:?}: {error}"))
    };
    let address: Address = to.parse().map_err(|error| unusable(&error))?;
    let domain = from.email.domain();
    let builder = Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, address))
        .subject(text::subject(notice))
        .message_id(Some(format!("<{}@{domain}>", notice.id(prefix, "email"))))
        // Mail programs show the mails of one debate as one thread.
        .references(format!("<{prefix}-{}@{domain}>", notice.debate_id))
        .raw_header(HeaderValue::new(AUTO_SUBMITTED, "auto-generated".into()))
        .header(ContentType::TEXT_PLAIN);
    builder
        .body(text::body(notice))
        .map_err(|error| unusable(&error))
}

#[cfg(test)]
mod tests;
