//! Watching a case under a name: the services are asked for what is new, again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use concord_domain::Versioned;
use concord_domain::aggregates::case::CaseMachine;
use concord_events::Aggregate;
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_wire::{CaseId, Token};

use crate::command::case::watch::{Display, WatchArgs};
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::stream_reader::StreamMessage;

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);

/// A case that is watched by asking for what is new: its events, its conflicts, its debates, and its messages.
pub(super) struct Polled {
    source: EventSource,
    case: CaseId,
    /// The case as it is known, which names its debates.
    known: Versioned<CaseMachine>,
    /// The sequence after which each aggregate is read next; those of debates that were found later begin at their start.
    after: BTreeMap<(Aggregate, Token), u64>,
    /// The same of the messages of each lane.
    after_messages: [u64; 2],
}

impl Polled {
    pub(super) async fn new(broker: &Broker, case: &CaseId) -> Result<Self, Failure> {
        Ok(Self {
            source: EventSource::new(broker).await?,
            case: case.clone(),
            known: Versioned::default(),
            after: BTreeMap::new(),
            after_messages: [0; 2],
        })
    }

    /// Prints what comes until the case is decided.
    pub(super) async fn watch(
        mut self,
        display: &mut Display<'_>,
        args: &WatchArgs,
    ) -> Result<u8, Failure> {
        if display.begin(&self.case, args.from_start).await? {
            return Ok(0);
        }
        let begun = display.watched.iter();
        let mut debates: BTreeSet<Token> = begun.flat_map(|one| one.debates.clone()).collect();
        let mut past = self.round(&mut debates).await?;
        if !args.from_start {
            past.clear();
        }
        if self.show(display, past)? {
            return Ok(0);
        }
        display.announce();
        loop {
            tokio::time::sleep(PAUSE).await;
            let new = self.round(&mut debates).await?;
            if self.show(display, new)? {
                return Ok(0);
            }
        }
    }

    /// Prints what was read, in the order of time; true when the case is decided.
    fn show(
        &self,
        display: &mut Display<'_>,
        mut read: Vec<(StreamKind, StreamMessage)>,
    ) -> Result<bool, Failure> {
        read.sort_by_key(|(kind, stored)| (stored.at, *kind, stored.sequence));
        let mut decided = false;
        for (_, stored) in &read {
            decided |= display.show(stored)?;
        }
        Ok(decided)
    }

    /// What is new since the last round.
    async fn round(
        &mut self,
        debates: &mut BTreeSet<Token>,
    ) -> Result<Vec<(StreamKind, StreamMessage)>, Failure> {
        let mut read = Vec::new();
        let case = self.case.token();
        self.events(Aggregate::Case, &case, &mut read).await?;
        self.events(Aggregate::Detection, &case, &mut read).await?;
        let debated = self.known.state.debated.iter();
        debates.extend(debated.map(|conflict| conflict.conflict_id.token()));
        for debate in debates.iter() {
            self.events(Aggregate::Debate, debate, &mut read).await?;
        }
        let messages = self
            .source
            .messages(&self.case, self.after_messages, |kind, stored| {
                read.push((kind, stored));
                Ok(())
            });
        self.after_messages = messages.await?;
        Ok(read)
    }

    async fn events(
        &mut self,
        aggregate: Aggregate,
        id: &Token,
        read: &mut Vec<(StreamKind, StreamMessage)>,
    ) -> Result<(), Failure> {
        let after = self.after.entry((aggregate, id.clone())).or_default();
        let query = EventQuery::of(aggregate, id).after(*after);
        let known = &mut self.known;
        let events = self.source.for_each(&query, "reading events", |stored| {
            *after = stored.sequence;
            if aggregate == Aggregate::Case {
                known.apply(event_of(&stored)?);
            }
            read.push((StreamKind::Events, stored));
            Ok(())
        });
        events.await
    }
}
