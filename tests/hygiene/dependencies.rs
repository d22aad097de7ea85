//! No crate is in the lock file in two versions without a reason. The lock file is read, so this needs no network.

use std::collections::BTreeMap;

use crate::source::read;

/// Crates that stand in the lock file in several versions, and who brings the one that is not ours.
const REASONS: [(&str, &str); 0] = [];

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
    for file in crate::source::files("*Cargo.toml")
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
