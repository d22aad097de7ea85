//! The notifications. What each of them says is declared in [`concord_wire::payload::notification`].

use concord_wire::payload::{Notification, NotificationData};
use concord_wire::subject::Service;
use concord_wire::{MessageType, Priority, Recipient};

use super::draft::Draft;

/// The message of a notification. Its conversation is the debate, thread or message that it is about.
pub(super) fn notify(from: Service, to: Recipient, data: &NotificationData) -> Draft {
    debug_assert!(
        NotificationData::ALL
            .iter()
            .any(|info| info.event == data.event() && info.from == from),
        "{from} sends {}, which the table of notifications has another sender for",
        data.event()
    );
    let payload =
        Notification::new(data).and_then(|payload| serde_json::value::to_raw_value(&payload));
    let draft = Draft {
        payload,
        ..Draft::new(from, to, MessageType::Notification, &())
    };
    match data {
        NotificationData::RequestCompleted(data) => draft.answering(data.request_id.clone()),
        NotificationData::Woken(data) => draft.about(&data.said.message_id).waiting_until(None),
        NotificationData::LoopBroken(data) => draft.about(&data.thread),
        NotificationData::DebateConcluded(data) => {
            draft.about(&data.outcome.conflict_id).at(Priority::High)
        }
        NotificationData::CredibilityChanged(data) => {
            draft.about(&data.debate_id).at(Priority::High)
        }
        NotificationData::DebateResolved(data) => {
            draft.about(&data.outcome.conflict_id).at(Priority::High)
        }
        NotificationData::CaseDecisionChanged(data) => draft.about(&data.change.debate_id),
        NotificationData::GateReviewed(data) => draft.about(&data.debate_id),
        NotificationData::MemorySync(data) => {
            draft.about(&data.debate_id).waiting_until(Some(data.until))
        }
        NotificationData::MemorySynced(data) => draft.about(&data.debate_id),
        NotificationData::ChallengeAcknowledged(data) => draft.about(&data.debate_id),
        NotificationData::DebateEscalated(data) => draft.about(&data.debate_id),
        NotificationData::DebateUnassigned(data) => draft.about(&data.debate_id),
        NotificationData::RulingDue(data) => draft.about(&data.debate_id),
        NotificationData::DebateProvisional(data) => draft.about(&data.debate_id),
        NotificationData::DebateAwaitsGate(data) => draft.about(&data.debate_id),
        NotificationData::OutcomeKnown(data) => draft.about(&data.debate_id),
        NotificationData::ReviewRecorded(data) => match &data.review.debate_id {
            Some(debate) => draft.about(debate),
            None => draft,
        },
        NotificationData::StandDown(data) => draft.about(&data.question),
        NotificationData::TaskCompleted(data) => draft.answering(data.request_id.clone()),
        NotificationData::TaskWithdrawn(data) => draft.about(&data.task_id),
        NotificationData::BidRejected(data) => draft.about(&data.task_id),
        NotificationData::TaskHandedOn(data) => draft.about(&data.task_id),
        NotificationData::ImpactAssessed(data) => match &data.debate_id {
            Some(debate) => draft.about(debate),
            None => draft,
        },
        NotificationData::CaseDecided(_)
        | NotificationData::RerunProgress(_)
        | NotificationData::CaseFiguresRecorded(_)
        | NotificationData::CaseJoined(_)
        | NotificationData::CaseFlagged(_)
        | NotificationData::GatePassed(_)
        | NotificationData::CaseCancelled(_)
        | NotificationData::BoardChanged(_)
        | NotificationData::FindingConfirmed(_)
        | NotificationData::InsightShared(_)
        | NotificationData::InsightsConsolidated(_)
        | NotificationData::CommitmentMade(_)
        | NotificationData::CommitmentEnded(_)
        | NotificationData::AnsweredLate(_)
        | NotificationData::PassedOn(_) => draft,
    }
}
