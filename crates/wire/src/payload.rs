//! The payloads, by message type. A payload is read by [`crate::Envelope::payload`].

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

mod action;
mod agent;
mod alert;
mod alert_rule;
mod analysis;
mod answer;
pub mod batch;
mod board;
mod brief;
mod briefing;
mod calendar;
mod card;
mod case;
mod challenge;
mod commitment;
mod confirmation;
mod conflict;
mod conversation;
mod deadline;
mod debate;
mod decision;
mod exchange;
mod expert;
mod finding;
mod group;
mod historical_context;
mod impact;
mod insight;
mod ladder;
mod log;
mod memory;
pub mod notification;
mod outcome;
mod parameter_schema;
mod person;
mod precedent;
mod signature;
mod task;
pub mod track_record;

pub use action::{
    ACTIONS, MEDIATE, OPEN_CASE, OPEN_DEBATE, RULE, ReviewCode, RunTests, UpdateDocumentation,
};
pub use agent::{
    AgentJoined, AgentStatus, Beat, DEREGISTER_AGENT, Deregister, REGISTER_AGENT, StatusReport,
    UPDATE_AGENT,
};
pub use alert::{
    ALERT_BYTES_MAX, ALERT_LIST_MAX, AffectedPart, Alert, AlertFlag, REGIME_CHANGE, REPORT_ALERT,
    REPORT_BYTES_MAX, ReportAlert,
};
pub use alert_rule::{
    ALERT_HISTORY_MAX, ALERT_RULES_BYTES_MAX, ALERT_RULES_MAX, ALERTS_PER_ENTRY_MAX, AlertRule,
    AlertRules, AlertSource, AlertTrigger, RegimeTerms,
};
pub use analysis::{
    ANALYSIS_BYTES_MAX, ANALYSIS_ITEMS_MAX, Dependency, DependencyKind, EstimateModel, Figure,
    PUBLISH_ANALYSIS, PublishAnalysis, RERUN_MINUTES_MAX,
};
pub use answer::Answer;
pub use batch::{BATCH, BATCH_MAX, Batch, BatchResult, PartResponse};
pub use board::{BOARD_PUT, BoardEntry, BoardListing, ENTRY_BYTES_MAX, PutEntry};
pub use brief::{
    Background, BriefedFinding, Dependence, ProvedRight, RelatedConflict, Statement, TaskExcerpt,
};
pub use briefing::{InfoUpdate, SessionBriefing, StatusMessage, WorkStatus};
pub use calendar::{Calendar, OpeningHours, Weekday};
pub use card::{
    AGENT_CAPACITY_MAX, CARD_ACTIONS_MAX, CARD_BYTES_MAX, CARD_TEXT_BYTES_MAX, Card, CardAction,
    EXAMPLES_MAX, HEARTBEAT_MS, SKILLS_MAX, Skill,
};
pub use case::{ADD_PARTICIPANT, AddParticipant, OpenCase, Task, TaskAssignment};
pub use challenge::{
    Acknowledgement, Challenge, ChallengeTerms, Clarification, ESCALATION_TIMER_MAX, Evidence,
    LADDER_ITEMS_MAX, LADDER_TEXT_BYTES_MAX,
};
pub use commitment::{
    Commitment, CommitmentAct, CommitmentEnd, LEASE_MS_MIN, Lease, TASK_RESOURCE,
};
pub use confirmation::{Confirmation, ConfirmedBy, ConfirmedFinding};
pub use conflict::{Conflict, ConflictType, Position};
pub use conversation::Remembered;
pub use deadline::Deadline;
pub use debate::{ConflictView, DebateLimits, OpenDebate, Question};
pub use decision::{
    ChangedPart, ClauseOutcome, ConflictOutcome, Decision, DecisionChange, FindingReference,
    Outcome, RecordedFigures, Resolution, RoundRecord, SetAside, SetAsideReason, Status, Tally,
    VoteOption, Voter,
};
pub use exchange::{
    ErrorReport, RATE_LIMIT, Request, Response, ResponseStatus, action_of, parameters_of,
};
pub use exchange::{result_of, why_refused};
pub use expert::{CAPACITY_MAX, CAPACITY_USUAL, Contact, DebatePriority, Expert, Overflow};
pub(crate) use finding::check_name;
pub use finding::{
    COMPARED_MAX, Clause, CriticalFinding, Estimate, FactClaim, Finding, NAME_BYTES_MAX, Severity,
};
pub use group::{
    AnswerMode, AnswererRecord, AskedAgent, CollaborationInvite, ExpertiseOffer, GivenAnswer,
    GroupAnswer, GroupQuestion, SYNTHESISE, Synthesis, SynthesisStatus, Synthesise,
};
pub use historical_context::{HistoricalContext, PrecedentClaim, SIMILAR_PATTERNS_MAX};
pub use impact::{
    AnalysisImpact, ChangedAssumption, EstimateBasis, ImpactReport, RerunPlan, RerunStep,
    RerunStrategy,
};
pub use insight::{
    Checkpoint, CheckpointReason, INSIGHT_TAG_BYTES_MAX, INSIGHT_TAGS_MAX, INSIGHT_VALUE_BYTES_MAX,
    Insight, PATTERNS_MAX, Pattern,
};
pub use ladder::{
    Brief, BriefedPosition, DebateTerms, EscalationReason, Level, MediatedSide, Mediation,
    Provisional, Review, ReviewAction, RuledBy, Ruling,
};
pub use log::LogEntry;
pub use memory::{
    Adapted, MEMORY_ENTRY_BYTES_MAX, MEMORY_LIST_MAX, MEMORY_PUT, MemoryEntry, MemoryListing,
    MemoryReach, NoSnapshot, Reach, Remember, Snapshot,
};
pub use notification::{Notification, NotificationData, NotificationSeverity};
pub use outcome::{OutcomeReport, ProvedParty};
pub use parameter_schema::Schema;
pub use person::{PersonKind, PersonRecord, Role, RoleGrant};
pub use precedent::{
    EstimateSide, LEVELS, PositionRate, Precedent, PrecedentGuidance, PrecedentMatter,
    ProvedPosition, SuccessRate,
};
pub use signature::{Signature, fingerprint};
pub use task::{
    Award, BIDS_MS, Bid, BidWeights, CANCEL_TASK, CallForProposals, CancelTask, Criteria, Decline,
    FIND_AGENTS, FindAgents, FoundAgent, HandedContext, Handoff, JOIN_TASK, LEAVE_TASK, Majority,
    OPEN_TASK, OpenTask, ResultStatus, TASK_MS, TaskMember, TaskResult, Work,
};
pub use track_record::{
    Circumstances, Credibility, Observation, Settlement, SettlementReason, TrackRecord,
    Version as CredibilityVersion,
};

/// Whether a count is zero; such a field is not written.
#[allow(clippy::trivially_copy_pass_by_ref)] // The serialiser gives a reference.
pub fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Reads `null` as an absent field: language models write it for what they have nothing to say about.
pub(crate) fn null_is_absent<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a list of objects whose form one of their fields names: what is derived for such takes a list in place of an object, with that
/// field first.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Object<T>(T);
    struct ObjectVisitor<T>(PhantomData<T>);

    impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(ObjectVisitor(PhantomData))
        }
    }

    impl<'de, T: DeserializeOwned> Visitor<'de> for ObjectVisitor<T> {
        type Value = Object<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
        }
    }
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(one)| one).collect())
}

/// The first characters of a wrong text, to be repeated in an answer.
pub(crate) fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 64;
    text.chars().take(CHARACTERS).collect()
}

/// How many bytes a text has as JSON, without its quotation marks.
pub fn json_text_bytes(text: &str) -> usize {
    let bytes = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(bytes).sum()
}
