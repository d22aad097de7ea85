//! Everything that is stored of cases, and whether they are over.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use concord_archive::{ArchivedMessage, CaseContents};
use concord_domain::Versioned;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::deadline::Fire;
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::aggregates::{question, request};
use concord_domain::machine::Machine;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, EventMeta, FiredBy, SealedAggregate, StoredEvent};
use concord_runtime::Broker;
use concord_runtime::broker::{Unavailable, log_reader};
use concord_wire::subject::{Lane, Subject};
use concord_wire::{CaseId, MessageType, Timestamp, Token, dialect};

/// The last sequence of each stream that may be archived.
pub(super) type Ends = BTreeMap<StreamKind, u64>;

type Id = (Aggregate, Token);

/// A case while everything of it is gathered.
#[derive(Default)]
struct Gathered {
    messages: Vec<ArchivedMessage>,
    events: BTreeMap<Id, Vec<ArchivedMessage>>,
}

/// Cases while everything of them is gathered.
struct Gathering<'a> {
    broker: &'a Broker,
    cases: BTreeMap<CaseId, Gathered>,
}

/// What was found of cases.
pub(super) struct Found {
    /// Everything that is stored of those of which nothing is open, and nothing was stored too late.
    pub(super) finished: Vec<CaseContents>,
    /// Those of which nothing is stored: another replica has archived them.
    pub(super) gone: Vec<CaseId>,
}

/// Reads everything that is stored of `cases`. What was stored after `before`, or behind one of `ends`, is too late.
pub(super) async fn read(
    broker: &Broker,
    cases: Vec<CaseId>,
    before: Timestamp,
    ends: &Ends,
) -> Result<Found, Unavailable> {
    let cases = cases.into_iter().map(|case| (case, Gathered::default()));
    let mut gathering = Gathering {
        broker,
        cases: cases.collect(),
    };
    for lane in Lane::ALL {
        gathering.messages(lane).await?;
    }
    gathering.events(|case, gathered| {
        let own = [
            Aggregate::Case,
            Aggregate::Detection,
            Aggregate::Board,
            Aggregate::Commitment,
            Aggregate::Impact,
            Aggregate::Synthesis,
        ];
        let own = own.map(|kind| (kind, case.token()));
        own.into_iter().chain(gathered.requests(broker)).collect()
    });
    gathering.read_events().await?;
    gathering.events(|_, gathered| gathered.debates());
    gathering.read_events().await?;
    gathering.events(|_, gathered| gathered.deadlines());
    gathering.read_events().await?;
    let mut found = Found {
        finished: Vec::new(),
        gone: Vec::new(),
    };
    for (case, gathered) in gathering.cases {
        if gathered.first_of(Aggregate::Case).is_empty() {
            found.gone.push(case);
        } else if gathered.is_finished(before, ends) {
            found.finished.push(gathered.contents(case));
        }
    }
    Ok(found)
}

impl Gathering<'_> {
    async fn messages(&mut self, lane: Lane) -> Result<(), Unavailable> {
        let subjects = self.broker.subjects();
        let cases = self.cases.keys();
        let filters: Vec<String> = cases.map(|case| subjects.transcript(lane, case)).collect();
        let kind = StreamKind::of_lane(lane);
        let gathered = &mut self.cases;
        log_reader::read_matching(self.broker, kind, &filters, 1, |message| {
            if let Ok(Subject::Message {
                case: Some(case), ..
            }) = subjects.parse(&message.subject)
                && let Some(gathered) = gathered.get_mut(&case)
            {
                gathered.messages.push(message.archived(kind));
            }
            ControlFlow::Continue(())
        })
        .await
    }

    /// Adds the aggregates that `of_case` names of each case, whose events are read next.
    fn events(&mut self, of_case: impl Fn(&CaseId, &Gathered) -> BTreeSet<Id>) {
        for (case, gathered) in &mut self.cases {
            for id in of_case(case, gathered) {
                gathered.events.entry(id).or_default();
            }
        }
    }

    /// Reads the events of the aggregates of which none is read yet.
    async fn read_events(&mut self) -> Result<(), Unavailable> {
        let mut owners = BTreeMap::new();
        for (case, gathered) in &self.cases {
            let unread = gathered.events.iter().filter(|(_, read)| read.is_empty());
            owners.extend(unread.map(|(id, _)| (id.clone(), case.clone())));
        }
        let subjects = self.broker.subjects();
        let filters = owners
            .keys()
            .map(|(kind, id)| subjects.events_of(*kind, id));
        let filters: Vec<String> = filters.collect();
        let cases = &mut self.cases;
        log_reader::read_matching(self.broker, StreamKind::Events, &filters, 1, |message| {
            if let Ok(SystemSubject::Event { aggregate, id, .. }) = subjects.parse(&message.subject)
            {
                let id = (aggregate, id);
                let case = owners.get(&id).and_then(|case| cases.get_mut(case));
                let events = case.and_then(|gathered| gathered.events.get_mut(&id));
                if let Some(events) = events {
                    events.push(message.archived(StreamKind::Events));
                }
            }
            ControlFlow::Continue(())
        })
        .await
    }
}

/// The aggregate after its events; none where one of them cannot be read. What is no event is passed over.
fn rebuilt<M: Machine>(events: &[ArchivedMessage]) -> Option<Versioned<M>> {
    let mut rebuilt = Versioned::<M>::default();
    for event in events {
        match StoredEvent::decode(&event.payload, event.sequence) {
            Ok(event) => rebuilt.apply(event),
            Err(concord_events::Error::NonEvent) => {}
            Err(_) => return None,
        }
    }
    Some(rebuilt)
}

impl Gathered {
    fn of(&self, aggregate: Aggregate) -> impl Iterator<Item = (&Id, &Vec<ArchivedMessage>)> {
        let events = self.events.iter();
        events.filter(move |((kind, _), _)| *kind == aggregate)
    }

    fn first_of(&self, aggregate: Aggregate) -> &[ArchivedMessage] {
        self.of(aggregate)
            .next()
            .map_or(&[], |(_, events)| events.as_slice())
    }

    /// The requests of agents to agents, and their questions to the group, among the messages. One without an id of its own shares
    /// its aggregate with those of other cases in the same words, and is left where it is.
    fn requests(&self, broker: &Broker) -> BTreeSet<Id> {
        let mut requests = BTreeSet::new();
        for message in &self.messages {
            let Ok(Subject::Message { from, kind, .. }) = broker.subjects().parse(&message.subject)
            else {
                continue;
            };
            let Some(id) = dialect::id_of(&message.payload) else {
                continue;
            };
            if kind.as_str() == MessageType::Request.as_str() {
                requests.insert((Aggregate::Request, request::id_of(&from, id.as_str())));
            } else if question::may_be(&kind.into()) {
                requests.insert((Aggregate::Question, question::id_of(&from, id.as_str())));
            }
        }
        requests
    }

    fn debates(&self) -> BTreeSet<Id> {
        let case = rebuilt::<CaseMachine>(self.first_of(Aggregate::Case));
        let detection = rebuilt::<DetectionMachine>(self.first_of(Aggregate::Detection));
        let mut ids = BTreeSet::new();
        if let Some(case) = case {
            let state = case.state;
            ids.extend(state.debated.iter().map(|one| one.conflict_id.token()));
            ids.extend(state.asked.keys().map(|id| id.token()));
            ids.extend(state.outcomes.keys().map(|id| id.token()));
        }
        if let Some(detected) = detection.and_then(|one| one.state.detected) {
            ids.extend(detected.debated.iter().map(|one| one.conflict_id.token()));
        }
        ids.into_iter().map(|id| (Aggregate::Debate, id)).collect()
    }

    /// The deadlines that these aggregates ever had.
    fn deadlines(&self) -> BTreeSet<Id> {
        let mut deadlines = BTreeSet::new();
        for ((aggregate, id), events) in &self.events {
            let metas = events.iter();
            let metas = metas.filter_map(|event| EventMeta::decode(&event.payload).ok());
            for deadline in metas.flat_map(|meta| meta.deadlines) {
                let fire = Fire {
                    aggregate: *aggregate,
                    id: id.clone(),
                    deadline,
                    fired_by: FiredBy::Scheduler,
                };
                deadlines.insert((Aggregate::Deadline, fire.deadline_id()));
            }
        }
        deadlines
    }

    fn all(&self) -> impl Iterator<Item = &ArchivedMessage> {
        self.messages.iter().chain(self.events.values().flatten())
    }

    /// Whether nothing of the case is open, everything is older than `before`, and nothing is stored behind `ends`.
    fn is_finished(&self, before: Timestamp, ends: &Ends) -> bool {
        let is_settled = |message: &ArchivedMessage| {
            let end = ends.get(&message.stream).copied().unwrap_or(u64::MAX);
            message.at <= before && message.sequence <= end
        };
        let case = rebuilt::<CaseMachine>(self.first_of(Aggregate::Case));
        let is_over = case.is_some_and(|case| case.state.is_over());
        let debates_ended = self
            .of(Aggregate::Debate)
            .filter(|(_, events)| !events.is_empty())
            .all(|(_, events)| {
                rebuilt::<DebateMachine>(events).is_some_and(|one| one.state.outcome.is_some())
            });
        is_over
            && debates_ended
            && self.all().all(is_settled)
            && self.events.values().all(|events| has_no_deadline(events))
    }

    fn contents(self, case_id: CaseId) -> CaseContents {
        let aggregates = self.events.iter().filter_map(|((aggregate, id), events)| {
            Some(SealedAggregate {
                aggregate: *aggregate,
                id: id.clone(),
                last_sequence: events.last()?.sequence,
            })
        });
        let aggregates = aggregates.collect();
        let events = self.events.into_values().flatten();
        let mut messages: Vec<ArchivedMessage> = self.messages.into_iter().chain(events).collect();
        messages.sort_by_key(|message| (message.stream, message.sequence));
        CaseContents {
            case_id,
            aggregates,
            messages,
        }
    }
}

/// Whether no deadline is open after the last event; false where it cannot be read.
fn has_no_deadline(events: &[ArchivedMessage]) -> bool {
    let last = events.iter().rev().find_map(|event| {
        let meta = EventMeta::decode(&event.payload);
        (!matches!(meta, Err(concord_events::Error::NonEvent))).then_some(meta)
    });
    last.is_none_or(|meta| meta.is_ok_and(|meta| meta.deadlines.is_empty()))
}
