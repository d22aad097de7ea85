//! Refusing a message: its sender gets an `error` with code, place and advice, and the original is kept under `dead`.

use concord_events::dead_letter::DeadReason;
use concord_events::topology::StreamKind;
use concord_wire::envelope::{ENVELOPE_BYTES_MAX, Metadata};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{
    CaseId, Envelope, ErrorCode, Extensions, Fault, MessageId, MessageType, Priority, Recipient,
    dialect as wire_dialect,
};
use serde_json::{Value, json};

use crate::codec::dialect::{plain, to_answer_in};
use crate::context::ServiceContext;
use crate::delivery::Delivery;
use crate::delivery::dead_letter::{self, Original};
use crate::error_chain::ErrorChain;
use crate::event_store::Error;
use crate::ports::Ports;

/// Refuses a delivery. Its sender is told first: what is handled again may not be refused again, and what is kept was told.
/// What an agent has sent is done with then, also where there is no room for its letter.
pub async fn refuse<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    fault: &Fault,
    original: Original,
) -> Result<(), Error> {
    tracing::info!(subject = %delivery.subject, sequence = delivery.sequence, %fault, "Refused a message.");
    tell_sender(context, delivery, fault).await?;
    let reason = DeadReason::from(fault.code);
    match dead_letter::keep(context, delivery, fault, reason, original).await {
        // No service has failed to process what came too late, though its letter has the same reason.
        Ok(()) => context.count_dead(match fault.code {
            ErrorCode::Timeout => "late",
            _ => reason.as_str(),
        }),
        Err(error) if error.is_no_room() && ends_without_letter(context, delivery, original) => {
            tracing::warn!(
                subject = %delivery.subject, sequence = delivery.sequence, error = %ErrorChain(&error),
                "There is no room for the dead letter of a refused message. It is not kept."
            );
            context.count_dead("unkept");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Whether a refused delivery may be done with though its letter has no room. Agents could send any number of them, and all would be
/// delivered again and again; what a service has said waits for room.
fn ends_without_letter<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    original: Original,
) -> bool {
    let sender = context.ports.subjects().sender_of(&delivery.subject);
    let of_agent = sender.is_some_and(|sender| Service::parse(sender.as_str()).is_err());
    of_agent || original == Original::Goes
}

/// Tells the sender of a delivery what is wrong with it, where there is a sender that can be told.
pub async fn tell_sender<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    fault: &Fault,
) -> Result<(), Error> {
    tell(context, delivery, ErrorReport::from(fault)).await
}

/// The same with a report that says more than a fault.
pub(crate) async fn tell<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    mut report: ErrorReport,
) -> Result<(), Error> {
    let subjects = context.ports.subjects();
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
    let dialect = to_answer_in(
        delivery.headers.as_ref(),
        &delivery.payload,
        parsed.as_ref(),
        || context.ports.dialect_by_card(&sender),
    );
    let case = match &parsed {
        Some(Subject::Message { case, .. }) => case.clone(),
        _ => None,
    };
    // By the stream and not by the subject, which may be the very thing that is wrong: a sequence is unique in its
    // stream only, and two refusals under one id would be one.
    let urgent = delivery.stream == context.ports.layout().stream_name(StreamKind::Urgent);
    let lane = if urgent { Lane::Urgent } else { Lane::Normal };
    let message_id = MessageId::of_refusal(lane.as_str(), delivery.sequence);
    // One that is too large is not searched for its id: its place is said.
    let is_readable = delivery.payload.len() <= ENVELOPE_BYTES_MAX;
    let body = is_readable
        .then(|| plain(&delivery.payload, delivery.headers.as_ref()).ok())
        .flatten();
    let refused_id = body
        .as_deref()
        .and_then(wire_dialect::id_of)
        .map(|id| id.to_string());
    let correlation_id = body.as_deref().and_then(wire_dialect::correlation_of);
    if let (Some(body), Some(subject)) = (&body, &parsed) {
        report = as_written(report, delivery, body, subject);
    }
    let refusal = Refusal {
        message_id,
        correlation_id,
        refused_id,
        to: sender.into(),
        case_id: case,
        report,
    };
    let envelope = error_message(context, delivery, refusal)?;
    context
        .ports
        .publish_in(dialect, &envelope, delivery.trace.as_ref())
        .await
}

/// The report with the place of the fault, and the names in its advice, as the sender wrote them, whatever the dialect.
fn as_written(
    mut report: ErrorReport,
    delivery: &Delivery,
    body: &[u8],
    subject: &Subject,
) -> ErrorReport {
    let Subject::Message { kind, .. } = subject else {
        return report;
    };
    let (headers, payload) = (delivery.headers.as_ref(), &delivery.payload);
    let dialect = to_answer_in(headers, payload, Some(subject), || None);
    for advice in &mut report.recovery_suggestions {
        *advice = wire_dialect::written_advice(advice, dialect);
    }
    if let Some(Value::String(pointer)) = report.details.get_mut("pointer") {
        let kind = MessageType::from(kind.clone());
        *pointer = wire_dialect::written_pointer(pointer, body, dialect, &kind);
    }
    report
}

/// What the sender of a refused message is told.
struct Refusal {
    message_id: MessageId,
    /// The id of the refused message, where it has one.
    refused_id: Option<String>,
    /// The conversation that it says it belongs to.
    correlation_id: Option<String>,
    to: Recipient,
    case_id: Option<CaseId>,
    report: ErrorReport,
}

fn error_message<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    refusal: Refusal,
) -> Result<Envelope, Error> {
    let Refusal {
        message_id,
        refused_id,
        correlation_id,
        to,
        case_id,
        mut report,
    } = refusal;
    report
        .details
        .insert("subject".into(), Value::String(delivery.subject.clone()));
    report
        .details
        .insert("sequence".into(), json!(delivery.sequence));
    if let Some(id) = &refused_id {
        report
            .details
            .insert("message_id".into(), Value::String(id.clone()));
    }
    Ok(Envelope {
        message_id,
        timestamp: context.ports.now(),
        from_agent: context.service.agent_id(),
        to_agent: to,
        message_type: MessageType::Error,
        case_id,
        correlation_id: correlation_id.or_else(|| refused_id.clone()),
        reply_to: refused_id,
        round: None,
        priority: Priority::Normal,
        requires_response: false,
        deadline: None,
        payload: serde_json::value::to_raw_value(&report)?,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..Metadata::default()
        },
        extensions: Extensions::default(),
    })
}
