//! A small value that all replicas of a service share: the last message on one subject of the shared memory, replaced under
//! an optimistic lock.

use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_wire::subject::Subject;
use concord_wire::{AgentId, Token, header};

use crate::broker::publish;
use crate::broker::{Broker, Operation, Unavailable};

/// A shared value.
#[derive(Clone)]
pub struct SharedValue {
    broker: Broker,
    subject: String,
}

/// A value as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadValue {
    /// Where it stands in the stream: what it is replaced by names this.
    pub sequence: u64,
    /// The value.
    pub value: Bytes,
}

impl SharedValue {
    /// The value that `owner` keeps under `topic`.
    pub fn new(broker: &Broker, owner: AgentId, topic: Token) -> Self {
        let subject = broker.subjects().build(&Subject::Memory {
            agent: owner,
            topic,
        });
        Self {
            broker: broker.clone(),
            subject,
        }
    }

    /// The value, from the stream's leader; none when there never was one.
    pub async fn read(&self) -> Result<Option<ReadValue>, Unavailable> {
        let stream = self.broker.stream(StreamKind::Memory).await?;
        match stream.get_last_raw_message_by_subject(&self.subject).await {
            Ok(message) => Ok(Some(ReadValue {
                sequence: message.sequence,
                value: message.payload,
            })),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(Operation::ReadSharedValue.failed(error)),
        }
    }

    /// Replaces the value that was read; false when somebody else has replaced it since.
    ///
    /// After an error it may have been replaced or not.
    pub async fn replace(
        &self,
        read: Option<&ReadValue>,
        value: Bytes,
    ) -> Result<bool, Unavailable> {
        let mut headers = async_nats::HeaderMap::new();
        let expected = read.map_or(0, |read| read.sequence);
        headers.insert(header::EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        match self
            .broker
            .store(self.subject.clone(), headers, value)
            .await
        {
            Ok(_) => Ok(true),
            Err(publish::Error::Moved) => Ok(false),
            Err(error) => Err(Operation::StoreSharedValue.failed(error)),
        }
    }
}
