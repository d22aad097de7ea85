//! Invariant 4: every effect of a stored event is published; none is published for an event that was not stored.

use std::collections::BTreeMap;

use concord_events::Aggregate;
use concord_events::{AggregateEvent, StoredEvent};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, MessageType, Timestamp, Token};

use super::dead::Position;
use super::report::{Counts, Invariant};
use super::{Ending, place};
use crate::effect;
use crate::machine::Machine;

/// The end of the id of the answer to a refused message. Such an answer follows from no event.
const REFUSED: &str = "-refused";
/// The end of the id of the answer to a question about the register, which leaves nothing behind either.
const FOUND: &str = "-found";

/// The end of the id of what the agent adapter passes on to an agent that it hosts. It follows from the message to everybody.
const PASSED_ON: &str = "-passed-on";

/// An effect that was not seen among the messages yet.
#[derive(Debug)]
struct Awaited {
    sequence: u64,
    at: Timestamp,
    from: AgentId,
}

/// An event with effects.
#[derive(Debug)]
struct Source {
    id: Token,
    from: AgentId,
    effects: usize,
}

#[derive(Debug, Default)]
pub(super) struct Effects {
    awaited: BTreeMap<MessageId, Awaited>,
    /// Events with effects, by their sequence.
    sources: BTreeMap<u64, Source>,
    /// Messages of services whose event was not seen yet, with their sender and position.
    unexplained: BTreeMap<MessageId, (AgentId, Position)>,
}

impl Effects {
    pub(super) fn event<M: Machine>(
        &mut self,
        counts: &mut Counts,
        record: &StoredEvent<M::Event>,
    ) {
        let messages = match effect::messages::<M>(record) {
            Ok(messages) => messages,
            Err(error) => {
                let place = place(M::Event::AGGREGATE, &record.meta.id);
                let what = format!("Its effects cannot be written: {error}.");
                return counts.violated(
                    Invariant::EffectsPublished,
                    place,
                    Some(record.sequence),
                    what,
                );
            }
        };
        let Some(first) = messages.first() else {
            return;
        };
        let source = Source {
            id: record.meta.id.clone(),
            from: first.from_agent.clone(),
            effects: messages.len(),
        };
        for Envelope {
            message_id,
            from_agent,
            ..
        } in messages
        {
            counts.examined(Invariant::EffectsPublished);
            if self
                .unexplained
                .get(&message_id)
                .is_some_and(|(from, _)| *from == from_agent)
            {
                self.unexplained.remove(&message_id);
                continue;
            }
            let awaited = Awaited {
                sequence: record.sequence,
                at: record.meta.at,
                from: from_agent,
            };
            self.awaited.insert(message_id, awaited);
        }
        self.sources.insert(record.sequence, source);
    }

    /// Takes a message of a service into account.
    pub(super) fn message(
        &mut self,
        counts: &mut Counts,
        from: Service,
        envelope: &Envelope,
        position: &Position,
    ) {
        // A service without aggregates has no events from which its messages could follow.
        if !Aggregate::ALL
            .iter()
            .any(|aggregate| aggregate.owner() == from)
        {
            return;
        }
        let id = &envelope.message_id;
        if envelope.message_type == MessageType::Error && id.as_str().ends_with(REFUSED) {
            return;
        }
        if envelope.message_type == MessageType::Response && id.as_str().ends_with(FOUND) {
            return;
        }
        let is_news = envelope.message_type == MessageType::Notification;
        if from == Service::AgentAdapter && is_news && id.as_str().ends_with(PASSED_ON) {
            return;
        }
        counts.examined(Invariant::EffectsPublished);
        if self
            .awaited
            .get(id)
            .is_some_and(|awaited| awaited.from == envelope.from_agent)
        {
            self.awaited.remove(id);
        } else if !self.is_repetition(envelope) {
            self.unexplained
                .insert(id.clone(), (envelope.from_agent.clone(), position.clone()));
        }
    }

    /// Whether the message is an effect that was seen before. The broker recognises repeated ids for a while only.
    fn is_repetition(&self, envelope: &Envelope) -> bool {
        let id = envelope.message_id.as_str();
        let Some((aggregate_id, sequence)) = effect::source_of(id) else {
            return false;
        };
        let Some(source) = self.sources.get(&sequence) else {
            return false;
        };
        let place = id
            .rsplit_once('-')
            .and_then(|(_, place)| place.parse::<usize>().ok());
        source.id.as_str() == aggregate_id
            && source.from == envelope.from_agent
            && place.is_some_and(|place| place < source.effects)
    }

    pub(super) fn finish(&self, counts: &mut Counts, ending: &Ending) {
        for (id, awaited) in &self.awaited {
            let since = ending.messages_since;
            let is_deleted = since.is_some_and(|since| awaited.at < since);
            if is_deleted || awaited.sequence > ending.settled.events {
                continue;
            }
            let what = format!(
                "The effect {id} of the fact at {} was not published.",
                awaited.sequence
            );
            counts.violated(
                Invariant::EffectsPublished,
                format!("message/{id}"),
                Some(awaited.sequence),
                what,
            );
        }
        let unexplained = self.unexplained.iter();
        for (id, (from, position)) in
            unexplained.filter(|(_, (_, position))| position.is_settled(&ending.settled))
        {
            let what = format!("{from} has published it, and no stored fact has it as its effect.");
            counts.violated(
                Invariant::EffectsPublished,
                format!("message/{id}"),
                Some(position.sequence),
                what,
            );
        }
    }
}
