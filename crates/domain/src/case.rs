//! A case: the five phases from opening to decision. Owned by the coordinator.
//!
//! | phase        | Open    | Finding                         | Detected                  | Resolved           | findings due   | case due |
//! |--------------|---------|---------------------------------|---------------------------|--------------------|----------------|----------|
//! | new          | opened  | refused: unknown case           | refused                   | refused            | -              | -        |
//! | collecting   | refused | finding_recorded, or            | refused: not complete     | debate_settled     | findings_closed| decided  |
//! |              |         | findings_closed with the last   |                           |                    |                |          |
//! | detecting    | refused | finding_set_aside (late)        | conflicts_received, or    | debate_settled     | ignored        | decided  |
//! |              |         |                                 | decided if all are settled|                    |                |          |
//! | deliberating | refused | finding_set_aside (late)        | ignored                   | debate_settled, or | ignored        | decided  |
//! |              |         |                                 |                           | decided by the last|                |          |
//! | decided      | refused | finding_set_aside (late)        | ignored                   | ignored            | ignored        | ignored  |
//!
//! A second finding of the same agent is set aside as repeated; the same message again is ignored; the same
//! `message_id` with other contents or of another sender, and a sender that takes no part, are refused. The request that
//! opened a case is ignored when it comes again; any other request to open it is refused, for its sender awaits an answer.

use concord_protocol::event::{CaseEvent, CaseOpened, Deadline, DeadlineElapsed, Detected, ReceivedFinding, Record};
use concord_protocol::payload::{ConflictOutcome, OpenCase};
use concord_protocol::policy::Policy;
use concord_protocol::{AgentId, CaseId, MessageId, Token};

mod decide;
mod effects;
mod outcome;
mod package;
mod state;

pub use decide::PARTICIPANTS_MAX;
pub(crate) use decide::reused_message_id;
pub use package::{DecisionPackage, package};
pub use state::{CaseState, Phase};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

/// The case machine.
#[derive(Debug, Clone, Copy)]
pub struct CaseMachine;

/// What can be asked of a case.
#[derive(Debug, Clone)]
pub enum CaseInput {
    /// Open it.
    Open(Box<OpenRequest>),
    /// A participant's finding.
    Finding(Box<ReceivedFinding>),
    /// The conflicts among its findings.
    Detected(Box<Detected>),
    /// The end of one of its debates.
    Resolved(Box<ConflictOutcome>),
    /// A deadline has passed.
    Elapsed(DeadlineElapsed),
}

/// A request to open a case, its policy resolved.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// Who asks.
    pub opened_by: AgentId,
    /// In which message.
    pub request_id: MessageId,
    /// What is asked.
    pub request: OpenCase,
    /// The rules.
    pub policy: Policy,
}

/// Name of the deadline of phases 1 and 2.
pub const FINDINGS: &str = "findings";
/// Name of the deadline of the whole case.
pub const CASE: &str = "case";

/// What a case waits for.
fn deadlines(phase: Phase, opened: &CaseOpened) -> Vec<Deadline> {
    let mut open = Vec::new();
    if phase == Phase::Collecting {
        open.push(Deadline { name: Token::fixed(FINDINGS), due: opened.findings_due });
    }
    if phase != Phase::Decided {
        open.push(Deadline { name: Token::fixed(CASE), due: opened.case_due });
    }
    open
}

impl Machine for CaseMachine {
    type State = CaseState;
    type Event = CaseEvent;
    type Input = CaseInput;

    fn decide(state: &CaseState, context: &Context, input: &CaseInput) -> Decision<CaseEvent> {
        decide::decide(state, context, input)
    }

    fn apply(state: &mut CaseState, record: Record<CaseEvent>) {
        state.apply(record);
    }

    fn deadlines(state: &CaseState) -> Vec<Deadline> {
        state.opened.as_deref().map_or_else(Vec::new, |opened| deadlines(state.phase, opened))
    }

    fn deadlines_after(state: &CaseState, record: &Record<CaseEvent>) -> Vec<Deadline> {
        match (&record.event, state.opened.as_deref()) {
            (CaseEvent::Opened(opened), _) => deadlines(Phase::Collecting, opened),
            (_, None) => Vec::new(),
            (CaseEvent::FindingsClosed(_), Some(opened)) => deadlines(Phase::Detecting, opened),
            (CaseEvent::Decided(_), Some(opened)) => deadlines(Phase::Decided, opened),
            (
                CaseEvent::FindingRecorded(_)
                | CaseEvent::FindingSetAside(_)
                | CaseEvent::ConflictsReceived(_)
                | CaseEvent::DebateSettled(_),
                Some(opened),
            ) => deadlines(state.phase, opened),
        }
    }

    fn effects(record: &Record<CaseEvent>) -> Vec<Effect> {
        effects::effects(record)
    }

    fn case_of(record: &Record<CaseEvent>) -> Option<CaseId> {
        CaseId::new(record.meta.id.as_str()).ok()
    }

    fn creates(input: &CaseInput) -> bool {
        matches!(input, CaseInput::Open(_))
    }
}

#[cfg(test)]
mod tests;
