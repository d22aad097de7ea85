//! How a service says which handler is for which consumers.

use std::sync::Arc;

use concord_events::Aggregate;
use concord_events::topology::{ConsumerDefinition, ConsumerKind};

use crate::admission::Priority;
use crate::delivery::Handler;
use crate::delivery::reject_all::RejectAll;
use crate::ports::Ports;
use crate::service::api::Verb;
use crate::service::owned::{Answerer, Owners};
use crate::service::{ServiceContext, ServiceRunner};

/// Takes the handlers of a service. In production they are bound to pull consumers and to the API; in the simulator, to
/// those of its world. A service says what it is made of to either in the same function.
pub trait Binder {
    /// Has `handler` handle the deliveries of the service's own consumers of a kind.
    fn handle<H: Handler>(&mut self, kind: ConsumerKind, handler: H);

    /// The same with another number of deliveries under way at once, for handlers that mostly wait.
    fn handle_many<H: Handler>(&mut self, kind: ConsumerKind, in_flight_max: usize, handler: H);

    /// Has `verb` answer requests under this name to the service's API.
    fn answer(&mut self, name: &'static str, verb: Verb);

    /// Has `answerer` do the steps on aggregates of a kind that other replicas ask for. Those replicas, to ask them.
    fn own(&mut self, aggregate: Aggregate, answerer: Answerer) -> Arc<dyn Owners>;

    /// Answers the messages to a service that acts on none.
    fn handle_no_messages<P: Ports>(&mut self, context: &ServiceContext<P>) {
        let service = context.service;
        self.handle(ConsumerKind::Inbox(service), RejectAll(context.clone()));
        self.handle(
            ConsumerKind::UrgentInbox(service),
            RejectAll(context.clone()),
        );
    }
}

impl Binder for ServiceRunner {
    fn handle<H: Handler>(&mut self, kind: ConsumerKind, handler: H) {
        self.handle_many(kind, self.work.in_flight_max, handler);
    }

    fn handle_many<H: Handler>(&mut self, kind: ConsumerKind, in_flight_max: usize, handler: H) {
        let definitions = self.broker.layout.consumers_of(kind).into_iter();
        let consumers = definitions.map(|definition| {
            let priority = Priority::of(&definition);
            let ConsumerDefinition {
                stream,
                name,
                filter,
                ..
            } = definition;
            ((stream, name, filter), priority)
        });
        self.run_consumers(Some(kind), consumers, in_flight_max, handler);
    }

    fn answer(&mut self, name: &'static str, verb: Verb) {
        ServiceRunner::answer(self, name, verb);
    }

    fn own(&mut self, aggregate: Aggregate, answerer: Answerer) -> Arc<dyn Owners> {
        self.answerers.add(aggregate, answerer);
        Arc::new(self.clone())
    }
}
