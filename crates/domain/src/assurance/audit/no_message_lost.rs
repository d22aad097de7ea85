//! Invariant 8: every message to a service is used, or kept as a dead letter; none is lost.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::Aggregate;
use concord_events::{EventMeta, Origin, event_id};
use concord_wire::payload::{FIND_AGENTS, OPEN_CASE, OPEN_DEBATE, Request};
use concord_wire::subject::Service;
use concord_wire::{Envelope, MessageId, MessageType, Token};

use crate::effect;

use super::Settled;
use super::dead::{DeadLetters, Position};
use super::lifecycle::Aggregates;
use super::report::{Counts, Invariant};

/// The aggregate that a message asks to open, or belongs to. Where it exists, the message need not lead to an event.
#[derive(Debug)]
enum Existing {
    Case(Token),
    Debate(Token),
    /// A question that is answered and leaves nothing.
    Question,
}

#[derive(Debug)]
struct UnusedMessage {
    position: Position,
    to: Service,
    existing: Option<Existing>,
}

/// A message to a service that does not act on its type.
#[derive(Debug)]
struct Misdirected {
    id: MessageId,
    position: Position,
    to: Service,
}

#[derive(Debug, Default)]
pub(super) struct UnusedMessages {
    /// Ids of messages from which events follow.
    causes: BTreeSet<MessageId>,
    /// Messages from which no event was seen to follow, by id.
    unused: BTreeMap<MessageId, UnusedMessage>,
    /// Messages that have to be refused.
    misdirected: Vec<Misdirected>,
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

    /// Takes a message to a service into account, unless it only tells something.
    pub(super) fn message(
        &mut self,
        counts: &mut Counts,
        to: Service,
        envelope: &Envelope,
        position: &Position,
    ) {
        let (kind, id) = (&envelope.message_type, &envelope.message_id);
        if kind.expects_nothing() {
            return;
        }
        counts.examined(Invariant::MessagesKept);
        if kind.refusal_by(to).is_some() {
            self.misdirected.push(Misdirected {
                id: id.clone(),
                position: position.clone(),
                to,
            });
            return;
        }
        if self.causes.contains(id) {
            return;
        }
        self.unused
            .entry(id.clone())
            .or_insert_with(|| UnusedMessage {
                position: position.clone(),
                to,
                existing: existing(envelope),
            });
    }

    /// Takes a message to a service into account that cannot be read as an envelope.
    pub(super) fn unreadable(&mut self, counts: &mut Counts, position: Position) {
        counts.examined(Invariant::MessagesKept);
        self.unreadable.push(position);
    }

    pub(super) fn finish(
        &self,
        counts: &mut Counts,
        aggregates: &Aggregates,
        dead: &DeadLetters,
        settled: &Settled,
    ) {
        let is_kept = |position: &Position, id: Option<&MessageId>| {
            !position.is_settled(settled) || dead.holds(position, id)
        };
        for (id, unused) in &self.unused {
            let exists_already = match &unused.existing {
                Some(Existing::Case(id)) => aggregates.contains(Aggregate::Case, id),
                Some(Existing::Debate(id)) => aggregates.contains(Aggregate::Debate, id),
                Some(Existing::Question) => true,
                None => false,
            };
            if !exists_already && !is_kept(&unused.position, Some(id)) {
                let to = unused.to;
                let what =
                    format!("It was said to {to}; no fact follows from it, and it is not dead.");
                lost(counts, id, &unused.position, what);
            }
        }
        for Misdirected { id, position, to } in &self.misdirected {
            if !is_kept(position, Some(id)) {
                let what =
                    format!("It was said to {to}, which does not act on it, and is not dead.");
                lost(counts, id, position, what);
            }
        }
        for position in &self.unreadable {
            if !is_kept(position, None) {
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

fn lost(counts: &mut Counts, id: &MessageId, position: &Position, what: String) {
    let place = format!("message/{id}");
    counts.violated(
        Invariant::MessagesKept,
        place,
        Some(position.sequence),
        what,
    );
}

fn existing(envelope: &Envelope) -> Option<Existing> {
    use MessageType::{Acknowledgement, Clarification, Evidence, Request};
    match &envelope.message_type {
        Request => requested(envelope),
        // What is so already needs no event: a second acknowledgement, a second opinion.
        Acknowledgement | Clarification | Evidence => {
            let debate = Token::new(effect::debate_of(envelope)?).ok()?;
            Some(Existing::Debate(debate))
        }
        _ => None,
    }
}

fn requested(envelope: &Envelope) -> Option<Existing> {
    let request: Request = envelope.payload().ok()?;
    let named = |pointer: &str| Token::new(request.parameters.pointer(pointer)?.as_str()?).ok();
    match request.action.as_str() {
        OPEN_CASE => named("/case_id").map(Existing::Case),
        FIND_AGENTS => Some(Existing::Question),
        OPEN_DEBATE => named("/conflict/conflict_id").map(Existing::Debate),
        _ => None,
    }
}
