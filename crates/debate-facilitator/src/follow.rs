//! What follows from facts, done on the broker; [`route::follows`] says what that is.
//!
//! One fact may lead to several steps. Each is known by the fact that caused it, so all of them are done again, without
//! effect, when the process is killed between two of them and the fact is delivered again.

use concord_domain::Context;
use concord_domain::aggregates::review_queue;
use concord_events::EventMeta;
use concord_runtime::Trace;
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceContext;

use crate::route::{self, FollowUp};
use crate::stores::Stores;
use crate::verdicts;

/// Follows the facts that the facilitator reads.
pub(crate) struct Follow {
    shell: ServiceContext,
    stores: Stores,
}

impl Follow {
    pub(crate) fn new(shell: &ServiceContext, stores: &Stores) -> Self {
        Self {
            shell: shell.clone(),
            stores: stores.clone(),
        }
    }

    async fn do_one(
        &self,
        context: &Context,
        trace: &Option<Trace>,
        follow_up: FollowUp,
    ) -> Result<(), HandleError> {
        let (shell, stores) = (&self.shell, &self.stores);
        let (context, trace) = (context.clone(), trace.clone());
        match follow_up {
            FollowUp::Debate(id, input) => {
                quietly(handlers::step(shell, &stores.debates, id, context, &input, trace).await)
            }
            FollowUp::Queue(input) => quietly(
                handlers::step(
                    shell,
                    &stores.queue,
                    review_queue::id(),
                    context,
                    &input,
                    trace,
                )
                .await,
            ),
            FollowUp::Outcome(debate, known) => {
                verdicts::enter_outcome(shell, stores, &context, &trace, &known, &debate).await
            }
            FollowUp::Verdict(resolved) => {
                verdicts::enter(shell, stores, &context, &trace, &resolved).await
            }
        }
    }
}

impl Handler for Follow {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let (aggregate, _) = handlers::aggregate_of(&self.shell, delivery)?;
        let follow_ups = route::follows(aggregate, &delivery.payload, delivery.sequence)?;
        if follow_ups.is_empty() {
            self.shell.count_ignored("other_fact");
            return Ok(Ack::Acknowledge);
        }
        let context = ServiceContext::fact_context(EventMeta::decode(&delivery.payload)?.event_id);
        for follow_up in follow_ups {
            self.do_one(&context, &delivery.trace, follow_up).await?;
        }
        Ok(Ack::Acknowledge)
    }
}

/// A refusal of what follows from a fact is nobody's mistake: the world has moved on meanwhile. It is said and passed over.
fn quietly(done: Result<Ack, HandleError>) -> Result<(), HandleError> {
    match done {
        Err(HandleError::Refused(fault)) => {
            tracing::info!(%fault, "What would follow from a fact is out of date.");
            Ok(())
        }
        other => other.map(|_| ()),
    }
}
