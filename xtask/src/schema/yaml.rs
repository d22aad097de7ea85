//! A writer for the part of YAML that the AsyncAPI document needs. Its keys keep their order; those of `serde_json` here do not.

/// A YAML node.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// A mapping; keys in this order.
    Map(Vec<(String, Node)>),
    /// A sequence.
    List(Vec<Node>),
    /// A text.
    Text(String),
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A mapping.
pub(super) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Node)>) -> Node {
    Node::Map(
        entries
            .into_iter()
            .map(|(key, node)| (key.into(), node))
            .collect(),
    )
}

/// A sequence.
pub(super) fn list<N: Into<Node>>(items: impl IntoIterator<Item = N>) -> Node {
    Node::List(items.into_iter().map(Into::into).collect())
}

/// The document as text.
pub(super) fn write(node: &Node) -> String {
    let mut out = String::new();
    lines(node, 0, &mut out);
    out
}

fn lines(node: &Node, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match node {
        Node::Map(entries) => {
            for (key, value) in entries {
                out.push_str(&format!("{indent}{}:", scalar(key)));
                after(value, depth, out);
            }
        }
        Node::List(items) => {
            for item in items {
                if matches!(item, Node::Text(_)) {
                    out.push_str(&format!("{indent}-"));
                    after(item, depth, out);
                } else {
                    // The item's first line follows the hyphen, which takes the place of its indentation.
                    let mut text = String::new();
                    lines(item, depth + 1, &mut text);
                    out.push_str(&format!("{indent}- {}", text.trim_start()));
                }
            }
        }
        Node::Text(text) => out.push_str(&format!("{indent}{}\n", scalar(text))),
    }
}

fn after(value: &Node, depth: usize, out: &mut String) {
    match value {
        Node::Text(text) => out.push_str(&format!(" {}\n", scalar(text))),
        Node::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
        Node::List(items) if items.is_empty() => out.push_str(" []\n"),
        other => {
            out.push('\n');
            lines(other, depth + 1, out);
        }
    }
}

/// A text without quotation marks if that is safe, or else in those of JSON, which YAML reads as well.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = (text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '$')
        || text.starts_with("./"))
        && text
            .chars()
            .skip(1)
            .all(|c| c.is_ascii_alphanumeric() || " _-./,;()>*+`'".contains(c))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_would_read_as_something_else_is_quoted() {
        for text in [
            "3.0.0",
            "no",
            "a: b",
            "a #b",
            "",
            "- a",
            "{x}",
            "*a",
            "a ",
            "line\nbreak",
            "\"",
            "~",
            "#/a",
            "é",
        ] {
            assert!(scalar(text).starts_with('"'), "{text:?}");
        }
        assert_eq!(scalar("concord.v1.msg.>"), "concord.v1.msg.>");
    }

    #[test]
    fn nodes_nest() {
        let document = map([
            ("a", list([map([("b", list(["c"])), ("d", "e".into())])])),
            ("f", map::<&str>([])),
        ]);
        assert_eq!(write(&document), "a:\n  - b:\n      - c\n    d: e\nf: {}\n");
    }
}
