//! The `message_id` of an effect: it names the event that the effect follows from.

use concord_wire::{Envelope, MessageId, Token};

/// `message_id` of the effect at `position` among those of the event at `sequence`.
pub fn effect_id(aggregate_id: &Token, sequence: u64, position: usize) -> MessageId {
    MessageId::of_effect(aggregate_id, sequence, position)
}

/// The inverse of [`effect_id`]: aggregate and sequence of the event that a message follows from. `None` for every other text.
pub fn source_of(message_id: &str) -> Option<(&str, u64)> {
    let (rest, position) = message_id.rsplit_once('-')?;
    let (aggregate_id, sequence) = rest.rsplit_once('-')?;
    let sequence = number(sequence)?;
    number(position).map(|_| (aggregate_id, sequence))
}

/// The debate and the event of the question that a message answers. Specification 5 names the question by `correlation_id`, for
/// want of a `reply_to`.
pub fn question_of(envelope: &Envelope) -> Option<(&str, u64)> {
    let named = [
        envelope.reply_to.as_deref(),
        envelope.correlation_id.as_deref(),
    ];
    named.into_iter().flatten().find_map(source_of)
}

/// The debate that a message belongs to: the one that it names, else the one whose question it answers. It need not exist.
pub fn debate_of(envelope: &Envelope) -> Option<&str> {
    // The id of a debate is never that of an effect.
    let named = envelope
        .correlation_id
        .as_deref()
        .filter(|id| source_of(id).is_none());
    named.or_else(|| question_of(envelope).map(|(debate, _)| debate))
}

/// Reads a number in the one form in which it is written: an id has no second spelling.
fn number(digits: &str) -> Option<u64> {
    digits
        .parse::<u64>()
        .ok()
        .filter(|number| number.to_string() == digits)
}
