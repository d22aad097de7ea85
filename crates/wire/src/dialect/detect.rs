//! Which dialect a message is in, by the names of its fields.

use super::Dialect;
use super::exchange;
use super::fields::Fields;
use crate::subject::Subject;

/// The dialect that only a message of this shape is in; the canonical one when that cannot be said.
pub(super) fn dialect(bytes: &[u8], subject: &Subject) -> Dialect {
    let (Some(fields), Subject::Message { kind, .. }) = (Fields::glance(bytes), subject) else {
        return Dialect::Concord;
    };
    if let Some(dialect) = by_own_word(&fields) {
        return dialect;
    }
    let has = |name: &str| fields.has(name);
    let said = fields
        .get("message_type")
        .map_or("", |said| said.get().trim_matches('"'));
    let addressed = ["message_id", "from_agent", "to_agent", "timestamp"]
        .into_iter()
        .any(has);
    if addressed {
        // One of four types, and not that of the subject: it says what kind of thing is said, not what.
        let general = has("payload") && said != kind.as_str() && exchange::TYPES.contains(&said);
        if general {
            Dialect::Exchange
        } else {
            Dialect::Concord
        }
    } else if has("message_type") && has("payload") {
        Dialect::Exchange
    } else {
        contents(kind.as_str(), has)
    }
}

/// The dialect that has a word of its own for something said here; none where another could be meant.
pub(super) fn by_own_word(fields: &Fields) -> Option<Dialect> {
    let has = |name: &str| fields.has(name);
    // What has no word of its own is told by what it lacks.
    if has("interaction_type") {
        Some(Dialect::Session)
    } else if has("sender_id") {
        Some(Dialect::Collaboration)
    } else if has("sender")
        && ["recipients", "messageType", "content"]
            .into_iter()
            .any(has)
    {
        Some(Dialect::Panel)
    } else {
        (has("from_agent") && has("content") && !has("payload")).then_some(Dialect::Analyst)
    }
}

/// Contents without an envelope, as the specification prints some of them.
fn contents(kind: &str, has: impl Fn(&str) -> bool) -> Dialect {
    match kind {
        "challenge" if has("challenger") && has("challenged") => Dialect::Analyst,
        "request" if has("action") => Dialect::Exchange,
        "agreement" | "disagreement" | "revision"
            if has("agrees_with_peer") || has("revised_position") =>
        {
            Dialect::Panel
        }
        _ => Dialect::Concord,
    }
}
