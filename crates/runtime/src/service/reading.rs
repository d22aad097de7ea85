//! What people read of what is stored, by request and reply: the verb `events` of every service, for the aggregates that it owns,
//! and the verb `messages` of the coordinator, for the transcript of a case. So nobody needs a user that may read streams.
//!
//! An answer is one page, read from the stream's leader message by message. Who may read what, the domain says
//! ([`person::Reading`](concord_domain::aggregates::person::Reading)); without a caller it is the installation's own operator, who
//! reads everything. See `docs/adr/0047`.

mod archived;
mod matters;
mod page;

use concord_domain::aggregates::person::Reading;
use concord_events::Aggregate;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_wire::subject::{Lane, Service, SubjectSpace};
use concord_wire::{CaseId, Fault, Token};
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::event_store::EventStore;
use crate::event_store::archived::ArchivedPart;
use crate::service::ServiceRunner;
use crate::service::api::{self, Call, Caller, Verb, answer};
use crate::service::operator_api::unread;
use crate::service::under_way::UnderWay;
use matters::Matters;
use page::{Only, Source};

pub(crate) use archived::ArchivedCases;
pub use page::{Page, PageItem};

/// Names of events in one request.
const NAMES_MAX: usize = 16;

/// A request for events of one kind of aggregate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsRequest {
    /// The kind of aggregate.
    pub aggregate: Aggregate,
    /// The id of one aggregate; every aggregate of the kind when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Token>,
    /// The names of the events; every event when there is none.
    #[serde(rename = "facts", default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Token>,
    /// Only what is stored after this sequence.
    #[serde(default)]
    pub after: u64,
    /// At most so many events; as many as a page holds when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Without their bodies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_bodies: bool,
}

/// A request for messages of one case.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagesRequest {
    /// The case.
    pub case_id: CaseId,
    /// The urgent messages in place of the others: each lane has a stream of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// Only what is stored after this sequence.
    #[serde(default)]
    pub after: u64,
    /// At most so many messages; as many as a page holds when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

impl MessagesRequest {
    fn lane(&self) -> Lane {
        if self.urgent {
            Lane::Urgent
        } else {
            Lane::Normal
        }
    }
}

impl EventsRequest {
    /// The subjects of these events.
    pub fn filters(&self, subjects: &SubjectSpace) -> Vec<String> {
        let Self { aggregate, id, .. } = self;
        let aggregate = *aggregate;
        match (id, self.names.as_slice()) {
            (Some(id), []) => vec![subjects.events_of(aggregate, id)],
            (None, []) => vec![subjects.events_of_kind(aggregate)],
            (None, names) => {
                let of_kind = |name: &Token| subjects.event_of_kind(aggregate, name.as_str());
                names.iter().map(of_kind).collect()
            }
            (Some(id), names) => {
                let of_one = |name: &Token| {
                    subjects.build(&SystemSubject::Event {
                        aggregate,
                        id: id.clone(),
                        event: name.clone(),
                    })
                };
                names.iter().map(of_one).collect()
            }
        }
    }

    fn check(&self, service: Service) -> Result<(), Fault> {
        let owner = self.aggregate.owner();
        if owner != service {
            return Err(Fault::invalid(
                "/aggregate",
                format!("The {service} keeps no {}.", self.aggregate),
                format!("Ask the {owner}."),
            ));
        }
        if self.names.len() > NAMES_MAX {
            return Err(Fault::invalid(
                "/facts",
                format!("{} names are more than {NAMES_MAX}.", self.names.len()),
                "Name fewer, or none for every event.",
            ));
        }
        let known = self.aggregate.events();
        let is_known = |name: &Token| known.iter().any(|info| info.name == name.as_str());
        match self.names.iter().position(|name| !is_known(name)) {
            None => Ok(()),
            Some(place) => Err(Fault::invalid(
                format!("/facts/{place}"),
                format!("A {} has no event of this name.", self.aggregate),
                "docs/subjects.md names those there are.",
            )),
        }
    }
}

/// The fault for a case of which the streams hold nothing: it is archived, or was never opened.
pub fn no_case(store: &impl EventStore, case: &CaseId) -> Fault {
    if store.is_archived(Aggregate::Case, &case.token()) {
        return Fault::invalid(
            "/case_id",
            format!("The case {case} is archived."),
            "`concord case show` shows archived cases, and `concord archive restore` writes one to files.",
        );
    }
    Fault::invalid(
        "/case_id",
        format!("There is no case {case}."),
        "Use the case id of the task assignment you were sent; `concord case list` shows those there are.",
    )
}

/// What both verbs share. Cheap to clone.
#[derive(Clone)]
struct Reader {
    service: Service,
    broker: Broker,
    matters: Matters,
    archived: ArchivedCases,
    under_way: UnderWay,
}

impl Reader {
    fn new(runner: &ServiceRunner) -> Self {
        let broker = runner.broker.clone();
        let archived = runner.archived.clone();
        Self {
            service: runner.service,
            matters: Matters::new(broker.clone(), archived.clone()),
            archived,
            broker,
            under_way: UnderWay::of_pages(),
        }
    }

    /// Checks that what is read of is the reader's to read; `false` where each aggregate has to be looked at.
    async fn check(
        &self,
        reading: &Reading<'_>,
        aggregate: Aggregate,
        id: Option<&Token>,
    ) -> Result<bool, Fault> {
        if reading.is_all() {
            return Ok(true);
        }
        let Some(id) = id else { return Ok(false) };
        let matter = self
            .matters
            .of(aggregate, id)
            .await
            .map_err(|error| unread(&error))?;
        reading.check(id.as_str(), &matter)?;
        Ok(true)
    }

    async fn events(&self, call: &Call) -> Result<Page, Fault> {
        let request: EventsRequest = concord_wire::envelope::from_json(&call.body, "")?;
        request.check(self.service)?;
        let aggregate = request.aggregate;
        let reading = reading(call.caller.as_ref(), aggregate)?;
        let _place = self.under_way.place(call)?;
        let mut is_checked = true;
        if let Some(reading) = &reading {
            is_checked = self.check(reading, aggregate, request.id.as_ref()).await?;
        }
        let mut source = self.source(StreamKind::Events, request.filters(self.broker.subjects()));
        source.after = request.after;
        source.limit = request.limit;
        source.bodies = !request.without_bodies;
        source.archived = request.id.clone().map(|id| {
            let part = ArchivedPart::Aggregate(aggregate, id);
            (&self.archived, part)
        });
        source.contacts = reading.as_ref().is_none_or(Reading::shows_contacts);
        source.only = reading
            .as_ref()
            .filter(|_| !is_checked)
            .map(|reading| Only {
                reading,
                matters: &self.matters,
            });
        source.page().await.map_err(|error| unread(&error))
    }

    async fn messages(&self, call: &Call) -> Result<Page, Fault> {
        let request: MessagesRequest = concord_wire::envelope::from_json(&call.body, "")?;
        let reading = reading(call.caller.as_ref(), Aggregate::Case)?;
        let _place = self.under_way.place(call)?;
        if let Some(reading) = &reading {
            let id = request.case_id.token();
            self.check(reading, Aggregate::Case, Some(&id)).await?;
        }
        let lane = request.lane();
        let subjects = self.broker.subjects();
        let filter = subjects.transcript(lane, &request.case_id);
        let mut source = self.source(StreamKind::of_lane(lane), vec![filter]);
        source.after = request.after;
        source.limit = request.limit;
        let part = ArchivedPart::Case(request.case_id.clone());
        source.archived = Some((&self.archived, part));
        source.page().await.map_err(|error| unread(&error))
    }

    fn source(&self, kind: StreamKind, filters: Vec<String>) -> Source<'_> {
        Source::new(&self.broker, kind, filters)
    }
}

/// What a caller may read of a kind of aggregate; `None` for the installation's own operator.
fn reading(caller: Option<&Caller>, aggregate: Aggregate) -> Result<Option<Reading<'_>>, Fault> {
    caller
        .map(|caller| caller.authority.reading(&caller.name, aggregate))
        .transpose()
}

/// The verb `events` of a service: one page of events of the aggregates that it owns.
pub(crate) fn events(runner: &ServiceRunner) -> Verb {
    api::verb(Reader::new(runner), |reader, call| async move {
        answer(&reader.events(&call).await?)
    })
}

/// The verb `messages`: one page of the messages of a case.
pub fn messages(runner: &ServiceRunner) -> Verb {
    api::verb(Reader::new(runner), |reader, call| async move {
        answer(&reader.messages(&call).await?)
    })
}

#[cfg(test)]
mod tests;
