//! Who is told of an event: whom it names, and the people who answer for what it changes.
//!
//! Those are found in what is stored before the event, and their addresses in the register of people as it is when the notice
//! is sent. A further kind of notice for people who are only named begins with [`Concerned::person`].

use concord_domain::aggregates::answerable::{self, Concern};
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::assurance::replay::rebuild;
use concord_events::names::PERSON;
use concord_events::{
    Aggregate, AggregateEvent, AlertEvent, CaseEvent, DebateEvent, DecisionChanged, EventMeta,
    OpenerEvent, OutcomeKnown, QuotaReached, StoredEvent,
};
use concord_runtime::delivery::HandleError;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Consistency, People, Ports, Since};
use concord_wire::payload::{Level, REGIME_CHANGE, Role, Status};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp, Token};

use super::notice::{Audience, Notice, Order, Position, What};

/// Finds whom an event concerns.
pub(super) struct Concerned<P> {
    ports: P,
    people: People<P>,
}

impl<P: Ports> Concerned<P> {
    pub(super) fn new(service: &ServiceContext<P>) -> Self {
        Self {
            ports: service.ports.clone(),
            people: People::new(service),
        }
    }

    /// The notices of an event, one for each person or gate. None where nobody is told of it.
    pub(super) async fn notices(
        &self,
        aggregate: Aggregate,
        bytes: &[u8],
        sequence: u64,
    ) -> Result<Vec<Notice>, HandleError> {
        if aggregate == Aggregate::Case {
            let stored = StoredEvent::<CaseEvent>::decode(bytes, sequence)?;
            return match stored.event {
                CaseEvent::DecisionChanged(changed) => {
                    self.changed(&stored.meta, sequence, *changed).await
                }
                _ => Ok(Vec::new()),
            };
        }
        if aggregate == Aggregate::Opener {
            let stored = StoredEvent::<OpenerEvent>::decode(bytes, sequence)?;
            return match stored.event {
                OpenerEvent::QuotaReached(reached) => {
                    self.quota(&stored.meta, sequence, reached).await
                }
                _ => Ok(Vec::new()),
            };
        }
        if aggregate == Aggregate::Alert {
            let stored = StoredEvent::<AlertEvent>::decode(bytes, sequence)?;
            return self.alert(stored).await;
        }
        let stored = StoredEvent::<DebateEvent>::decode(bytes, sequence)?;
        match stored.event {
            DebateEvent::OutcomeKnown(known) => self.known(&stored.meta, sequence, *known).await,
            DebateEvent::DeadlinesMoved(moved) => {
                let due = moved
                    .waits_for
                    .iter()
                    .find(|one| one.name.as_str() == PERSON);
                let until = due.map(|one| one.due);
                let (by, why) = (moved.by, moved.why);
                let what = What::DeadlinesMoved(moved.control, Order { by, why });
                self.ordered(&stored.meta, sequence, what, until).await
            }
            DebateEvent::Resolved(resolved) if resolved.outcome.status == Status::Cancelled => {
                let Some(ruled) = resolved.outcome.ruled_by else {
                    return Ok(Vec::new());
                };
                let (by, why) = (ruled.expert, ruled.rationale);
                let what = What::Cancelled(Order { by, why });
                self.ordered(&stored.meta, sequence, what, None).await
            }
            _ => Ok(Notice::of(stored)),
        }
    }

    /// Told of a change of regime are those who rule and those who review; of a report that is missing, operators too.
    async fn alert(&self, stored: StoredEvent<AlertEvent>) -> Result<Vec<Notice>, HandleError> {
        let alert = stored.meta.id;
        let (what, topic, roles) = match stored.event {
            AlertEvent::Raised(raised) if raised.alert.event_type == REGIME_CHANGE => {
                let regime = raised.alert.new_regime.clone().unwrap_or_default();
                let raised = Box::new(raised);
                let roles = &[Role::Arbiter, Role::Reviewer][..];
                (What::Alerted { alert, raised }, regime, roles)
            }
            AlertEvent::ReportMissed(missed) => {
                let topic = format!("{} of {}", missed.event_type, missed.by);
                let roles = &[Role::Arbiter, Role::Reviewer, Role::Operator][..];
                (What::ReportMissed { alert, missed }, topic, roles)
            }
            AlertEvent::Raised(_) | AlertEvent::Reported(_) => return Ok(Vec::new()),
        };
        let ids = self.ports.ids(Aggregate::Person).await?;
        let names = ids.iter().filter_map(|id| AgentId::new(id.as_str()).ok());
        let mut notices = Vec::new();
        for name in names {
            let known = self.people.authority(&name).await?;
            if !roles.iter().any(|role| known.holds(*role)) {
                continue;
            }
            let Some(to) = self.person(&name).await? else {
                continue;
            };
            notices.push(Notice {
                sequence: stored.sequence,
                at: stored.meta.at,
                debate_id: None,
                case_id: None,
                task_id: None,
                topic: topic.clone(),
                what: what.clone(),
                to,
                until: None,
            });
        }
        Ok(notices)
    }

    /// Told are the opener, where that is a person, and everybody who can raise the quota.
    async fn quota(
        &self,
        meta: &EventMeta,
        sequence: u64,
        reached: QuotaReached,
    ) -> Result<Vec<Notice>, HandleError> {
        let ids = self.ports.ids(Aggregate::Person).await?;
        let names = ids.iter().filter_map(|id| AgentId::new(id.as_str()).ok());
        let mut notices = Vec::new();
        for name in names {
            let known = self.people.authority(&name).await?;
            if name != reached.opener && !known.holds(Role::Operator) {
                continue;
            }
            let Some(to) = self.person(&name).await? else {
                continue;
            };
            notices.push(Notice {
                sequence,
                at: meta.at,
                debate_id: None,
                case_id: reached.case_id.clone(),
                task_id: reached.task_id.clone(),
                topic: format!("{} of {}", reached.quota.counted(), reached.opener),
                what: What::QuotaReached(reached.clone()),
                to,
                until: None,
            });
        }
        Ok(notices)
    }

    async fn changed(
        &self,
        meta: &EventMeta,
        sequence: u64,
        changed: DecisionChanged,
    ) -> Result<Vec<Notice>, HandleError> {
        let Ok(case_id) = CaseId::new(meta.id.as_str()) else {
            return Ok(Vec::new());
        };
        let before = self.before::<CaseEvent>(&meta.id, sequence).await?;
        let mut notices = Vec::new();
        for (name, concern) in answerable::of_change(&before, &changed) {
            let Some(to) = self.person(&name).await? else {
                continue;
            };
            notices.push(Notice {
                sequence,
                at: meta.at,
                debate_id: Some(changed.change.debate_id.clone()),
                case_id: Some(case_id.clone()),
                task_id: None,
                topic: changed.change.topic.clone(),
                what: What::Changed {
                    change: Box::new(changed.change.clone()),
                    overridden: concern == Concern::Overridden,
                },
                to,
                until: None,
            });
        }
        Ok(notices)
    }

    /// Told is the expert who has the debate that something is ordered of. The event does not name the expert.
    async fn ordered(
        &self,
        meta: &EventMeta,
        sequence: u64,
        what: What,
        until: Option<Timestamp>,
    ) -> Result<Vec<Notice>, HandleError> {
        let before = self.before::<DebateEvent>(&meta.id, sequence).await?;
        let debate = rebuild::<DebateMachine>(&before).0.state;
        let (Some(opened), Some(ladder)) = (&debate.opened, &debate.ladder) else {
            return Ok(Vec::new());
        };
        let Some(expert) = ladder.expert.clone() else {
            return Ok(Vec::new());
        };
        if ladder.level != Level::Person {
            return Ok(Vec::new());
        }
        Ok(vec![Notice {
            sequence,
            at: meta.at,
            debate_id: Some(opened.conflict.conflict_id.clone()),
            case_id: Some(opened.case_id.clone()),
            task_id: None,
            topic: opened.conflict.topic.clone(),
            what,
            to: Audience::Expert {
                expert: Some(expert),
                contact: ladder.contact.clone(),
            },
            until,
        }])
    }

    async fn known(
        &self,
        meta: &EventMeta,
        sequence: u64,
        known: OutcomeKnown,
    ) -> Result<Vec<Notice>, HandleError> {
        let Ok(debate_id) = DebateId::new(meta.id.as_str()) else {
            return Ok(Vec::new());
        };
        let before = self.before::<DebateEvent>(&meta.id, sequence).await?;
        let debate = rebuild::<DebateMachine>(&before).0.state;
        let mut notices = Vec::new();
        for name in answerable::of_outcome(&debate, &known) {
            let Some(to) = self.person(name).await? else {
                continue;
            };
            notices.push(Notice {
                sequence,
                at: meta.at,
                debate_id: Some(debate_id.clone()),
                case_id: Some(known.case_id.clone()),
                task_id: None,
                topic: known.topic.clone(),
                what: What::Disproved {
                    right: Position {
                        position_id: None,
                        position: known.position.clone(),
                        value: known.value.clone(),
                    },
                    by: known.heard.agent_id.clone(),
                    explanation: known.explanation.clone(),
                },
                to,
                until: None,
            });
        }
        Ok(notices)
    }

    /// The events of an aggregate before this one.
    async fn before<E: AggregateEvent>(
        &self,
        id: &Token,
        sequence: u64,
    ) -> Result<Vec<StoredEvent<E>>, HandleError> {
        let loaded = self
            .ports
            .load::<E>(id, Since::FIRST, Consistency::Leader)
            .await?;
        let mut records = loaded.records;
        records.retain(|record| record.sequence < sequence);
        Ok(records)
    }

    /// A notice for an expert, at the address that the expert is registered with now instead of the one of when they were given the
    /// debate, which may be what failed.
    pub(super) async fn at_present_address(&self, notice: Notice) -> Result<Notice, HandleError> {
        let mut notice = notice;
        let to = match &notice.to {
            Audience::Expert { expert, .. } => expert.as_ref(),
            Audience::Person { name, .. } => Some(name),
            Audience::Gate(_) => None,
        };
        let Some(name) = to else {
            return Ok(notice);
        };
        if let Some(person) = self.people.authority(name).await?.person
            && let Audience::Expert { contact, .. } | Audience::Person { contact, .. } =
                &mut notice.to
        {
            *contact = person.contact;
        }
        Ok(notice)
    }

    /// Somebody as a recipient. None for somebody who is not registered, or is suspended.
    async fn person(&self, name: &AgentId) -> Result<Option<Audience>, HandleError> {
        let known = self.people.authority(name).await?;
        let active = known.person.filter(|_| known.suspended.is_none());
        Ok(active.map(|person| Audience::Person {
            name: person.name,
            contact: person.contact,
        }))
    }
}
