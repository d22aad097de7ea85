//! What follows from the facts of a case.

use concord_protocol::Token;
use concord_protocol::event::{CaseEvent, Record};
use concord_protocol::payload::TaskAssignment;

use crate::effect::Effect;

pub(super) fn effects(record: &Record<CaseEvent>) -> Vec<Effect> {
    match &record.event {
        CaseEvent::Opened(opened) => {
            let confirm = Effect::ConfirmCase { to: opened.opened_by.clone(), request_id: opened.request_id.clone() };
            let assign = opened.participants.iter().map(|agent| Effect::AssignTask {
                to: agent.clone(),
                assignment: TaskAssignment {
                    task: opened.task.clone(),
                    deadline: opened.findings_due,
                    reply_with: vec![Token::fixed("finding")],
                    participants: opened.participants.clone(),
                },
            });
            std::iter::once(confirm).chain(assign).collect()
        }
        CaseEvent::FindingSetAside(aside) => vec![Effect::ReportSetAside {
            to: aside.received.agent_id.clone(),
            message_id: aside.received.message_id.clone(),
            reason: aside.reason,
            what: "finding",
        }],
        CaseEvent::Decided(decided) => vec![Effect::AnnounceDecision { decision: Box::new(decided.decision.clone()) }],
        CaseEvent::FindingRecorded(_)
        | CaseEvent::FindingsClosed(_)
        | CaseEvent::ConflictsReceived(_)
        | CaseEvent::DebateSettled(_) => Vec::new(),
    }
}
