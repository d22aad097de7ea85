//! No crate is in the lock file in two versions without a reason, and each has a licence that deny.toml allows. What is read is on
//! this machine after a build, so this needs no network.

use std::collections::BTreeMap;

use crate::hygiene::source::read;

/// Crates that stand in the lock file in several versions, and who brings them.
const REASONS: [(&str, &str); 19] = [
    (
        "base64",
        "0.22 is ours and async-nats'; tokenizers reads models with 0.13, lettre encodes mail with 0.23",
    ),
    (
        "bit-vec",
        "jsonschema (tests) by fancy-regex, and rcgen by yasna",
    ),
    (
        "block-buffer",
        "signatures of NATS keys (nkeys) are still on digest 0.10",
    ),
    (
        "const-oid",
        "signatures of NATS keys (nkeys) are still on digest 0.10",
    ),
    (
        "cpufeatures",
        "signatures of NATS keys (nkeys) are still on digest 0.10",
    ),
    (
        "crypto-common",
        "signatures of NATS keys (nkeys) are still on digest 0.10",
    ),
    (
        "digest",
        "signatures of NATS keys (nkeys) are still on digest 0.10; we are on 0.11",
    ),
    ("fancy-regex", "tokenizers, and jsonschema (tests)"),
    (
        "getrandom",
        "nkeys and ring on 0.2, tokenizers on 0.3, uuid and tempfile on 0.4",
    ),
    ("hashbrown", "safetensors is one behind indexmap and lru"),
    ("nom", "tokenizers' spm_precompiled on 7, lettre on 8"),
    ("r-efi", "follows getrandom; built on UEFI only"),
    (
        "rand",
        "nkeys on 0.8, opentelemetry_sdk and tokenizers on 0.9, async-nats on 0.10",
    ),
    ("rand_chacha", "follows rand"),
    ("rand_core", "follows rand"),
    ("sha2", "nkeys by ed25519-dalek on 0.10; we are on 0.11"),
    (
        "syn",
        "derive macros of tokenizers and others are still on 2; built once for the host",
    ),
    ("synstructure", "rcgen by asn1-rs on 0.13"),
    ("windows-sys", "ring on 0.52; built on Windows only"),
];

/// The versions of each package of a lock file.
fn versions(lock: &str) -> BTreeMap<String, Vec<String>> {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        versions
            .entry(field("name = "))
            .or_default()
            .push(field("version = "));
    }
    versions
}

#[test]
fn no_dependency_stands_in_two_versions_without_a_reason() {
    let found = versions(&read("Cargo.lock"));
    let doubled: BTreeMap<_, _> = found
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .collect();
    let without: Vec<_> = doubled
        .iter()
        .filter(|(name, _)| !REASONS.iter().any(|(known, _)| known == &name.as_str()))
        .collect();
    assert!(
        without.is_empty(),
        "find out who brings them (cargo tree -i NAME@VERSION), and say why in REASONS: {without:?}"
    );
    let gone: Vec<_> = REASONS
        .iter()
        .filter(|(name, _)| !doubled.contains_key(&(*name).to_owned()))
        .collect();
    assert!(
        gone.is_empty(),
        "these stand in one version now; take their reasons out: {gone:?}"
    );
}

#[test]
fn versions_are_stated_in_the_root_manifest_alone() {
    for file in crate::hygiene::source::files("*Cargo.toml")
        .into_iter()
        .filter(|file| file != "Cargo.toml")
    {
        let manifest = read(&file);
        let (_, dependencies) = manifest.split_once("dependencies]").unwrap_or_default();
        let stated = dependencies
            .lines()
            .take_while(|line| !line.starts_with("[["))
            .find(|line| {
                line.contains("version =")
                    || line.split_once(" = ").is_some_and(|(_, value)| {
                        value.starts_with("\"")
                            && value[1..].starts_with(|c: char| c.is_ascii_digit())
                    })
            });
        assert_eq!(
            stated, None,
            "{file} states a version; write it into the root Cargo.toml"
        );
    }
}

/// The licences that deny.toml allows.
fn allowed_licences() -> Vec<spdx::Licensee> {
    let rules: toml::Table = read("deny.toml").parse().unwrap();
    let allowed = rules["licenses"]["allow"].as_array().unwrap();
    allowed
        .iter()
        .map(|name| spdx::Licensee::parse(name.as_str().unwrap()).unwrap())
        .collect()
}

/// Whether somebody may choose terms of an expression such as "MIT OR GPL-3.0-only" that are allowed.
fn is_allowed(licence: &str, allowed: &[spdx::Licensee]) -> bool {
    spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|asked| allowed.iter().any(|licensee| licensee.satisfies(asked)))
    })
}

/// Each crate that is built on this machine, with its licence, of tests and tools too.
fn licences() -> Vec<(String, String)> {
    let host = std::process::Command::new("rustc").arg("-vV").output();
    let host = String::from_utf8(host.unwrap().stdout).unwrap();
    let host = host
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let listed = std::process::Command::new("cargo")
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", host])
        .current_dir(crate::hygiene::source::root())
        .output()
        .unwrap();
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let packages = listed["packages"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    packages
        .map(|package| (text(&package["name"]), text(&package["license"])))
        .collect()
}

#[test]
fn every_licence_is_allowed() {
    let allowed = allowed_licences();
    let refused: Vec<_> = licences()
        .into_iter()
        .filter(|(_, licence)| !is_allowed(licence, &allowed))
        .collect();
    assert!(
        refused.is_empty(),
        "take another crate, or allow the licence in deny.toml and say why in the commit: {refused:?}"
    );
}

#[test]
fn a_licence_that_asks_for_the_source_is_refused() {
    let allowed = allowed_licences();
    for (licence, may) in [
        ("MIT OR GPL-3.0-only", true),
        ("MIT AND GPL-3.0-only", false),
        ("AGPL-3.0-only", false),
        ("MIT/Apache-2.0", true),
        ("", false),
    ] {
        assert_eq!(is_allowed(licence, &allowed), may, "{licence:?}");
    }
}
