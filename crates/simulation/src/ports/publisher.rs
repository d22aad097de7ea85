//! The publisher of the simulated world, and its bugs.

use concord_events::topology::StreamKind;
use concord_runtime::broker::Operation;
use concord_runtime::codec::dialect::is_same;
use concord_runtime::event_store::Error;
use concord_runtime::{Publisher, Trace};
use concord_wire::subject::Subject;
use concord_wire::{Dialect, Envelope, MessageId, MessageType, dialect};

use crate::broker::{Publication, Receipt};
use crate::faults::InjectedBug;
use crate::network::{Reply, Request, unanswered};
use crate::ports::SimPorts;

impl SimPorts {
    /// Whether something else was said under the id of this message, so that it was not stored: by another, on a subject of their own, or
    /// by a service that has given two messages one id.
    fn is_of_another(
        &self,
        kind: StreamKind,
        receipt: &Receipt,
        publication: &Publication,
    ) -> bool {
        if !receipt.duplicate {
            return false;
        }
        let world = self.connection.world.lock();
        let Some(stored) = world.broker.message(kind, receipt.sequence) else {
            return false;
        };
        let (found, written) = (&stored.publication, publication);
        let is_same = || match self.layout.subjects.parse(&written.subject) {
            Ok(subject) => is_same(&found.body, &written.body, &subject),
            Err(_) => found.body == written.body,
        };
        found.subject != written.subject || !is_same()
    }

    fn publication(&self, envelope: &Envelope, dialect: Dialect) -> Result<Written, Error> {
        let subject = envelope.subject();
        let kind = match &subject {
            Subject::Message { lane, .. } => StreamKind::of_lane(*lane),
            _ => StreamKind::Messages,
        };
        let body = match dialect {
            Dialect::Concord => serde_json::to_vec(envelope)?,
            // What a dialect cannot say is not simulated; such a message is written in the usual form.
            other => match dialect::write(envelope, other) {
                Ok(body) => body,
                Err(_) => serde_json::to_vec(envelope)?,
            },
        };
        let publication = Publication {
            subject: self.layout.subjects.build(&subject),
            id: Some(envelope.message_id.to_string()),
            body: body.into(),
            original: None,
        };
        Ok(Written { kind, publication })
    }

    /// Stores messages; all are sent before the first answer is awaited.
    async fn store_all(&self, messages: Vec<Written>) -> Result<(), Error> {
        let answers: Vec<_> = messages
            .into_iter()
            .map(|written| {
                let answer = self.connection.send(Request::Publish {
                    kind: written.kind,
                    publication: written.publication.clone(),
                });
                (written, answer)
            })
            .collect();
        if self.connection.injected_bug() == Some(InjectedBug::EffectUnheard) {
            return Ok(());
        }
        for (Written { kind, publication }, answer) in answers {
            let reply = answer
                .await
                .ok_or_else(|| unanswered(Operation::StoreMessage))?;
            if matches!(reply, Reply::Published(receipt) if self.is_of_another(kind, &receipt, &publication))
            {
                let publication = Publication {
                    id: None,
                    ..publication
                };
                self.connection
                    .ask(
                        Operation::StoreMessage,
                        Request::Publish { kind, publication },
                    )
                    .await?;
            }
        }
        Ok(())
    }
}

/// A message as it goes to the broker.
struct Written {
    kind: StreamKind,
    publication: Publication,
}

impl Publisher for SimPorts {
    async fn publish(&self, messages: &[Envelope], _: Option<&Trace>) -> Result<(), Error> {
        let forgotten =
            usize::from(self.connection.injected_bug() == Some(InjectedBug::EffectForgotten));
        let briefed = |envelope: &Envelope| {
            if envelope.message_type != MessageType::SessionBriefing {
                return 1;
            }
            match self.connection.injected_bug() {
                Some(InjectedBug::NotBriefed) => 0,
                Some(InjectedBug::BriefedTwice) => 2,
                _ => 1,
            }
        };
        let written = messages.iter().skip(forgotten).flat_map(|envelope| {
            (0..briefed(envelope)).map(|time| {
                let mut envelope = envelope.clone();
                if time > 0 {
                    envelope.message_id = MessageId::of_part(&envelope.message_id, time);
                }
                self.publication(&envelope, Dialect::Concord)
            })
        });
        self.store_all(written.collect::<Result<_, _>>()?).await
    }

    async fn publish_in(
        &self,
        dialect: Dialect,
        envelope: &Envelope,
        _: Option<&Trace>,
    ) -> Result<(), Error> {
        let written = self.publication(envelope, dialect)?;
        self.store_all(vec![written]).await
    }

    /// No handler of this world publishes so.
    async fn publish_first(&self, _: &Envelope, _: Option<&Trace>) -> Result<bool, Error> {
        Err(unanswered(Operation::StoreMessage))
    }
}
