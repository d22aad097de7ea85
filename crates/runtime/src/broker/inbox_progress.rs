//! How far a service has read what is sent to it, by what the broker says of its consumers.

use async_nats::jetstream::consumer::{DeliverPolicy, Info};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::Stream;
use concord_events::topology::{self, ConsumerKind};

use crate::broker::{Broker, Operation, Unavailable};

/// How far a service has read what is sent to it on one lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// All up to this sequence is done with.
    pub through: u64,
    /// Nothing waits, and nothing is under way.
    pub is_all: bool,
    /// What is done with beyond that, while a flood is read past.
    pub past_backlog: Option<PastBacklog>,
}

/// What certain senders sent, as far as it is read past the backlog of a flood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastBacklog {
    /// The first sequence that is read so.
    pub first: u64,
    /// All up to this sequence is done with.
    pub through: u64,
    /// The filters of these senders.
    pub filters: Vec<String>,
}

impl Progress {
    /// Everything is read.
    pub fn all() -> Self {
        Self {
            is_all: true,
            ..Self::default()
        }
    }

    /// Whether a message is done with; `of_sender` is the filter of all that its sender sends to the service.
    pub(crate) fn has_read(&self, sequence: u64, of_sender: &str) -> bool {
        let is_past = |past: &PastBacklog| {
            (past.first..=past.through).contains(&sequence)
                && past.filters.iter().any(|filter| filter == of_sender)
        };
        self.is_all || sequence <= self.through || self.past_backlog.as_ref().is_some_and(is_past)
    }
}

/// How far an inbox is read.
pub(crate) async fn of(broker: &Broker, inbox: ConsumerKind) -> Result<Progress, Unavailable> {
    let nothing = Progress::default();
    let Some(definition) = broker.layout.consumers_of(inbox).into_iter().next() else {
        return Ok(nothing);
    };
    let stream = broker.stream(definition.stream_kind).await?;
    // It is created in a moment, and begins with what was stored before.
    let Some(info) = describe(&stream, &definition.name).await? else {
        return Ok(nothing);
    };
    if is_done(&info) {
        return Ok(Progress::all());
    }
    let past = describe(&stream, &topology::bypass(&definition.name)).await?;
    Ok(Progress {
        through: info.ack_floor.stream_sequence,
        is_all: false,
        past_backlog: past.and_then(past_backlog),
    })
}

fn is_done(info: &Info) -> bool {
    info.num_pending == 0 && info.num_ack_pending == 0
}

fn past_backlog(info: Info) -> Option<PastBacklog> {
    let DeliverPolicy::ByStartSequence { start_sequence } = info.config.deliver_policy else {
        return None;
    };
    Some(PastBacklog {
        first: start_sequence,
        through: if is_done(&info) {
            u64::MAX
        } else {
            info.ack_floor.stream_sequence
        },
        filters: info.config.filter_subjects,
    })
}

/// What the broker says of a consumer; none where it does not exist.
async fn describe(stream: &Stream<()>, consumer: &str) -> Result<Option<Info>, Unavailable> {
    match stream.consumer_info(consumer).await {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(None),
        Err(error) => Err(Operation::DescribeConsumer.failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_past_a_flood_is_read() {
        let progress = Progress {
            through: 10,
            is_all: false,
            past_backlog: Some(PastBacklog {
                first: 20,
                through: 30,
                filters: vec!["ann's".to_owned()],
            }),
        };
        for (sequence, sender, read) in [
            (10, "ben's", true),
            (11, "ann's", false),
            (19, "ann's", false),
            (20, "ann's", true),
            (20, "ben's", false),
            (30, "ann's", true),
            (31, "ann's", false),
        ] {
            assert_eq!(
                progress.has_read(sequence, sender),
                read,
                "{sequence} of {sender}"
            );
        }
        assert!(Progress::all().has_read(31, "ben's"));
    }
}
