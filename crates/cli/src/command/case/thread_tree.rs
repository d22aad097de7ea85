//! The messages of a case as a tree of replies, and who took part.

use std::collections::BTreeMap;

use concord_wire::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::command::case::event_line::EventLine;

/// Deeper replies are printed no further to the right.
const INDENTED_MAX: usize = 12;

/// A message at its place in the tree.
#[derive(Debug, Serialize)]
pub(super) struct Placed {
    /// How many messages are above it.
    pub(super) depth: usize,
    /// The id of the message that it answers, where that is among the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answers: Option<String>,
    #[serde(flatten)]
    pub(super) line: EventLine,
}

/// Somebody who took part.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Participation {
    pub(super) name: String,
    /// How many messages they sent.
    pub(super) messages: u64,
    /// How many messages of others answer one of theirs.
    pub(super) answered: u64,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// The messages of a case in the order of their threads.
#[derive(Debug, Serialize)]
pub(super) struct ThreadTree {
    pub(super) took_part: Vec<Participation>,
    pub(super) messages: Vec<Placed>,
}

impl ThreadTree {
    /// Makes the tree of messages in the order in which they were stored. A message stands under the one that it names in
    /// `reply_to`, if that was stored before it; a message that answers none begins a thread.
    pub(super) fn new(lines: Vec<EventLine>) -> Self {
        let mut places = BTreeMap::new();
        let mut parents = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            let parent = text(line, "/reply_to").and_then(|id| places.get(id).copied());
            parents.push(parent);
            if let Some(id) = text(line, "/message_id") {
                // Of two under one id the first is answered.
                places.entry(id).or_insert(place);
            }
        }
        let took_part = took_part(&lines, &parents);
        let answers: Vec<Option<String>> = parents
            .iter()
            .map(|parent| {
                let answered = parent.and_then(|parent: usize| lines.get(parent))?;
                text(answered, "/message_id").map(str::to_owned)
            })
            .collect();
        let order = order(&parents);
        let mut lines: Vec<Option<EventLine>> = lines.into_iter().map(Some).collect();
        let messages = order.into_iter().filter_map(|(place, depth)| {
            Some(Placed {
                depth,
                answers: answers.get(place).cloned().flatten(),
                line: lines.get_mut(place)?.take()?,
            })
        });
        Self {
            took_part,
            messages: messages.collect(),
        }
    }
}

impl Placed {
    /// The blanks before its line.
    pub(super) fn indent(&self) -> String {
        "  ".repeat(self.depth.min(INDENTED_MAX))
    }
}

fn text<'a>(line: &'a EventLine, pointer: &str) -> Option<&'a str> {
    line.body.pointer(pointer).and_then(Value::as_str)
}

/// Every place with its depth, each before the places below it. A chain of replies can be as long as a case: no recursion.
fn order(parents: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut below: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (place, parent) in parents.iter().enumerate() {
        below.entry(*parent).or_default().push(place);
    }
    let mut next: Vec<(usize, usize)> = Vec::new();
    let mut push = |next: &mut Vec<(usize, usize)>, parent: Option<usize>, depth| {
        let children = below.remove(&parent).unwrap_or_default();
        next.extend(children.into_iter().rev().map(|child| (child, depth)));
    };
    push(&mut next, None, 0);
    let mut ordered = Vec::new();
    while let Some((place, depth)) = next.pop() {
        ordered.push((place, depth));
        push(&mut next, Some(place), depth + 1);
    }
    ordered
}

fn took_part(lines: &[EventLine], parents: &[Option<usize>]) -> Vec<Participation> {
    let mut found: BTreeMap<&str, Participation> = BTreeMap::new();
    for line in lines {
        let Some(name) = text(line, "/from_agent") else {
            continue;
        };
        let at = line.stored_at;
        let one = found.entry(name).or_insert_with(|| Participation {
            name: name.to_owned(),
            messages: 0,
            answered: 0,
            first: at,
            last: at,
        });
        one.messages += 1;
        one.last = one.last.max(at);
    }
    for (line, parent) in lines.iter().zip(parents) {
        let answered = parent.and_then(|parent| text(lines.get(parent)?, "/from_agent"));
        if let Some(one) = answered.and_then(|name| found.get_mut(name))
            && text(line, "/from_agent") != Some(one.name.as_str())
        {
            one.answered += 1;
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(n: i64, id: &str, from: &str, reply_to: Option<&str>) -> EventLine {
        EventLine {
            stored_at: Timestamp::from_unix_millis(n),
            sequence: 1,
            subject: String::new(),
            dialect: None,
            body: json!({ "message_id": id, "from_agent": from, "reply_to": reply_to }),
            original: None,
        }
    }

    #[test]
    fn replies_stand_below_what_they_answer_in_the_order_of_time() {
        let tree = ThreadTree::new(vec![
            line(1, "a", "ann", None),
            line(2, "b", "ben", None),
            line(3, "c", "cyd", Some("a")),
            line(4, "d", "ann", Some("c")),
            line(5, "e", "ben", Some("a")),
            line(6, "f", "cyd", Some("never stored")),
            line(7, "g", "cyd", Some("g")),
        ]);
        let found: Vec<(&str, usize)> = tree
            .messages
            .iter()
            .map(|one| (text(&one.line, "/message_id").unwrap(), one.depth))
            .collect();
        let expected = [
            ("a", 0),
            ("c", 1),
            ("d", 2),
            ("e", 1),
            ("b", 0),
            ("f", 0),
            ("g", 0),
        ];
        assert_eq!(found, expected);
        let answers = tree.messages.iter().map(|one| one.answers.as_deref());
        let answers: Vec<_> = answers.collect();
        assert_eq!(answers[1..3], [Some("a"), Some("c")]);
        let parts = tree.took_part.iter();
        let parts: Vec<(&str, u64, u64)> = parts
            .map(|one| (one.name.as_str(), one.messages, one.answered))
            .collect();
        assert_eq!(parts, [("ann", 2, 2), ("ben", 2, 0), ("cyd", 3, 1)]);
    }

    #[test]
    fn a_chain_of_any_length_is_ordered() {
        let chain = (0..50_000).map(|n| {
            let before = (n > 0).then(|| format!("m-{}", n - 1));
            line(n, &format!("m-{n}"), "ann", before.as_deref())
        });
        let tree = ThreadTree::new(chain.collect());
        assert_eq!(tree.messages.last().unwrap().depth, 49_999);
        assert_eq!(tree.messages.last().unwrap().indent().len(), 24);
    }
}
