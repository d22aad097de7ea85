//! The program `panel-agent` over its standard streams.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_panel-agent"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments may be gone before it is written to.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn answers(input: &[u8]) -> Vec<Value> {
    let output = run(&["risk_assessor"], input);
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_line_gets_one_answer_and_bad_ones_do_not_stop_it() {
    let good = r#"{"message_id":"m","message_type":"task_assignment","requires_response":true,"payload":{"task":{"type":"contract_review","input":{"title":"T","sentences":["Buyer pays a penalty."]}}}}"#;
    let lines = [
        "not json",
        "",
        "[1, 2]",
        "{\"message_type\":\"sonnet\",\"payload\":{}}",
        "{\"message_type\":\"question\",\"payload\":{\"conflict\":{\"type\":\"taste\"}}}",
        "{\"message_type\":\"task_assignment\",\"payload\":{\"task\":{\"type\":\"poetry\",\"input\":{}}}}",
        "{\"message_type\":\"task_assignment\"}",
        "{\"message_type\":\"notification\",\"payload\":{}}",
        good,
    ];
    let mut input = lines.join("\n").into_bytes();
    input.extend(b"\n\xff\xfe\n");
    let answers = answers(&input);
    assert_eq!(answers.len(), lines.len() + 1);
    for index in [0, 1, 2, 3, 4, 5, 6, 9] {
        assert_eq!(answers[index]["message_type"], "error", "line {index}");
        assert_eq!(answers[index]["payload"]["error_code"], "INVALID_REQUEST");
    }
    assert_eq!(answers[7], serde_json::json!({}));
    assert_eq!(answers[8]["message_type"], "finding");
    assert!(answers[8]["metadata"]["confidence"].is_number());
}

#[test]
fn the_end_of_input_is_the_end_and_a_last_line_without_a_newline_counts() {
    assert!(answers(b"").is_empty());
    assert_eq!(answers(b"{").len(), 1);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let line = b"{\"message_type\":\"task_assignment\",\"payload\":{\"task\":{\"type\":\"contract_review\",\"input\":{\"sentences\":[\"Buyer shall not compete.\",\"A penalty applies.\"]}}}}\n";
    assert_eq!(
        run(&["executive_reviewer"], line).stdout,
        run(&["executive_reviewer"], line).stdout
    );
}

#[test]
fn help_and_wrong_arguments() {
    let help = run(&["--help"], b"");
    assert!(help.status.success());
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("panel-agent ROLE")
    );
    for arguments in [&["poet"][..], &[], &["risk_assessor", "more"]] {
        let refused = run(arguments, b"");
        assert_eq!(refused.status.code(), Some(2));
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(refused.stdout.is_empty());
    }
}
