//! Crates know only crates of lower floors, and the folders of a crate only those before them.

use std::collections::BTreeMap;

use crate::hygiene::source::{code, files, read, ships};

/// The floors of the house, lowest first. A crate knows crates of lower floors only.
const FLOORS: [&[&str]; 8] = [
    &["concord-wire", "concord-outbound", "contract-review-panel"],
    &[
        "concord-credentials",
        "concord-embedding",
        "concord-encoding",
        "concord-events",
    ],
    &[
        "concord-agent",
        "concord-archive",
        "concord-domain",
        "concord-installation",
    ],
    &["concord-runtime", "concord-testkit"],
    &[
        "concord-agent-adapter",
        "concord-conflict-detector",
        "concord-coordinator",
        "concord-debate-facilitator",
        "concord-escalation-timer",
    ],
    &["concord-cli", "concord-simulation"],
    &["concord-lab", "xtask"],
    &["concord-tests"],
];

/// Crates whose folders are in an order, and that order, lowest first.
const FOLDERS: [(&str, &[&str]); 1] = [(
    "crates/runtime/src",
    &[
        "broker",
        "codec",
        "event_store",
        "delivery",
        "admission",
        "service",
    ],
)];

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&name))
}

/// Our own crates that a manifest names as dependencies of what ships.
fn own_dependencies(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]"
            && let Some((name, _)) = line.split_once(['.', ' ', '='])
            && floor(name).is_some()
        {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn no_crate_knows_one_of_its_own_floor_or_of_a_higher_one() {
    let mut wrong = Vec::new();
    for file in files("*Cargo.toml")
        .into_iter()
        .filter(|file| file != "Cargo.toml")
    {
        let manifest = read(&file);
        let named = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = "));
        let name = named.unwrap_or_default().trim_matches('"');
        let Some(own) = floor(name) else {
            wrong.push(format!(
                "{file}: {name:?} stands on no floor; add it to FLOORS"
            ));
            continue;
        };
        for dependency in own_dependencies(&manifest) {
            if floor(&dependency).is_some_and(|other| other >= own) {
                wrong.push(format!(
                    "{name} depends on {dependency}, which does not stand below it"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn agents_need_nothing_but_the_wire() {
    let found = own_dependencies(&read("crates/agent/Cargo.toml"));
    assert_eq!(found, ["concord-encoding", "concord-wire"]);
}

/// The folders that code names by paths from the crate's root, and the places that name them.
fn named_folders<'a>(text: &str, folders: &[&'a str]) -> Vec<&'a str> {
    let code = code(text);
    let named = |folder: &&&str| {
        let path = format!("crate::{folder}");
        let group = code
            .split("use crate::{")
            .skip(1)
            .filter_map(|rest| rest.split_once("};"));
        let in_group = group.into_iter().any(|(items, _)| {
            items
                .split([',', '{'])
                .any(|item| item.trim().split("::").next() == Some(**folder))
        });
        in_group
            || code.match_indices(&path).any(|(place, _)| {
                !code[place + path.len()..]
                    .starts_with(|next: char| next.is_alphanumeric() || next == '_')
            })
    };
    folders.iter().filter(named).copied().collect()
}

#[test]
fn folders_know_only_those_before_them() {
    let mut wrong = Vec::new();
    for (source, folders) in FOLDERS {
        let order: BTreeMap<&str, usize> = folders.iter().copied().zip(0..).collect();
        for file in files("*.rs")
            .into_iter()
            .filter(|file| file.starts_with(source) && ships(file))
        {
            let inside = file[source.len() + 1..]
                .trim_end_matches(".rs")
                .split('/')
                .next()
                .unwrap_or_default();
            let Some(own) = order.get(inside) else {
                continue;
            };
            for named in named_folders(&read(&file), folders) {
                if order[named] > *own {
                    wrong.push(format!("{file} names {named}, which comes after {inside}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} arrows run backwards:\n  {}\n",
        wrong.len(),
        wrong.join("\n  ")
    );
}

#[test]
fn an_arrow_is_seen_in_every_form() {
    let folders = ["codec", "service"];
    assert_eq!(
        named_folders("use crate::service::X;", &folders),
        ["service"]
    );
    assert_eq!(
        named_folders("use crate::{codec, service::{X, Y}};", &folders),
        folders
    );
    assert_eq!(
        named_folders("fn f() { crate::codec::read() }", &folders),
        ["codec"]
    );
    assert_eq!(
        named_folders("// crate::codec\nuse crate::services::X;", &folders),
        [""; 0]
    );
}
