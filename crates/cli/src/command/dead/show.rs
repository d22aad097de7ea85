//! `concord dead show`: a dead letter with its original.

use std::io::Write as _;

use concord_runtime::Broker;
use serde::Serialize;
use serde_json::Value;

use super::{Letter, ShowArgs, letter::letter};
use crate::shared::failure::Failure;
use concord_domain::text::{is_deceptive, visible_json};

use crate::shared::output::{self, BAD, FAINT, NAMED, styled};

/// At most so many characters of an original are shown.
const SHOWN_MAX: usize = 8_192;

/// A letter for programs.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    about: &'a concord_events::dead_letter::DeadLetter,
    headers: std::collections::BTreeMap<String, String>,
    /// The original; a text where it is no JSON, and null where it cannot be had.
    original: Value,
    /// Why the original cannot be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

pub(super) async fn run(broker: &Broker, args: &ShowArgs) -> Result<u8, Failure> {
    let letter = letter(broker, args.sequence).await?;
    let found = letter.original(broker).await;
    if args.raw {
        let written = std::io::stdout().lock().write_all(&found?);
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::closed(),
            _ => Failure::failed(format!("the output cannot be written: {error}")),
        })?;
    } else if args.json.json {
        let (original, missing) = match found {
            Ok(payload) => (as_json(&payload), None),
            Err(failure) => (Value::Null, Some(failure.to_string())),
        };
        output::json(&Shown {
            about: &letter.about,
            headers: headers(&letter),
            original,
            missing,
        })?;
    } else {
        let shown = found.map_or_else(
            |failure| styled(FAINT, failure).to_string(),
            |payload| original(&payload),
        );
        output::print(&text(&letter, &shown))?;
    }
    Ok(0)
}

fn as_json(payload: &[u8]) -> Value {
    let text = || Value::String(String::from_utf8_lossy(payload).into_owned());
    serde_json::from_slice(payload).unwrap_or_else(|_| text())
}

fn headers(letter: &Letter) -> std::collections::BTreeMap<String, String> {
    let values = letter.headers.iter();
    let text =
        |values: &[async_nats::HeaderValue]| values.first().map(|value| value.as_str().to_owned());
    values
        .map(|(name, values)| (name.to_string(), text(values).unwrap_or_default()))
        .collect()
}

fn text(letter: &Letter, original: &str) -> String {
    let about = &letter.about;
    let mut text = format!(
        "dead letter {}  {}\n",
        styled(NAMED, about.sequence),
        styled(BAD, &about.reason)
    );
    let at = about.at.map(|at| at.to_string()).unwrap_or_default();
    let origin = about
        .original_sequence
        .map(|sequence| format!("{} {sequence}", letter.stream))
        .unwrap_or_default();
    let place = if about.pointer.is_empty() {
        "the whole message".to_owned()
    } else {
        about.pointer.clone()
    };
    let rows = [
        ("service", about.service.to_string()),
        ("consumer", about.consumer.clone()),
        ("given up", at),
        ("code", about.code.clone()),
        ("place", place),
        ("error", about.error.clone()),
        ("subject", about.subject.clone()),
        ("stored at", origin),
        (
            "sent again",
            about.retried.map(|at| at.to_string()).unwrap_or_default(),
        ),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!(
            "  {} {}\n",
            styled(FAINT, format!("{name:<11}")),
            output::one_line(value, usize::MAX)
        ));
    }
    text.push_str(&format!("\n{original}\n"));
    text
}

/// The original as text: indented where it is JSON, escaped where it is no text, cut where it is long.
fn original(payload: &[u8]) -> String {
    let shown = match serde_json::from_slice::<Value>(payload) {
        Ok(json) => visible_json(&serde_json::to_string_pretty(&json).unwrap_or_default()),
        Err(_) => String::from_utf8_lossy(payload)
            .chars()
            .flat_map(readable)
            .collect(),
    };
    match shown.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => {
            let note = format!("... {} bytes; --raw writes them all", payload.len());
            format!(
                "{}\n{}",
                shown.get(..end).unwrap_or_default(),
                styled(FAINT, note)
            )
        }
        None => shown,
    }
}

fn readable(c: char) -> Vec<char> {
    if is_deceptive(c) && c != '\n' {
        c.escape_unicode().collect()
    } else {
        vec![c]
    }
}
