//! Events of the queue of debates that wait for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId, DebateId};
use concord_wire::payload::{Contact, DebatePriority, Expert, Overflow};
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to the review queue. Messages follow from the events of the debates concerned.
    ReviewQueueEvent of Aggregate::ReviewQueue;
    ExpertRegistered(ExpertRegistered) = "expert_registered", effects: false, deadlines: false,
        "An expert can be given debates, or has other particulars than before.";
    ExpertLeft(ExpertLeft) = "expert_left", effects: false, deadlines: false,
        "An expert is given no more debates; those that the expert had wait again.";
    Enqueued(Enqueued) = "enqueued", effects: false, deadlines: false,
        "A debate waits for a person.";
    Assigned(Assigned) = "assigned", effects: false, deadlines: false,
        "An expert has room, and has been given the first debate in the queue that they can take.";
    Returned(Returned) = "returned", effects: false, deadlines: false,
        "An expert has let a debate lie while somebody else can take it; it waits again.";
    Overflowed(Overflowed) = "overflowed", effects: false, deadlines: false,
        "The queue has no place for a debate; the policy of its case says what becomes of it.";
    Released(Released) = "released", effects: false, deadlines: false,
        "A debate needs no person any more, and leaves the queue.";
    Reassigned(Reassigned) = "reassigned", effects: false, deadlines: false,
        "An operator has given a debate to an expert of their choice.";
}

/// Contents of `expert_registered`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpertRegistered {
    /// The expert, in place of an earlier registration under the same id.
    pub expert: Expert,
    /// The person, or the operator, who sent the request.
    pub by: AgentId,
    /// The sequence of the person's event that this follows; 0 in installations of before people were registered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub follows: u64,
}

/// Contents of `expert_left`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpertLeft {
    /// The expert.
    pub agent_id: AgentId,
    /// The person, or the operator, who sent the request.
    pub by: AgentId,
    /// The reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Debates that the expert had. They wait again, each at the place that it had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<DebateId>,
    /// The sequence of the person's event that this follows; 0 in installations of before people were registered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub follows: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The serialiser gives a reference.
fn is_zero(sequence: &u64) -> bool {
    *sequence == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The serialiser gives a reference.
fn is_no_limit(most: &u32) -> bool {
    *most == 0
}

/// Contents of `enqueued`: a debate as it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enqueued {
    /// The debate.
    pub debate_id: DebateId,
    /// Its case.
    pub case_id: CaseId,
    /// The priority.
    pub priority: DebatePriority,
    /// Who opened its case; none for cases of earlier versions, which count as those of one opener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// How many debates of one opener could wait then; 0 for no limit.
    #[serde(default, skip_serializing_if = "is_no_limit")]
    pub opener_waiting_max: u32,
    /// What it is about. Only experts who have this domain are given it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The agents that may not be given it: nobody judges their own case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<AgentId>,
    /// Since when it needs a person: its place among debates of the same priority.
    pub entered_at: Timestamp,
    /// Until when a person can rule, as the debate had it then. For a reader: the debate keeps its own deadline, which
    /// may have been moved since.
    pub due: Timestamp,
}

/// Contents of `assigned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assigned {
    /// The debate.
    pub debate_id: DebateId,
    /// Its case.
    pub case_id: CaseId,
    /// The expert that has it now.
    pub expert: AgentId,
    /// The addresses at which the expert is notified, as registered then.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// How long after it entered the queue, in milliseconds.
    pub waited_ms: u64,
}

/// Contents of `returned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Returned {
    /// The debate. It waits again at the place that it had.
    pub debate_id: DebateId,
    /// Its case.
    pub case_id: CaseId,
    /// The expert that had it. It is not given to them again while somebody else can take it.
    pub expert: AgentId,
}

/// Contents of `overflowed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overflowed {
    /// The debate.
    pub debate_id: DebateId,
    /// Its case.
    pub case_id: CaseId,
    /// What happens to the debate.
    pub handling: Overflow,
    /// The reason why there is no place for it.
    #[serde(default, skip_serializing_if = "OverflowReason::is_queue_full")]
    pub reason: OverflowReason,
}

/// The reason why the queue has no place for a debate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OverflowReason {
    /// As many debates wait as may, or a supporting one would have to wait.
    #[default]
    QueueFull,
    /// As many debates of its opener wait as may, by the settings of the installation.
    OpenerQuota {
        /// The opener.
        opened_by: AgentId,
        /// How many debates of one opener could wait then.
        waiting_max: u32,
    },
}

impl OverflowReason {
    fn is_queue_full(&self) -> bool {
        *self == Self::QueueFull
    }
}

/// The reason why a debate needs no person any more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The expert has ruled.
    Ruled,
    /// Nobody has ruled in time.
    TimedOut,
    /// The case was cancelled.
    Cancelled,
    /// It was settled in another way.
    Resolved,
}

/// Contents of `released`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// The debate.
    pub debate_id: DebateId,
    /// The expert that had it; none if nobody had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<AgentId>,
    /// The reason why the debate needs no person any more.
    pub reason: ReleaseReason,
}

/// Contents of `reassigned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reassigned {
    /// The debate.
    pub debate_id: DebateId,
    /// Its case.
    pub case_id: CaseId,
    /// The expert that had it; none if it waited in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AgentId>,
    /// The expert that has it now.
    pub to: AgentId,
    /// The addresses at which the expert is notified, as registered then.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// The operator who gave it to somebody else.
    pub by: AgentId,
    /// The reason for giving it to somebody else.
    pub why: String,
}
