//! Everything that is stored of cases, and whether they are over.

mod finished;

use std::collections::{BTreeMap, BTreeSet};

use concord_archive::{ArchivedMessage, CaseContents};
use concord_domain::Versioned;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::commitment::CommitmentMachine;
use concord_domain::aggregates::deadline::Fire;
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::aggregates::{question, request};
use concord_domain::machine::Machine;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, EventMeta, FiredBy, SealedAggregate, StoredEvent};
use concord_runtime::Broker;
use concord_runtime::broker::Unavailable;
use concord_runtime::broker::subject_reader::SubjectReader;
use concord_runtime::codec::dialect::plain;
use concord_runtime::event_store::archived::headers_of;
use concord_wire::subject::{Lane, Subject};
use concord_wire::{AgentId, CaseId, MessageType, Timestamp, Token, dialect};
use futures::{StreamExt, stream};

/// The last sequence of each stream that may be archived.
pub(super) type Ends = BTreeMap<StreamKind, u64>;

type Id = (Aggregate, Token);

/// Cases that are read, or removed, at the same time.
pub(super) const CASES_AT_ONCE: usize = 16;
/// Bytes of the messages and events in one segment, except that one case may have more.
pub(super) const SEGMENT_BYTES_MAX: usize = 16 << 20;
/// Bytes of a case that is read at the same time as others: together they are no more than a segment.
const SMALL_BYTES_MAX: usize = SEGMENT_BYTES_MAX / CASES_AT_ONCE;
/// Aggregates of which the last events are asked for at once. Each has a subject for each kind of event that it had, and the broker refuses
/// more than 1,024 subjects.
const AGGREGATES_AT_ONCE: usize = 64;

/// The aggregates that have the id of their case.
const OWN: [Aggregate; 6] = [
    Aggregate::Case,
    Aggregate::Detection,
    Aggregate::Board,
    Aggregate::Commitment,
    Aggregate::Impact,
    Aggregate::Synthesis,
];

/// What is stored of a case.
#[derive(Default)]
struct Gathered {
    messages: Vec<ArchivedMessage>,
    events: BTreeMap<Id, Vec<ArchivedMessage>>,
    /// Who takes part in the case or has opened it.
    inside: Vec<AgentId>,
    /// What others have asked in it.
    of_others: BTreeSet<Id>,
}

/// Why a case was not read. It hinders no other.
pub(super) struct Failed {
    pub(super) case: CaseId,
    /// Whether more is stored of it than may be read.
    pub(super) is_too_large: bool,
    pub(super) error: Unavailable,
}

/// What was found of cases.
#[derive(Default)]
pub(super) struct Found {
    /// Everything that is stored of those of which nothing is open, and nothing was stored too late.
    pub(super) finished: Vec<CaseContents>,
    /// Those of which nothing is stored: another replica has archived them.
    pub(super) gone: Vec<CaseId>,
    /// Those that could not be read.
    pub(super) failed: Vec<Failed>,
    /// Those that were not looked at, because enough was found before them.
    pub(super) left: Vec<CaseId>,
}

/// What may be read, and how much.
pub(super) struct Bounds {
    /// What was stored after that is too late.
    pub(super) before: Timestamp,
    /// What stands behind one of them is too late.
    pub(super) ends: Ends,
    /// Bytes of one case.
    pub(super) case_bytes_max: usize,
}

/// Reads everything that is stored of `cases`, until it is a segment. What is held at once is bounded, whatever somebody has sent to a
/// case: several cases are read at once as far as they are small, and a large one alone.
pub(super) async fn read(broker: &Broker, cases: Vec<CaseId>, bounds: &Bounds) -> Found {
    let small_max = bounds.case_bytes_max.min(SMALL_BYTES_MAX);
    let mut left = cases.clone().into_iter();
    let cases = cases
        .into_iter()
        .map(|case| of_case(broker, case, bounds, small_max));
    let mut cases = stream::iter(cases).buffered(CASES_AT_ONCE);
    let (mut found, mut bytes) = (Found::default(), 0);
    while bytes < SEGMENT_BYTES_MAX
        && let Some(mut read) = cases.next().await
    {
        left.next();
        if let Err(failed) = &read
            && failed.is_too_large
            && small_max < bounds.case_bytes_max
        {
            read = of_case(broker, failed.case.clone(), bounds, bounds.case_bytes_max).await;
        }
        match read {
            Err(failed) => found.failed.push(failed),
            Ok((case, gathered)) if gathered.first_of(Aggregate::Case).is_empty() => {
                found.gone.push(case);
            }
            Ok((case, gathered)) if gathered.is_finished(broker.subjects(), bounds) => {
                bytes += gathered.bytes();
                found.finished.push(gathered.contents(case));
            }
            Ok(_) => {}
        }
    }
    found.left.extend(left);
    found
}

/// Reads one case, within so many bytes.
async fn of_case(
    broker: &Broker,
    case: CaseId,
    bounds: &Bounds,
    bytes_max: usize,
) -> Result<(CaseId, Gathered), Failed> {
    let failed = |case, is_too_large, error| Failed {
        case,
        is_too_large,
        error,
    };
    let mut reader = match SubjectReader::new(broker).await {
        Ok(reader) => reader.within(bytes_max),
        Err(error) => return Err(failed(case, false, error)),
    };
    match gathered(&mut reader, broker, &case, bounds).await {
        Ok(gathered) => Ok((case, gathered)),
        Err(error) => Err(failed(case, reader.is_exhausted(), error)),
    }
}

/// Reads the messages and events of one case, and then the events that they name. They are not searched for: a case has some ten
/// aggregates of which most have no event, and what the broker does for a reader with many filters grows with the square of their number.
async fn gathered(
    reader: &mut SubjectReader,
    broker: &Broker,
    case: &CaseId,
    bounds: &Bounds,
) -> Result<Gathered, Unavailable> {
    let mut gathered = Gathered::default();
    for lane in Lane::ALL {
        let kind = StreamKind::of_lane(lane);
        let filter = broker.subjects().transcript(lane, case);
        let read = reader.read(kind, &filter).await?;
        let archived = read.iter().map(|message| message.archived(kind));
        gathered.messages.extend(archived);
    }
    let own = OWN.map(|kind| (kind, case.token()));
    let asked = gathered.requests(broker);
    let named = asked.keys().cloned().chain(own).collect();
    gathered.add_events(reader, broker, named).await?;
    gathered.leave_outside();
    gathered.leave(asked, broker.subjects(), bounds);
    let named = gathered.debates();
    gathered.add_events(reader, broker, named).await?;
    let named = gathered.deadlines();
    gathered.add_events(reader, broker, named).await?;
    Ok(gathered)
}

/// The predecessors that these messages of one aggregate name and that are not among them; none where one of them is no event, and may
/// stand where an event stood.
fn missing(known: &BTreeMap<u64, ArchivedMessage>) -> Option<BTreeSet<u64>> {
    let mut missing = BTreeSet::new();
    for message in known.values() {
        missing.extend(EventMeta::decode(&message.payload).ok()?.earlier);
    }
    missing.retain(|sequence| !known.contains_key(sequence));
    Some(missing)
}

/// Adds what is missing of an aggregate to the last messages on its subjects.
async fn whole(
    reader: &mut SubjectReader,
    filter: &str,
    last: Vec<ArchivedMessage>,
) -> Result<Vec<ArchivedMessage>, Unavailable> {
    let kind = StreamKind::Events;
    let with_sequence = |message: ArchivedMessage| (message.sequence, message);
    let mut known: BTreeMap<u64, ArchivedMessage> = last.into_iter().map(with_sequence).collect();
    while let Some(missing) = missing(&known) {
        if missing.is_empty() {
            return Ok(known.into_values().collect());
        }
        let count = missing.len();
        let found = reader.at(kind, missing).await?;
        if found.len() < count {
            break;
        }
        let found = found.iter().map(|message| message.archived(kind));
        known.extend(found.map(with_sequence));
    }
    let read = reader.read(kind, filter).await?;
    Ok(read.iter().map(|message| message.archived(kind)).collect())
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
    /// Reads the events of these aggregates.
    async fn add_events(
        &mut self,
        reader: &mut SubjectReader,
        broker: &Broker,
        ids: BTreeSet<Id>,
    ) -> Result<(), Unavailable> {
        let (kind, subjects) = (StreamKind::Events, broker.subjects());
        let filter_of = |(aggregate, id): &Id| subjects.events_of(*aggregate, id);
        let filters: Vec<String> = ids.iter().map(filter_of).collect();
        let mut last: BTreeMap<Id, Vec<ArchivedMessage>> = BTreeMap::new();
        for filters in filters.chunks(AGGREGATES_AT_ONCE) {
            for message in reader.last_of_each(kind, filters).await? {
                if let Ok(SystemSubject::Event { aggregate, id, .. }) =
                    subjects.parse(&message.subject)
                {
                    let of_aggregate = last.entry((aggregate, id)).or_default();
                    of_aggregate.push(message.archived(kind));
                }
            }
        }
        for (id, last) in last {
            let events = whole(reader, &filter_of(&id), last).await?;
            self.events.insert(id, events);
        }
        Ok(())
    }

    fn of(&self, aggregate: Aggregate) -> impl Iterator<Item = (&Id, &Vec<ArchivedMessage>)> {
        let events = self.events.iter();
        events.filter(move |((kind, _), _)| *kind == aggregate)
    }

    fn first_of(&self, aggregate: Aggregate) -> &[ArchivedMessage] {
        self.of(aggregate)
            .next()
            .map_or(&[], |(_, events)| events.as_slice())
    }

    /// The requests of agents to agents, and their questions to the group, among the messages, with who has asked. One without an id of
    /// its own shares its aggregate with those of other cases in the same words, and is left where it is.
    fn requests(&self, broker: &Broker) -> BTreeMap<Id, AgentId> {
        let mut requests = BTreeMap::new();
        for message in &self.messages {
            let Ok(Subject::Message { from, kind, .. }) = broker.subjects().parse(&message.subject)
            else {
                continue;
            };
            let Ok(body) = plain(&message.payload, Some(&headers_of(message))) else {
                continue;
            };
            let Some(id) = dialect::id_of(&body) else {
                continue;
            };
            if kind.as_str() == MessageType::Request.as_str() {
                let id = request::id_of(&from, id.as_str());
                requests.insert((Aggregate::Request, id), from);
            } else if question::may_be(&kind.into()) {
                let id = question::id_of(&from, id.as_str());
                requests.insert((Aggregate::Question, id), from);
            }
        }
        requests
    }

    /// Leaves commitments where they are that have the id of the case and belong to a resource outside cases, too: whoever has opened the
    /// case may have chosen its id.
    fn leave_outside(&mut self) {
        let is_outside = |event: &ArchivedMessage| {
            let event = StoredEvent::decode(&event.payload, event.sequence);
            event.is_ok_and(|event| CommitmentMachine::case_of(&event).is_none())
        };
        self.events.retain(|(aggregate, _), events| {
            *aggregate != Aggregate::Commitment || !events.iter().any(is_outside)
        });
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
        if let Some(detected) = detection
            .as_ref()
            .and_then(|one| one.state.detected.as_ref())
        {
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

    fn bytes(&self) -> usize {
        self.all().map(|message| message.payload.len()).sum()
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

#[cfg(test)]
mod tests;
