//! What people are told, made from the facts of debates.

use concord_events::{AwaitsGate, DebateAssigned, DebateEvent, FellBack, Reminded, StoredEvent};
use concord_wire::payload::{BriefedPosition, Contact, DebatePriority, Resolution};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp};
use serde::Serialize;
use serde_json::Value;

/// One thing that people are told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notice {
    /// Position of the fact in the stream of events.
    pub(crate) sequence: u64,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// The debate.
    pub(crate) debate_id: DebateId,
    /// Its case.
    pub(crate) case_id: CaseId,
    /// What is disputed; written by strangers.
    pub(crate) topic: String,
    /// What happened.
    pub(crate) what: What,
    /// Who is told.
    pub(crate) to: Audience,
    /// Until when it is of use, if that ends.
    pub(crate) until: Option<Timestamp>,
}

/// Who is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Audience {
    /// The expert who has the debate, where one has.
    Expert {
        /// Who.
        expert: Option<AgentId>,
        /// Where.
        contact: Contact,
    },
    /// Those who review at this gate.
    Gate(String),
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// The expert was given the debate.
    Assigned {
        /// How urgent it is.
        priority: DebatePriority,
        /// What a ruling must name.
        digest: String,
        /// The positions.
        positions: Vec<Position>,
    },
    /// So much of the time is over, in percent.
    Reminded(u8),
    /// It was decided provisionally, on this position.
    FellBack(Option<Position>),
    /// The gate must review what stands.
    AwaitsGate,
}

/// A position; written by strangers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Position {
    /// `p1`, `p2`, ..., by which a ruling can name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position_id: Option<String>,
    /// In words.
    pub(crate) position: String,
    /// As a value, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
}

impl Notice {
    /// What people are told because of a fact, if anything.
    pub(crate) fn of(record: StoredEvent<DebateEvent>) -> Option<Self> {
        let (sequence, at) = (record.sequence, record.meta.at);
        let debate_id = DebateId::new(record.meta.id.as_str()).ok()?;
        let new = |case_id, topic, what, to, until| {
            Some(Self {
                sequence,
                at,
                debate_id,
                case_id,
                topic,
                what,
                to,
                until,
            })
        };
        match record.event {
            DebateEvent::Assigned(assigned) => {
                let DebateAssigned {
                    case_id,
                    briefed,
                    contact,
                    ..
                } = *assigned;
                let named = |one: BriefedPosition| {
                    let BriefedPosition {
                        position_id,
                        position,
                        value,
                        ..
                    } = one;
                    Position {
                        position_id: Some(position_id),
                        position,
                        value,
                    }
                };
                let what = What::Assigned {
                    priority: briefed.brief.priority,
                    digest: briefed.digest,
                    positions: briefed.brief.positions.into_iter().map(named).collect(),
                };
                let to = Audience::Expert {
                    expert: Some(briefed.expert),
                    contact,
                };
                new(case_id, briefed.brief.topic, what, to, Some(briefed.due))
            }
            DebateEvent::Reminded(Reminded {
                case_id,
                topic,
                expert,
                contact,
                percent,
                due,
                ..
            }) => new(
                case_id,
                topic,
                What::Reminded(percent),
                Audience::Expert { expert, contact },
                Some(due),
            ),
            DebateEvent::FellBack(fell) => {
                let FellBack {
                    case_id,
                    topic,
                    outcome,
                    ..
                } = *fell;
                let provisional = outcome.provisional?;
                // Without a gate ahead there is nothing for anybody to do.
                let gate = provisional.review_at?;
                let position = outcome.resolution.map(|chosen| {
                    let Resolution {
                        position, value, ..
                    } = chosen;
                    Position {
                        position_id: None,
                        position,
                        value,
                    }
                });
                // When the window has closed, the gate is told that it is awaited: one of the two is enough.
                new(
                    case_id,
                    topic,
                    What::FellBack(position),
                    Audience::Gate(gate),
                    Some(provisional.until),
                )
            }
            DebateEvent::AwaitsGate(AwaitsGate {
                case_id,
                topic,
                gate,
            }) => new(case_id, topic, What::AwaitsGate, Audience::Gate(gate), None),
            _ => None,
        }
    }

    /// The kind of notice, as recipients know it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.what {
            What::Assigned { .. } => "debate.assigned",
            What::Reminded(_) => "debate.reminded",
            What::FellBack(_) => "debate.fell_back",
            What::AwaitsGate => "debate.awaits_gate",
        }
    }

    /// An id that is the same whenever this is delivered, so that recipients know a repetition. Without a dot, which
    /// separates ids from what follows them in signatures.
    pub(crate) fn id(&self, prefix: &str, channel: &str) -> String {
        format!("{prefix}-{}-{}-{channel}", self.debate_id, self.sequence)
    }

    /// Why telling it now would be of no use, if so.
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
mod tests {
    use super::*;

    fn reminded(contact: &str, due: &str) -> StoredEvent<DebateEvent> {
        let bytes = format!(
            r#"{{"fact":"reminded","aggregate":"debate","event_id":"e","id":"d-1","cause":"m","at":"2026-01-01T00:00:00.000Z",
            "data":{{"case_id":"c-1","topic":"t","expert":"eva",{contact}"percent":50,"due":"{due}","waits_for":[]}}}}"#
        );
        StoredEvent::decode(bytes.as_bytes(), 7).unwrap()
    }

    #[test]
    fn a_reminder_is_for_the_expert_and_facts_without_a_contact_are_read() {
        let due = "2026-01-01T01:00:00.000Z";
        let notice = Notice::of(reminded(r#""contact":{"email":"e@x.org"},"#, due)).unwrap();
        assert_eq!(
            (notice.kind(), notice.id("concord", "email")),
            ("debate.reminded", "concord-d-1-7-email".to_owned())
        );
        let Audience::Expert { contact, .. } = notice.to else {
            panic!("{notice:?}")
        };
        assert_eq!(contact.email.as_deref(), Some("e@x.org"));
        let Audience::Expert { contact, .. } = Notice::of(reminded("", due)).unwrap().to else {
            panic!()
        };
        assert!(contact.is_empty());
    }

    #[test]
    fn what_is_late_or_old_is_stale() {
        let notice = Notice::of(reminded("", "2026-01-03T00:00:00.000Z")).unwrap();
        let day = 86_400_000;
        for (hours, why) in [
            (1, None),
            (24, None),
            (25, Some("it is too old")),
            (48, Some("its time is over")),
        ] {
            assert_eq!(
                notice.stale(notice.at.plus_millis(hours * 3_600_000), day),
                why,
                "{hours} h"
            );
        }
    }
}
