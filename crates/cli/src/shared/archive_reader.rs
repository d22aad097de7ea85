//! Reading archived cases in the place of what streams hold no longer.

use std::sync::Once;

use concord_events::subject::{SystemFilters, SystemSubject, matches};
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, AggregateEvent, StoredEvent};
use concord_runtime::NatsPorts;
use concord_runtime::event_store::archived::{Archived, ArchivedMessages, ArchivedPart};
use concord_runtime::{Broker, Consistency, EventStore, Since};
use concord_wire::subject::SubjectSpace;
use concord_wire::{CaseId, DebateId, Token};

use crate::shared::case_file::unknown;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::stream_reader::{Scope, StreamMessage};

/// The aggregates that go to the archive with their cases.
const ARCHIVED: [Aggregate; 10] = [
    Aggregate::Case,
    Aggregate::Detection,
    Aggregate::Debate,
    Aggregate::Deadline,
    Aggregate::Request,
    Aggregate::Question,
    Aggregate::Board,
    Aggregate::Commitment,
    Aggregate::Impact,
    Aggregate::Synthesis,
];

/// The archived messages of a part of a stream, in order.
pub(super) struct ArchiveReader<'a> {
    scope: &'a Scope,
    messages: Option<ArchivedMessages>,
}

impl<'a> ArchiveReader<'a> {
    /// Before the first. Fails where the whole of a stream is to be read, and a part of it is in an archive that nobody named.
    pub(super) async fn new(broker: &Broker, scope: &'a Scope) -> Result<Self, Failure> {
        let nothing = Self {
            scope,
            messages: None,
        };
        if scope.new_only || !may_be_archived(scope, broker.subjects()) {
            return Ok(nothing);
        }
        let Some(archive) = &broker.archive else {
            if scope.filters.is_empty() && Archived::read(broker).await?.purged() > 0 {
                return Err(Failure::usage(
                    "a part of what was stored is in the archive; name it with --archive LOCATION, as the services' setting \
                     storage.archive says",
                ));
            }
            if is_of_all(scope) && Archived::read(broker).await?.purged() > 0 {
                say_left_out();
            }
            return Ok(nothing);
        };
        let archived = Archived::read(broker).await?;
        let messages = archived.messages(archive, scope.stream, &scope.archived);
        Ok(Self {
            scope,
            messages: Some(messages),
        })
    }

    /// Gives the messages before a sequence; their number.
    pub(super) async fn take_before(
        &mut self,
        sequence: u64,
        take: &mut impl FnMut(StreamMessage) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let mut taken = 0;
        let Some(messages) = &mut self.messages else {
            return Ok(taken);
        };
        while let Some(message) = messages.next_before(sequence).await? {
            let filters = &self.scope.filters;
            let is_wanted = filters.is_empty()
                || filters
                    .iter()
                    .any(|filter| matches(filter, &message.subject));
            if is_wanted && self.scope.since.is_none_or(|since| message.at >= since) {
                take(StreamMessage::archived(message))?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Passes over the message at a sequence, which the stream still holds.
    pub(super) async fn pass_over(&mut self, sequence: u64) -> Result<(), Failure> {
        if let Some(messages) = &mut self.messages {
            messages.next_before(sequence + 1).await?;
        }
        Ok(())
    }
}

/// Says once that what is archived is left out.
fn say_left_out() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        output::complain(
            "a part of what was stored is in the archive and not shown; name it with --archive LOCATION",
        );
    });
}

/// What was read of one of several cases; nothing, with a note, where it could not be because the case has gone to an archive that nobody
/// named since it was found.
pub(crate) async fn unless_archived<T>(
    broker: &Broker,
    case: &CaseId,
    read: Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    if read.is_err()
        && broker.caller.is_none()
        && broker.archive.is_none()
        && Archived::read(broker).await?.case(case).is_some()
    {
        say_left_out();
        return Ok(None);
    }
    read
}

/// Whether all aggregates of a kind are to be read, archived ones among them.
fn is_of_all(scope: &Scope) -> bool {
    scope.stream == StreamKind::Events && matches!(scope.archived, ArchivedPart::All)
}

fn may_be_archived(scope: &Scope, subjects: &SubjectSpace) -> bool {
    match scope.stream {
        StreamKind::Messages | StreamKind::Urgent => true,
        StreamKind::Events if scope.filters.is_empty() => true,
        StreamKind::Events => ARCHIVED.into_iter().any(|aggregate| {
            let all = subjects.events_of_kind(aggregate);
            let begin = all.split('*').next().unwrap_or_default();
            let mut filters = scope.filters.iter();
            filters.any(|filter| filter.starts_with(begin))
        }),
        StreamKind::Timers | StreamKind::Memory | StreamKind::Dead => false,
    }
}

/// The events of an aggregate: those in the stream, or in their place what is archived.
pub(super) async fn load<E: AggregateEvent>(
    broker: &Broker,
    store: &NatsPorts,
    id: &Token,
) -> Result<Vec<StoredEvent<E>>, Failure> {
    match store.load::<E>(id, Since::FIRST, Consistency::Leader).await {
        Ok(loaded) if !loaded.records.is_empty() => Ok(loaded.records),
        // Or a part of it is removed just now, and the rest names what is gone.
        loaded => {
            let archived = events(broker, id).await?;
            if archived.is_empty() {
                loaded?;
            }
            Ok(archived)
        }
    }
}

/// The archived events of an aggregate; empty where it is not archived.
async fn events<E: AggregateEvent>(
    broker: &Broker,
    id: &Token,
) -> Result<Vec<StoredEvent<E>>, Failure> {
    let mut events = Vec::new();
    if !ARCHIVED.contains(&E::AGGREGATE) {
        return Ok(events);
    }
    let archived = Archived::read(broker).await?;
    let Some((segment, sealed)) = archived.aggregate(E::AGGREGATE, id) else {
        return Ok(events);
    };
    let case = &sealed.case_id;
    let archive = broker.archive.as_ref().ok_or_else(|| elsewhere(case))?;
    let contents = archive.case(segment, case).await?;
    for message in contents.into_iter().flat_map(|case| case.messages) {
        let subject = broker.subjects().parse(&message.subject);
        let Ok(SystemSubject::Event {
            aggregate, id: of, ..
        }) = subject
        else {
            continue;
        };
        if (aggregate, &of) != (E::AGGREGATE, id) {
            continue;
        }
        match StoredEvent::decode(&message.payload, message.sequence) {
            Ok(event) => events.push(event),
            Err(concord_events::Error::NonEvent) => {}
            Err(error) => {
                return Err(Failure::failed(format!(
                    "the event at {} of the archived case {case} cannot be read: {error}",
                    message.sequence
                )));
            }
        }
    }
    Ok(events)
}

/// The failure for a case that is neither stored nor in an archive that was named.
pub(crate) async fn unknown_case(broker: &Broker, case: &CaseId) -> Failure {
    match Archived::read(broker).await {
        Ok(archived) if broker.archive.is_none() && archived.case(case).is_some() => {
            elsewhere(case)
        }
        Ok(_) => unknown(case),
        Err(error) => error.into(),
    }
}

/// A failure where a debate is archived with its case, which takes nothing more. Who asks the services in place of the broker is told by them.
pub(crate) async fn takes_something(broker: &Broker, debate: &DebateId) -> Result<(), Failure> {
    if broker.caller.is_some() {
        return Ok(());
    }
    let archived = Archived::read(broker).await?;
    match archived.aggregate(Aggregate::Debate, &debate.token()) {
        None => Ok(()),
        Some((_, sealed)) => Err(Failure::failed(format!(
            "debate {debate} is archived with its case {}, which takes nothing more: storage.archive_after_s says how long after its end \
             that is, and should be longer than it takes until somebody knows what proved right",
            sealed.case_id
        ))),
    }
}

/// The failure for a case in an archive that nobody named.
fn elsewhere(case: &CaseId) -> Failure {
    Failure::usage(format!(
        "case {case} is archived; name the archive with --archive LOCATION, as the services' setting storage.archive says"
    ))
}
