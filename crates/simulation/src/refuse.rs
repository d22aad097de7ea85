//! Refusing what cannot be used: the sender is told, and the original is kept among the dead.

use concord_events::dead_letter::DeadReason;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_runtime::Publisher;
use concord_runtime::broker::Operation;
use concord_runtime::event_store::Error;
use concord_wire::envelope::Metadata;
use concord_wire::payload::ErrorReport;
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{Envelope, ErrorCode, Extensions, Fault, MessageId, MessageType, Priority};

use crate::broker::Publication;
use crate::network::Request;
use crate::process::{Delivery, Process};

/// Refuses a delivery.
pub(crate) async fn refuse(
    process: &Process,
    delivery: &Delivery,
    fault: &Fault,
) -> Result<(), Error> {
    process
        .connection
        .world
        .lock()
        .note(|| format!("refused {}: {fault}", delivery.subject));
    tell_sender(process, delivery, fault).await?;
    keep(process, delivery, fault, DeadReason::from(fault.code)).await
}

/// Keeps what failed again and again. True when it is kept.
pub(crate) async fn give_up(process: &Process, delivery: &Delivery) -> bool {
    let fault = Fault::new(
        ErrorCode::InternalError,
        "",
        "The message could not be processed.",
        "It is kept; the operator can send it again with `concord dead retry`.",
    );
    process.connection.world.lock().give_up(delivery);
    tell_sender(process, delivery, &fault).await.is_ok()
        && keep(process, delivery, &fault, DeadReason::Exhausted)
            .await
            .is_ok()
}

async fn tell_sender(process: &Process, delivery: &Delivery, fault: &Fault) -> Result<(), Error> {
    let subjects = process.connection.subjects();
    let Some(sender) = subjects.sender_of(&delivery.subject) else {
        return Ok(());
    };
    let parsed = subjects.parse(&delivery.subject).ok();
    let is_error =
        matches!(&parsed, Some(Subject::Message { kind, .. }) if kind.as_str() == "error");
    // A service is not told, and an error is not answered by an error: neither could lead to anything but a loop.
    if is_error || Service::parse(sender.as_str()).is_ok() {
        return Ok(());
    }
    let (lane, case_id) = match parsed {
        Some(Subject::Message { lane, case, .. }) => (lane, case),
        _ => (Lane::Normal, None),
    };
    let envelope = Envelope {
        message_id: MessageId::of_refusal(lane.as_str(), delivery.sequence),
        timestamp: process.connection.now(),
        from_agent: process.service.agent_id(),
        to_agent: sender.into(),
        message_type: MessageType::Error,
        case_id,
        correlation_id: None,
        reply_to: None,
        round: None,
        priority: Priority::Normal,
        requires_response: false,
        deadline: None,
        payload: serde_json::value::to_raw_value(&ErrorReport::from(fault))?,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..Metadata::default()
        },
        extensions: Extensions::default(),
    };
    process.ledger.publish(&[envelope], None).await
}

async fn keep(
    process: &Process,
    delivery: &Delivery,
    fault: &Fault,
    reason: DeadReason,
) -> Result<(), Error> {
    let subject = SystemSubject::DeadLetter {
        service: process.service,
        reason: reason.token(),
    };
    let publication = Publication {
        subject: process.connection.subjects().build(&subject),
        id: Some(format!(
            "dead-{}-{:?}-{}",
            delivery.name, delivery.stream, delivery.sequence
        )),
        body: std::sync::Arc::clone(&delivery.body),
        original: Some((delivery.stream, delivery.sequence, fault.pointer.clone())),
    };
    let request = Request::Publish {
        kind: StreamKind::Dead,
        publication,
    };
    process
        .connection
        .ask(Operation::StoreDeadLetter, request)
        .await
        .map(|_| ())
}
