//! Certificates of a local installation: an authority that signs for the broker and for its clients, and is forgotten.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use concord_installation::Tls;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

use super::secure::unusable;
use crate::shared::failure::Failure;

/// What the broker's certificate is for.
const ADDRESSES: [&str; 2] = ["127.0.0.1", "localhost"];

/// The certificates in a folder, made where they are missing: for clients, and the lines with which the broker uses its own.
pub(super) fn prepare(folder: &Path) -> Result<(Tls, String), Failure> {
    let file = |name: &str| folder.join(name);
    // The authority comes last: where it is, all are.
    if !file("ca.pem").is_file() {
        make(folder)?;
    }
    let quoted = |name: &str| serde_json::Value::from(file(name).display().to_string());
    let config = format!(
        "tls {{\n  cert_file: {}\n  key_file: {}\n  ca_file: {}\n  verify: true\n}}\n",
        quoted("server.pem"),
        quoted("server.key"),
        quoted("ca.pem")
    );
    let tls = Tls {
        authority: file("ca.pem"),
        certificate: file("client.pem"),
        key: file("client.key"),
    };
    Ok((tls, config))
}

fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| unusable(folder, &error))?;
    let unmade = |error: rcgen::Error| Failure::failed(format!("no certificate: {error}"));
    let mut authority = named("Concord on this machine").map_err(unmade)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let key = KeyPair::generate().map_err(unmade)?;
    let authority = CertifiedIssuer::self_signed(authority, key).map_err(unmade)?;
    for (name, usage) in [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let mut params = named(name).map_err(unmade)?;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().map_err(unmade)?;
        let signed = params.signed_by(&key, &authority).map_err(unmade)?;
        write(folder, &format!("{name}.pem"), &signed.pem())?;
        write(folder, &format!("{name}.key"), &key.serialize_pem())?;
    }
    write(folder, "ca.pem", &authority.pem())
}

fn named(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(ADDRESSES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// Writes a file that only its owner can read.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&path);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| unusable(&path, &error))
}
