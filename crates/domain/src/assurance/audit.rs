//! Checks the design's invariants over what is stored.
//!
//! An [`Auditor`] takes events, messages and dead letters: each stream in its own order, the
//! streams in any order beside each other. [`Auditor::finish`] reports what was found so far.
//! `concord check` uses it over real streams, and the simulator after every seed. It keeps a state
//! for each case and debate that goes on, and only ids for those that have ended.

use std::any::Any;

use concord_events::non_event::NonEvent;
use concord_events::subject::SystemSubject;
use concord_events::{
    Aggregate, AggregateEvent, CaseEvent, DeadlineEvent, DebateEvent, Origin, PersonEvent,
    PolicyEvent, ReviewQueueEvent, StoredEvent, event_id,
};
use concord_wire::subject::{Lane, Service, Subject, SubjectSpace};
use concord_wire::{Fault, MessageType, Timestamp, Token, dialect};

mod capacity;
mod dead;
mod decisions;
mod effects;
mod findings;
mod input;
mod lifecycle;
mod log;
mod no_message_lost;
mod openings;
mod report;
mod signatures;
mod timing;

use dead::{DeadLetters, Position};
use decisions::Decisions;
use effects::Effects;
use findings::Findings;
pub use input::{Content, Dead, Ending, RawEvent, Settled, StoredMessage};
use lifecycle::Aggregates;
use log::Logs;
use no_message_lost::UnusedMessages;
use openings::Openings;
use report::Counts;
pub use report::{Checked, Invariant, Passed, Report, Violation};
use signatures::Signatures;
pub use signatures::Verify;
use timing::Timing;

use crate::aggregates::case::CaseMachine;
use crate::aggregates::debate::DebateMachine;
use crate::aggregates::review_queue::ReviewQueueMachine;
use crate::aggregates::table::{MachineVisitor, visit_machine};
use crate::machine::Machine;

/// Checks the invariants over what is stored.
#[derive(Debug, Default)]
pub struct Auditor {
    counts: Counts,
    aggregates: Aggregates,
    timing: Timing,
    findings: Findings,
    logs: Logs,
    decisions: Decisions,
    openings: Openings,
    signatures: Signatures,
    effects: Effects,
    unused: UnusedMessages,
    letters: DeadLetters,
    events: u64,
    messages: u64,
    dead: u64,
    foreign: Option<Passed>,
}

/// Reads one stored event by the machine of its aggregate.
struct EventAudit<'a> {
    auditor: &'a mut Auditor,
    stored: &'a RawEvent<'a>,
}

impl MachineVisitor for EventAudit<'_> {
    type Output = ();

    fn visit<M: Machine>(self) {
        if let Some(record) = self.auditor.read::<M::Event>(self.stored) {
            self.auditor.stored_event::<M>(&record);
        }
    }
}

impl Auditor {
    /// An auditor that has seen nothing. It cannot verify signatures; everything else about them is checked.
    pub fn new() -> Self {
        Self::default()
    }

    /// An auditor that has seen nothing, and verifies signatures with this.
    pub fn verifying(verify: Verify) -> Self {
        Self {
            signatures: Signatures::verified_with(verify),
            ..Self::default()
        }
    }

    /// Takes an entry of the stream of events into account that is no event.
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

    /// Takes a stored event into account. Events are given in the order of their stream.
    pub fn event(&mut self, stored: &RawEvent<'_>) {
        if let Some(foreign) = NonEvent::of(false, stored.bytes) {
            let subject = SystemSubject::Event {
                aggregate: stored.aggregate,
                id: stored.id.clone(),
                event: stored.event.clone(),
            };
            let subject = SubjectSpace::default().build(&subject);
            return self.foreign(stored.sequence, &subject, foreign);
        }
        self.events += 1;
        self.counts.examined(Invariant::Replay);
        let auditor = self;
        visit_machine(stored.aggregate, EventAudit { auditor, stored });
    }

    fn stored_event<M: Machine>(&mut self, record: &StoredEvent<M::Event>) {
        let aggregate = M::Event::AGGREGATE;
        let id = &record.meta.id;
        let any: &dyn Any = record;
        if let Some(record) = any.downcast_ref::<StoredEvent<CaseEvent>>() {
            let before = self.aggregates.state::<CaseMachine>(id);
            self.findings.event(&mut self.counts, before, record);
            self.logs.event(&mut self.counts, record);
            self.decisions.case(&mut self.counts, record);
            self.openings.case(&mut self.counts, record);
            self.signatures.case(&mut self.counts, before, record);
        }
        if let Some(record) = any.downcast_ref::<StoredEvent<DebateEvent>>() {
            self.decisions.debate(&mut self.counts, record);
            let before = self.aggregates.state::<DebateMachine>(id);
            self.signatures.debate(&mut self.counts, before, record);
        }
        if let Some(record) = any.downcast_ref::<StoredEvent<PersonEvent>>() {
            self.signatures.person(record);
        }
        if let Some(record) = any.downcast_ref::<StoredEvent<PolicyEvent>>() {
            self.openings.policy(record);
        }
        if let Some(record) = any.downcast_ref::<StoredEvent<PersonEvent>>() {
            self.openings.person(record);
        }
        if let Some(record) = any.downcast_ref::<StoredEvent<DeadlineEvent>>() {
            self.timing.elapsed(&mut self.counts, record);
        }
        if let Some(record) = any.downcast_ref::<StoredEvent<ReviewQueueEvent>>() {
            let before = self.aggregates.state::<ReviewQueueMachine>(id);
            capacity::event(&mut self.counts, before, record);
        }
        self.aggregates.event::<M>(&mut self.counts, record);
        self.timing
            .event(&mut self.counts, aggregate, record.sequence, &record.meta);
        self.effects.event::<M>(&mut self.counts, record);
        self.unused.event(aggregate, &record.meta);
    }

    fn read<E: AggregateEvent>(&mut self, stored: &RawEvent<'_>) -> Option<StoredEvent<E>> {
        let place = place(stored.aggregate, stored.id);
        let mut violated = |what: String| {
            let sequence = Some(stored.sequence);
            self.counts
                .violated(Invariant::Replay, place.clone(), sequence, what);
        };
        let record = match StoredEvent::<E>::decode(stored.bytes, stored.sequence) {
            Ok(record) => record,
            Err(error) => {
                violated(format!(
                    "The stored fact {} cannot be read: {error}.",
                    stored.event
                ));
                return None;
            }
        };
        if record.meta.id != *stored.id || record.event.name() != stored.event.as_str() {
            violated(format!(
                "It is stored as {} of {} and says of itself that it is {} of {}.",
                stored.event,
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
            violated(format!(
                "Its event_id {} does not follow from its cause {}.",
                meta.event_id, meta.cause
            ));
        }
        Some(record)
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
                    let foreign = NonEvent::of(false, bytes)
                        // An agent may send nothing at all, and is answered.
                        .filter(|_| from.is_some() && !bytes.is_empty());
                    let Some(foreign) = foreign else {
                        return self.unreadable(from, to, position, &fault);
                    };
                    // No service has sent it; it is still checked that the service it was sent to
                    // has kept it.
                    self.foreign(
                        stored.sequence,
                        position.subject.as_deref().unwrap_or_default(),
                        foreign,
                    );
                    return self.unreadable(None, to, position, &fault);
                }
            },
        };
        let counts = &mut self.counts;
        if let Some(from) = from {
            self.effects.message(counts, from, envelope, &position);
            if envelope.message_type == MessageType::Error {
                self.letters.over_rate_limit(from, envelope);
            }
        }
        if let Some(to) = to {
            self.unused.message(counts, to, envelope, &position);
        }
        let is_finding =
            to == Some(Service::Coordinator) && envelope.message_type == MessageType::Finding;
        if let Some(case) = case.as_ref().filter(|_| is_finding) {
            self.findings
                .message(counts, case, &envelope.message_id, &position);
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
            self.counts.violated(
                Invariant::EffectsPublished,
                place,
                Some(position.sequence),
                what,
            );
        }
        if to.is_some() {
            self.unused.unreadable(&mut self.counts, position);
        }
    }

    /// Takes a message to a service into account whose subject cannot be parsed.
    pub fn malformed_message(&mut self, lane: Lane, sequence: u64) {
        self.messages += 1;
        self.unused.unreadable(
            &mut self.counts,
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

    /// Reports what was found. More can be taken into account afterwards.
    pub fn finish(&self, ending: &Ending) -> Report {
        let mut counts = self.counts.clone();
        self.aggregates.finish(&mut counts, ending);
        self.timing.finish(&mut counts, ending);
        self.effects.finish(&mut counts, ending);
        let (letters, settled) = (&self.letters, &ending.settled);
        self.findings.finish(&mut counts, letters, settled);
        self.decisions.finish(&mut counts, settled);
        self.unused
            .finish(&mut counts, &self.aggregates, letters, settled);
        Report {
            invariants: counts.checked(settled),
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
