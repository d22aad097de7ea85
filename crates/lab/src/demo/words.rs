//! Values, durations and long texts as words.

use concord_wire::payload::{Conflict, Position};
use serde_json::Value;

use concord_cli::shared::output::one_line;

/// Columns of the view.
pub(super) const WIDTH: usize = 110;

/// A position's value where it has one, else its words.
pub(super) fn position_text(position: &Position) -> String {
    value_text(position.value.as_ref(), &position.position)
}

/// A value in words, `words` where there is none.
pub(super) fn value_text(value: Option<&Value>, words: &str) -> String {
    match value {
        Some(Value::Bool(true)) => "present".into(),
        Some(Value::Bool(false)) => "not there".into(),
        Some(Value::Number(number)) => number
            .as_f64()
            .map_or_else(|| number.to_string(), |number| number.to_string()),
        Some(Value::String(text)) => one_line(text, WIDTH),
        Some(Value::Object(fields)) if fields.contains_key("value") => {
            let unit = fields
                .get("unit")
                .and_then(Value::as_str)
                .unwrap_or_default();
            format!("{} {unit}", value_text(fields.get("value"), words))
                .trim_end()
                .to_owned()
        }
        _ => one_line(words, WIDTH),
    }
}

/// Who holds what in a conflict, those who hold the same together, in the order of the first.
pub(super) fn camps(conflict: &Conflict) -> Vec<(String, Vec<String>)> {
    let mut camps: Vec<(String, Vec<String>)> = Vec::new();
    for position in &conflict.positions {
        let (what, who) = (
            position_text(position),
            format!("{} ({:.2})", position.agent_id, position.confidence),
        );
        match camps.iter_mut().find(|(held, _)| *held == what) {
            Some((_, holders)) => holders.push(who),
            None => camps.push((what, vec![who])),
        }
    }
    camps
}

/// Broken at spaces, every line after the first indented by `indent`, the first counted as beginning there.
pub(super) fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    // An agent's text must not move the cursor.
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        let length = lines.last().map_or(0, |line| line.chars().count());
        if length > 0 && indent + length + 1 + word.chars().count() > WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Milliseconds as seconds.
pub(super) fn seconds(millis: u64) -> String {
    format!(
        "{:.2} s",
        std::time::Duration::from_millis(millis).as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_said_in_words() {
        for (value, words) in [
            (json!(true), "present"),
            (json!(false), "not there"),
            (json!(86.0), "86"),
            (json!(0.25), "0.25"),
            (json!("reject"), "reject"),
            (json!({"value": 90, "unit": "days"}), "90 days"),
            (json!({"value": "New York"}), "New York"),
            (json!(null), "as I said"),
        ] {
            assert_eq!(value_text(Some(&value), "as I said"), words);
        }
        assert_eq!(value_text(None, "as I said"), "as I said");
    }

    #[test]
    fn texts_fit_their_place() {
        let wrapped = wrap(&"word ".repeat(60), 6);
        assert!(
            wrapped.lines().count() > 1
                && wrapped
                    .lines()
                    .skip(1)
                    .all(|line| line.starts_with("      word"))
        );
        assert!(wrapped.lines().all(|line| line.len() <= WIDTH), "{wrapped}");
        assert_eq!(seconds(1_234), "1.23 s");
    }
}
