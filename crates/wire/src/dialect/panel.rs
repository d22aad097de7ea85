//! Specification 1: `{id, round, sender, recipients, messageType, content, timestamp, replyTo}`. The content is serialised
//! JSON, the time is in milliseconds, names are in camel case.

use serde_json::value::RawValue;

use super::content;
use super::fields::Fields;
use super::overflow_fields::{Addressing, OverflowFields, finish, known_time};
use crate::envelope::{Metadata, differs};
use crate::fault::Fault;
use crate::subject::{Service, Subject};
use crate::{Envelope, MessageType, Recipient, Timestamp};

/// Fields of a finding that are written in camel case in the content.
pub(super) const FINDING: [(&str, &str); 3] = [
    ("riskScore", "risk_score"),
    ("criticalFindings", "critical_findings"),
    ("affectedClauses", "affected_clauses"),
];
/// Other recipients, who are sent the same message each on their own subject.
const RECIPIENTS: &str = "recipients";

pub(super) fn read(bytes: &[u8], subject: &Subject) -> Result<Envelope, Fault> {
    let addressing = Addressing::by(subject)?;
    let mut fields = Fields::parse(bytes, "")?;
    let mut envelope = addressing.envelope(subject, bytes);
    // The prompt of the peer review asks a model for an answer without an envelope.
    let bare = ["id", "sender", RECIPIENTS, "messageType", "content"]
        .into_iter()
        .all(|name| !fields.has(name));
    if bare && (fields.has("agrees_with_peer") || fields.has("revised_position")) {
        envelope.payload = fields.into_raw()?;
        return Ok(envelope);
    }
    if let Some(id) = fields.take("id")? {
        envelope.message_id = id;
    }
    addressing.take_sender(&mut fields, "sender")?;
    let others = take_recipients(&mut fields, &addressing)?;
    if let Some(value) = fields.take::<String>("messageType")?
        && value != addressing.kind.as_str()
        && Some(&value) != camel(addressing.kind.as_str()).as_ref()
    {
        return Err(differs("/messageType", &value, addressing.kind.as_str()));
    }
    envelope.round = fields.take("round")?.filter(|round| *round > 0);
    envelope.reply_to = fields.take("replyTo")?;
    if let Some(at) = take_time(&mut fields)? {
        envelope.timestamp = at;
    }
    let mut content = content::read_text(
        fields.take_raw("content").as_deref(),
        &addressing.kind,
        "/content",
    )?;
    OverflowFields::take(&mut content)?.apply(&addressing, "/content/concord", &mut envelope)?;
    content::take_confidence(
        &mut content,
        &addressing.kind,
        &mut envelope.metadata.confidence,
    )?;
    if is_finding(&addressing.kind) {
        FINDING
            .into_iter()
            .try_for_each(|(camel, snake)| content.rename(camel, snake))?;
    }
    envelope.payload = content.into_raw()?;
    let mut envelope = finish(fields, &addressing, envelope)?;
    if let Some(others) = others {
        envelope.extensions.insert(RECIPIENTS, others);
    }
    Ok(envelope)
}

pub(super) fn write(envelope: &Envelope) -> Result<Fields, Fault> {
    let kind = &envelope.message_type;
    let camel = camel(kind.as_str()).ok_or_else(|| {
        Fault::invalid(
            "/message_type",
            format!("{kind} cannot be written in camel case and back."),
            "Use snake case.",
        )
    })?;
    let mut content = content::fields(&envelope.payload)?;
    if is_finding(kind) {
        for (camel, snake) in FINDING {
            // A field of that name in the payload would be read as the other.
            content.check_free(camel)?;
            content.rename(snake, camel)?;
        }
    }
    let mut metadata = envelope.metadata.clone();
    content::put_confidence(&mut content, kind, &mut metadata.confidence)?;
    let metadata = (metadata != Metadata::default()).then_some(metadata);
    let overflow = OverflowFields {
        message_id: None,
        timestamp: None,
        reply_to: None,
        round: None,
        metadata,
        ..OverflowFields::of(envelope)
    };
    overflow.put(&mut content)?;

    let mut fields = Fields::at("");
    fields.put("id", &envelope.message_id)?;
    fields.put("round", &envelope.round.unwrap_or(0))?;
    fields.put("sender", &envelope.from_agent)?;
    let mut extensions = envelope.extensions.clone();
    let others = extensions.remove(RECIPIENTS).filter(|others| {
        is_passed_on(kind, &envelope.to_agent) || names(others, &envelope.to_agent)
    });
    match others {
        Some(others) => fields.put_raw(RECIPIENTS, others)?,
        None => fields.put(RECIPIENTS, &[&envelope.to_agent])?,
    }
    fields.put("messageType", &camel)?;
    fields.put_raw("content", content::serialised(content, "/payload")?)?;
    if let Some(at) = known_time(envelope.timestamp) {
        fields.put("timestamp", &at.unix_millis())?;
    }
    if let Some(reply_to) = &envelope.reply_to {
        fields.put("replyTo", reply_to)?;
    }
    fields.put_all(&extensions)?;
    Ok(fields)
}

fn is_finding(kind: &MessageType) -> bool {
    matches!(
        kind,
        MessageType::Finding | MessageType::FindingWithPrecedent
    )
}

/// Whether a message is an answer in a discussion: the specification prints the other parties as its recipients, and it is sent to the
/// facilitator, who passes it on to them.
fn is_passed_on(kind: &MessageType, to: &Recipient) -> bool {
    use MessageType::{Agreement, Disagreement, Revision};
    matches!(kind, Agreement | Disagreement | Revision)
        && to.as_str() == Service::DebateFacilitator.as_str()
}

/// Takes the recipients, of whom the subject's is one but where the facilitator passes the message on; all of them where there are several.
fn take_recipients(
    fields: &mut Fields,
    addressing: &Addressing<'_>,
) -> Result<Option<Box<RawValue>>, Fault> {
    let Some(raw) = fields.take_raw(RECIPIENTS) else {
        return Ok(None);
    };
    let names: Vec<String> = crate::envelope::value_from_json(raw.get().as_bytes(), "/recipients")?;
    let is_one = names.iter().any(|name| addressing.is_recipient(name))
        || (names.is_empty() && addressing.is_broadcast());
    if !is_one && is_passed_on(&addressing.kind, addressing.to) {
        return Ok(Some(raw));
    }
    if !is_one {
        return Err(differs(
            "/recipients",
            &names.join(", "),
            addressing.to.as_str(),
        ));
    }
    Ok((names.len() > 1).then_some(raw))
}

fn names(recipients: &RawValue, to: &Recipient) -> bool {
    let names: Vec<String> = serde_json::from_str(recipients.get()).unwrap_or_default();
    names.len() > 1 && names.iter().any(|name| name == to.as_str())
}

/// Takes the time: milliseconds, or a text as everywhere else.
fn take_time(fields: &mut Fields) -> Result<Option<Timestamp>, Fault> {
    if fields
        .get("timestamp")
        .is_some_and(|value| value.get().starts_with('"'))
    {
        return fields.take("timestamp");
    }
    let Some(millis) = fields.take::<i64>("timestamp")? else {
        return Ok(None);
    };
    let at = Timestamp::from_unix_millis(millis);
    if at.unix_millis() == millis {
        return Ok(Some(at));
    }
    let advice = "Send milliseconds since 1970, as Date.now() gives them.";
    Err(Fault::invalid(
        "/timestamp",
        format!("{millis} ms is no time of the years 1 to 9999."),
        advice,
    ))
}

/// A snake-case name in camel case, if that can be undone.
fn camel(snake: &str) -> Option<String> {
    let mut camel = String::with_capacity(snake.len());
    let mut upper = false;
    for c in snake.chars() {
        match c {
            '_' if !upper => upper = true,
            'a'..='z' if upper => {
                camel.push(c.to_ascii_uppercase());
                upper = false;
            }
            'a'..='z' | '0'..='9' if !upper => camel.push(c),
            _ => return None,
        }
    }
    (!upper).then_some(camel)
}
