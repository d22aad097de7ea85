//! The ports on a NATS broker.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use concord_events::Aggregate;
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::{ConsumerKind, Layout, StreamKind};
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Envelope, Timestamp, Token, header};

use crate::broker::inbox_progress::{self, Progress};
use crate::broker::{Broker, Operation, Unavailable, log_reader};
use crate::clock;
use crate::codec::message_lookup::{self, SearchStart, Stored};
use crate::codec::{self, claim_check};
use crate::event_store::Error;
use crate::event_store::nats::NatsPorts;
use crate::event_store::publish::check_size;
use crate::ports::{
    ArmedDeadline, Clock, DeadLetters, Headers, Inboxes, MessageLookup, Ports, Preferences, Timers,
};

/// How long a delivered deadline stays in the stream; what nobody took by then is the watchdog's.
const DUE_TTL: &str = "24h";
/// How long the broker may take to list the deadlines that it holds.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

impl Ports for NatsPorts {
    fn layout(&self) -> &Layout {
        &self.broker.layout
    }

    fn unique_id(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

impl Clock for NatsPorts {
    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

impl DeadLetters for NatsPorts {
    fn has_room_for(&self, bytes: usize) -> bool {
        check_size(&self.broker, bytes).is_ok()
    }

    async fn keep(&self, subject: String, headers: Headers, body: Bytes) -> Result<(), Error> {
        let stored = self.broker.store(subject, headers, body).await;
        stored.map_err(|error| Operation::StoreDeadLetter.failed(error))?;
        Ok(())
    }
}

impl Timers for NatsPorts {
    async fn arm(&self, deadline: &ArmedDeadline) -> Result<(), Error> {
        let subjects = self.broker.subjects();
        let target = subjects.build(&SystemSubject::TimerDue {
            aggregate: deadline.aggregate,
            id: deadline.id.clone(),
            name: deadline.name.clone(),
        });
        let mut headers = Headers::new();
        // No message id: a deadline that is cancelled and armed again must not be taken for a duplicate.
        headers.insert(header::SCHEDULE, format!("@at {}", deadline.due));
        headers.insert(header::SCHEDULE_TARGET, target);
        headers.insert(header::SCHEDULE_TTL, DUE_TTL);
        let subject = armed_subject(
            &self.broker,
            deadline.aggregate,
            &deadline.id,
            &deadline.name,
        );
        let body = serde_json::to_vec(deadline)?;
        let stored = self.broker.store(subject, headers, body.into()).await;
        stored.map_err(|error| Operation::ScheduleDeadline.failed(error))?;
        Ok(())
    }

    async fn cancel(&self, aggregate: Aggregate, id: &Token, name: &Token) -> Result<(), Error> {
        let subject = armed_subject(&self.broker, aggregate, id, name);
        let timers = self.broker.stream(StreamKind::Timers).await?;
        let purged = timers.purge().filter(subject).await;
        purged.map_err(|error| Operation::ScheduleDeadline.failed(error))?;
        Ok(())
    }

    async fn armed(&self, count_max: usize) -> Result<Vec<ArmedDeadline>, Error> {
        let listed = tokio::time::timeout(LIST_TIMEOUT, list(&self.broker, count_max)).await;
        listed.map_err(|error| Operation::ListDeadlines.failed(error))?
    }
}

fn armed_subject(broker: &Broker, aggregate: Aggregate, id: &Token, name: &Token) -> String {
    broker.subjects().build(&SystemSubject::TimerArmed {
        aggregate,
        id: id.clone(),
        name: name.clone(),
    })
}

/// The deadlines that are due first of all that the broker holds, in their order.
async fn list(broker: &Broker, count_max: usize) -> Result<Vec<ArmedDeadline>, Error> {
    let filters = [broker.subjects().armed()];
    let mut first = BTreeMap::new();
    let mut unreadable = None;
    let read = log_reader::read_matching(broker, StreamKind::Timers, &filters, 1, |message| {
        // What stands in the place of a deadline hides it from the broker; it is fired by the watchdog.
        if is_acknowledgement(&message.payload) {
            return ControlFlow::Continue(());
        }
        match serde_json::from_slice::<ArmedDeadline>(&message.payload) {
            Ok(armed) => {
                let key = (armed.due, armed.id.clone(), armed.aggregate);
                first.insert((key, armed.name.clone()), armed);
                if first.len() > count_max {
                    first.pop_last();
                }
                ControlFlow::Continue(())
            }
            Err(error) => {
                unreadable = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    read.await?;
    match unreadable {
        Some(error) => Err(Operation::ListDeadlines.failed(error).into()),
        None => Ok(first.into_values().collect()),
    }
}

impl MessageLookup for NatsPorts {
    async fn next_message(
        &self,
        lane: Lane,
        filter: &str,
        start: SearchStart,
    ) -> Result<Option<Stored>, Unavailable> {
        message_lookup::next(&self.broker, lane, filter, start).await
    }

    async fn with_payload(&self, envelope: Envelope) -> Result<Envelope, codec::Error> {
        claim_check::whole(&self.broker, envelope).await
    }
}

impl Inboxes for NatsPorts {
    async fn progress(&self, inbox: ConsumerKind) -> Result<Progress, Unavailable> {
        inbox_progress::of(&self.broker, inbox).await
    }
}

impl Preferences for NatsPorts {
    fn dialect_by_card(&self, agent: &AgentId) -> Option<Dialect> {
        self.broker.dialect_by_card(agent)
    }

    fn wrote_in(&self, agent: &AgentId, dialect: Dialect) {
        self.broker.wrote_in(agent, dialect);
    }
}
