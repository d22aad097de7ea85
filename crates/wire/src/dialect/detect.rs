//! Which dialect a message is in, by the names of its fields.

use super::Dialect;
use super::exchange;
use super::fields::Fields;
use crate::subject::Subject;

/// The only dialect that has fields like those of the message; the canonical one if there are several.
pub(super) fn dialect(bytes: &[u8], subject: &Subject) -> Dialect {
    let (Some(fields), Subject::Message { kind, .. }) = (Fields::parse_leniently(bytes), subject)
    else {
        return Dialect::Concord;
    };
    if let Some(dialect) = by_own_field(&fields) {
        return dialect;
    }
    let has = |name: &str| fields.has(name);
    let value = fields
        .get("message_type")
        .map_or("", |value| value.get().trim_matches('"'));
    let addressed = ["message_id", "from_agent", "to_agent", "timestamp"]
        .into_iter()
        .any(has);
    if addressed {
        // One of four general types that is not the type of the subject.
        let general = has("payload") && value != kind.as_str() && exchange::TYPES.contains(&value);
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

/// The dialect that alone has a field of this name; `None` if there is no such field.
pub(super) fn by_own_field(fields: &Fields) -> Option<Dialect> {
    let has = |name: &str| fields.has(name);
    // The dialects without a field of their own are recognised by what they lack.
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
