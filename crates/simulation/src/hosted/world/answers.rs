//! The messages of the adapter: what they say to whom, and where they are stored.

use concord_runtime::codec::message_lookup::{SearchStart, Stored as StoredMessage};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::Lane;
use concord_wire::{Envelope, MessageType};

use super::{Cause, Handled, Kept, Publication, Said, What, World};
use crate::broker::matches;
use crate::executor::Incarnation;

/// The beginning of the id of every message to the agent.
const ASKED: &str = "m-";
/// What the adapter says of an agent whose breaker refuses calls.
const BREAKER_OPEN: &str = "its circuit breaker is open";
/// What it says when too many messages wait.
const TOO_MANY_WAIT: &str = "messages wait for it already";
/// What it says when the agent was not asked in time.
const TIME_OVER: &str = "its time was over before";

impl World {
    /// The adapter publishes a message.
    pub(crate) fn published(
        &mut self,
        incarnation: Incarnation,
        envelope: Envelope,
    ) -> Publication {
        let answered = envelope.reply_to.as_deref().unwrap_or_default();
        let sequence = answered
            .strip_prefix(ASKED)
            .and_then(|place| place.parse().ok());
        debug_assert!(
            sequence.is_some(),
            "it answers none of the messages: {answered}"
        );
        let error = (envelope.message_type == MessageType::Error)
            .then(|| envelope.payload::<ErrorReport>().ok())
            .flatten();
        let error = error.map(|report| (report.error_code, self.cause_of(&report.error_message)));
        match error {
            Some((_, Cause::Broken)) => self.keep(incarnation, What::Refused),
            Some((_, Cause::Full)) => {
                self.keep(incarnation, What::Full);
                let has_waited = |(_, handled): (u64, Handled)| handled.began < self.now;
                if self.current().is_some_and(has_waited) {
                    self.hosted().displaced += 1;
                }
            }
            _ => {}
        }
        let said = Said {
            sequence: sequence.unwrap_or(usize::MAX),
            error,
            sent: self.now,
            at: 0,
        };
        Publication { envelope, said }
    }

    /// Why an error is told, by its words and by the last call that was made for the message.
    fn cause_of(&self, words: &str) -> Cause {
        let known = [
            (BREAKER_OPEN, Cause::Broken),
            (TOO_MANY_WAIT, Cause::Full),
            (TIME_OVER, Cause::Late),
        ];
        if let Some((_, cause)) = known.iter().find(|(known, _)| words.contains(known)) {
            return *cause;
        }
        let handling = self.current().map(|(handling, _)| handling);
        let calls = self.calls.values().rev();
        let mut own = calls.filter(|call| Some(call.handling) == handling);
        own.find_map(|call| call.outcome)
            .map_or(Cause::Unknown, Cause::Called)
    }

    /// Stores a message. What is said first stands: false where something is stored under the id.
    pub(super) fn store(&mut self, publication: Publication) -> bool {
        let Publication { envelope, said } = publication;
        let key = (
            envelope.message_id.to_string(),
            envelope.to_agent.to_string(),
        );
        let is_known = |at: &u64| self.now.saturating_sub(*at) < self.window_ms;
        if self.ids.get(&key).is_some_and(is_known) {
            self.hosted().repeated += 1;
            return false;
        }
        self.ids.insert(key, self.now);
        let message = StoredMessage {
            sequence: self.next_sequence(),
            stored_at: self.clock(),
            envelope: Some(envelope.clone()),
        };
        self.stored.push(Kept {
            lane: envelope.priority.lane(),
            subject: self.layout.subjects.build(&envelope.subject()),
            message,
        });
        if envelope.message_type == MessageType::Notification {
            // For the record of the coordinator, not for who asked.
            self.hosted().kept += 1;
            return true;
        }
        self.note(|| format!("{} is told: {:?}", said.sequence, said.error));
        let at = self.now;
        self.said.push(Said { at, ..said });
        true
    }

    /// The sequence of the next message that is stored.
    pub(super) fn next_sequence(&self) -> u64 {
        (self.asked.len() + self.stored.len()) as u64 + 1
    }

    /// The first message from `start` on whose subject matches the filter.
    pub(super) fn next_message(
        &self,
        lane: Lane,
        filter: &str,
        start: SearchStart,
    ) -> Option<Box<StoredMessage>> {
        let filter: Vec<String> = filter.split('.').map(str::to_owned).collect();
        let first = self.stored.partition_point(|kept| match start {
            SearchStart::Sequence(sequence) => kept.message.sequence < sequence,
            SearchStart::Time(at) => kept.message.stored_at < at,
        });
        let mut later = self.stored.iter().skip(first);
        let found = later.find(|kept| {
            let tokens: Vec<&str> = kept.subject.split('.').collect();
            kept.lane == lane && matches(&filter, &tokens)
        })?;
        Some(Box::new(found.message.clone()))
    }
}
