//! The messages about requests and agents.

use concord_wire::payload::{Notification, NotificationSeverity, Response, ResponseStatus};
use concord_wire::subject::Service;
use concord_wire::{MessageId, MessageType, Recipient};

use super::{Draft, Effect};

/// The event of a notification that a request with a callback is complete.
pub(super) const REQUEST_COMPLETED: &str = "request_completed";

/// The event of a notification that a message concerns an agent although it was not addressed to it.
pub const WOKEN: &str = "woken";

/// The event of a notification to the coordinator that an answer was kept from who asked, because it came too late. Its data
/// has the answer, in `message`.
pub const ANSWERED_LATE: &str = "answered_late";

/// The message of an effect about a request or an agent; others have drafts of their own.
pub(super) fn draft(effect: Effect, owner: Service) -> Draft {
    match effect {
        Effect::Respond {
            to,
            request_id,
            result,
        } => {
            let (errors, warnings) = (Vec::new(), Vec::new());
            let payload = Response {
                status: ResponseStatus::Success,
                result,
                errors,
                warnings,
            };
            answering(
                request_id,
                Draft::new(owner, to, MessageType::Response, &payload),
            )
        }
        Effect::FailRequest {
            to,
            request_id,
            report,
        } => answering(
            request_id,
            Draft::new(owner, to, MessageType::Error, &report),
        ),
        Effect::CompleteRequest {
            to,
            request_id,
            data,
        } => {
            let payload = Notification {
                event: REQUEST_COMPLETED.into(),
                data,
                severity: NotificationSeverity::Info,
            };
            answering(
                request_id,
                Draft::new(owner, to, MessageType::Notification, &payload),
            )
        }
        Effect::Wake {
            to,
            message_id,
            data,
        } => {
            let payload = Notification {
                event: WOKEN.into(),
                data,
                severity: NotificationSeverity::Info,
            };
            let draft = Draft::new(owner, to, MessageType::Notification, &payload);
            Draft {
                correlation_id: Some(message_id.to_string()),
                requires_response: true,
                ..draft
            }
        }
        Effect::AnnounceAgent(joined) => {
            Draft::new(owner, Recipient::All, MessageType::AgentJoined, &joined)
        }
        Effect::AnnounceStatus(report) => {
            Draft::new(owner, Recipient::All, MessageType::Status, &report)
        }
        other => super::ladder::draft(other, owner),
    }
}

fn answering(request_id: MessageId, draft: Draft) -> Draft {
    Draft {
        correlation_id: Some(request_id.to_string()),
        reply_to: Some(request_id),
        ..draft
    }
}
