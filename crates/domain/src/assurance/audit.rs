//! The design's invariants, checked over what is stored.
//!
//! An [`Auditor`] is fed with facts, messages and dead letters, each stream in its own order, the streams in any order
//! beside each other; [`Auditor::finish`] says what was found so far. It is used over real streams by `concord check`
//! and by the simulator after every seed. It keeps a state for each case and debate that goes on, and only ids for
//! those that have ended.

use concord_events::Aggregate;
use concord_events::non_event::NonEvent;
use concord_events::subject::SystemSubject;
use concord_events::{
    AgentEvent, AggregateEvent, CaseEvent, DeadlineEvent, DebateEvent, DetectionEvent, Origin,
    PrecedentEvent, RequestEvent, ReviewQueueEvent, StoredEvent, TrackRecordEvent, WakeEvent,
    event_id,
};
use concord_wire::subject::{Lane, Service, Subject, SubjectSpace};
use concord_wire::{Dialect, Envelope, Fault, MessageId, MessageType, Timestamp, Token, dialect};

mod capacity;
mod dead;
mod effects;
mod findings;
mod lifecycle;
mod log;
mod no_message_lost;
mod report;
mod timing;

use dead::{DeadLetters, Position};
use effects::Effects;
use findings::Findings;
use lifecycle::{Life, Lives};
use log::Logs;
use no_message_lost::Kept;
use report::Ledgers;
pub use report::{Checked, Invariant, Passed, Report, Violation};
use timing::Timing;

use crate::activation::conversation::WakeMachine;
use crate::aggregates::agent::AgentMachine;
use crate::aggregates::case::CaseMachine;
use crate::aggregates::deadline::DeadlineMachine;
use crate::aggregates::debate::DebateMachine;
use crate::aggregates::detection::DetectionMachine;
use crate::aggregates::precedent::PrecedentMachine;
use crate::aggregates::request::RequestMachine;
use crate::aggregates::review_queue::ReviewQueueMachine;
use crate::aggregates::track_record::TrackRecordMachine;

/// A fact as the stream of events holds it.
#[derive(Debug, Clone, Copy)]
pub struct RawEvent<'a> {
    /// Its position in the stream.
    pub sequence: u64,
    /// From its subject: kind of aggregate.
    pub aggregate: Aggregate,
    /// From its subject: which aggregate.
    pub id: &'a Token,
    /// From its subject: what happened.
    pub fact: &'a Token,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// What a stored message contains.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// An envelope that was read already, and fits its subject.
    Envelope(&'a Envelope),
    /// The bytes as they are stored.
    Bytes(&'a [u8]),
}

/// A message as one of the two streams of messages holds it.
#[derive(Debug, Clone, Copy)]
pub struct StoredMessage<'a> {
    /// Its position in the stream of its lane.
    pub sequence: u64,
    /// Its subject, that of a message.
    pub subject: &'a Subject,
    /// The dialect that its header declares.
    pub declared: Option<Dialect>,
    /// What it contains.
    pub content: Content<'a>,
}

/// A dead letter: what is known of the original.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dead<'a> {
    /// The original's subject, where it is one.
    pub subject: Option<&'a Subject>,
    /// The original's lane and position in it, where it was a message and they are known.
    pub position: Option<(Lane, u64)>,
    /// The original's `message_id`, where it could be read.
    pub message_id: Option<&'a MessageId>,
}

/// The circumstances under which an audit ends.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// The present.
    pub now: Timestamp,
    /// How long after it is due a deadline may still be open, in milliseconds.
    pub grace_ms: u64,
    /// True when nothing is in flight: no message that is still to be handled, no effect that is still to be published.
    /// Only then can be said that something is missing.
    pub quiescent: bool,
    /// From when on messages are kept: effects of older facts may have been deleted by age. None when all are kept.
    pub messages_since: Option<Timestamp>,
}

impl Ending {
    /// Nothing in flight, no message deleted by age, and no grace.
    pub fn quiescent(now: Timestamp) -> Self {
        Self {
            now,
            grace_ms: 0,
            quiescent: true,
            messages_since: None,
        }
    }

    /// Under load: what may still be in flight is not held against anyone.
    pub fn under_load(now: Timestamp) -> Self {
        Self {
            quiescent: false,
            ..Self::quiescent(now)
        }
    }
}

/// Checks the invariants over what is stored.
#[derive(Debug, Default)]
pub struct Auditor {
    ledgers: Ledgers,
    lives: Lives,
    timing: Timing,
    findings: Findings,
    logs: Logs,
    effects: Effects,
    kept: Kept,
    letters: DeadLetters,
    events: u64,
    messages: u64,
    dead: u64,
    foreign: Option<Passed>,
}

impl Auditor {
    /// An auditor that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes into account that something stands among the facts and is none.
    pub fn foreign(&mut self, sequence: u64, subject: &str, foreign: NonEvent) {
        let first = || Violation {
            what: format!("It is {}.", foreign.as_str()),
            place: subject.to_owned(),
            sequence: Some(sequence),
        };
        self.foreign
            .get_or_insert_with(|| Passed {
                number: 0,
                first: first(),
            })
            .number += 1;
    }

    /// Takes a stored fact into account. Facts are given in the order of their stream.
    pub fn event(&mut self, stored: &RawEvent<'_>) {
        if let Some(foreign) = NonEvent::of(false, stored.bytes) {
            let RawEvent {
                sequence,
                aggregate,
                id,
                fact,
                ..
            } = *stored;
            let subject = SystemSubject::Event {
                aggregate,
                id: id.clone(),
                event: fact.clone(),
            };
            return self.foreign(sequence, &SubjectSpace::default().build(&subject), foreign);
        }
        self.events += 1;
        self.ledgers.examined(Invariant::Replay);
        match stored.aggregate {
            Aggregate::Case => {
                let Some(record) = self.read::<CaseEvent>(stored) else {
                    return;
                };
                self.findings
                    .event(&mut self.ledgers, self.lives.case(stored.id), &record);
                self.logs.event(&mut self.ledgers, &record);
                self.alive::<CaseMachine>(&record);
            }
            Aggregate::Debate => {
                let Some(record) = self.read::<DebateEvent>(stored) else {
                    return;
                };
                self.alive::<DebateMachine>(&record);
            }
            Aggregate::Detection => {
                let Some(record) = self.read::<DetectionEvent>(stored) else {
                    return;
                };
                self.alive::<DetectionMachine>(&record);
            }
            Aggregate::Deadline => {
                let Some(record) = self.read::<DeadlineEvent>(stored) else {
                    return;
                };
                self.timing.elapsed(&mut self.ledgers, &record);
                self.alive::<DeadlineMachine>(&record);
            }
            Aggregate::TrackRecord => {
                let Some(record) = self.read::<TrackRecordEvent>(stored) else {
                    return;
                };
                self.alive::<TrackRecordMachine>(&record);
            }
            Aggregate::Precedent => {
                let Some(record) = self.read::<PrecedentEvent>(stored) else {
                    return;
                };
                self.alive::<PrecedentMachine>(&record);
            }
            Aggregate::ReviewQueue => {
                let Some(record) = self.read::<ReviewQueueEvent>(stored) else {
                    return;
                };
                capacity::event(&mut self.ledgers, self.lives.queue(stored.id), &record);
                self.alive::<ReviewQueueMachine>(&record);
            }
            Aggregate::Agent => {
                let Some(record) = self.read::<AgentEvent>(stored) else {
                    return;
                };
                self.alive::<AgentMachine>(&record);
            }
            Aggregate::Wake => {
                let Some(record) = self.read::<WakeEvent>(stored) else {
                    return;
                };
                self.alive::<WakeMachine>(&record);
            }
            Aggregate::Request => {
                let Some(record) = self.read::<RequestEvent>(stored) else {
                    return;
                };
                self.alive::<RequestMachine>(&record);
            }
        }
    }

    fn read<E: AggregateEvent>(&mut self, stored: &RawEvent<'_>) -> Option<StoredEvent<E>> {
        let place = place(stored.aggregate, stored.id);
        let mut differs = |what: String| {
            self.ledgers.violated(
                Invariant::Replay,
                place.clone(),
                Some(stored.sequence),
                what,
            );
        };
        let record = match StoredEvent::<E>::decode(stored.bytes, stored.sequence) {
            Ok(record) => record,
            Err(error) => {
                differs(format!(
                    "The stored fact {} cannot be read: {error}.",
                    stored.fact
                ));
                return None;
            }
        };
        if record.meta.id != *stored.id || record.event.name() != stored.fact.as_str() {
            differs(format!(
                "It is stored as {} of {} and says of itself that it is {} of {}.",
                stored.fact,
                stored.id,
                record.event.name(),
                record.meta.id
            ));
            return None;
        }
        let meta = &record.meta;
        let derived = |origin| event_id(E::AGGREGATE, stored.id, origin, &meta.cause);
        if ![Origin::Message, Origin::Event]
            .map(derived)
            .contains(&meta.event_id)
        {
            differs(format!(
                "Its event_id {} does not follow from its cause {}.",
                meta.event_id, meta.cause
            ));
        }
        Some(record)
    }

    fn alive<M: Life>(&mut self, record: &StoredEvent<M::Event>) {
        let (ledgers, aggregate) = (&mut self.ledgers, M::Event::AGGREGATE);
        M::lives(&mut self.lives).event(ledgers, record);
        self.timing
            .event(ledgers, aggregate, record.sequence, &record.meta);
        self.effects.event::<M>(ledgers, record);
        self.kept.event(aggregate, &record.meta);
    }

    /// Takes a stored message into account.
    pub fn message(&mut self, stored: &StoredMessage<'_>) {
        self.messages += 1;
        let Subject::Message {
            lane,
            case,
            from,
            to,
            ..
        } = stored.subject
        else {
            return;
        };
        let (from, to) = (
            Service::parse(from.as_str()).ok(),
            Service::parse(to.as_str()).ok(),
        );
        let subject = Some(SubjectSpace::default().build(stored.subject));
        let position = Position {
            lane: *lane,
            sequence: stored.sequence,
            subject,
        };
        let read;
        let envelope = match stored.content {
            Content::Envelope(envelope) => envelope,
            Content::Bytes(bytes) => match dialect::read(bytes, stored.declared, stored.subject) {
                Ok((envelope, _)) => {
                    read = envelope.completed(stored.sequence, Timestamp::default());
                    &read
                }
                Err(fault) => {
                    let foreign = NonEvent::of(false, bytes).filter(|_| from.is_some());
                    let Some(foreign) = foreign else {
                        return self.unreadable(from, to, position, &fault);
                    };
                    // No service has said it; that the one it was sent to has kept it is still asked.
                    self.foreign(
                        stored.sequence,
                        position.subject.as_deref().unwrap_or_default(),
                        foreign,
                    );
                    return self.unreadable(None, to, position, &fault);
                }
            },
        };
        let ledgers = &mut self.ledgers;
        if let Some(from) = from {
            self.effects
                .message(ledgers, from, envelope, stored.sequence);
            if envelope.message_type == MessageType::Error {
                self.letters.too_many(from, envelope);
            }
        }
        if let Some(to) = to {
            self.kept.message(ledgers, to, envelope, &position);
        }
        let is_finding =
            to == Some(Service::Coordinator) && envelope.message_type == MessageType::Finding;
        if let Some(case) = case.as_ref().filter(|_| is_finding) {
            self.findings
                .message(ledgers, case, &envelope.message_id, &position);
        }
    }

    fn unreadable(
        &mut self,
        from: Option<Service>,
        to: Option<Service>,
        position: Position,
        fault: &Fault,
    ) {
        if let Some(from) = from {
            let place = position.subject.clone().unwrap_or_default();
            let what = format!("{from} has published what is no message: {fault}");
            self.ledgers.violated(
                Invariant::EffectsOfFacts,
                place,
                Some(position.sequence),
                what,
            );
        }
        if to.is_some() {
            self.kept.unreadable(&mut self.ledgers, position);
        }
    }

    /// Takes a stored message into account that is addressed to a service under a subject that cannot be parsed.
    pub fn malformed_message(&mut self, lane: Lane, sequence: u64) {
        self.messages += 1;
        self.kept.unreadable(
            &mut self.ledgers,
            Position {
                lane,
                sequence,
                subject: None,
            },
        );
    }

    /// Takes a dead letter into account.
    pub fn dead(&mut self, dead: &Dead<'_>) {
        self.dead += 1;
        self.letters.take(dead);
    }

    /// What was found. More can be fed afterwards.
    pub fn finish(&self, ending: &Ending) -> Report {
        let mut ledgers = self.ledgers.clone();
        self.lives.finish(&mut ledgers, ending);
        self.timing.finish(&mut ledgers, ending);
        self.effects.finish(&mut ledgers, ending);
        if ending.quiescent {
            self.findings.finish(&mut ledgers, &self.letters);
            self.kept.finish(&mut ledgers, &self.lives, &self.letters);
        }
        Report {
            invariants: ledgers.checked(ending.quiescent),
            events: self.events,
            messages: self.messages,
            dead: self.dead,
            foreign: self.foreign.clone(),
        }
    }
}

fn place(aggregate: Aggregate, id: &Token) -> String {
    format!("{aggregate}/{id}")
}

#[cfg(test)]
mod tests;
