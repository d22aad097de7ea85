//! Invariant 8: every message to a service is used, or kept as a dead letter; none is lost.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::Aggregate;
use concord_events::{EventMeta, Origin, event_id};
use concord_wire::payload::{OPEN_CASE, OPEN_DEBATE, Request};
use concord_wire::subject::Service;
use concord_wire::{Envelope, MessageId, MessageType, Token};

use super::dead::{DeadLetters, Position};
use super::lifecycle::Aggregates;
use super::report::{Counts, Invariant};

/// What a request asks to open. Where that exists already, no event follows from the request.
#[derive(Debug)]
enum Requested {
    Case(Token),
    Debate(Token),
}

#[derive(Debug)]
struct UnusedMessage {
    position: Position,
    to: Service,
    requested: Option<Requested>,
}

#[derive(Debug, Default)]
pub(super) struct UnusedMessages {
    /// Ids of messages from which events follow.
    causes: BTreeSet<MessageId>,
    /// Messages from which no event was seen to follow, by id.
    unused: BTreeMap<MessageId, UnusedMessage>,
    /// Messages to services that cannot be read as envelopes.
    unreadable: Vec<Position>,
}

impl UnusedMessages {
    pub(super) fn event(&mut self, aggregate: Aggregate, meta: &EventMeta) {
        if meta.event_id == event_id(aggregate, &meta.id, Origin::Message, &meta.cause) {
            self.unused.remove(&meta.cause);
            self.causes.insert(meta.cause.clone());
        }
    }

    /// Takes a message to a service into account, if its type leads to events.
    pub(super) fn message(
        &mut self,
        counts: &mut Counts,
        to: Service,
        envelope: &Envelope,
        position: &Position,
    ) {
        use MessageType::{Agreement, Disagreement, Finding, Request, Revision};
        if !matches!(
            envelope.message_type,
            Finding | Agreement | Disagreement | Revision | Request
        ) {
            return;
        }
        counts.examined(Invariant::MessagesKept);
        if self.causes.contains(&envelope.message_id) {
            return;
        }
        self.unused
            .entry(envelope.message_id.clone())
            .or_insert_with(|| UnusedMessage {
                position: position.clone(),
                to,
                requested: requested(envelope),
            });
    }

    /// Takes a message to a service into account that cannot be read as an envelope.
    pub(super) fn unreadable(&mut self, counts: &mut Counts, position: Position) {
        counts.examined(Invariant::MessagesKept);
        self.unreadable.push(position);
    }

    pub(super) fn finish(&self, counts: &mut Counts, aggregates: &Aggregates, dead: &DeadLetters) {
        for (id, unused) in &self.unused {
            let exists_already = match &unused.requested {
                Some(Requested::Case(id)) => aggregates.contains(Aggregate::Case, id),
                Some(Requested::Debate(id)) => aggregates.contains(Aggregate::Debate, id),
                None => false,
            };
            if !exists_already && !dead.holds(&unused.position, Some(id)) {
                let what = format!(
                    "It was said to {}; no fact follows from it, and it is not dead.",
                    unused.to
                );
                let sequence = Some(unused.position.sequence);
                counts.violated(
                    Invariant::MessagesKept,
                    format!("message/{id}"),
                    sequence,
                    what,
                );
            }
        }
        for position in &self.unreadable {
            if !dead.holds(position, None) {
                let place = position
                    .subject
                    .clone()
                    .unwrap_or_else(|| position.lane.as_str().to_owned());
                let what = "It cannot be read, and is not dead.";
                counts.violated(
                    Invariant::MessagesKept,
                    place,
                    Some(position.sequence),
                    what,
                );
            }
        }
    }
}

fn requested(envelope: &Envelope) -> Option<Requested> {
    if envelope.message_type != MessageType::Request {
        return None;
    }
    let request: Request = envelope.payload().ok()?;
    let named = |pointer: &str| Token::new(request.parameters.pointer(pointer)?.as_str()?).ok();
    match request.action.as_str() {
        OPEN_CASE => named("/case_id").map(Requested::Case),
        OPEN_DEBATE => named("/conflict/conflict_id").map(Requested::Debate),
        _ => None,
    }
}
