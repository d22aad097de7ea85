//! Invariant 8: every message to a service is used, or kept among the dead; none is lost.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::Aggregate;
use concord_events::{EventMeta, Origin, event_id};
use concord_wire::payload::{OPEN_CASE, OPEN_DEBATE, Request};
use concord_wire::subject::Service;
use concord_wire::{Envelope, MessageId, MessageType, Token};

use super::dead::{DeadLetters, Position};
use super::lifecycle::Lives;
use super::report::{Invariant, Ledgers};

/// What a request asks for, where it may be so already: such a request needs no fact.
#[derive(Debug)]
enum Asked {
    Case(Token),
    Debate(Token),
}

#[derive(Debug)]
struct Heard {
    position: Position,
    to: Service,
    asked: Option<Asked>,
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Ids of messages that facts follow from.
    causes: BTreeSet<MessageId>,
    /// Messages that no fact was seen to follow from, by id.
    heard: BTreeMap<MessageId, Heard>,
    /// Messages to services that are no envelope.
    unreadable: Vec<Position>,
}

impl Kept {
    pub(super) fn event(&mut self, aggregate: Aggregate, meta: &EventMeta) {
        if meta.event_id == event_id(aggregate, &meta.id, Origin::Message, &meta.cause) {
            self.heard.remove(&meta.cause);
            self.causes.insert(meta.cause.clone());
        }
    }

    /// A message to a service that acts on messages of its type.
    pub(super) fn message(
        &mut self,
        ledgers: &mut Ledgers,
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
        ledgers.examined(Invariant::MessagesKept);
        if self.causes.contains(&envelope.message_id) {
            return;
        }
        self.heard
            .entry(envelope.message_id.clone())
            .or_insert_with(|| Heard {
                position: position.clone(),
                to,
                asked: asked(envelope),
            });
    }

    /// A message to a service that is no envelope.
    pub(super) fn unreadable(&mut self, ledgers: &mut Ledgers, position: Position) {
        ledgers.examined(Invariant::MessagesKept);
        self.unreadable.push(position);
    }

    pub(super) fn finish(&self, ledgers: &mut Ledgers, lives: &Lives, dead: &DeadLetters) {
        for (id, heard) in &self.heard {
            let already = match &heard.asked {
                Some(Asked::Case(id)) => lives.has_case(id),
                Some(Asked::Debate(id)) => lives.has_debate(id),
                None => false,
            };
            if !already && !dead.holds(&heard.position, Some(id)) {
                let what = format!(
                    "It was said to {}; no fact follows from it, and it is not dead.",
                    heard.to
                );
                let sequence = Some(heard.position.sequence);
                ledgers.violated(
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
                ledgers.violated(
                    Invariant::MessagesKept,
                    place,
                    Some(position.sequence),
                    what,
                );
            }
        }
    }
}

fn asked(envelope: &Envelope) -> Option<Asked> {
    if envelope.message_type != MessageType::Request {
        return None;
    }
    let request: Request = envelope.payload().ok()?;
    let named = |pointer: &str| Token::new(request.parameters.pointer(pointer)?.as_str()?).ok();
    match request.action.as_str() {
        OPEN_CASE => named("/case_id").map(Asked::Case),
        OPEN_DEBATE => named("/conflict/conflict_id").map(Asked::Debate),
        _ => None,
    }
}
