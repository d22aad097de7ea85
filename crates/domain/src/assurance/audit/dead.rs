//! Dead letters, and messages beyond the rate limit, for which there is no letter. A letter may
//! lack the `message_id` of its original, or the original's position in the stream.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::payload::{ErrorReport, RATE_LIMIT};
use concord_wire::subject::{Lane, Service, Subject, SubjectSpace};
use concord_wire::{AgentId, Envelope, MessageId, Recipient};
use serde_json::Value;

use super::{Dead, Settled};

/// The position of a stored message.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub(super) lane: Lane,
    pub(super) sequence: u64,
    /// Its subject under the default prefix, where it is one.
    pub(super) subject: Option<String>,
}

impl Position {
    pub(super) fn is_settled(&self, settled: &Settled) -> bool {
        self.sequence <= settled.of_lane(self.lane)
    }
}

#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    ids: BTreeSet<MessageId>,
    positions: BTreeSet<(Lane, u64)>,
    /// Subjects of originals, where the letter has neither id nor position.
    subjects: BTreeSet<String>,
    /// The spans of sequences of a lane in which a service has refused an agent's messages because
    /// of the rate limit.
    over_rate_limit: BTreeMap<(Lane, AgentId, Service), Vec<(u64, u64)>>,
}

impl DeadLetters {
    pub(super) fn take(&mut self, dead: &Dead<'_>) {
        self.ids.extend(dead.message_id.cloned());
        self.positions.extend(dead.position);
        if dead.message_id.is_none() && dead.position.is_none() {
            self.subjects.extend(
                dead.subject
                    .map(|subject| SubjectSpace::default().build(subject)),
            );
        }
    }

    /// Takes the report of a service into account that it has refused an agent's messages because
    /// of the rate limit. Such messages stay in the stream.
    pub(super) fn over_rate_limit(&mut self, from: Service, envelope: &Envelope) {
        let Recipient::Agent(agent) = &envelope.to_agent else {
            return;
        };
        let Ok(ErrorReport { details, .. }) = envelope.payload::<ErrorReport>() else {
            return;
        };
        let number = |field: &str| details.get(field).and_then(Value::as_u64);
        if details.get("limit").and_then(Value::as_str) != Some(RATE_LIMIT) {
            return;
        }
        let lane = Lane::ALL.into_iter().find(|lane| {
            number("sequence").is_some_and(|first| {
                MessageId::of_refusal(lane.as_str(), first) == envelope.message_id
            })
        });
        let (Some(lane), Some(first)) = (lane, number("sequence")) else {
            return;
        };
        match number("last_sequence") {
            Some(last) => self
                .over_rate_limit
                .entry((lane, agent.clone(), from))
                .or_default()
                .push((first, last)),
            None => {
                self.positions.insert((lane, first));
            }
        }
    }

    fn is_over_rate_limit(&self, position: &Position) -> bool {
        let space = SubjectSpace::default();
        let parsed = position
            .subject
            .as_ref()
            .and_then(|subject| space.parse(subject).ok());
        let Some(Subject::Message {
            from,
            to: Recipient::Agent(to),
            ..
        }) = parsed
        else {
            return false;
        };
        let Ok(to) = Service::parse(to.as_str()) else {
            return false;
        };
        let spans = self.over_rate_limit.get(&(position.lane, from, to));
        spans.is_some_and(|spans| {
            spans
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&position.sequence))
        })
    }

    pub(super) fn holds(&self, position: &Position, id: Option<&MessageId>) -> bool {
        id.is_some_and(|id| self.ids.contains(id))
            || self.positions.contains(&(position.lane, position.sequence))
            || position
                .subject
                .as_ref()
                .is_some_and(|subject| self.subjects.contains(subject))
            || self.is_over_rate_limit(position)
    }
}
