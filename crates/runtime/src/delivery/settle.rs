//! What becomes of a delivery: it is handled, and acknowledged, put back, refused or given up by what came of that.

use std::time::Duration;

use concord_events::dead_letter::DeadReason;

use crate::context::ServiceContext;
use crate::delivery::dead_letter::{self, Original};
use crate::delivery::non_event;
use crate::delivery::{Ack, Delivery, HandleError, Handler, RetryPolicy, reject};
use crate::error_chain::ErrorChain;
use crate::ports::Ports;

/// What the broker is told of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It was handled.
    Acknowledge,
    /// It was refused or given up, and is not delivered again.
    Terminate,
    /// It is to be delivered again after this time.
    PutBack(Duration),
}

/// Handles a delivery. Returns what the broker is to be told, and a word for the metrics.
pub async fn settle<P: Ports, H: Handler>(
    context: &ServiceContext<P>,
    handler: &H,
    delivery: &Delivery,
) -> (Settlement, &'static str) {
    let settled = try_one(context, handler, delivery).await;
    if matches!(settled.0, Settlement::Acknowledge | Settlement::Terminate) {
        let Delivery {
            consumer, sequence, ..
        } = delivery;
        context.handled.remember(consumer, *sequence);
    }
    settled
}

async fn try_one<P: Ports, H: Handler>(
    context: &ServiceContext<P>,
    handler: &H,
    delivery: &Delivery,
) -> (Settlement, &'static str) {
    let policy = handler.patience(&context.work);
    let age = delivery.age(context.ports.now());
    // Counted here and not by the broker, so that what crashes a process again and again is recorded too.
    if policy.is_over(delivery.deliveries.saturating_sub(1), age) {
        let why = "it was delivered again and again without an end";
        return exhausted(context, handler, delivery, why, policy).await;
    }
    if non_event::is_copy(context, delivery) {
        return pass_over(context, delivery);
    }
    match handler.handle(delivery).await {
        Ok(Ack::Acknowledge) => (Settlement::Acknowledge, "acked"),
        Ok(Ack::Later(wait)) => (Settlement::PutBack(wait), "postponed"),
        Err(HandleError::Refused(_) | HandleError::Retry(_))
            if non_event::is_acknowledgement(context, delivery) =>
        {
            pass_over(context, delivery)
        }
        Err(HandleError::Refused(fault)) => {
            match reject::refuse(context, delivery, &fault, Original::Stays).await {
                Ok(()) => (Settlement::Terminate, "refused"),
                Err(error) => retry(delivery, &error, policy),
            }
        }
        Err(HandleError::DeadLetter(why)) => {
            give_up(context, delivery, &why, DeadReason::Undeliverable, policy).await
        }
        Err(HandleError::Retry(failure)) => {
            let age = delivery.age(context.ports.now());
            if !policy.is_over(delivery.deliveries, age) {
                return retry(delivery, &failure, policy);
            }
            let why = ErrorChain(&failure).to_string();
            exhausted(context, handler, delivery, &why, policy).await
        }
    }
}

async fn exhausted<P: Ports, H: Handler>(
    context: &ServiceContext<P>,
    handler: &H,
    delivery: &Delivery,
    why: &str,
    policy: RetryPolicy,
) -> (Settlement, &'static str) {
    let settled = give_up(context, delivery, why, DeadReason::Exhausted, policy).await;
    if settled.0 == Settlement::Terminate {
        handler.exhausted();
    }
    settled
}

fn pass_over<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
) -> (Settlement, &'static str) {
    non_event::passed_over(context, delivery);
    (Settlement::Acknowledge, non_event::FOREIGN)
}

fn retry(
    delivery: &Delivery,
    error: &(dyn std::error::Error + 'static),
    policy: RetryPolicy,
) -> (Settlement, &'static str) {
    let wait = policy.wait(delivery.deliveries);
    tracing::warn!(
        subject = %delivery.subject, sequence = delivery.sequence, deliveries = delivery.deliveries,
        error = %ErrorChain(error), "Handling failed; it will be tried again."
    );
    (Settlement::PutBack(wait), "failed")
}

async fn give_up<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    why: &str,
    reason: DeadReason,
    policy: RetryPolicy,
) -> (Settlement, &'static str) {
    match dead_letter::keep_failed(context, delivery, why, reason).await {
        Ok(()) => {
            tracing::error!(subject = %delivery.subject, sequence = delivery.sequence, why, "Given up; kept under dead.");
            context.count_dead(reason.as_str());
            (Settlement::Terminate, "dead")
        }
        Err(error) => retry(delivery, &error, policy),
    }
}
