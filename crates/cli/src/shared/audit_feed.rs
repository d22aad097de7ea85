//! Giving the auditor what is stored, whether a broker holds it or a bundle.

use concord_domain::assurance::audit::{Auditor, Content, Dead, RawEvent, StoredMessage};
use concord_events::dead_letter::header;
use concord_events::non_event::{COPIED_FROM, NonEvent};
use concord_events::subject::{SystemSubject, matches};
use concord_events::topology::{ConsumerDefinition, ConsumerKind, Layout, StreamKind};
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

/// True when a subject that cannot be parsed matches the inbox of a service. What the coordinator reads of what agents say to each other is
/// not said to it: it passes over what it cannot read.
fn reaches_a_service(layout: &Layout, lane: Lane, subject: &str) -> bool {
    let is_inbox = |consumer: &ConsumerDefinition| {
        let is_one = matches!(
            consumer.kind,
            ConsumerKind::Inbox(_) | ConsumerKind::UrgentInbox(_)
        );
        is_one && consumer.stream_kind.lane() == Some(lane)
    };
    let inboxes = layout.consumers().into_iter().filter(is_inbox);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_inbox_of_a_service_has_to_keep_what_nobody_can_read() {
        let layout = Layout::default();
        for (lane, subject, expected) in [
            (
                Lane::Normal,
                "concord.v1.msg.c$.mal.coordinator.request",
                true,
            ),
            (
                Lane::Urgent,
                "concord.v1.urgent.c$.mal.coordinator.request",
                true,
            ),
            // Requests and answers between agents, and alerts, are read by the coordinator, too.
            (Lane::Normal, "concord.v1.msg.c$.mal.ben.request", false),
            (Lane::Normal, "concord.v1.msg.c$.mal.ben.response", false),
            (Lane::Urgent, "concord.v1.urgent.c$.mal.ben.request", false),
            (Lane::Urgent, "concord.v1.urgent.c$.mal._all.alert", false),
        ] {
            assert_eq!(
                reaches_a_service(&layout, lane, subject),
                expected,
                "{subject}"
            );
        }
    }
}
