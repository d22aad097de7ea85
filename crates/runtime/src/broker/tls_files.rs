//! The files for TLS, looked at before anything is connected: the client library names neither file nor setting, and tries for ever.

use std::path::Path;

use async_nats::rustls::crypto::ring::default_provider;
use async_nats::rustls::pki_types::pem::{self, PemObject};
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::sign::CertifiedKey;

use crate::broker::connection::Error;
use crate::settings::BrokerSettings;

/// Says which file for TLS cannot be used.
pub(super) fn check(broker: &BrokerSettings) -> Result<(), Error> {
    if let Some(path) = &broker.tls_ca {
        certificates("broker.tls_ca", path)?;
    }
    let certificate = broker.tls_certificate.as_deref();
    let chain = certificate.map(|path| certificates("broker.tls_certificate", path));
    let chain = chain.transpose()?;
    let Some(key_path) = &broker.tls_key else {
        return Ok(());
    };
    let key = "broker.tls_key";
    let bytes = std::fs::read(key_path).map_err(|source| unusable(key, key_path, source))?;
    let private = PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| unusable(key, key_path, in_form(&error, "PRIVATE KEY-----")))?;
    let (Some(chain), Some(path)) = (chain, certificate) else {
        return Ok(());
    };
    // After half of a rotation one is new, and the other is not.
    CertifiedKey::from_der(chain, private, &default_provider())
        .map(drop)
        .map_err(|source| Error::TlsPair {
            certificate: path.display().to_string(),
            key: key_path.display().to_string(),
            source,
        })
}

/// The certificates in a file, of which there is at least one.
fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = std::fs::read(path).map_err(|source| unusable(setting, path, source))?;
    let read = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let some = read.and_then(|all| match all.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(all),
    });
    some.map_err(|error| {
        let source = in_form(&error, "-----BEGIN CERTIFICATE-----");
        unusable(setting, path, source)
    })
}

fn in_form(error: &pem::Error, line: &str) -> std::io::Error {
    let message = match error {
        pem::Error::NoItemsFound => format!("it has no line with {line}"),
        other => other.to_string(),
    };
    std::io::Error::new(std::io::ErrorKind::InvalidData, message)
}

fn unusable(setting: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::TlsFile {
        setting,
        path: path.display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertifiedKey as Made, generate_simple_self_signed};

    use super::*;
    use crate::broker::Denials;
    use crate::broker::connection::connect;
    use crate::error_chain::ErrorChain;

    /// What is said of settings with which nothing is connected. Nobody is there at the address.
    async fn refused(broker: &BrokerSettings) -> String {
        let denials = Denials::default();
        let connecting = connect("test", broker, true, &denials);
        let ended = tokio::time::timeout(Duration::from_secs(2), connecting).await;
        let error = ended.expect("it is said at once").err().unwrap();
        ErrorChain(&error).to_string()
    }

    #[tokio::test]
    async fn files_of_tls_that_cannot_be_used_are_named_with_their_settings() {
        let folder = tempfile::TempDir::new().unwrap();
        let (gone, other) = (folder.path().join("gone.pem"), folder.path().join("other"));
        std::fs::write(&other, "no certificate").unwrap();
        let plain = BrokerSettings::default;
        for (setting, file, broker) in [
            (
                "broker.tls_ca",
                "gone.pem",
                BrokerSettings {
                    tls_ca: Some(gone.clone()),
                    ..plain()
                },
            ),
            (
                "broker.tls_certificate",
                "other",
                BrokerSettings {
                    tls_certificate: Some(other),
                    tls_key: Some(gone),
                    ..plain()
                },
            ),
        ] {
            let text = refused(&broker).await;
            assert!(text.contains(setting) && text.contains(file), "{text}");
        }
    }

    #[tokio::test]
    async fn a_certificate_and_the_key_of_another_one_are_named_both() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let Made { cert, signing_key } = generate_simple_self_signed(["eva".into()]).unwrap();
        let other = generate_simple_self_signed(["eva".into()]).unwrap();
        let mut broker = BrokerSettings {
            tls_certificate: file("client.pem", cert.pem()),
            tls_key: file("own.key", signing_key.serialize_pem()),
            ..BrokerSettings::default()
        };
        check(&broker).unwrap();
        broker.tls_key = file("other.key", other.signing_key.serialize_pem());
        let text = refused(&broker).await;
        let named = [
            "broker.tls_certificate",
            "client.pem",
            "broker.tls_key",
            "other.key",
        ];
        assert!(named.iter().all(|one| text.contains(one)), "{text}");
    }
}
