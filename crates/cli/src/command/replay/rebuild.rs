//! Every aggregate, rebuilt event by event.
//!
//! The table of aggregates gives the machines. Four kinds of aggregates have checks of their own: what led to their events is
//! done again and compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_domain::Machine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::debate::{DebateMachine, counted_vote};
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::aggregates::review_queue::{self, ReviewQueueMachine};
use concord_domain::aggregates::table::{MachineVisitor, visit_machine};
use concord_domain::assurance::replay::{Difference, step};
use concord_domain::machine::Versioned;
use concord_events::Aggregate;
use concord_events::{AggregateEvent, DebateEvent, DetectionEvent, StoredEvent};
use concord_wire::Token;
use serde::Serialize;

use super::again;

/// The aggregates that are rebuilt so far, and what differs from what is stored.
#[derive(Default)]
pub(super) struct Rebuilt {
    cases: Kind<CaseMachine>,
    detections: Kind<DetectionMachine>,
    debates: Kind<DebateMachine>,
    queues: Kind<ReviewQueueMachine>,
    /// All other kinds, made when their first event comes.
    others: BTreeMap<Aggregate, Box<dyn AnyKind>>,
    detected_again: u64,
    decided_again: u64,
    ended_again: u64,
    votes_again: u64,
    queued_again: u64,
    passed_over: u64,
    differences: Vec<Difference>,
}

/// The aggregates of one kind, rebuilt so far.
struct Kind<M: Machine> {
    aggregates: BTreeMap<Token, Versioned<M>>,
    events: u64,
}

impl<M: Machine> Default for Kind<M> {
    fn default() -> Self {
        Self {
            aggregates: BTreeMap::new(),
            events: 0,
        }
    }
}

/// A kind of aggregate whose events are checked without knowing their type.
trait AnyKind {
    /// Applies one more event and says what differs; an error when the event cannot be read.
    fn check(&mut self, stored: &Stored<'_>) -> Result<Vec<String>, String>;

    /// The numbers for the report.
    fn row(&self) -> Row;
}

/// Makes the empty [`Kind`] of an aggregate.
struct NewKind;

impl MachineVisitor for NewKind {
    type Output = Box<dyn AnyKind>;

    fn visit<M: Machine>(self) -> Self::Output {
        Box::new(Kind::<M>::default())
    }
}

/// An event as it is stored.
pub(super) struct Stored<'a> {
    /// The id of its aggregate, from the subject.
    pub(super) id: &'a Token,
    /// Its sequence in the stream of events.
    pub(super) sequence: u64,
    /// Its body.
    pub(super) bytes: &'a [u8],
}

/// What replaying has found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What was rebuilt, by kind of aggregate.
    pub(super) rebuilt: Vec<Row>,
    /// Detections whose conflicts were looked for again.
    pub(super) detected_again: u64,
    /// Events of cases that were decided again.
    pub(super) decided_again: u64,
    /// Debates whose end was decided again.
    pub(super) ended_again: u64,
    /// Votes that were counted again.
    pub(super) votes_again: u64,
    /// Events of the review queue that were decided again.
    pub(super) queued_again: u64,
    /// Messages among the events that no service wrote.
    pub(super) passed_over: u64,
    /// Differences from what is stored.
    pub(super) differences: Vec<Difference>,
}

/// The numbers of one kind of aggregate.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) aggregate: &'static str,
    pub(super) aggregates: u64,
    #[serde(rename = "facts")]
    pub(super) events: u64,
}

impl<M: Machine> Kind<M> {
    /// The state of an aggregate so far.
    fn state(&self, id: &Token) -> Arc<M::State> {
        self.aggregates
            .get(id)
            .map(|rebuilt| Arc::clone(&rebuilt.state))
            .unwrap_or_default()
    }

    /// Reads and applies one more event.
    fn apply(&mut self, stored: &Stored<'_>) -> Result<Applied<'_, M>, String> {
        let (rebuilt, event) = self.read(stored)?;
        let differences = step(rebuilt, &event);
        Ok(Applied {
            after: &rebuilt.state,
            event,
            differences,
        })
    }

    /// Reads one more event, and finds its aggregate as it is before the event.
    fn read(&mut self, stored: &Stored<'_>) -> Result<Unapplied<'_, M>, String> {
        self.events += 1;
        let event = StoredEvent::<M::Event>::decode(stored.bytes, stored.sequence)
            .map_err(|error| format!("it cannot be read: {error}"))?;
        let id = stored.id;
        if event.meta.id != *id {
            return Err(format!(
                "it is stored under {id} and says of itself that it is of {}",
                event.meta.id
            ));
        }
        Ok((self.aggregates.entry(id.clone()).or_default(), event))
    }
}

impl<M: Machine> AnyKind for Kind<M> {
    fn check(&mut self, stored: &Stored<'_>) -> Result<Vec<String>, String> {
        self.apply(stored).map(|applied| applied.differences)
    }

    fn row(&self) -> Row {
        Row {
            aggregate: M::Event::AGGREGATE.as_str(),
            aggregates: self.aggregates.len() as u64,
            events: self.events,
        }
    }
}

type Unapplied<'a, M> = (&'a mut Versioned<M>, StoredEvent<<M as Machine>::Event>);

/// An event that has been applied.
struct Applied<'a, M: Machine> {
    /// The state after the event.
    after: &'a M::State,
    event: StoredEvent<M::Event>,
    /// Where the event differs from what the events before it lead to.
    differences: Vec<String>,
}

impl Rebuilt {
    /// Takes one more event, in the order of the stream.
    pub(super) fn take(&mut self, aggregate: Aggregate, stored: &Stored<'_>) {
        let differences = match aggregate {
            Aggregate::Case => self.case(stored),
            Aggregate::Detection => self.detection(stored),
            Aggregate::Debate => self.debate(stored),
            Aggregate::ReviewQueue => self.queue(stored),
            other => self
                .others
                .entry(other)
                .or_insert_with(|| visit_machine(other, NewKind))
                .check(stored),
        };
        let place = format!("{aggregate}/{}", stored.id);
        let differences = differences.unwrap_or_else(|unreadable| vec![unreadable]);
        let found = differences.into_iter().map(|what| Difference {
            aggregate: place.clone(),
            sequence: stored.sequence,
            what,
        });
        self.differences.extend(found);
    }

    /// Counts a message among the events that readers pass over.
    pub(super) fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// Reports a message whose subject is none of an event.
    pub(super) fn no_event(&mut self, subject: &str, sequence: u64) {
        let what = "it is in the stream of events and is none".to_owned();
        self.differences.push(Difference {
            aggregate: subject.to_owned(),
            sequence,
            what,
        });
    }

    fn case(&mut self, stored: &Stored<'_>) -> Result<Vec<String>, String> {
        let before = self.cases.state(stored.id);
        let applied = self.cases.apply(stored)?;
        let mut differences = applied.differences;
        match again::decide(&before, &applied.event) {
            Ok(decided) => self.decided_again += u64::from(decided),
            Err(difference) => differences.push(difference),
        }
        Ok(differences)
    }

    fn detection(&mut self, stored: &Stored<'_>) -> Result<Vec<String>, String> {
        let applied = self.detections.apply(stored)?;
        let mut differences = applied.differences;
        let DetectionEvent::Completed(detected) = &applied.event.event;
        match again::detect(&self.cases.state(&detected.case_id.token()), detected) {
            Ok(()) => self.detected_again += 1,
            Err(difference) => differences.push(difference),
        }
        Ok(differences)
    }

    fn debate(&mut self, stored: &Stored<'_>) -> Result<Vec<String>, String> {
        let applied = self.debates.apply(stored)?;
        let mut differences = applied.differences;
        let (after, event) = (applied.after, &applied.event.event);
        self.ended_again += u64::from(matches!(event, DebateEvent::Resolved(_)));
        self.votes_again += u64::from(counted_vote(after, event).is_some());
        differences.extend(DebateMachine::recount(after, &applied.event));
        Ok(differences)
    }

    /// The review queue is one large aggregate with many events, so its state is not copied for each event.
    fn queue(&mut self, stored: &Stored<'_>) -> Result<Vec<String>, String> {
        let (rebuilt, event) = self.queues.read(stored)?;
        let decided = review_queue::decide_again(&rebuilt.state, &event);
        let mut differences = step(rebuilt, &event);
        match decided {
            Ok(decided) => self.queued_again += u64::from(decided),
            Err(difference) => differences.push(difference),
        }
        Ok(differences)
    }

    fn row(&self, aggregate: Aggregate) -> Row {
        match aggregate {
            Aggregate::Case => self.cases.row(),
            Aggregate::Detection => self.detections.row(),
            Aggregate::Debate => self.debates.row(),
            Aggregate::ReviewQueue => self.queues.row(),
            other => match self.others.get(&other) {
                Some(kind) => kind.row(),
                None => visit_machine(other, NewKind).row(),
            },
        }
    }

    /// The report, with a row for each kind of aggregate in the order of the table.
    pub(super) fn report(self) -> Report {
        let kinds = Aggregate::ALL.iter();
        Report {
            rebuilt: kinds.map(|aggregate| self.row(*aggregate)).collect(),
            detected_again: self.detected_again,
            decided_again: self.decided_again,
            ended_again: self.ended_again,
            votes_again: self.votes_again,
            queued_again: self.queued_again,
            passed_over: self.passed_over,
            differences: self.differences,
        }
    }
}
