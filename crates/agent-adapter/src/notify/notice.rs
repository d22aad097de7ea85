//! The notices that people are sent, made from the events of debates.

use concord_events::{
    AlertRaised, AwaitsGate, DeadlineControl, DebateAssigned, DebateEvent, FellBack, QuotaReached,
    Reminded, ReportMissed, StoredEvent, Unassigned,
};
use concord_wire::payload::notification::UnassignedReason;
use concord_wire::payload::{Background, BriefedPosition, Contact, DebatePriority, DecisionChange};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp, Token};
use serde::Serialize;
use serde_json::Value;

/// One notice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notice {
    /// The sequence of the event in the stream of events.
    pub(crate) sequence: u64,
    /// When the event was decided.
    pub(crate) at: Timestamp,
    /// The debate that the notice is about, where it is about one.
    pub(crate) debate_id: Option<DebateId>,
    /// The case that the notice is about; none where it is about a task.
    pub(crate) case_id: Option<CaseId>,
    /// The task that it is about, where it is about one.
    pub(crate) task_id: Option<Token>,
    /// The topic of the debate, which strangers wrote; the quota where the notice is about one.
    pub(crate) topic: String,
    /// What happened.
    pub(crate) what: What,
    /// The recipients.
    pub(crate) to: Audience,
    /// When the notice becomes useless, if it does.
    pub(crate) until: Option<Timestamp>,
}

/// The recipients of a notice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Audience {
    /// The expert who has the debate, where one has.
    Expert {
        /// The agent id of the expert.
        expert: Option<AgentId>,
        /// The addresses of the expert.
        contact: Contact,
    },
    /// Somebody who answers for what was decided.
    Person {
        /// The name of the person.
        name: AgentId,
        /// The addresses of the person.
        contact: Contact,
    },
    /// The people who review at this gate.
    Gate(String),
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// The expert was given the debate.
    Assigned {
        /// The priority of the debate.
        priority: DebatePriority,
        /// The digest of the brief, which a ruling must name.
        digest: String,
        /// The positions of the brief.
        positions: Vec<Position>,
        /// What the case is about and what depends on the ruling, where the brief says so.
        matter: Option<Matter>,
    },
    /// This share of the time is over, in percent.
    Reminded(u8),
    /// It was decided provisionally, on this position.
    FellBack(Option<Position>),
    /// The gate must review the provisional decision.
    AwaitsGate,
    /// The debate was taken from the expert, for this reason.
    TakenBack(UnassignedReason),
    /// The debate was cancelled while the expert had it.
    Cancelled(Order),
    /// Its time was held, resumed or extended.
    DeadlinesMoved(DeadlineControl, Order),
    /// The decision of the case has a new version.
    Changed {
        /// What is different, and why.
        change: Box<DecisionChange>,
        /// Whether the recipient's own ruling is what does not stand any more.
        overridden: bool,
    },
    /// An opener was refused something, because a quota is used up.
    QuotaReached(QuotaReached),
    /// The regime has changed.
    Alerted {
        /// The alert.
        alert: Token,
        /// What was raised.
        raised: Box<AlertRaised>,
    },
    /// No report has followed an alert in time.
    ReportMissed {
        /// The alert.
        alert: Token,
        /// Who was to report, and until when.
        missed: ReportMissed,
    },
    /// Something else proved right than what the recipient had ruled.
    Disproved {
        /// What proved right.
        right: Position,
        /// Who says so.
        by: AgentId,
        /// How that is known, which strangers wrote.
        explanation: String,
    },
}

/// Who has ordered something, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Order {
    /// The operator, or whoever opened the case.
    pub(crate) by: AgentId,
    /// The reason.
    pub(crate) why: String,
}

/// What the case is about and what depends on the ruling, which strangers wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matter {
    /// The title of the case's task; its type where it has none.
    pub(crate) title: String,
    /// Who has opened the case.
    pub(crate) opened_by: AgentId,
    /// The gate that reviews what is decided without a ruling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<String>,
    /// The version of the decision that stands meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<u32>,
    /// Whether the case is not decided before the debate has ended.
    pub(crate) awaited: bool,
    /// Analyses that rest on what is disputed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) dependants: Vec<String>,
}

impl Matter {
    fn of(background: Background) -> Self {
        let Background { task, depends, .. } = background;
        Self {
            title: if task.title.is_empty() {
                task.kind
            } else {
                task.title
            },
            opened_by: task.opened_by,
            gate: depends.gate,
            decision: depends.decision,
            awaited: depends.awaited,
            dependants: depends.dependants,
        }
    }
}

/// A position, which strangers wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Position {
    /// `p1`, `p2`, ..., by which a ruling can name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position_id: Option<String>,
    /// The position in words.
    pub(crate) position: String,
    /// The value of the position, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
}

/// The part of a notice that follows from the content of the event.
struct Content {
    case_id: CaseId,
    topic: String,
    what: What,
    to: Audience,
    until: Option<Timestamp>,
}

impl Content {
    fn of(event: DebateEvent) -> Vec<Self> {
        let one = match event {
            DebateEvent::Assigned(assigned) => return Self::assigned(*assigned),
            DebateEvent::Unassigned(unassigned) => Some(Self::unassigned(unassigned)),
            DebateEvent::Reminded(reminded) => Some(Self::reminded(reminded)),
            DebateEvent::FellBack(fell_back) => Self::fell_back(*fell_back),
            DebateEvent::AwaitsGate(AwaitsGate {
                case_id,
                topic,
                gate,
            }) => Some(Self {
                case_id,
                topic,
                what: What::AwaitsGate,
                to: Audience::Gate(gate),
                until: None,
            }),
            _ => None,
        };
        one.into_iter().collect()
    }

    /// Who had it until now is told besides: somebody else has it.
    fn assigned(assigned: DebateAssigned) -> Vec<Self> {
        let briefed = assigned.briefed;
        let before = assigned.instead_of.map(|before| Self {
            case_id: assigned.case_id.clone(),
            topic: briefed.brief.topic.clone(),
            what: What::TakenBack(UnassignedReason::Reassigned),
            to: Audience::Person {
                name: before.expert,
                contact: before.contact,
            },
            until: None,
        });
        let named = |one: BriefedPosition| Position {
            position_id: Some(one.position_id),
            position: one.position,
            value: one.value,
        };
        let given = Self {
            case_id: assigned.case_id,
            topic: briefed.brief.topic,
            what: What::Assigned {
                priority: briefed.brief.priority,
                digest: briefed.digest,
                positions: briefed.brief.positions.into_iter().map(named).collect(),
                matter: briefed.brief.background.map(|one| Matter::of(*one)),
            },
            to: Audience::Expert {
                expert: Some(briefed.expert),
                contact: assigned.contact,
            },
            until: Some(briefed.due),
        };
        std::iter::once(given).chain(before).collect()
    }

    /// Of having left, too: it may be an operator who has taken the role away.
    fn unassigned(unassigned: Unassigned) -> Self {
        Self {
            case_id: unassigned.case_id,
            topic: unassigned.topic,
            what: What::TakenBack(unassigned.reason),
            to: Audience::Expert {
                expert: Some(unassigned.expert),
                contact: unassigned.contact,
            },
            until: None,
        }
    }

    fn reminded(reminded: Reminded) -> Self {
        debug_assert!(reminded.percent <= 100, "more than all of the time is over");
        Self {
            case_id: reminded.case_id,
            topic: reminded.topic,
            what: What::Reminded(reminded.percent),
            to: Audience::Expert {
                expert: reminded.expert,
                contact: reminded.contact,
            },
            until: Some(reminded.due),
        }
    }

    /// None where no gate is ahead, because then there is nothing for anybody to do.
    fn fell_back(fell_back: FellBack) -> Option<Self> {
        let provisional = fell_back.outcome.provisional?;
        let gate = provisional.review_at?;
        let position = fell_back.outcome.resolution.map(|chosen| Position {
            position_id: None,
            position: chosen.position,
            value: chosen.value,
        });
        // When the window has closed, the gate is told that it is awaited: one of the two notices is enough.
        Some(Self {
            case_id: fell_back.case_id,
            topic: fell_back.topic,
            what: What::FellBack(position),
            to: Audience::Gate(gate),
            until: Some(provisional.until),
        })
    }
}

impl Notice {
    /// The notices of an event. None where people are not told of it.
    pub(crate) fn of(event: StoredEvent<DebateEvent>) -> Vec<Self> {
        let Ok(debate_id) = DebateId::new(event.meta.id.as_str()) else {
            return Vec::new();
        };
        let notice = |content: Content| Self {
            sequence: event.sequence,
            at: event.meta.at,
            debate_id: Some(debate_id.clone()),
            case_id: Some(content.case_id),
            task_id: None,
            topic: content.topic,
            what: content.what,
            to: content.to,
            until: content.until,
        };
        Content::of(event.event).into_iter().map(notice).collect()
    }

    /// The id of what the notice is about: the debate, else the case or task; the alert where it is about one.
    pub(crate) fn about(&self) -> &str {
        if let What::Alerted { alert, .. } | What::ReportMissed { alert, .. } = &self.what {
            return alert.as_str();
        }
        let (case, task) = (self.case_id.as_ref(), self.task_id.as_ref());
        let case = case.map(CaseId::as_str).or(task.map(Token::as_str));
        let debate = self.debate_id.as_ref().map(DebateId::as_str);
        debate.or(case).unwrap_or_default()
    }

    /// The type of the notice, as recipients read it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.what {
            What::Assigned { .. } => "debate.assigned",
            What::Reminded(_) => "debate.reminded",
            What::FellBack(_) => "debate.fell_back",
            What::AwaitsGate => "debate.awaits_gate",
            What::TakenBack(_) | What::Cancelled(_) => "debate.unassigned",
            What::DeadlinesMoved(..) => "debate.deadlines_moved",
            What::Changed {
                overridden: false, ..
            } => "case.decision_changed",
            What::Changed {
                overridden: true, ..
            } => "case.ruling_overridden",
            What::Disproved { .. } => "debate.ruling_disproved",
            What::QuotaReached(_) => "opener.quota_reached",
            What::Alerted { .. } => "alert.raised",
            What::ReportMissed { .. } => "alert.report_missed",
        }
    }

    /// An id that is the same each time the notice is delivered, so that recipients recognize a repetition. It has no dot,
    /// because a dot ends the id in signatures.
    pub(crate) fn id(&self, prefix: &str, channel: &str) -> String {
        let (about, sequence) = (self.about(), self.sequence);
        match &self.to {
            // One event concerns several people.
            Audience::Person { name, .. } => {
                format!("{prefix}-{about}-{sequence}-{name}-{channel}")
            }
            _ => format!("{prefix}-{about}-{sequence}-{channel}"),
        }
    }

    /// Why the notice is of no use now. None where it is of use.
    pub(crate) fn stale(&self, now: Timestamp, age_max_ms: u64) -> Option<&'static str> {
        if self.until.is_some_and(|until| until <= now) {
            Some("its time is over")
        } else if now.millis_since(self.at) > age_max_ms {
            Some("it is too old")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
