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
//! A second finding of the same agent is set aside as repeated; the same message again is ignored;
//! the same `message_id` with other contents or of another sender, and a sender that takes no part,
//! are refused. The request that opened a case is ignored when it comes again; any other request to
//! open it is refused, for its sender awaits an answer.
//!
//! A challenge is taken while the case can still use its outcome: until it is decided, and after
//! that while a gate is ahead. Provisional outcomes are replaced by the final ones when they come.
//! A decided case with gates waits for people:
//!
//! | input             | no gate ahead | at a gate, something unreviewed          | at a gate, all reviewed |
//! |-------------------|---------------|------------------------------------------|-------------------------|
//! | confirm, override | refused       | gate_reviewed                            | refused                 |
//! | redebate          | refused       | gate_reviewed; a new debate is opened    | refused                 |
//! | pass              | refused       | refused, or gate_passed where the policy | gate_passed             |
//! |                   |               | lets it; what is unreviewed is recorded  |                         |
//!
//! When analyses were done again, their figures give a decision a new version (figures_recorded), once for each run.
//!
//! Participants confirm findings of others until the case is decided (confirmed), and what they write into shared memory is compared
//! while findings are collected (estimate_noted, [`confirming`]).
//! A change of regime flags the case while it is not over (flagged), once for each alert, at most 16 times.
//!
//! Whoever opened the case and operators let agents in while it is not over (joined, [`joining`]).
//!
//! Who may challenge, review and pass is said by the sender's [`Authority`]; nobody reviews what they
//! argued or decided. Where the policy's `reviewers_min` is 2, each of these becomes review_recorded
//! until a second reviewer says the same.

use std::collections::BTreeMap;

use concord_events::{
    CaseEvent, CaseOpened, Deadline, DeadlineElapsed, Detected, Heard, ReceivedFinding, StoredEvent,
};
use concord_wire::payload::{AlertFlag, Challenge, ConflictOutcome, OpenCase, Review};
use concord_wire::{AgentId, CaseId, MessageId, Token};

use super::impact::RunFigures;

mod briefing;
mod challenge;
mod conclude;
mod confirming;
mod decide;
mod dispute;
mod effects;
mod figures;
mod flag;
mod gate;
mod joining;
mod log;
mod membership;
mod opening;
mod outcome;
mod package;
mod passed;
mod reviewers;
mod shown;
mod standing;
mod state;
mod version;

pub use briefing::briefing;
pub(super) use challenge::FINDING;
pub use confirming::{Noted, ReceivedConfirmation, strengthened};
pub(crate) use confirming::{with_share, without_share};
pub(crate) use decide::reused_message_id;
pub use flag::{FLAGS_MAX, flag_of};
pub use joining::{SharedNow, sent_bytes};
pub(crate) use log::confidence as confidence_of;
pub use log::entry_faults;
pub use membership::{
    Sharing, check_member, everyone_in, heard_in_time, is_told_together, told_alone, written_in,
};
pub use opening::PARTICIPANTS_MAX;
pub use package::{DecisionPackage, VersionNote, package};
pub use passed::{PassedGate, gates_passed};
pub use reviewers::may_review_still;
pub use shown::digest_of_shown;
pub use standing::Beside;
pub use state::{Cancellation, CaseState, FINAL_GATE, Phase};

use crate::aggregates::person::Authority;
use crate::aggregates::policy::KnownPolicies;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

/// The state machine of a case.
#[derive(Debug, Clone, Copy)]
pub struct CaseMachine;

/// One input of a case.
#[derive(Debug, Clone)]
pub enum CaseInput {
    /// The request to open the case.
    Open(Box<OpenRequest>),
    /// A participant's finding.
    Finding(Box<ReceivedFinding>),
    /// The conflicts that were detected among its findings.
    Detected(Box<Detected>),
    /// The outcome of one of its debates.
    Resolved(Box<ConflictOutcome>),
    /// A deadline has passed.
    Elapsed(DeadlineElapsed),
    /// One agent challenges the finding of another.
    Challenge(Box<ReceivedChallenge>),
    /// A person reviews a provisional decision, or lets the case pass a gate.
    Review(Box<ReceivedReview>),
    /// Analyses were done again in a run, which has ended.
    Figures {
        /// The run.
        run: u32,
        /// What this run and those before it have come to, by analysis.
        figures: BTreeMap<Token, RunFigures>,
    },
    /// The regime has changed while the case is open.
    Flag(Box<AlertFlag>),
    /// Somebody lets an agent into the case.
    Add(Box<ReceivedAddition>),
    /// A participant confirms the finding of another.
    Confirm(Box<ReceivedConfirmation>),
    /// A participant has written into shared memory.
    Note(Box<Noted>),
    /// An operator cancels the case.
    Cancel {
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
}

/// The wish to let an agent into a case, as the coordinator received it.
#[derive(Debug, Clone)]
pub struct ReceivedAddition {
    /// Who wishes it.
    pub by: AgentId,
    /// The message that brought it; none for an order by request and reply.
    pub request: Option<Heard>,
    /// The agent that is to join.
    pub agent_id: AgentId,
    /// What the sender may do.
    pub sender: Authority,
    /// What the case shares at this time.
    pub shared: SharedNow,
    /// About how many bytes are sent to whoever joins, by [`sent_bytes`].
    pub sent_bytes: usize,
}

/// A challenge, as the coordinator received it.
#[derive(Debug, Clone)]
pub struct ReceivedChallenge {
    /// The message that brought it.
    pub heard: Heard,
    /// The confidence of the challenger, 0 to 1.
    pub confidence: f64,
    /// The payload.
    pub challenge: Challenge,
    /// What the sender may do.
    pub sender: Authority,
}

/// A review, as the coordinator received it.
#[derive(Debug, Clone)]
pub struct ReceivedReview {
    /// The message that brought it.
    pub heard: Heard,
    /// The payload.
    pub review: Review,
    /// What the sender may do.
    pub sender: Authority,
    /// What those may do now who were the first of two reviewers.
    pub first: BTreeMap<AgentId, Authority>,
    /// Whether its signature fits the key that it names; false where nobody signed.
    pub is_signed: bool,
}

/// A request to open a case.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The agent that opens the case.
    pub opened_by: AgentId,
    /// The id of the request's message.
    pub request_id: MessageId,
    /// The payload.
    pub request: OpenCase,
    /// Where the policy stands in the request, as a JSON pointer, for a fault.
    pub policy_pointer: &'static str,
    /// What is stored under the name of the policy that it asks for.
    pub known: KnownPolicies,
    /// What the agent that opens the case may do.
    pub sender: Authority,
}

/// The name of the deadline of phases 1 and 2.
pub const FINDINGS: &str = "findings";
/// The name of the deadline of the whole case.
pub const CASE: &str = "case";

/// The open deadlines of a case in this phase. The time of the case is no deadline any more when it was over and the case waits for its
/// debates.
fn deadlines(phase: Phase, opened: &CaseOpened, waits_for_debates: bool) -> Vec<Deadline> {
    let mut open = Vec::new();
    if phase == Phase::Collecting {
        open.push(Deadline {
            name: Token::fixed(FINDINGS),
            due: opened.findings_due,
        });
    }
    if phase < Phase::Decided && !waits_for_debates {
        open.push(Deadline {
            name: Token::fixed(CASE),
            due: opened.case_due,
        });
    }
    open
}

/// Whether the event alone says that its case is over, see [`CaseState::is_over`]. Others may be over as well: their events do not say so.
pub fn says_over(event: &CaseEvent) -> bool {
    match event {
        CaseEvent::Cancelled(_) => true,
        CaseEvent::Decided(decided) => decided.decision.is_last(),
        CaseEvent::DecisionChanged(changed) => changed.decision.is_last(),
        _ => false,
    }
}

impl Machine for CaseMachine {
    type State = CaseState;
    type Event = CaseEvent;
    type Input = CaseInput;

    fn decide(state: &CaseState, context: &Context, input: &CaseInput) -> Decision<CaseEvent> {
        decide::decide(state, context, input)
    }

    fn apply(state: &mut CaseState, record: StoredEvent<CaseEvent>) {
        let is_last = says_over(&record.event);
        state.apply(record);
        debug_assert!(
            !is_last || state.is_over(),
            "a case goes on after the event that says that it is over"
        );
    }

    fn is_taken(state: &CaseState, id: &MessageId, sender: &AgentId) -> bool {
        state.is_taken(id, sender)
    }

    fn deadlines(state: &CaseState) -> Vec<Deadline> {
        state.opened.as_deref().map_or_else(Vec::new, |opened| {
            deadlines(state.phase, opened, state.waits_for_debates)
        })
    }

    fn deadlines_after(state: &CaseState, record: &StoredEvent<CaseEvent>) -> Vec<Deadline> {
        let waits = state.waits_for_debates;
        match (&record.event, state.opened.as_deref()) {
            (CaseEvent::Opened(opened), _) => deadlines(Phase::Collecting, opened, false),
            (_, None) => Vec::new(),
            (CaseEvent::FindingsClosed(_), Some(opened)) => {
                deadlines(Phase::Detecting, opened, waits)
            }
            (CaseEvent::DecisionAwaited(_), Some(opened)) => deadlines(state.phase, opened, true),
            (CaseEvent::Decided(_) | CaseEvent::Cancelled(_), Some(opened)) => {
                deadlines(Phase::Decided, opened, waits)
            }
            (
                CaseEvent::FindingRecorded(_)
                | CaseEvent::FindingSetAside(_)
                | CaseEvent::ConflictsReceived(_)
                | CaseEvent::DebateSettled(_)
                | CaseEvent::DecisionChanged(_)
                | CaseEvent::FiguresRecorded(_)
                | CaseEvent::Challenged(_)
                | CaseEvent::ReviewRecorded(_)
                | CaseEvent::GateReviewed(_)
                | CaseEvent::GatePassed(_)
                | CaseEvent::Confirmed(_)
                | CaseEvent::EstimateNoted(_)
                | CaseEvent::Flagged(_)
                | CaseEvent::Joined(_),
                Some(opened),
            ) => deadlines(state.phase, opened, waits),
        }
    }

    fn effects(record: &StoredEvent<CaseEvent>) -> Vec<Effect> {
        effects::effects(record)
    }

    fn case_of(record: &StoredEvent<CaseEvent>) -> Option<CaseId> {
        CaseId::new(record.meta.id.as_str()).ok()
    }

    fn creates(input: &CaseInput) -> bool {
        matches!(input, CaseInput::Open(_))
    }

    fn fan_out_bytes(input: &CaseInput) -> usize {
        match input {
            CaseInput::Open(asked) => opening::fan_out_bytes(&asked.request),
            CaseInput::Add(received) => received.sent_bytes,
            _ => 0,
        }
    }

    const MUST_END: bool = true;

    fn begins(event: &CaseEvent) -> bool {
        matches!(event, CaseEvent::Opened(_))
    }

    fn ends(event: &CaseEvent) -> bool {
        matches!(event, CaseEvent::Decided(_) | CaseEvent::Cancelled(_))
    }

    fn may_follow_end(event: &CaseEvent) -> bool {
        // A debate on the ladder may go on after the decision of its case, and gates come after the
        // decision.
        !matches!(
            event,
            CaseEvent::FindingRecorded(_)
                | CaseEvent::FindingsClosed(_)
                | CaseEvent::ConflictsReceived(_)
                | CaseEvent::DecisionAwaited(_)
                | CaseEvent::Confirmed(_)
                | CaseEvent::EstimateNoted(_)
                | CaseEvent::Decided(_)
        )
    }

    fn may_rest(state: &CaseState) -> bool {
        // It waits for its debates, each of which has deadlines of its own.
        state.waits_for_debates && state.open_debates().next().is_some()
    }

    fn changes_after_end(state: &CaseState) -> bool {
        let decision = state.decision.as_ref();
        decision.is_some_and(|decision| decision.version > 0 && !decision.is_final())
            || state.gate().is_some()
    }

    fn recount(after: &CaseState, record: &StoredEvent<CaseEvent>) -> Vec<String> {
        match &record.event {
            CaseEvent::Decided(decided) if decided.decision.version > 0 => version::recount(after),
            CaseEvent::DecisionChanged(_) | CaseEvent::FiguresRecorded(_) => {
                version::recount(after)
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
