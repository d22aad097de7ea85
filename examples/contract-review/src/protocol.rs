//! The line protocol: one message in, one answer out.
//!
//! The messages are Concord's envelopes, of which only the parts an agent needs are read. What is
//! not understood is answered with an `error`, because an agent that falls silent leaves the others
//! waiting for its deadline.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::discussion;
use crate::finding;
use crate::profile::Role;
use crate::question::Question;
use crate::reading::{Admitted, Reading};
use crate::text::Document;

/// The part of an envelope that matters here.
#[derive(Debug, Deserialize)]
struct Message {
    message_type: String,
    #[serde(default)]
    payload: Value,
}

/// What a task asks for.
#[derive(Debug, Clone, Deserialize)]
pub struct Task {
    /// The kind of task; this panel knows `contract_review`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the task is called.
    #[serde(default)]
    pub title: String,
    /// The contract.
    #[serde(default)]
    pub input: Input,
}

/// A contract as it is given to the panel.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Input {
    /// The contract's title.
    #[serde(default)]
    pub title: String,
    /// Its sentences.
    #[serde(default)]
    pub sentences: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Assignment {
    task: Task,
}

/// The task this panel can do.
pub const TASK: &str = "contract_review";

/// Answers every line of `input` with a line on `output` until `input` ends.
///
/// # Errors
///
/// Only when reading or writing fails; a line that makes no sense is answered like any other.
pub fn serve(role: Role, mut input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // Bytes that are not UTF-8 must not end the program: they become a line that is not JSON.
        let text = String::from_utf8_lossy(&line);
        writeln!(output, "{}", answer(role, text.trim()))?;
        output.flush()?;
    }
}

/// The answer of `role` to one line.
#[must_use]
pub fn answer(role: Role, line: &str) -> Value {
    let message: Message = match serde_json::from_str(line) {
        Ok(message) => message,
        Err(why) => return invalid("the line is not a message", &why.to_string()),
    };
    match message.message_type.as_str() {
        "task_assignment" => match serde_json::from_value(message.payload) {
            Ok(assignment) => review(role, &assignment),
            Err(why) => invalid("the task cannot be read", &why.to_string()),
        },
        "question" => match serde_json::from_value(message.payload) {
            Ok(question) => debate(role, &question),
            Err(why) => invalid("the question cannot be read", &why.to_string()),
        },
        // News that asks for nothing: there is nothing to say, and that is not an error.
        "notification" | "info_update" | "session_briefing" | "agent_joined"
        | "acknowledgement" => json!({}),
        other => invalid("unknown message_type", other),
    }
}

fn review(role: Role, assignment: &Assignment) -> Value {
    let task = &assignment.task;
    if task.kind != TASK {
        return invalid("unknown task type", &task.kind);
    }
    if task.input.sentences.is_empty() {
        return invalid("the task has no sentences", "task.input.sentences");
    }
    let document = Document::new(&task.input.sentences);
    let reading = Reading::new(role.profile(), &document, &Admitted::default());
    let title = if task.input.title.is_empty() {
        &task.title
    } else {
        &task.input.title
    };
    json!({
        "message_type": "finding",
        "payload": finding::write(&reading, title),
        "metadata": { "confidence": reading.confidence() },
    })
}

fn debate(role: Role, question: &Question) -> Value {
    match discussion::reply(role, question) {
        Ok(reply) => json!({
            "message_type": reply.message_type(),
            "metadata": { "confidence": reply.confidence },
            "payload": reply,
        }),
        Err(why) => invalid("the question cannot be answered", &why.to_string()),
    }
}

fn invalid(message: &str, detail: &str) -> Value {
    json!({
        "message_type": "error",
        "payload": {
            "error_code": "INVALID_REQUEST",
            "error_message": format!("{message}: {detail}"),
            "details": {},
            "recovery_suggestions": [
                "Send a task_assignment with a task of type contract_review and its sentences.",
                "Send a question with a conflict, your_position and other_positions.",
            ],
        },
        "metadata": { "confidence": 1.0 },
    })
}
