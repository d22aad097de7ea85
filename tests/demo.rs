//! The demonstration: a real broker, the five services, the five agents of the sample panel, one contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use concord_testkit::{binaries, nats_server, programs_of};
use serde_json::Value;

const PANEL: [&str; 5] = [
    "clause_extractor",
    "compliance_checker",
    "executive_reviewer",
    "negotiation_advisor",
    "risk_assessor",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The `concord-lab` program, with everything that it starts beside it.
fn concord_lab() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let services = binaries();
        let programs = programs_of(&["concord-lab", "contract-review-panel"]);
        assert_eq!(programs, services);
        programs.join("concord-lab")
    };
    BUILT.get_or_init(build).clone()
}

/// True when python3 has nats-py, as the compliance checker needs.
fn has_nats_py() -> bool {
    let mut python = Command::new("python3");
    python
        .args(["-c", "import nats.js"])
        .env("PYTHONPATH", python_path());
    python
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn python_path() -> std::ffi::OsString {
    let given = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let places = std::env::split_paths(&given).filter(|place| !place.as_os_str().is_empty());
    std::env::join_paths(std::iter::once(root().join(".tools")).chain(places)).unwrap()
}

/// Runs `concord-lab demo` with its temporary folder in `temporary`.
fn demo(temporary: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(concord_lab());
    command.arg("demo").args(arguments).current_dir(root());
    command
        .env("TMPDIR", temporary)
        .env("PYTHONPATH", python_path())
        .env("CONCORD_NATS_SERVER", nats_server());
    command
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Conflicts of each type, debated and deferred.
fn conflicts(package: &Value) -> BTreeMap<String, usize> {
    let decision = &package["decision"];
    let lists = [&decision["conflicts"], &decision["deferred"]];
    let mut found = BTreeMap::new();
    for conflict in lists.into_iter().flat_map(|list| list.as_array().unwrap()) {
        *found
            .entry(conflict["type"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    found
}

#[test]
fn five_agents_come_to_a_decision_and_nothing_is_left_behind() {
    if !has_nats_py() {
        eprintln!("skipped: python3 has no nats-py; scripts/python-tools installs it");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path(), &["--json"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let package: Value =
        serde_json::from_slice(&output.stdout).expect("standard output is one JSON document");

    let findings = package["findings"].as_array().unwrap();
    let from: BTreeSet<&str> = findings
        .iter()
        .map(|finding| finding["agent_id"].as_str().unwrap())
        .collect();
    assert_eq!(from, BTreeSet::from(PANEL));
    let decision = &package["decision"];
    assert_eq!(package["phase"], "decided");
    assert_eq!(
        (&decision["reason"], &decision["missing"]),
        (&"settled".into(), &Value::Array(Vec::new()))
    );
    assert!(
        decision["outcome"]["recommendation"].is_string(),
        "{decision}"
    );
    assert!(conflicts(&package).len() >= 3, "{:?}", conflicts(&package));

    let debates = package["debates"].as_array().unwrap();
    assert_eq!(
        debates.len(),
        decision["conflicts"].as_array().unwrap().len()
    );
    for debate in debates {
        assert!(
            !debate["rounds"][0]["answers"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{debate}"
        );
        assert!(debate["outcome"]["status"].is_string(), "{debate}");
    }
    let mut at = 0;
    for phase in [
        "Phase 1", "Phase 2", "Phase 3", "Phase 4", "Phase 5", "Decision",
    ] {
        let found = told[at..]
            .find(phase)
            .unwrap_or_else(|| panic!("{phase} does not follow in:\n{told}"));
        at += found;
    }
    for agent in PANEL {
        assert!(told.contains(agent), "{agent} is not in:\n{told}");
    }
    let left: Vec<_> = std::fs::read_dir(temporary.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn one_challenge_climbs_all_five_levels_in_under_a_minute() {
    if !has_nats_py() {
        eprintln!("skipped: python3 has no nats-py; scripts/python-tools installs it");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path(), &["--ladder", "--json"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let log: Value =
        serde_json::from_slice(&output.stdout).expect("standard output is one JSON document");
    let entries = log.as_array().unwrap();
    let methods: Vec<&str> = entries
        .iter()
        .map(|entry| entry["method"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["provisional", "overridden"]);
    assert_eq!(
        entries[1]["previous"], entries[0]["hash"],
        "the log is a chain"
    );
    let mut at = 0;
    for level in [
        "Level 1",
        "Level 2",
        "Level 3",
        "Level 4",
        "Level 5",
        "passes the gate",
    ] {
        at += told[at..]
            .find(level)
            .unwrap_or_else(|| panic!("{level} does not follow in:\n{told}"));
    }
    let wrong = demo(temporary.path(), &["--ladder", "contract.json"]);
    assert_eq!(wrong.status.code(), Some(2), "a ladder has no contract");
}

#[test]
fn what_is_no_contract_gets_one_line_and_starts_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let write = |name: &str, contents: &str| {
        let path = temporary.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path.display().to_string()
    };
    let missing = temporary.path().join("missing.json").display().to_string();
    for (file, code) in [
        (missing, 2),
        (write("empty.json", ""), 65),
        (write("cut.json", "{\"contract_id\":"), 65),
    ] {
        let output = demo(temporary.path(), &[&file]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(&file) && output.stdout.is_empty(), "{told}");
    }
}
