//! The SMTP server and the sender of mails, parsed from the settings.

use std::time::Duration;

use lettre::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls as Security, TlsParameters};

use super::Error;
use super::notify::{NotifySettings, Tls, read_secret};

/// How mails are sent.
#[derive(Debug)]
pub(crate) struct EmailConfig {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) security: Security,
    pub(crate) credentials: Option<Credentials>,
    /// The sender of each mail.
    pub(crate) from: Mailbox,
    /// Mailboxes that are told of provisional decisions before a gate.
    pub(crate) gate_to: Vec<String>,
    /// How long one try may take.
    pub(crate) timeout: Duration,
}

impl EmailConfig {
    /// Parses the settings. None when no server is named.
    pub(crate) fn parse(notify: &NotifySettings) -> Result<Option<Self>, Error> {
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
            .ok_or_else(|| Error::new("notify.email.from", "say who the mails are from"))?;
        let from: Mailbox = from
            .parse()
            .map_err(|error| Error::new("notify.email.from", format!("{from:?}: {error}")))?;
        for mailbox in &settings.gate_to {
            let address: Result<Address, _> = mailbox.parse();
            address.map_err(|error| {
                Error::new("notify.email.gate_to", format!("{mailbox:?}: {error}"))
            })?;
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
        Ok(Some(Self {
            host: host.to_owned(),
            port,
            security,
            credentials: credentials(notify)?,
            from,
            gate_to: settings.gate_to.clone(),
            timeout: Duration::from_millis(notify.timeout_ms),
        }))
    }
}

fn tls(host: &str, notify: &NotifySettings) -> Result<TlsParameters, Error> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = &notify.tls_ca {
        let wrong = |error: &dyn std::fmt::Display| {
            Error::of_file("notify.tls_ca", format!("{}: {error}", path.display()))
        };
        let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
        parameters = parameters
            .add_root_certificate(Certificate::from_pem(&pem).map_err(|error| wrong(&error))?);
    }
    parameters
        .build_rustls()
        .map_err(|error| Error::new("notify.email.tls", error.to_string()))
}

fn credentials(notify: &NotifySettings) -> Result<Option<Credentials>, Error> {
    let settings = &notify.email;
    let password = read_secret(
        "email.password",
        settings.password.as_ref(),
        settings.password_file.as_ref(),
    )?;
    match (&settings.username, password) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) if settings.tls == Tls::None => Err(Error::new(
            "notify.email.tls",
            "a password is not sent without TLS: set starttls or tls, or leave out username",
        )),
        (Some(user), Some(password)) => Ok(Some(Credentials::new(
            user.clone(),
            password.reveal().to_owned(),
        ))),
        (Some(_), None) => Err(Error::new(
            "notify.email.username",
            "there is no password for it",
        )),
        (None, Some(_)) => Err(Error::new(
            "notify.email.password",
            "there is no username for it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use concord_runtime::service::settings::Secret;

    use super::super::EmailSettings;
    use super::*;

    #[test]
    fn settings_that_could_not_work_are_refused_by_name() {
        let usual = || EmailSettings {
            host: Some("mail.example.org".into()),
            from: Some("concord@example.org".into()),
            ..EmailSettings::default()
        };
        let of = |email| {
            EmailConfig::parse(&NotifySettings {
                email,
                ..NotifySettings::default()
            })
        };
        assert!(of(EmailSettings::default()).unwrap().is_none(), "it is off");
        assert!(of(usual()).unwrap().is_some());
        let with = |change: fn(&mut EmailSettings)| {
            let mut email = usual();
            change(&mut email);
            email
        };
        let logged_in = |change: fn(&mut EmailSettings)| {
            let mut email = usual();
            email.username = Some("concord".into());
            email.password = Some(Secret::new("s3cret"));
            change(&mut email);
            email
        };
        for (email, key) in [
            (with(|email| email.from = None), "email.from"),
            (
                with(|email| email.from = Some("Concord".into())),
                "email.from",
            ),
            (
                with(|email| email.gate_to = vec!["board".into()]),
                "email.gate_to",
            ),
            (logged_in(|email| email.password = None), "email.username"),
            (logged_in(|email| email.username = None), "email.password"),
            (logged_in(|email| email.tls = Tls::None), "email.tls"),
            (
                with(|email| email.password_file = Some("/nowhere".into())),
                "email.password_file",
            ),
            (
                logged_in(|email| email.password_file = Some("/x".into())),
                "email.password",
            ),
        ] {
            let Err(error) = of(email) else {
                panic!("{key} is good")
            };
            let error = error.to_string();
            assert!(
                error.contains(&format!("\"service.notify.{key}\"")) && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
