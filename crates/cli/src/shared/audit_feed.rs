//! Giving the auditor what is stored, whether a broker holds it or a bundle.

use concord_domain::assurance::audit::{Auditor, Content, Dead, RawEvent, StoredMessage};
use concord_events::dead_letter::header;
use concord_events::non_event::{COPIED_FROM, NonEvent};
use concord_events::subject::{SystemSubject, matches};
use concord_events::topology::{Layout, StreamKind};
use concord_wire::header::DIALECT;
use concord_wire::subject::Lane;
use concord_wire::{Dialect, dialect};

use crate::shared::failure::Failure;
use crate::shared::stream_reader::StreamMessage;

/// Gives the auditor a message of a stream of this kind.
pub(crate) fn take(
    layout: &Layout,
    auditor: &mut Auditor,
    kind: StreamKind,
    stored: &StreamMessage,
) -> Result<(), Failure> {
    match (kind, kind.lane()) {
        (StreamKind::Events, _) => event(layout, auditor, stored)?,
        (_, Some(lane)) => message(layout, auditor, lane, stored),
        _ => dead(layout, auditor, stored),
    }
    Ok(())
}

fn event(layout: &Layout, auditor: &mut Auditor, stored: &StreamMessage) -> Result<(), Failure> {
    if let Some(foreign) = stored.non_event {
        auditor.foreign(stored.sequence, &stored.subject, foreign);
        return Ok(());
    }
    let Ok(SystemSubject::Event {
        aggregate,
        id,
        event: name,
    }) = layout.subjects.parse(&stored.subject)
    else {
        return Err(Failure::failed(format!(
            "{} at {} is among the events and is none; it was stored by another version, or by no service",
            stored.subject, stored.sequence
        )));
    };
    let bytes = &stored.payload;
    auditor.event(&RawEvent {
        sequence: stored.sequence,
        aggregate,
        id: &id,
        event: &name,
        bytes,
    });
    Ok(())
}

fn message(layout: &Layout, auditor: &mut Auditor, lane: Lane, stored: &StreamMessage) {
    match layout.subjects.parse(&stored.subject) {
        Ok(subject) => auditor.message(&StoredMessage {
            sequence: stored.sequence,
            subject: &subject,
            declared: Dialect::parse(stored.header(DIALECT)),
            content: Content::Bytes(&stored.payload),
        }),
        // Only messages to a service have to be answered and kept.
        Err(_) if reaches_a_service(layout, lane, &stored.subject) => {
            auditor.malformed_message(lane, stored.sequence)
        }
        Err(_) => {}
    }
}

/// True when a subject that cannot be parsed matches the inbox of a service.
fn reaches_a_service(layout: &Layout, lane: Lane, subject: &str) -> bool {
    let inboxes = layout
        .consumers()
        .into_iter()
        .filter(|consumer| consumer.stream_kind.lane() == Some(lane));
    inboxes
        .map(|consumer| consumer.filter)
        .any(|filter| matches(&filter, subject))
}

fn dead(layout: &Layout, auditor: &mut Auditor, stored: &StreamMessage) {
    if !stored.is_letter() {
        let is_copy = !stored.header(COPIED_FROM).is_empty();
        if let Some(foreign) = NonEvent::of(is_copy, &stored.raw) {
            auditor.foreign(stored.sequence, &stored.subject, foreign);
        }
        return;
    }
    let subject = layout.subjects.parse(stored.header(header::SUBJECT)).ok();
    let stream = stored.header(header::STREAM);
    let lanes = [
        (StreamKind::Messages, Lane::Normal),
        (StreamKind::Urgent, Lane::Urgent),
    ];
    let lane = lanes
        .into_iter()
        .find(|(kind, _)| layout.stream_name(*kind) == stream)
        .map(|(_, lane)| lane);
    let position = lane.zip(stored.header(header::SEQUENCE).parse().ok());
    let id = dialect::id_of(&stored.payload);
    auditor.dead(&Dead {
        subject: subject.as_ref(),
        position,
        message_id: id.as_ref(),
    });
}
