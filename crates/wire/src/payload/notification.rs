//! The payload of `notification`, and what it contains for each event that Concord tells of.
//!
//! The table at the end of this file lists every notification that Concord sends: read it first. Agents may send notifications
//! of their own with other events; [`Notification`] is the form of them all.

mod case;
mod debate;
mod exchange;
mod group;
mod impact;
mod memory;
mod shared;
mod task;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use case::{
    CaseCancelled, CaseDecided, CaseDecisionChanged, CaseFiguresRecorded, CaseFlagged, CaseJoined,
    FindingConfirmed, GatePassed, GateReviewed, ReviewRecorded,
};
pub use debate::{
    ChallengeAcknowledged, CredibilityChanged, DebateAwaitsGate, DebateConcluded, DebateEscalated,
    DebateProvisional, DebateResolved, DebateUnassigned, OutcomeKnown, RulingDue, UnassignedReason,
};
pub use exchange::{AnsweredLate, LoopBroken, PassedOn, RequestCompleted, Woken};
pub use group::StandDown;
pub use impact::{ImpactAssessed, RerunProgress};
pub use memory::{InsightShared, InsightsConsolidated, MemorySync, MemorySynced};
pub use shared::{BoardChanged, CommitmentEnded, CommitmentMade};
pub use task::{BidRejected, TaskCompleted, TaskHandedOn, TaskWithdrawn};

use crate::envelope::{Envelope, MessageType, from_json};
use crate::fault::Fault;
use crate::subject::Service;

/// The severity of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationSeverity {
    /// For information.
    #[default]
    Info,
    /// Worth a look.
    Warning,
    /// Something failed.
    Error,
}

/// The payload of `notification`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    /// What happened, for example `debate_resolved`, `case_decided`.
    pub event: String,
    /// The data about the event.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub data: Value,
    /// The severity.
    #[serde(default)]
    pub severity: NotificationSeverity,
}

impl Notification {
    /// The notification of an event that Concord tells of. Its `data` has the keys in alphabetical order, because it is made
    /// through a JSON value.
    pub fn new(data: &NotificationData) -> Result<Self, serde_json::Error> {
        Ok(Self {
            event: data.event().to_owned(),
            data: serde_json::to_value(data)?,
            severity: NotificationSeverity::Info,
        })
    }

    /// The data as the type of its event; `None` for an event that Concord does not send. The fault's pointer begins with
    /// `/payload/data`.
    pub fn typed(&self) -> Option<Result<NotificationData, Fault>> {
        NotificationData::decode(&self.event, self.data.to_string().as_bytes())
    }
}

/// The `event` of a notification by which an agent says that it still works on what it was asked.
pub const PROGRESS: &str = "progress";

/// Whether an agent says that it still works on what it was asked: that answers nothing. Any other notification that names a request says
/// that it is complete.
pub fn is_progress(message: &Envelope) -> bool {
    #[derive(Deserialize)]
    struct Told {
        event: String,
    }
    message.message_type == MessageType::Notification
        && message
            .payload::<Told>()
            .is_ok_and(|told| told.event == PROGRESS)
}

/// The data of the notification of one event.
pub trait EventData {
    /// The `event` of the notification.
    const EVENT: &'static str;
}

/// A notification that Concord sends, as the reference describes it.
#[derive(Debug, Clone, Copy)]
pub struct NotificationInfo {
    /// The `event` of the notification.
    pub event: &'static str,
    /// The service that sends it.
    pub from: Service,
    /// To whom it is sent, in words.
    pub to: &'static str,
    /// When it is sent, in a sentence.
    pub when: &'static str,
    /// Makes the schema of its `data`.
    pub schema: crate::MakeSchema,
}

/// Declares every notification once: event, sender, recipient, meaning, and the type of its data.
macro_rules! notifications {
    ($( $name:ident = $event:literal, from: $from:ident, to: $to:literal, $when:literal; )+) => {
        /// What a notification of Concord says: its event, with the data about it.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum NotificationData {
            $( #[doc = $when] $name($name), )+
        }

        impl NotificationData {
            /// Every notification that Concord sends.
            pub const ALL: &'static [NotificationInfo] = &[$( NotificationInfo {
                event: $event, from: Service::$from, to: $to, when: $when,
                schema: |generator| generator.subschema_for::<$name>(),
            } ),+];

            /// The `event` of the notification.
            pub fn event(&self) -> &'static str {
                match self { $( Self::$name(_) => $event, )+ }
            }

            fn decode(event: &str, data: &[u8]) -> Option<Result<Self, Fault>> {
                match event {
                    $( $event => Some(from_json(data, "/payload/data").map(Self::$name)), )+
                    _ => None,
                }
            }
        }

        $(
            impl EventData for $name {
                const EVENT: &'static str = $event;
            }

            impl From<$name> for NotificationData {
                fn from(data: $name) -> Self {
                    Self::$name(data)
                }
            }
        )+
    };
}

notifications! {
    CaseDecided = "case_decided", from: Coordinator, to: "everyone in the case",
        "The case has its decision.";
    CaseDecisionChanged = "case_decision_changed", from: Coordinator, to: "each participant, and who opened the case",
        "An outcome that came after the decision has given it a new version.";
    ReviewRecorded = "review_recorded", from: Coordinator, to: "everyone in the case",
        "A first reviewer has said what is to happen at a gate. It counts when a second reviewer says the same.";
    GateReviewed = "gate_reviewed", from: Coordinator, to: "everyone in the case",
        "A person has reviewed a provisional decision at a gate.";
    GatePassed = "gate_passed", from: Coordinator, to: "everyone in the case",
        "A person has let the case pass a gate.";
    FindingConfirmed = "finding_confirmed", from: Coordinator, to: "whose finding it is",
        "A participant of the case has confirmed a finding of another.";
    CaseJoined = "case_joined", from: Coordinator, to: "everyone in the case",
        "An agent has joined the case after it was opened.";
    CaseFlagged = "case_flagged", from: Coordinator, to: "everyone in the case",
        "The regime has changed while the case is open.";
    CaseCancelled = "case_cancelled", from: Coordinator, to: "everyone in the case",
        "An operator has cancelled the case.";
    DebateResolved = "debate_resolved", from: DebateFacilitator, to: "everyone in the case; where its parties have settled it, by discussion or vote, the agent adapter passes it on to each of them that it hosts",
        "A debate has ended.";
    DebateConcluded = "debate_concluded", from: Coordinator, to: "each participant, and who opened the case, at high priority; not after a vote or a discussion that has settled it",
        "A debate has ended, and the case has taken its result into account.";
    MemorySync = "memory_sync", from: DebateFacilitator, to: "each party of a debate that begins",
        "Write what you know into shared memory now, acknowledge, and write nothing more until the snapshot is there or the time is over.";
    MemorySynced = "memory_synced", from: DebateFacilitator, to: "each party of a debate that begins",
        "The snapshot that the debate refers to is taken: everybody writes again.";
    InsightShared = "insight_shared", from: Coordinator, to: "each participant, and who opened the case, but not who wrote it",
        "Somebody in the case has written an entry of shared memory that matters more than the case's policy holds back.";
    InsightsConsolidated = "insights_consolidated", from: Coordinator, to: "each participant, and who opened the case",
        "The case has come to a checkpoint: what was held back of shared memory is told, together and once.";
    ChallengeAcknowledged = "challenge_acknowledged", from: DebateFacilitator, to: "the challenger",
        "The challenged agent has acknowledged the challenge.";
    DebateEscalated = "debate_escalated", from: DebateFacilitator, to: "everyone in the case",
        "A debate has climbed to a higher level of the ladder.";
    DebateUnassigned = "debate_unassigned", from: DebateFacilitator, to: "the expert who had the debate",
        "A debate was taken from its expert: a ruling of this expert is awaited no longer.";
    RulingDue = "ruling_due", from: DebateFacilitator, to: "the expert who has the debate",
        "Half, or nearly all, of the time for a ruling has passed.";
    DebateProvisional = "debate_provisional", from: DebateFacilitator, to: "everyone in the case",
        "Nobody has ruled in time: the cautious position stands until a gate has reviewed it.";
    DebateAwaitsGate = "debate_awaits_gate", from: DebateFacilitator, to: "everyone in the case",
        "The time of a provisional decision is over: it waits for the review at its gate.";
    OutcomeKnown = "outcome_known", from: DebateFacilitator, to: "everyone in the case",
        "It became known, after the debate, what was right; the track records of its parties change.";
    CredibilityChanged = "credibility_changed", from: DebateFacilitator, to: "each participant, who opened the case, and the agent, at high priority",
        "A debate was decided by a person, or it became known what was right in it: the credibility of one of its parties is another one.";
    BoardChanged = "board_changed", from: Coordinator, to: "everyone in the case",
        "Somebody in the case has written an entry of its board.";
    CommitmentMade = "commitment_made", from: Coordinator, to: "everyone in the case",
        "Somebody in the case has committed to something: nobody else can until that has ended.";
    CommitmentEnded = "commitment_ended", from: Coordinator, to: "everyone in the case, and the holder where it has not ended it",
        "A commitment has ended.";
    CaseFiguresRecorded = "case_figures_recorded", from: Coordinator, to: "each participant, and who opened the case",
        "Analyses were done again, and their new figures have given the decision a new version.";
    ImpactAssessed = "impact_assessed", from: Coordinator, to: "who opened the case, and whose analyses are affected",
        "A decision or an assumption has changed on which analyses rest.";
    RerunProgress = "rerun_progress", from: Coordinator, to: "who asked for the run, and who opened the case",
        "Analyses are done again: the run has begun, or one more of its steps has ended.";
    RequestCompleted = "request_completed", from: Coordinator, to: "the agent that asked",
        "A request with a callback was answered. It is not sent where the answer itself was a notification.";
    Woken = "woken", from: AgentAdapter, to: "the agent that is woken",
        "A message concerns an agent although it was not addressed to it. An answer is expected.";
    PassedOn = "passed_on", from: AgentAdapter, to: "each hosted agent that can read the message and is not woken by it",
        "An agent has sent a notification to everybody. The hosted agent is given that notification; no answer is published.";
    LoopBroken = "loop_broken", from: AgentAdapter, to: "each of the two agents",
        "Two agents have answered each other too often: for a while neither is woken by the other in this thread.";
    AnsweredLate = "answered_late", from: AgentAdapter, to: "the coordinator",
        "A hosted agent has answered a request after its deadline. It is sent under the name of the hosted agent; the coordinator records the answer.";
    StandDown = "stand_down", from: Coordinator, to: "an agent that was asked by a question to the group and has not answered",
        "The question has ended: an answer is not needed any more.";
    TaskCompleted = "task_completed", from: Coordinator, to: "who opened the task",
        "A task has its result.";
    TaskWithdrawn = "task_withdrawn", from: Coordinator, to: "an agent that works on the task",
        "What the agent does for the task is not needed any more.";
    BidRejected = "bid_rejected", from: Coordinator, to: "a bidder",
        "Another bid was awarded, or none.";
    TaskHandedOn = "task_handed_on", from: Coordinator, to: "who opened the task, and who had it",
        "An agent has handed a task on to another.";
}

#[cfg(test)]
mod tests;
