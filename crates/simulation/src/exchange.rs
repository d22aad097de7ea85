//! What the coordinator does with requests between agents, as in its own crate.

use concord_coordinator::route::exchange::{Place, hear, heard, is_between_agents, read_request};
use concord_domain::Context;
use concord_domain::aggregates::request::{RequestInput, Reply, id_of, is_asked};
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{DeadlineElapsed, HeardAnswer, RequestOpened};
use concord_runtime::Routed;
use concord_wire::subject::Subject;
use concord_wire::{Fault, MessageType, Timestamp, dialect};

use crate::process::{Delivery, HandleError, Process, step};
use crate::world::instant;

impl Process {
    /// A message of an agent to an agent.
    pub(crate) async fn exchange(&self, delivery: &Delivery) -> Result<(), HandleError> {
        let subject = self.connection.subjects().parse(&delivery.subject);
        let Some(subject) = subject.ok().filter(is_between_agents) else {
            return Ok(());
        };
        let (envelope, _) = dialect::read(&delivery.body, None, &subject)?;
        let at = self.stored_at(delivery);
        let input = match &envelope.message_type {
            MessageType::Request => {
                let place = Place {
                    sequence: delivery.sequence,
                    urgent: delivery.stream == StreamKind::Urgent,
                    at,
                };
                let (opened, refusal) = read_request(&envelope, &place)?;
                let id = id_of(&opened.from, opened.request_id.as_str());
                Some((
                    id,
                    RequestInput::Ask {
                        opened: Box::new(opened),
                        refusal,
                    },
                ))
            }
            _ => hear(&envelope, at)?,
        };
        let Some((id, input)) = input else {
            return Ok(());
        };
        let context = Context::of_message(self.connection.now(), envelope.message_id.clone());
        step(&self.requests, &context, Routed::Step { id, input }).await
    }

    /// A request has run out of time, unless an answer is stored that was not handled yet.
    pub(crate) async fn request_elapsed(
        &self,
        context: &Context,
        elapsed: DeadlineElapsed,
    ) -> Result<(), HandleError> {
        let known = self.requests.load(&elapsed.id).await?;
        let unread = match &known.state.opened {
            Some(opened) if known.state.ended.is_none() => self.unread(opened),
            _ => None,
        };
        let (id, unread) = (elapsed.id.clone(), unread.map(Box::new));
        step(
            &self.requests,
            context,
            Routed::Step {
                id,
                input: RequestInput::Elapsed { elapsed, unread },
            },
        )
        .await
    }

    pub(crate) fn stored_at(&self, delivery: &Delivery) -> Timestamp {
        let world = self.connection.world.lock();
        let stored = world
            .broker
            .messages(delivery.stream)
            .iter()
            .find(|one| one.sequence == delivery.sequence);
        stored.map_or_else(|| self.connection.now(), |stored| instant(stored.at))
    }

    /// Looked up on the leader, which answers at once in this world.
    fn unread(&self, opened: &RequestOpened) -> Option<HeardAnswer> {
        let world = self.connection.world.lock();
        let id = id_of(&opened.from, opened.request_id.as_str());
        let mut stored = world.broker.messages(StreamKind::Messages).iter();
        stored.find_map(|stored| {
            let subject: Subject = world.subjects().parse(&stored.publication.subject).ok()?;
            let (envelope, _) = dialect::read(&stored.publication.body, None, &subject).ok()?;
            let said: Result<_, Fault> = heard(&envelope, instant(stored.at));
            match said.ok()?? {
                (of, Reply::Answer(answer)) => {
                    let counts =
                        of == id && answer.at <= opened.due && is_asked(opened, &answer.by);
                    counts.then_some(answer)
                }
                _ => None,
            }
        })
    }

    /// Whose fact a delivery is.
    pub(crate) fn aggregate_of(&self, delivery: &Delivery) -> Option<Aggregate> {
        match self.connection.subjects().parse(&delivery.subject) {
            Ok(SystemSubject::Event { aggregate, .. }) => Some(aggregate),
            _ => None,
        }
    }
}
