//! JSON for human readers: what a document is before what it contains, short lists on one line.

use serde_json::Value;

/// Keywords in the order of a reader's questions; all others stand between the two groups, by name.
const FIRST: [&str; 10] = [
    "$schema",
    "$id",
    "$ref",
    "title",
    "description",
    "type",
    "const",
    "enum",
    "required",
    "properties",
];
const LAST: [&str; 1] = ["$defs"];
/// Longest list on one line, in characters.
const LINE_MAX: usize = 100;

/// A schema as indented text that ends with a newline. The order of its keys does not matter.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, true, &mut out);
    out.push('\n');
    out
}

/// `keywords` says whether the keys of an object are keywords of JSON Schema, or names of properties.
fn write(value: &Value, depth: usize, keywords: bool, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| (if keywords { rank(key) } else { 0 }, key.as_str()));
            let lines = entries.into_iter().map(|(key, value)| {
                let names = keywords && matches!(key.as_str(), "properties" | "$defs");
                let mut line = format!("{}: ", Value::from(key.as_str()));
                write(value, depth + 1, !names, &mut line);
                line
            });
            enclose('{', lines.collect(), '}', depth, out);
        }
        Value::Array(list) if !list.is_empty() => {
            let line = format!(
                "[{}]",
                list.iter()
                    .map(Value::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            if line.len() <= LINE_MAX
                && !list.iter().any(|item| item.is_object() || item.is_array())
            {
                return out.push_str(&line);
            }
            let lines = list.iter().map(|item| {
                let mut line = String::new();
                write(item, depth + 1, true, &mut line);
                line
            });
            enclose('[', lines.collect(), ']', depth, out);
        }
        other => out.push_str(&other.to_string()),
    }
}

fn rank(key: &str) -> usize {
    let first = FIRST.iter().position(|known| *known == key);
    let last = LAST
        .iter()
        .position(|known| *known == key)
        .map(|place| FIRST.len() + 1 + place);
    first.or(last).unwrap_or(FIRST.len())
}

fn enclose(open: char, lines: Vec<String>, close: char, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    let body = lines.join(&format!(",\n{indent}"));
    out.push_str(&format!(
        "{open}\n{indent}{body}\n{}{close}",
        "  ".repeat(depth)
    ));
}
