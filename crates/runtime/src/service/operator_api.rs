//! Orders of operators, by request and reply: each becomes a step, and its answer says what came of it.

use std::sync::Arc;

use bytes::Bytes;
use concord_domain::Machine;
use concord_wire::{ErrorCode, Fault, MessageId, Token};
use serde_json::{Value, json};

use crate::context::ServiceContext;
use crate::delivery::HandleError;
use crate::delivery::handlers::Prepare;
use crate::error_chain::ErrorChain;
use crate::event_store::step::{Aggregates, Outcome};
use crate::ports::Ports;
use crate::service::api::{self, Call, Verb, answer};

/// Makes of a request the aggregate that it is about and an input for it.
pub type Read<I> = fn(&[u8]) -> Result<(Token, I), Fault>;

/// A verb whose requests are steps. The answer is `{"fact": <name>, "sequence": <where>}`; where nothing had to be done
/// `fact` is null. What is refused is answered with the fault.
pub fn verb<P: Ports, M: Machine>(
    context: &ServiceContext<P>,
    aggregates: &Arc<Aggregates<M, P>>,
    read: Read<M::Input>,
) -> Verb {
    prepared_verb(context, aggregates, read, ())
}

/// The same, with inputs to which `prepare` has added something, or which it refuses.
pub fn prepared_verb<P: Ports, M: Machine, R: Prepare<M::Input> + Clone>(
    context: &ServiceContext<P>,
    aggregates: &Arc<Aggregates<M, P>>,
    read: Read<M::Input>,
    prepare: R,
) -> Verb {
    let state = (context.clone(), Arc::clone(aggregates), read, prepare);
    api::verb(
        state,
        |(context, aggregates, read, prepare), call| async move {
            let (id, input) = read(&by_caller(&call)?)?;
            let input = prepare.prepare(&id, input).await.map_err(unprepared)?;
            call.spend(M::fan_out_bytes(&input), context.ports.now())?;
            step(&context, &aggregates, &id, &input).await
        },
    )
}

/// The request, with whoever asks under their name as the one who gives the order.
fn by_caller(call: &Call) -> Result<Bytes, Fault> {
    let Some(caller) = call.caller.as_ref().map(|caller| &caller.name) else {
        return Ok(call.body.clone());
    };
    // What is no object is refused by whoever reads it.
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(&call.body) else {
        return Ok(call.body.clone());
    };
    let named = fields.insert("by".to_owned(), json!(caller));
    if named.is_some_and(|named| named != json!(caller)) {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/by",
            format!("{caller} gives an order in the name of somebody else."),
            "Leave `by` out; whoever asks is known.",
        ));
    }
    Ok(Value::Object(fields).to_string().into())
}

/// What whoever asks is told when their request could not be prepared.
pub fn unprepared(error: HandleError) -> Fault {
    match error {
        HandleError::Refused(fault) => fault,
        HandleError::Retry(failure) => undone(&failure),
        HandleError::DeadLetter(why) => Fault::new(
            ErrorCode::InternalError,
            "",
            format!("It could not be done: {why}."),
            "See the log of the service.",
        ),
    }
}

/// What whoever asks is told when it is not known whether their request was done.
pub fn undone(error: &(dyn std::error::Error + 'static)) -> Fault {
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!("It could not be done: {}.", ErrorChain(error)),
        "Look whether it was done, and ask again if not.",
    )
}

/// What whoever asks is told when something could not be read for them.
pub fn unread(error: &(dyn std::error::Error + 'static)) -> Fault {
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!("It could not be read: {}.", ErrorChain(error)),
        "Ask again.",
    )
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
        .map_err(|error| undone(&error))?;
    context.count_step::<M>(&outcome);
    match outcome {
        Outcome::Rejected(fault) => Err(fault),
        Outcome::Appended { event, sequence } => {
            answer(&json!({ "fact": event, "sequence": sequence }))
        }
        Outcome::Ignored(_) => answer(&json!({ "fact": null })),
    }
}
