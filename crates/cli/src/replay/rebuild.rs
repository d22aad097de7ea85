//! Every aggregate, rebuilt fact by fact.

use std::collections::BTreeMap;

use concord_domain::Machine;
use concord_domain::activation::conversation::WakeMachine;
use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::deadline::DeadlineMachine;
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::aggregates::precedent::PrecedentMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_domain::aggregates::review_queue::{self, ReviewQueueMachine};
use concord_domain::aggregates::track_record::TrackRecordMachine;
use concord_domain::assurance::replay::{Difference, step};
use concord_domain::machine::Versioned;
use concord_events::Aggregate;
use concord_events::{AggregateEvent, DebateEvent, DetectionEvent, StoredEvent};
use concord_wire::Token;
use serde::Serialize;

use super::again;

/// What was rebuilt so far.
#[derive(Default)]
pub(super) struct Rebuilt {
    cases: Of<CaseMachine>,
    detections: Of<DetectionMachine>,
    debates: Of<DebateMachine>,
    deadlines: Of<DeadlineMachine>,
    records: Of<TrackRecordMachine>,
    precedents: Of<PrecedentMachine>,
    queues: Of<ReviewQueueMachine>,
    agents: Of<AgentMachine>,
    requests: Of<RequestMachine>,
    conversations: Of<WakeMachine>,
    detected_again: u64,
    decided_again: u64,
    ended_again: u64,
    votes_again: u64,
    queued_again: u64,
    passed_over: u64,
    differences: Vec<Difference>,
}

/// The aggregates of one kind.
struct Of<M: Machine> {
    aggregates: BTreeMap<Token, Versioned<M>>,
    facts: u64,
}

impl<M: Machine> Default for Of<M> {
    fn default() -> Self {
        Self {
            aggregates: BTreeMap::new(),
            facts: 0,
        }
    }
}

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// By kind of aggregate.
    pub(super) rebuilt: Vec<Row>,
    /// Detections whose conflicts were looked for again.
    pub(super) detected_again: u64,
    /// Facts of cases that were decided again.
    pub(super) decided_again: u64,
    /// Debates whose end was decided again.
    pub(super) ended_again: u64,
    /// Votes that were counted again.
    pub(super) votes_again: u64,
    /// Facts of the queue that were decided again.
    pub(super) queued_again: u64,
    /// What stands among the facts and is none.
    pub(super) passed_over: u64,
    /// What differs from what is stored.
    pub(super) differences: Vec<Difference>,
}

/// One kind of aggregate.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) aggregate: &'static str,
    pub(super) aggregates: u64,
    pub(super) facts: u64,
}

impl<M: Machine> Of<M> {
    fn row(&self) -> Row {
        let aggregates = self.aggregates.len() as u64;
        Row {
            aggregate: M::Event::AGGREGATE.as_str(),
            aggregates,
            facts: self.facts,
        }
    }

    /// The state so far.
    fn state(&self, id: &Token) -> M::State {
        self.aggregates
            .get(id)
            .map(|rebuilt| rebuilt.state.clone())
            .unwrap_or_default()
    }

    /// One more fact: the state after it, its record, and where that differs from what the facts lead to.
    fn take(&mut self, id: &Token, sequence: u64, bytes: &[u8]) -> Result<Taken<'_, M>, String> {
        let (rebuilt, record) = self.read(id, sequence, bytes)?;
        let differences = step(rebuilt, &record);
        Ok(Taken {
            after: &rebuilt.state,
            record,
            differences,
        })
    }

    /// One more fact, before it is applied: its aggregate and its record.
    fn read(
        &mut self,
        id: &Token,
        sequence: u64,
        bytes: &[u8],
    ) -> Result<Unapplied<'_, M>, String> {
        self.facts += 1;
        let record = StoredEvent::<M::Event>::decode(bytes, sequence)
            .map_err(|error| format!("it cannot be read: {error}"))?;
        if record.meta.id != *id {
            return Err(format!(
                "it is stored under {id} and says of itself that it is of {}",
                record.meta.id
            ));
        }
        Ok((self.aggregates.entry(id.clone()).or_default(), record))
    }
}

type Unapplied<'a, M> = (&'a mut Versioned<M>, StoredEvent<<M as Machine>::Event>);

struct Taken<'a, M: Machine> {
    after: &'a M::State,
    record: StoredEvent<M::Event>,
    differences: Vec<String>,
}

impl Rebuilt {
    /// One more fact, in the order of the stream.
    pub(super) fn take(&mut self, aggregate: Aggregate, id: &Token, sequence: u64, bytes: &[u8]) {
        let differences = match aggregate {
            Aggregate::Case => self.case(id, sequence, bytes),
            Aggregate::Detection => self.detection(id, sequence, bytes),
            Aggregate::Debate => self.debate(id, sequence, bytes),
            Aggregate::Deadline => self
                .deadlines
                .take(id, sequence, bytes)
                .map(|taken| taken.differences),
            Aggregate::TrackRecord => self
                .records
                .take(id, sequence, bytes)
                .map(|taken| taken.differences),
            Aggregate::Precedent => self
                .precedents
                .take(id, sequence, bytes)
                .map(|taken| taken.differences),
            Aggregate::ReviewQueue => self.queue(id, sequence, bytes),
            Aggregate::Agent => self
                .agents
                .take(id, sequence, bytes)
                .map(|taken| taken.differences),
            Aggregate::Wake => self
                .conversations
                .take(id, sequence, bytes)
                .map(|taken| taken.differences),
            Aggregate::Request => self
                .requests
                .take(id, sequence, bytes)
                .map(|taken| taken.differences),
        };
        let place = format!("{aggregate}/{id}");
        let differences = differences.unwrap_or_else(|unreadable| vec![unreadable]);
        let found = differences.into_iter().map(|what| Difference {
            aggregate: place.clone(),
            sequence,
            what,
        });
        self.differences.extend(found);
    }

    /// Something that stands among the facts and that readers pass over.
    pub(super) fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// Something that is no fact.
    pub(super) fn foreign(&mut self, subject: &str, sequence: u64) {
        let what = "it is in the stream of facts and is none".to_owned();
        self.differences.push(Difference {
            aggregate: subject.to_owned(),
            sequence,
            what,
        });
    }

    fn case(&mut self, id: &Token, sequence: u64, bytes: &[u8]) -> Result<Vec<String>, String> {
        let before = self.cases.state(id);
        let taken = self.cases.take(id, sequence, bytes)?;
        let mut differences = taken.differences;
        match again::decide(&before, &taken.record) {
            Ok(decided) => self.decided_again += u64::from(decided),
            Err(difference) => differences.push(difference),
        }
        Ok(differences)
    }

    fn detection(
        &mut self,
        id: &Token,
        sequence: u64,
        bytes: &[u8],
    ) -> Result<Vec<String>, String> {
        let taken = self.detections.take(id, sequence, bytes)?;
        let mut differences = taken.differences;
        let DetectionEvent::Completed(detected) = &taken.record.event;
        match again::detect(&self.cases.state(&detected.case_id.token()), detected) {
            Ok(()) => self.detected_again += 1,
            Err(difference) => differences.push(difference),
        }
        Ok(differences)
    }

    fn debate(&mut self, id: &Token, sequence: u64, bytes: &[u8]) -> Result<Vec<String>, String> {
        let taken = self.debates.take(id, sequence, bytes)?;
        let mut differences = taken.differences;
        if let DebateEvent::Resolved(resolved) = &taken.record.event {
            self.ended_again += 1;
            self.votes_again += u64::from(resolved.outcome.tally.is_some());
            differences.extend(DebateMachine::recount(taken.after, &taken.record));
        }
        Ok(differences)
    }

    /// The one queue is large and has many facts, so no copy of it is made for each.
    fn queue(&mut self, id: &Token, sequence: u64, bytes: &[u8]) -> Result<Vec<String>, String> {
        let (rebuilt, record) = self.queues.read(id, sequence, bytes)?;
        let decided = review_queue::decide_again(&rebuilt.state, &record);
        let mut differences = step(rebuilt, &record);
        match decided {
            Ok(decided) => self.queued_again += u64::from(decided),
            Err(difference) => differences.push(difference),
        }
        Ok(differences)
    }

    /// What was found.
    pub(super) fn report(self) -> Report {
        Report {
            rebuilt: vec![
                self.cases.row(),
                self.detections.row(),
                self.debates.row(),
                self.deadlines.row(),
                self.records.row(),
                self.precedents.row(),
                self.queues.row(),
                self.agents.row(),
                self.requests.row(),
                self.conversations.row(),
            ],
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
