//! Bugs of questions to the group that can be injected.

use concord_coordinator::route::question::read_answer;
use concord_domain::aggregates::question::{QuestionInput, QuestionMachine, QuestionState, weigh};
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_wire::Timestamp;

use super::{decided_on, said};
use crate::faults::InjectedBug;
use crate::ports::SimPorts;

/// An answer counts although the question has ended, or although its time was over when it was stored.
pub(super) async fn answer_badly(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let Some((id, answer)) = read_answer(&envelope, delivery.stored_at) else {
        return Ok(());
    };
    let context = service.of_message(envelope.message_id);
    let input = QuestionInput::Answer(Box::new(weigh(answer, None)));
    let ends_again = bug == InjectedBug::QuestionEndsAgain;
    let forget = |known: &mut QuestionState| {
        if ends_again {
            known.is_ended = false;
        } else if let Some(opened) = &mut known.opened {
            opened.answers_due = Timestamp::from_unix_millis(u32::MAX.into()).plus_millis(1 << 45);
        }
    };
    decided_on::<QuestionMachine>(&service.ports, &id, &context, &input, |_| true, forget).await
}
