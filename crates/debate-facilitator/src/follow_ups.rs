//! What follows from events, done on the broker; [`route::follow_ups`] says what that is.
//!
//! One event may lead to several steps. Each is known by the event that caused it, so all of them are done again, without
//! effect, when the process is killed between two of them and the event is delivered again.

use concord_domain::Context;
use concord_domain::aggregates::debate::DebateInput;
use concord_domain::aggregates::review_queue::{self, QueueInput};
use concord_events::{Aggregate, DeadlineElapsed, EventMeta};
use concord_runtime::delivery::handlers::{self, Prepare};
use concord_runtime::delivery::in_time::InTime;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Ports, Trace};
use concord_wire::Token;
use futures::{StreamExt, TryStreamExt, stream};

use crate::QuotaSettings;
use crate::cancelled;
use crate::route::{self, FollowUp};
use crate::stores::{ReadOnce, Stores};
use crate::verdicts;

/// So many debates of one detection are opened at a time: none of them waits for what is read and stored for another.
const OPENED_TOGETHER: usize = 8;

/// Follows the events that the facilitator reads.
pub(crate) struct FollowUpHandler<P> {
    service: ServiceContext<P>,
    in_time: InTime<P>,
    stores: Stores<P>,
    quota: QuotaSettings,
}

impl<P: Ports> FollowUpHandler<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        stores: &Stores<P>,
        quota: &QuotaSettings,
    ) -> Self {
        Self {
            service: service.clone(),
            in_time: InTime::new(service).and_outside_cases(),
            stores: stores.clone(),
            quota: quota.clone(),
        }
    }

    /// A debate that is to wait, with how many of its opener may.
    fn bounded(&self, input: QueueInput) -> QueueInput {
        match input {
            QueueInput::Enqueue(mut enqueue) => {
                enqueue.entry.opener_waiting_max = self.quota.waiting_debates;
                QueueInput::Enqueue(enqueue)
            }
            other => other,
        }
    }

    /// Waits until what was said to a debate before its deadline is read.
    async fn wait_for_parties(
        &self,
        debate: &Token,
        elapsed: &DeadlineElapsed,
    ) -> Result<(), HandleError> {
        let known = self.stores.debates.load(debate).await?;
        match &known.state.opened {
            Some(opened) => {
                let heard = known.state.heard_in_time();
                self.in_time.wait(&opened.case_id, &heard, elapsed).await
            }
            None => Ok(()),
        }
    }

    async fn do_one(
        &self,
        context: &Context,
        trace: &Option<Trace>,
        follow_up: FollowUp,
        once: &ReadOnce,
    ) -> Result<(), HandleError> {
        let service = &self.service;
        let stores = &self.stores;
        let (context, trace) = (context.clone(), trace.clone());
        match follow_up {
            FollowUp::Debate(id, input) => {
                let input = match input {
                    DebateInput::Open(opening) => stores.opened(opening.request, once).await?,
                    other => {
                        if let DebateInput::Elapsed(elapsed) = &other {
                            self.wait_for_parties(&id, elapsed).await?;
                        }
                        stores.prepare(&id, other).await?
                    }
                };
                let input = stores.informed(&id, input).await?;
                ignore_refusal(
                    handlers::step(service, &stores.debates, id, context, &input, trace).await,
                )
            }
            FollowUp::Queue(input) => ignore_refusal(
                handlers::step(
                    service,
                    &stores.queue,
                    review_queue::id(),
                    context,
                    &self.bounded(input),
                    trace,
                )
                .await,
            ),
            FollowUp::Outcome(debate, known) => {
                verdicts::enter_outcome(service, stores, &context, &trace, &known, &debate).await
            }
            FollowUp::CaseCancelled(case, cancelled) => {
                let cause = (&context, &trace);
                cancelled::end_debates(service, stores, cause, &case, &cancelled).await
            }
            FollowUp::Verdict(resolved) => {
                verdicts::enter(service, stores, &context, &trace, &resolved).await
            }
        }
    }
}

impl<P: Ports> Handler for FollowUpHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let (aggregate, _) = handlers::aggregate_of(&self.service, delivery)?;
        let follow_ups = route::follow_ups(aggregate, &delivery.payload, delivery.sequence)?;
        if follow_ups.is_empty() {
            self.service.count_ignored("other_fact");
            return Ok(Ack::Acknowledge);
        }
        let context = self
            .service
            .of_event(EventMeta::decode(&delivery.payload)?.event_id);
        // What follows from other events is done in its order.
        let together = match aggregate {
            Aggregate::Detection => OPENED_TOGETHER,
            _ => 1,
        };
        let once = ReadOnce::default();
        let each = stream::iter(follow_ups)
            .map(|follow_up| self.do_one(&context, &delivery.trace, follow_up, &once))
            .buffered(together);
        each.try_collect::<()>().await?;
        Ok(Ack::Acknowledge)
    }
}

/// A refusal of what follows from an event is nobody's mistake: the world has moved on meanwhile. It is said and passed over.
pub(crate) fn ignore_refusal(done: Result<Ack, HandleError>) -> Result<(), HandleError> {
    match done {
        Err(HandleError::Refused(fault)) => {
            tracing::info!(%fault, "What would follow from an event is out of date.");
            Ok(())
        }
        other => other.map(|_| ()),
    }
}
