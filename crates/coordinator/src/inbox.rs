//! Messages to the coordinator: what is about agents, requests, questions, tasks, boards, commitments, analyses or memory, alerts, and all else,
//! which is about cases.

use std::sync::Arc;

use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_runtime::delivery::as_asked::as_asked;
use concord_runtime::delivery::handlers::{self, MessageHandler, Prepare};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Ports, Routed};
use concord_wire::subject::Service;

use crate::people::Names;
use crate::questions::Questions;
use crate::route::{exchange, register, shared};
use crate::shared::Shared;
use crate::silence::Silence;
use crate::tasks::Tasks;

/// Gives each message to the machine it is for.
pub(crate) struct InboxHandler<P> {
    service: ServiceContext<P>,
    names: Names<P>,
    requests: Arc<Aggregates<RequestMachine, P>>,
    silence: Silence<P>,
    tasks: Tasks<P>,
    shared: Shared<P>,
    questions: Questions<P>,
    cases: MessageHandler<P, CaseMachine, Names<P>>,
}

impl<P: Ports> InboxHandler<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        names: &Names<P>,
        (requests, silence): (&Arc<Aggregates<RequestMachine, P>>, &Silence<P>),
        (tasks, shared, questions): (&Tasks<P>, &Shared<P>, &Questions<P>),
        cases: MessageHandler<P, CaseMachine, Names<P>>,
    ) -> Self {
        Self {
            service: service.clone(),
            names: names.clone(),
            requests: Arc::clone(requests),
            silence: silence.clone(),
            tasks: tasks.clone(),
            shared: shared.clone(),
            questions: questions.clone(),
            cases,
        }
    }
}

impl<P: Ports> Handler for InboxHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let envelope = delivery.read(&self.service).await?;
        if let Some((id, input)) = exchange::withheld_answer(&envelope, delivery.stored_at)? {
            let (service, requests, request) = (&self.service, &self.requests, id.clone());
            let done = handlers::step_of_message(service, requests, id, envelope, &input, delivery)
                .await?;
            self.silence.heard_late(requests, &request, &input).await?;
            return Ok(done);
        }
        if !self.tasks.is_answered_by(&envelope).await?
            && let Some(done) = self.questions.synthesised(&envelope, delivery).await?
        {
            return Ok(done);
        }
        if let Some(done) = Box::pin(self.tasks.take(&envelope, delivery)).await? {
            return Ok(done);
        }
        let envelope = as_asked(&self.service.ports, Service::Coordinator, envelope).await?;
        if let Some(input) = shared::from_message(&envelope, self.shared.bounds)? {
            return self.shared.take(input, envelope, delivery).await;
        }
        match register::from_message(&envelope)? {
            None => self.cases.take(envelope, delivery).await,
            Some(Routed::Ignored(reason)) => {
                self.service.count_ignored(reason);
                Ok(Ack::Acknowledge)
            }
            Some(Routed::Step { id, input }) => {
                let input = self.names.prepare(&id, input).await?;
                handlers::step_of_message(
                    &self.service,
                    &self.names.agents,
                    id,
                    envelope,
                    &input,
                    delivery,
                )
                .await
            }
        }
    }
}
