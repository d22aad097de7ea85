//! The channel of mailboxes.

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::{Address, AsyncTransport, Tokio1Executor};

use super::notice::{Audience, Notice};
use super::{Failure, text};
use crate::settings::EmailConfig;

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
    pub(crate) fn new(config: EmailConfig) -> Self {
        let mut builder =
            AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(config.host.as_str())
                .tls(config.security)
                .port(config.port)
                .timeout(Some(config.timeout));
        if let Some(credentials) = config.credentials {
            builder = builder.credentials(credentials);
        }
        Self {
            transport: builder.build(),
            from: config.from,
            gate_to: config.gate_to,
        }
    }

    /// The mailboxes for a notice.
    pub(crate) fn recipients(&self, notice: &Notice) -> Vec<String> {
        match &notice.to {
            Audience::Expert { contact, .. } | Audience::Person { contact, .. } => {
                contact.email.iter().cloned().collect()
            }
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
        .references(format!("<{prefix}-{}@{domain}>", notice.about()))
        .raw_header(HeaderValue::new(AUTO_SUBMITTED, "auto-generated".into()))
        .header(ContentType::TEXT_PLAIN);
    builder
        .body(text::body(notice))
        .map_err(|error| unusable(&error))
}

#[cfg(test)]
mod tests;
