//! Certificate authorities that calls trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use url::Host;

use crate::address::Target;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of authorities is not one.
    #[error("{}: {why}", .path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The library refuses its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// The certificate authorities that a caller trusts.
#[derive(Clone)]
pub struct Authorities(pub(crate) TlsConnector);

impl std::fmt::Debug for Authorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authorities")
    }
}

impl Authorities {
    /// Reads the authorities of the system and, besides, those in a PEM file.
    pub fn read(file: Option<&Path>) -> Result<Self, Error> {
        connector(file).map(Self)
    }
}

fn connector(authorities: Option<&Path>) -> Result<TlsConnector, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = authorities {
        let wrong = |error: &dyn std::fmt::Display| Error::Authorities {
            path: path.into(),
            why: error.to_string(),
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(TlsConnector::from(Arc::new(
        builder.with_root_certificates(roots).with_no_client_auth(),
    )))
}

/// Whose certificate the server must show.
pub(crate) fn server_name(target: &Target) -> Result<ServerName<'static>, crate::Error> {
    match target.host() {
        Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|error| {
            crate::Error::Refused(format!("{name} cannot have a certificate: {error}"))
        }),
        Host::Ipv4(ip) => Ok(ServerName::from(std::net::IpAddr::V4(*ip))),
        Host::Ipv6(ip) => Ok(ServerName::from(std::net::IpAddr::V6(*ip))),
    }
}
