//! The line protocol: one message in, one answer out.
//!
//! The messages are Concord's envelopes; an agent needs only some of their fields. It answers what
//! it does not understand with an `error`, because the others would wait for a silent agent until
//! its deadline.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::discussion;
use crate::finding;
use crate::question::Question;
use crate::review::Review;
use crate::reviewer::Reviewer;
use crate::text::Document;

/// The fields of an envelope that an agent needs.
#[derive(Debug, Deserialize)]
struct Message {
    message_type: String,
    #[serde(default)]
    payload: Value,
}

/// A task for the panel.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Task {
    /// The kind of task; the panel knows `contract_review`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) input: Input,
}

/// A contract as the panel gets it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) sentences: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Assignment {
    task: Task,
}

/// The kind of task that the panel can do.
pub(crate) const TASK: &str = "contract_review";

/// Answers every line of `input` with a line on `output` until `input` ends.
///
/// # Errors
///
/// If reading or writing fails. A line that makes no sense gets an answer like any other.
pub fn serve(
    reviewer: &Reviewer,
    mut input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // Bytes that are not UTF-8 must not end the program: they become a line that is not JSON.
        let text = String::from_utf8_lossy(&line);
        writeln!(output, "{}", answer(reviewer, text.trim()))?;
        output.flush()?;
    }
}

/// The answer of `reviewer` to one line.
#[must_use]
pub fn answer(reviewer: &Reviewer, line: &str) -> Value {
    let message: Message = match serde_json::from_str(line) {
        Ok(message) => message,
        Err(error) => return invalid("the line is not a message", &error.to_string()),
    };
    match message.message_type.as_str() {
        "task_assignment" => match serde_json::from_value(message.payload) {
            Ok(assignment) => review(reviewer, &assignment),
            Err(error) => invalid("the task cannot be read", &error.to_string()),
        },
        "question" => match serde_json::from_value(message.payload) {
            Ok(question) => debate(reviewer, &question),
            Err(error) => invalid("the question cannot be read", &error.to_string()),
        },
        // These ask for nothing. An empty answer is not an error.
        "notification" | "info_update" | "session_briefing" | "agent_joined"
        | "acknowledgement" => json!({}),
        other => invalid("unknown message_type", other),
    }
}

fn review(reviewer: &Reviewer, assignment: &Assignment) -> Value {
    let task = &assignment.task;
    if task.kind != TASK {
        return invalid("unknown task type", &task.kind);
    }
    if task.input.sentences.is_empty() {
        return invalid("the task has no sentences", "task.input.sentences");
    }
    let document = Document::new(&task.input.sentences);
    let review = Review::new(reviewer, &document);
    let title = if task.input.title.is_empty() {
        &task.title
    } else {
        &task.input.title
    };
    json!({
        "message_type": "finding",
        "payload": finding::write(&review, title),
        "metadata": { "confidence": review.confidence() },
    })
}

fn debate(reviewer: &Reviewer, question: &Question) -> Value {
    match discussion::reply(reviewer, question) {
        Ok(reply) => json!({
            "message_type": reply.message_type(),
            "metadata": { "confidence": reply.confidence },
            "payload": reply,
        }),
        Err(error) => invalid("the question cannot be answered", &error.to_string()),
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
