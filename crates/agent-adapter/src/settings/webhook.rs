//! The addresses that may be called and the key of the signatures, parsed from the settings.

use std::time::Duration;

use concord_outbound::{Allowed, Authorities, Key, Origin, TlsError};

use super::Error;
use super::notify::{NotifySettings, read_secret};

/// The settings of the hosts that may be called, as refusals name them.
const SETTINGS: (&str, &str) = ("notify.webhook.hosts", "notify.webhook.allow_private");

/// How addresses are called.
#[derive(Debug)]
pub(crate) struct WebhookConfig {
    pub(crate) allowed: Allowed,
    pub(crate) authorities: Authorities,
    /// The key that signs each call.
    pub(crate) key: Key,
    /// The address that is told of provisional decisions before a gate.
    pub(crate) gate_url: Option<String>,
    /// How long one try may take.
    pub(crate) timeout: Duration,
}

impl WebhookConfig {
    /// Parses the settings. None when nobody may be called.
    pub(crate) fn parse(notify: &NotifySettings) -> Result<Option<Self>, Error> {
        let settings = &notify.webhook;
        if settings.hosts.is_empty() {
            let gate = settings.gate_url.as_ref();
            return gate.map_or(Ok(None), |_| {
                Err(Error::new(
                    "notify.webhook.gate_url",
                    "its host is not among webhook.hosts",
                ))
            });
        }
        let origins = settings.hosts.iter().map(|text| {
            let form = "write example.org, example.org:8443 or http://10.0.0.7:8080";
            Origin::read(text).ok_or_else(|| {
                Error::new(
                    "notify.webhook.hosts",
                    format!("{text:?} is no host; {form}"),
                )
            })
        });
        let allowed = Allowed::new(
            origins.collect::<Result<_, _>>()?,
            settings.allow_private,
            SETTINGS,
        );
        if let Some(url) = &settings.gate_url {
            let target = allowed.target(url);
            target.map_err(|error| Error::new("notify.webhook.gate_url", error.to_string()))?;
        }
        let secret = read_secret(
            "webhook.secret",
            settings.secret.as_ref(),
            settings.secret_file.as_ref(),
        )?;
        let secret = secret.ok_or_else(|| {
            Error::new(
                "notify.webhook.secret",
                "calls are signed, and there is no key",
            )
        })?;
        let key =
            Key::read(secret.reveal()).map_err(|why| Error::new("notify.webhook.secret", why))?;
        let authorities =
            Authorities::read(notify.tls_ca.as_deref()).map_err(|error| match error {
                TlsError::Authorities { .. } => Error::of_file("notify.tls_ca", error.to_string()),
                TlsError::Setup(_) => Error::new("notify.webhook", error.to_string()),
            })?;
        Ok(Some(Self {
            allowed,
            authorities,
            key,
            gate_url: settings.gate_url.clone(),
            timeout: Duration::from_millis(notify.timeout_ms),
        }))
    }
}

#[cfg(test)]
mod tests {
    use concord_runtime::service::settings::Secret;

    use super::*;
    use crate::settings::WebhookSettings;

    fn refused(webhook: WebhookSettings) -> String {
        let settings = NotifySettings {
            webhook,
            ..NotifySettings::default()
        };
        let Err(error) = WebhookConfig::parse(&settings) else {
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
            WebhookConfig::parse(&NotifySettings {
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
        let with = |change: fn(&mut WebhookSettings)| {
            let mut webhook = usual();
            change(&mut webhook);
            webhook
        };
        for (webhook, key) in [
            (with(|one| one.hosts = vec!["a.example/x".into()]), "hosts"),
            (
                with(|one| one.gate_url = Some("https://b.example/".into())),
                "gate_url",
            ),
            (
                with(|one| one.gate_url = Some("http://a.example/".into())),
                "gate_url",
            ),
            (
                with(|one| {
                    one.gate_url = Some("https://a.example/".into());
                    one.hosts.clear();
                }),
                "gate_url",
            ),
            (with(|one| one.secret = None), "secret"),
            (
                with(|one| one.secret = Some(Secret::new("MfKQ9r8G"))),
                "secret",
            ),
            (with(|one| one.secret_file = Some("/x".into())), "secret"),
            (
                with(|one| {
                    one.secret = None;
                    one.secret_file = Some("/nowhere".into());
                }),
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
}
