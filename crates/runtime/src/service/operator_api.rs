//! Orders of operators, by request and reply: each becomes a step, and its answer says what came of it.

use std::sync::Arc;

use bytes::Bytes;
use concord_domain::Machine;
use concord_wire::{ErrorCode, Fault, MessageId, Token};
use serde_json::json;

use crate::context::ServiceContext;
use crate::error_chain::ErrorChain;
use crate::event_store::step::{Aggregates, Outcome};
use crate::ports::Ports;
use crate::service::api::{Answer, Verb, answer};

/// Makes of a request the aggregate that it is about and an input for it.
pub type Read<I> = fn(&[u8]) -> Result<(Token, I), Fault>;

/// A verb whose requests are steps. The answer is `{"fact": <name>, "sequence": <where>}`; where nothing had to be done
/// `fact` is null. What is refused is answered with the fault.
pub fn verb<P: Ports, M: Machine>(
    context: &ServiceContext<P>,
    aggregates: &Arc<Aggregates<M, P>>,
    read: Read<M::Input>,
) -> Verb {
    let (context, aggregates) = (context.clone(), Arc::clone(aggregates));
    Arc::new(move |request: Bytes| {
        let (context, aggregates) = (context.clone(), Arc::clone(&aggregates));
        let done: Answer = Box::pin(async move {
            let (id, input) = read(&request)?;
            step(&context, &aggregates, &id, &input).await
        });
        done
    })
}

/// Each request is an order of its own, so its cause is new.
async fn step<P: Ports, M: Machine>(
    context: &ServiceContext<P>,
    aggregates: &Aggregates<M, P>,
    id: &Token,
    input: &M::Input,
) -> Result<Bytes, Fault> {
    let cause = MessageId::of_operator_request(&context.ports.unique_id());
    let outcome = aggregates
        .step(id, &context.of_message(cause), input, None)
        .await
        .map_err(|error| {
            Fault::new(
                ErrorCode::InternalError,
                "",
                format!("It could not be done: {}.", ErrorChain(&error)),
                "Look whether it was done, and ask again if not.",
            )
        })?;
    context.count_step::<M>(&outcome);
    match outcome {
        Outcome::Rejected(fault) => Err(fault),
        Outcome::Appended { event, sequence } => {
            answer(&json!({ "fact": event, "sequence": sequence }))
        }
        Outcome::Ignored(_) => answer(&json!({ "fact": null })),
    }
}
