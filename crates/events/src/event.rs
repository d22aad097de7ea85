//! The events of each aggregate: one module and one enum for each row of the [table](crate::aggregates).

mod agent;
mod alert;
mod archive;
mod board;
mod case;
mod commitment;
mod deadline;
mod debate;
mod detection;
mod head;
mod impact;
mod ladder;
mod memory;
mod opener;
mod outcome;
mod person;
mod policy;
mod precedent;
mod question;
mod queue;
mod record;
mod request;
mod rotation;
mod synthesis;
mod task;
mod wake;
mod watch;
mod worklist;

pub use agent::{
    ANSWER_MS_MIN, AgentAnswered, AgentDeregistered, AgentEvent, AgentRegistered, AgentRetried,
    AgentSilent, AgentStatusChanged, CardChange, SilenceBounds,
};
pub use alert::{AlertEvent, AlertRaised, AlertReported, ReportMissed, TOLD_MAX};
pub use archive::{
    ArchiveEvent, SEGMENT_AGGREGATES_MAX, SEGMENT_CASES_MAX, SealedAggregate, SealedCase,
    SealedInterval, SegmentSealed, SegmentsPurged,
};
pub use board::{BoardEvent, EntryPut};
pub use case::{
    CaseCancelled, CaseEvent, CaseFlagged, CaseOpened, Challenged, Confirmed, ConflictsReceived,
    DebateAsked, DebateSettled, Decided, DecisionAwaited, DecisionChanged, EstimateNoted,
    FiguresRecorded, FindingRecorded, FindingsClosed, GatePassed, GateReviewed, Joined,
    ReceivedFinding, ReviewRecorded, SetAsideFinding,
};
pub use commitment::{CommitmentEvent, EndedLease, LeaseBounds, LeaseGranted, LeasesEnded};
pub use deadline::{DeadlineElapsed, DeadlineEvent, FiredBy};
pub use debate::{
    AnswerSetAside, Answered, CloseReason, DebateEvent, DebateOpened, DebateResolved, Flushed,
    HeardBy, ReceivedAnswer, RoundClosed, Synced,
};
pub use detection::{
    Detected, DetectionEvent, EstimatesInUnit, IncomparableEstimates, MatchedBy, NameMatch,
};
pub use head::{GAPS_MAX, Head, HeadEvent, HeadSignature, StreamInterval};
pub use impact::{
    AnalysisPublished, AskedEstimate, AskedRerun, EstimateOutcome, ImpactAssessed, ImpactEstimated,
    ImpactEvent, RerunEnd, RerunNext, RerunOutcome, RerunStarted, RerunStepEnded, RerunVersion,
};
pub use ladder::{
    Acknowledged, AwaitsGate, Briefed, ChallengerAsked, Clarified, DeadlineControl, DeadlinesMoved,
    DebateAssigned, DiscussionEnded, Escalated, EvidenceGiven, FellBack, Heard, InsteadOf,
    MediatorAsked, OpinionGiven, QueueEntry, Reminded, RulingRefusal, RulingSetAside, Unassigned,
    names,
};
pub use memory::{FiredRule, MemoryBounds, MemoryEvent, MemoryPut};
pub use opener::{
    Admitted, CaseReleased, ChallengeAdmitted, OpenerEvent, QuotaKind, QuotaReached, Quotas,
    TaskAdmitted, TaskReleased,
};
pub use outcome::OutcomeKnown;
pub use person::{PersonEvent, PersonRegistered, PersonResumed, PersonSuspended};
pub use policy::{PolicyEvent, PolicyPut};
pub use precedent::{PrecedentEvent, PrecedentRecorded};
pub use question::{
    QuestionAnswered, QuestionBounds, QuestionElapsed, QuestionEnd, QuestionEvent, QuestionOpened,
    QuestionOutcome, QuestionStep, QuestionSynthesised, QuestionTerms, SynthesisAsked,
};
pub use queue::{
    Assigned, Enqueued, ExpertLeft, ExpertRegistered, OverflowReason, Overflowed, Reassigned,
    ReleaseReason, Released, Returned, ReviewQueueEvent,
};
pub use record::{ImportOrigin, Observed, ToldCredibility, TrackRecordEvent};
pub use request::{
    AnswerForm, HeardAnswer, RequestAcknowledged, RequestAnswered, RequestAnsweredLate,
    RequestEvent, RequestFailed, RequestOpened,
};
pub use rotation::{RotationEvent, Turned};
pub use synthesis::{InsightHeld, InsightsTold, SynthesisEvent};
pub use task::{
    AgentLost, BidMade, MemberMoved, Release, TaskAssigned, TaskCancelled, TaskCandidate,
    TaskCaseEnded, TaskDeclined, TaskElapsed, TaskEnd, TaskEvent, TaskHandedOn, TaskOpened,
    TaskOutcome, TaskReported, TaskStep,
};
pub use watch::{AlertRulesPut, RegimeChanged, WatchEvent};
pub use worklist::{WorkReleased, WorkTaken, WorklistEvent};

pub use wake::{LoopBroken, WakeDecided, WakeEvent, WakeOutcome, Weighed};

/// Declares the events of an aggregate once: enum, names, encoding and decoding.
macro_rules! events {
    (
        $(#[$doc:meta])* $name:ident of $aggregate:expr;
        $( $variant:ident($data:ty) = $event:literal, effects: $effects:literal, deadlines: $deadlines:literal, $line:literal; )+
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant)] // An event is made, stored and dropped one at a time.
        pub enum $name {
            $( #[doc = $line] $variant($data), )+
        }

        impl crate::AggregateEvent for $name {
            const AGGREGATE: crate::Aggregate = $aggregate;
            const EVENTS: &'static [crate::EventInfo] = &[$( crate::EventInfo {
                name: $event, has_effects: $effects, moves_deadlines: $deadlines, doc: $line,
            } ),+];

            const SCHEMAS: &'static [concord_wire::MakeSchema] =
                &[$(|generator| generator.subschema_for::<$data>()),+];

            fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $event, )+ }
            }

            fn decode(event: &str, data: &serde_json::value::RawValue) -> Result<Self, crate::Error> {
                match event {
                    $( $event => Ok(Self::$variant(serde_json::from_str(data.get())?)), )+
                    other => Err(crate::Error::UnknownEvent {
                        aggregate: $aggregate, event: other.to_owned(),
                    }),
                }
            }
        }

    };
}
pub(crate) use events;
