//! Shortens texts that are too long, and positions with more evidence than there is room for.

use concord_wire::payload::{Position, json_text_bytes};
use serde_json::{Value, json};

use super::{count, json_bytes};
use crate::digest;
use crate::rules::canonical::normalise;

/// Most bytes of a topic, of a position in words, of a position's value, and of one item of
/// evidence or reasoning.
const TOPIC_BYTES_MAX: usize = 512;
const WORDS_BYTES_MAX: usize = 1_024;
const VALUE_BYTES_MAX: usize = 512;
const ITEM_BYTES_MAX: usize = 4_000;
/// Most bytes of a person's reason: all that is accepted of one, and what quotes and new lines add to it as JSON.
const REASON_BYTES_MAX: usize = 6 * 1024;
/// Most bytes of evidence and reasoning of one position, and of all positions of one conflict.
const POSITION_ROOM: usize = 32 * 1024;
const POSITIONS_ROOM: usize = 96 * 1024;
/// A beginning shorter than this is left out.
const ITEM_BYTES_MIN: usize = 128;

/// The end of a shortened text.
const MARK: &str = "… [shortened]";
/// The end of a shortened text that is compared, before the digest of its words and a bracket.
const DIGEST_MARK: &str = "… [shortened, sha256 ";
/// Digits of that digest.
const DIGEST_DIGITS: usize = 16;

/// How many bytes the evidence and reasoning of one position may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room(usize);

impl Room {
    /// The most that a position ever has.
    pub(crate) const MOST: Self = Self(POSITION_ROOM);
    /// Room for a mark and nothing else.
    pub(crate) const NONE: Self = Self(0);
    /// The sizes that are tried, in this order, where many positions are to fit into one event.
    pub(crate) const STEPS: [Self; 9] = [
        Self::MOST,
        Self(16 * 1024),
        Self(8 * 1024),
        Self(4 * 1024),
        Self(2 * 1024),
        Self(1_024),
        Self(512),
        Self(256),
        Self::NONE,
    ];

    /// An equal share of this many bytes, but no more than a position ever has.
    pub(crate) fn share_of(bytes: usize, items: usize) -> Self {
        Self(POSITION_ROOM.min(bytes / items.max(1)))
    }

    /// The room of each of `positions` positions.
    pub(crate) fn among(self, positions: usize) -> Self {
        Self(self.0.min(POSITIONS_ROOM / positions.max(1)))
    }
}

/// The text, or its beginning with a mark, of at most `bytes_max` bytes as JSON. The mark is there
/// even where nothing else is.
fn beginning(text: &str, bytes_max: usize) -> String {
    if json_text_bytes(text) <= bytes_max {
        text.to_owned()
    } else {
        cut(text, bytes_max, MARK)
    }
}

/// A text shortened for a line that a person reads.
pub(crate) fn line(text: &str, bytes_max: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    beginning(&one_line, bytes_max)
}

fn cut(text: &str, bytes_max: usize, mark: &str) -> String {
    let mut left = bytes_max.saturating_sub(json_text_bytes(mark));
    let fits = |c: &char| {
        let rest = left.checked_sub(json_text_bytes(c.encode_utf8(&mut [0; 4])));
        rest.inspect(|rest| left = *rest).is_some()
    };
    let cut: String = text.chars().take_while(fits).chain(mark.chars()).collect();
    debug_assert!(
        json_text_bytes(&cut) <= bytes_max.max(json_text_bytes(mark)),
        "a shortened text fits into {bytes_max} bytes"
    );
    cut
}

/// A text that is compared: the text, or its beginning with a digest of the words that are
/// compared.
fn compared(text: &str, bytes_max: usize) -> String {
    if json_text_bytes(text) <= bytes_max {
        return text.to_owned();
    }
    if let Some(digest) = digest_in(text) {
        let body = text
            .rfind(DIGEST_MARK)
            .and_then(|end| text.get(..end))
            .unwrap_or_default();
        return cut(body, bytes_max, &format!("{DIGEST_MARK}{digest}]"));
    }
    let words = normalise(text);
    // Without its spaces it may fit.
    if json_text_bytes(&words) <= bytes_max {
        return words;
    }
    let digest: String = digest(words.as_bytes())
        .chars()
        .take(DIGEST_DIGITS)
        .collect();
    cut(text, bytes_max, &format!("{DIGEST_MARK}{digest}]"))
}

fn digest_in(text: &str) -> Option<&str> {
    let text = text.strip_suffix(']')?;
    let digest = text.get(text.rfind(DIGEST_MARK)? + DIGEST_MARK.len()..)?;
    let is_digest = digest.len() == DIGEST_DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit());
    is_digest.then_some(digest)
}

/// The digest by which a shortened text is compared; `None` for a text that is whole.
pub(crate) fn identity(text: &str) -> Option<String> {
    digest_in(text).map(|digest| format!("[shortened, sha256 {digest}]"))
}

/// A position in words, shortened.
pub(crate) fn words(text: &str) -> String {
    compared(text, WORDS_BYTES_MAX)
}

/// A person's reason for a ruling or a review: whole, unless it has little but what JSON escapes.
pub(crate) fn reason(text: &str) -> String {
    compared(text, REASON_BYTES_MAX)
}

/// The topic of a conflict, shortened.
pub(crate) fn topic(text: &str) -> String {
    beginning(text, TOPIC_BYTES_MAX)
}

/// The value of a position, shortened in a form that compares as the whole does.
pub(crate) fn value(whole: &Value) -> Value {
    if json_bytes(whole) <= VALUE_BYTES_MAX {
        return whole.clone();
    }
    match whole {
        Value::String(text) => json!(compared(text, VALUE_BYTES_MAX - 2)),
        Value::Object(fields) if fields.contains_key("value") => {
            let inner = fields.get("value").unwrap_or(&Value::Null);
            let text = inner
                .as_str()
                .map_or_else(|| inner.to_string(), str::to_owned);
            let is_plain = !(inner.is_object() || inner.is_array() || inner.is_string());
            let value = if is_plain {
                inner.clone()
            } else {
                json!(compared(&text, VALUE_BYTES_MAX / 2))
            };
            match fields.get("unit").and_then(Value::as_str) {
                Some(unit) => {
                    json!({ "value": value, "unit": compared(unit, VALUE_BYTES_MAX / 4) })
                }
                None => json!({ "value": value }),
            }
        }
        other => json!(compared(&other.to_string(), VALUE_BYTES_MAX - 2)),
    }
}

/// Evidence and reasoning of a position, shortened.
pub(crate) struct Support {
    pub(crate) reasoning: Option<String>,
    pub(crate) evidence: Vec<String>,
    /// How many items were left out.
    pub(crate) omitted: u32,
}

/// As much reasoning and evidence as there is room for. The first items stay.
pub(crate) fn support<'a>(
    reasoning: Option<&str>,
    evidence: impl IntoIterator<Item = &'a str>,
    room: Room,
) -> Support {
    let reasoning = reasoning.map(|text| beginning(text, ITEM_BYTES_MAX.min(room.0 / 4)));
    let mut left = room
        .0
        .saturating_sub(reasoning.as_deref().map_or(0, json_text_bytes));
    let mut kept = Vec::new();
    let mut items = evidence.into_iter();
    for item in items.by_ref() {
        // Two quotation marks and a comma.
        let most = ITEM_BYTES_MAX.min(left.saturating_sub(3));
        let fits = left >= 3 && json_text_bytes(item) <= most;
        if !fits && most < ITEM_BYTES_MIN {
            let omitted = count(1 + items.count());
            return Support {
                reasoning,
                evidence: kept,
                omitted,
            };
        }
        let item = beginning(item, most);
        left = left.saturating_sub(json_text_bytes(&item) + 3);
        kept.push(item);
    }
    Support {
        reasoning,
        evidence: kept,
        omitted: 0,
    }
}

/// A position with no more evidence and reasoning than there is room for.
pub(crate) fn shortened_position(whole: &Position, room: Room) -> Position {
    let support = support(
        whole.reasoning.as_deref(),
        whole.evidence.iter().map(String::as_str),
        room,
    );
    Position {
        agent_id: whole.agent_id.clone(),
        position: whole.position.clone(),
        value: whole.value.clone(),
        confidence: whole.confidence,
        evidence: support.evidence,
        reasoning: support.reasoning,
        evidence_omitted: whole.evidence_omitted.saturating_add(support.omitted),
    }
}

/// The beginning of a text, of at most so many bytes as JSON; lines stay lines.
pub(crate) fn excerpt(text: &str, bytes_max: usize) -> String {
    beginning(text, bytes_max)
}

/// An item of evidence, shortened. Two items that are the same then count as one.
pub(crate) fn item(text: &str) -> String {
    beginning(text, ITEM_BYTES_MAX)
}
