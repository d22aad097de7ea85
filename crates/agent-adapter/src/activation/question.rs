//! Which messages are questions to the group, and how each is to be answered.

use concord_domain::aggregates::question;
use concord_events::QuestionTerms;
use concord_events::topology::StreamKind;
use concord_runtime::Ports;
use concord_runtime::delivery::Delivery;
use concord_wire::payload::GroupQuestion;
use concord_wire::{Envelope, Fault, MessageType, Recipient};

/// How a message is to be answered, where it is a question to the group: a `group_query`, a `peer_request`, or what is asked of
/// whoever can help in a type of which nothing else is known. What one agent is asked by its name is between the two.
pub(super) fn terms_of<P: Ports>(
    envelope: &Envelope,
    delivery: &Delivery,
    ports: &P,
) -> Result<Option<QuestionTerms>, Fault> {
    let is_for_one = matches!(envelope.to_agent, Recipient::Agent(_));
    let asked = match &envelope.message_type {
        _ if is_for_one => return Ok(None),
        MessageType::GroupQuery | MessageType::PeerRequest => GroupQuestion::of(envelope)?,
        other
            if question::may_be(other)
                && envelope.to_agent == Recipient::Any
                && envelope.requires_response =>
        {
            GroupQuestion::of(envelope).unwrap_or_default()
        }
        _ => return Ok(None),
    };
    let urgent = ports.layout().stream_name(StreamKind::Urgent);
    Ok(Some(QuestionTerms {
        mode: asked.mode.unwrap_or_default(),
        synthesiser: asked.synthesiser,
        domain: asked.domain,
        deadline: envelope.deadline,
        sequence: delivery.sequence,
        urgent: delivery.stream == urgent,
    }))
}
