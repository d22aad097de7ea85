//! The messages of the contract net.

use concord_wire::payload::{Award, CallForProposals};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageType};

use super::draft::Draft;

pub(super) fn call_for_proposals(from: Service, to: AgentId, call: &CallForProposals) -> Draft {
    Draft::new(from, to, MessageType::CallForProposals, call)
        .about(&call.task_id)
        .waiting_until(Some(call.bids_due))
}

pub(super) fn award(from: Service, to: AgentId, award: &Award) -> Draft {
    Draft::new(from, to, MessageType::Award, award)
        .about(&award.work.task_id)
        .waiting_until(Some(award.deadline))
}
