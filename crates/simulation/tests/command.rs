//! The command line: exit codes, and what is said to whom.

#![allow(clippy::unwrap_used)] // Clippy knows helpers of tests only inside `#[test]`.

use std::process::{Command, Output};

use concord_simulation::WORLD_VERSION;

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_concord-simulate"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_holds_is_summed_up() {
    let output = simulate(&["--seeds", "2", "--from", "7"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.starts_with(&format!("Seeds 7 to 8 of world {WORLD_VERSION}.\n")),
        "{said}"
    );
    assert!(
        said.contains("deadlines that the watchdog had to fire"),
        "{said}"
    );
    assert!(said.ends_with("Seeds 7 to 8: all hold.\n"), "{said}");
}

#[test]
fn a_seed_that_does_not_hold_says_how_to_run_it_again() {
    let output = simulate(&["--seeds", "100", "--plant", "effect_forgotten", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let seed = summary["failed"][0]["seed"].as_u64().unwrap();
    let expected = format!(
        "cargo run -p concord-simulation --release -- --seed {seed} --verbose --plant effect_forgotten"
    );
    assert_eq!(summary["reproduce"], expected.as_str());
    assert_eq!(summary["world"], WORLD_VERSION);
    let again = simulate(&[
        "--seed",
        &seed.to_string(),
        "--verbose",
        "--plant",
        "effect_forgotten",
    ]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stdout).contains(&format!(
        "Seed {seed} of world {WORLD_VERSION} does not hold:"
    )));
}

#[test]
fn a_hosted_agent_has_a_world_of_its_own() {
    let output = simulate(&["--seeds", "2", "--hosted"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("calls of the endpoint") && !said.contains("cases that were opened"),
        "{said}"
    );
    let output = simulate(&[
        "--seeds",
        "100",
        "--hosted",
        "--plant",
        "asks_while_open",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let command = summary["reproduce"].as_str().unwrap();
    assert!(
        command.ends_with("--verbose --plant asks_while_open --hosted"),
        "{command}"
    );
}

#[test]
fn wrong_arguments_are_explained() {
    for (arguments, named) in [
        (vec!["--seeds", "none"], "--seeds"),
        (vec!["--seeds", "0"], "--seeds"),
        (vec!["--plant", "weed"], "missing_fence"),
        (vec!["--verbose"], "--seed"),
        (vec!["--hosted", "--ladder"], "--ladder"),
        (vec!["--seed", "1", "--seeds", "2"], "--seeds"),
    ] {
        let output = simulate(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(named),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}
