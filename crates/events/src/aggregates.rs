//! The table of aggregates. Each aggregate of Concord is one row; everything that differs between aggregates follows from it.
//!
//! A row says, in this order: the variant of [`Aggregate`] and its token on the wire, the enum of its events, the state
//! machine that decides on them, the service that owns it, which services act on which of its events, of which of its events
//! people are notified, and which of its events end a request.
//!
//! This crate makes [`Aggregate`] from the table, `concord-domain` the visitor of all state machines. Another crate can expand
//! [`aggregates!`](crate::aggregates) with a macro of its own; the names of event enums and machines are looked up where the
//! table is expanded.

use std::fmt;

use concord_wire::subject::{self, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AggregateEvent, EventInfo};

/// Calls the macro `$callback` with all rows of the table.
#[macro_export]
macro_rules! aggregates {
    ($callback:ident) => {
        $callback! {
            /// One matter under deliberation; owned by the coordinator.
            Case = "case" {
                event: CaseEvent, machine: CaseMachine, owner: Coordinator,
                readers: [ConflictDetector: ["findings_closed"], DebateFacilitator: ["gate_reviewed", "cancelled"]],
                notices: ["decision_changed"], completions: [],
            }
            /// The conflicts found among a case's findings; owned by the conflict detector.
            Detection = "detection" {
                event: DetectionEvent, machine: DetectionMachine, owner: ConflictDetector,
                readers: [Coordinator: ["completed"], DebateFacilitator: ["completed"]],
                notices: [], completions: [],
            }
            /// The life of one conflict; owned by the debate facilitator.
            Debate = "debate" {
                event: DebateEvent, machine: DebateMachine, owner: DebateFacilitator,
                readers: [
                    Coordinator: ["resolved", "fell_back"],
                    DebateFacilitator: ["escalated", "reminded", "fell_back", "resolved", "outcome_known"]
                ],
                notices: ["assigned", "unassigned", "reminded", "deadlines_moved", "fell_back", "awaits_gate", "resolved", "outcome_known"], completions: [],
            }
            /// A point in time that somebody waits for; owned by the escalation timer.
            Deadline = "deadline" {
                event: DeadlineEvent, machine: DeadlineMachine, owner: EscalationTimer,
                readers: [
                    Coordinator: ["case_elapsed", "request_elapsed", "task_elapsed", "commitment_elapsed", "question_elapsed", "alert_elapsed", "synthesis_elapsed"],
                    DebateFacilitator: ["debate_elapsed"]
                ],
                notices: [], completions: [],
            }
            /// What is known of how often an agent was right; owned by the debate facilitator.
            TrackRecord = "record" {
                event: TrackRecordEvent, machine: TrackRecordMachine, owner: DebateFacilitator,
                readers: [], notices: [], completions: [],
            }
            /// How debates of one kind about one subject turned out; owned by the debate facilitator.
            Precedent = "precedent" {
                event: PrecedentEvent, machine: PrecedentMachine, owner: DebateFacilitator,
                readers: [], notices: [], completions: [],
            }
            /// Who can rule, and which debates wait for a person; one in an installation, owned by the debate facilitator.
            ReviewQueue = "queue" {
                event: ReviewQueueEvent, machine: ReviewQueueMachine, owner: DebateFacilitator,
                readers: [DebateFacilitator: [*]],
                notices: [], completions: [],
            }
            /// Who is registered and how they are; owned by the coordinator.
            Agent = "agent" {
                event: AgentEvent, machine: AgentMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// A person, or an agent with a role, and what they may do; owned by the coordinator.
            Person = "person" {
                event: PersonEvent, machine: PersonMachine, owner: Coordinator,
                readers: [DebateFacilitator: [*]],
                notices: [], completions: [],
            }
            /// A policy that operators have stored under a name, with its versions; owned by the coordinator.
            Policy = "policy" {
                event: PolicyEvent, machine: PolicyMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// What one opener holds of the quotas: cases, gates, challenges, tasks; owned by the coordinator.
            Opener = "opener" {
                event: OpenerEvent, machine: OpenerMachine, owner: Coordinator,
                readers: [Coordinator: ["admitted", "task_admitted"]], notices: ["quota_reached"], completions: [],
            }
            /// What one agent asked another for; owned by the coordinator.
            Request = "request" {
                event: RequestEvent, machine: RequestMachine, owner: Coordinator,
                readers: [], notices: [], completions: ["answered", "failed"],
            }
            /// One piece of work that a strategy hands out to agents; owned by the coordinator.
            Task = "task" {
                event: TaskEvent, machine: TaskMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// The tasks that one agent has, and those that wait for it; owned by the coordinator.
            Worklist = "worklist" {
                event: WorklistEvent, machine: WorklistMachine, owner: Coordinator,
                readers: [Coordinator: ["taken", "released"]], notices: [], completions: [],
            }
            /// Whose turn it is among the agents that fit the same criteria; owned by the coordinator.
            Rotation = "rotation" {
                event: RotationEvent, machine: RotationMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// The board of a case: named entries that everybody in the case shares; owned by the coordinator.
            Board = "board" {
                event: BoardEvent, machine: BoardMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// Who has committed to what, in a case or to one resource outside cases; owned by the coordinator.
            Commitment = "commitment" {
                event: CommitmentEvent, machine: CommitmentMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// A question to the group, from whom it woke to the one answer; owned by the coordinator.
            Question = "question" {
                event: QuestionEvent, machine: QuestionMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// The analyses of a case and what they rest on: what changes when an assumption does; owned by the coordinator.
            Impact = "impact" {
                event: ImpactEvent, machine: ImpactMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// What an agent knows, by topic: its part of shared memory; owned by the coordinator.
            Memory = "memory" {
                event: MemoryEvent, machine: MemoryMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// What is held back of shared memory in a case until a checkpoint; owned by the coordinator.
            Synthesis = "synthesis" {
                event: SynthesisEvent, machine: SynthesisMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// News of which everybody is told at once; owned by the coordinator.
            Alert = "alert" {
                event: AlertEvent, machine: AlertMachine, owner: Coordinator,
                readers: [], notices: ["raised", "report_missed"], completions: [],
            }
            /// The rules by which what agents remember raises alerts, and the present regime; one in an installation, owned by the coordinator.
            Watch = "watch" {
                event: WatchEvent, machine: WatchMachine, owner: Coordinator,
                readers: [], notices: [], completions: [],
            }
            /// A conversation, and whom its messages wake; owned by the agent adapter.
            Wake = "wake" {
                event: WakeEvent, machine: WakeMachine, owner: AgentAdapter,
                readers: [Coordinator: ["decided"]], notices: [], completions: [],
            }
            /// The running digest of everything that is stored; one in an installation, owned by the escalation timer.
            Head = "head" {
                event: HeadEvent, machine: HeadMachine, owner: EscalationTimer,
                readers: [], notices: [], completions: [],
            }
            /// What was written to the archive and removed from the streams; one in an installation, owned by the escalation timer.
            Archive = "archive" {
                event: ArchiveEvent, machine: ArchiveMachine, owner: EscalationTimer,
                readers: [], notices: [], completions: [],
            }
        }
    };
}

/// A service and the events of an aggregate that it acts on.
#[derive(Debug, Clone, Copy)]
struct Reader {
    service: Service,
    /// The names of the events; `None` for all events.
    events: Option<&'static [&'static str]>,
}

/// What a row of the table contains besides names and types.
struct Row {
    owner: Service,
    events: &'static [EventInfo],
    readers: &'static [Reader],
    notices: &'static [&'static str],
    completions: &'static [&'static str],
}

/// An operation that is generic over the enum of an aggregate's events; see [`Aggregate::visit_event`].
pub trait EventVisitor {
    /// The result of the operation.
    type Output;

    /// Called with the events of the aggregate that was asked for.
    fn visit<E: AggregateEvent>(self) -> Self::Output;
}

macro_rules! named_events {
    (*) => {
        None
    };
    ($($event:literal),*) => {
        Some(&[$($event),*])
    };
}

macro_rules! define_aggregates {
    ($(
        $(#[$doc:meta])* $name:ident = $token:literal {
            event: $event:ident, machine: $machine:ident, owner: $owner:ident,
            readers: [$($reader:ident: [$($read:tt)*]),*],
            notices: [$($notice:literal),*], completions: [$($completion:literal),*],
        }
    )+) => {
        /// A kind of aggregate; each has exactly one owning service.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Aggregate {
            $($(#[$doc])* #[serde(rename = $token)] $name),+
        }

        impl Aggregate {
            /// All aggregates, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name as a subject token.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $token),+ }
            }

            /// Parses the subject token.
            pub fn parse(text: &str) -> Result<Self, subject::Error> {
                match text {
                    $($token => Ok(Self::$name),)+
                    other => Err(subject::Error::Unknown { what: "aggregate", name: other.to_owned() }),
                }
            }

            fn row(self) -> Row {
                match self {
                    $(Self::$name => Row {
                        owner: Service::$owner,
                        events: <crate::$event as AggregateEvent>::EVENTS,
                        readers: &[$(Reader { service: Service::$reader, events: named_events!($($read)*) }),*],
                        notices: &[$($notice),*],
                        completions: &[$($completion),*],
                    }),+
                }
            }

            /// Calls `visitor` with the type of this aggregate's events.
            pub fn visit_event<V: EventVisitor>(self, visitor: V) -> V::Output {
                match self { $(Self::$name => visitor.visit::<crate::$event>()),+ }
            }
        }
    };
}

aggregates!(define_aggregates);

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Aggregate {
    /// The one service that appends this aggregate's events.
    pub fn owner(self) -> Service {
        self.row().owner
    }

    /// The events of this aggregate that this build knows.
    pub fn events(self) -> &'static [EventInfo] {
        self.row().events
    }

    /// Whether `service` acts on the event called `event`; mostly an event of another service.
    pub fn is_read_by(self, service: Service, event: &str) -> bool {
        let readers = self.row().readers.iter();
        readers
            .filter(|reader| reader.service == service)
            .any(|reader| reader.events.is_none_or(|events| events.contains(&event)))
    }

    /// Whether people are notified of the event called `event` outside NATS.
    pub fn notifies(self, event: &str) -> bool {
        self.row().notices.contains(&event)
    }

    /// Whether the event called `event` ends a request.
    pub fn completes(self, event: &str) -> bool {
        self.row().completions.contains(&event)
    }

    /// Whether the open deadlines are the same after the event called `event` as before it; `false` for an event that this
    /// build does not know.
    pub fn leaves_deadlines(self, event: &str) -> bool {
        let mut events = self.events().iter();
        events.any(|info| info.name == event && !info.moves_deadlines)
    }
}

/// All events of all aggregates, in the order of the table.
pub fn all_events() -> impl Iterator<Item = (Aggregate, EventInfo)> {
    let all = Aggregate::ALL.iter();
    all.flat_map(|aggregate| aggregate.events().iter().map(|info| (*aggregate, *info)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_that_a_row_names_exists() {
        for aggregate in Aggregate::ALL {
            let row = aggregate.row();
            let read = row.readers.iter().filter_map(|reader| reader.events);
            let named = read.flatten().chain(row.notices).chain(row.completions);
            for name in named {
                assert!(
                    row.events.iter().any(|info| info.name == *name),
                    "the row of {aggregate} names {name}, which is none of its events"
                );
            }
        }
    }

    #[test]
    fn the_token_of_an_aggregate_parses_back() {
        for aggregate in Aggregate::ALL {
            assert_eq!(Aggregate::parse(aggregate.as_str()), Ok(*aggregate));
        }
        assert!(Aggregate::parse("nothing").is_err());
    }
}
