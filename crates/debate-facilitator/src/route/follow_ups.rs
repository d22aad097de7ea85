//! What follows from events: a detection opens its debates, a debate that needs a person enters the queue, what the queue decides reaches the debate, a
//! gate's review reaches the debate that it is about, and what a person decided enters the track records.

use concord_domain::aggregates::debate::{Command, DebateInput, Opening};
use concord_domain::aggregates::detection;
use concord_domain::aggregates::review_queue::{Enqueue, QueueInput};
use concord_events::Aggregate;
use concord_events::{
    self, CaseCancelled, CaseEvent, DeadlineEvent, DebateEvent, DebateResolved, DetectionEvent,
    Enqueued, Escalated, EventMeta, ExpertRegistered, GateReviewed, OutcomeKnown, PersonEvent,
    PersonRegistered, PersonResumed, PersonSuspended, ReleaseReason, ReviewQueueEvent, StoredEvent,
};
use concord_wire::payload::notification::UnassignedReason;
use concord_wire::payload::{Contact, Level, OpenDebate, Status};
use concord_wire::{AgentId, DebateId, Token};

/// One thing to do because of an event.
#[derive(Debug, Clone)]
pub enum FollowUp {
    /// A step on this debate.
    Debate(Token, DebateInput),
    /// A step on the queue of people.
    Queue(QueueInput),
    /// The end of a debate enters track records and precedents.
    Verdict(Box<DebateResolved>),
    /// What proved right after this debate enters track records.
    Outcome(Token, Box<OutcomeKnown>),
    /// The debates of a case end with it: those that it knows of, and those that its detection leads to.
    CaseCancelled(Token, Box<CaseCancelled>),
}

impl FollowUp {
    fn order(debate: &DebateId, order: Command) -> Self {
        Self::Debate(debate.token(), DebateInput::Command(Box::new(order)))
    }
}

/// Everything to do because of an event, in this order.
pub fn follow_ups(
    aggregate: Aggregate,
    bytes: &[u8],
    sequence: u64,
) -> Result<Vec<FollowUp>, concord_events::Error> {
    Ok(match aggregate {
        Aggregate::Deadline => {
            let elapsed = StoredEvent::<DeadlineEvent>::decode(bytes, sequence)?
                .event
                .into_elapsed();
            let of_debate = Some(elapsed).filter(|elapsed| elapsed.aggregate == Aggregate::Debate);
            of_debate
                .map(|one| FollowUp::Debate(one.id.clone(), DebateInput::Elapsed(one)))
                .into_iter()
                .collect()
        }
        Aggregate::Debate => of_debate(StoredEvent::decode(bytes, sequence)?),
        Aggregate::ReviewQueue => {
            of_queue(StoredEvent::<ReviewQueueEvent>::decode(bytes, sequence)?.event)
        }
        Aggregate::Case => of_case(StoredEvent::decode(bytes, sequence)?),
        Aggregate::Person => of_person(StoredEvent::decode(bytes, sequence)?),
        Aggregate::Detection => {
            of_detection(StoredEvent::<DetectionEvent>::decode(bytes, sequence)?.event)
        }
        Aggregate::TrackRecord
        | Aggregate::Precedent
        | Aggregate::Agent
        | Aggregate::Policy
        | Aggregate::Opener
        | Aggregate::Request
        | Aggregate::Task
        | Aggregate::Worklist
        | Aggregate::Rotation
        | Aggregate::Board
        | Aggregate::Question
        | Aggregate::Commitment
        | Aggregate::Impact
        | Aggregate::Memory
        | Aggregate::Synthesis
        | Aggregate::Alert
        | Aggregate::Watch
        | Aggregate::Wake
        | Aggregate::Head
        | Aggregate::Archive => Vec::new(),
    })
}

/// Because of a detection of an earlier version, each debate is opened by a request.
fn of_detection(event: DetectionEvent) -> Vec<FollowUp> {
    let DetectionEvent::Completed(detected) = event;
    if !detected.opens_debates {
        return Vec::new();
    }
    let open = |request: OpenDebate| {
        let id = request.conflict.conflict_id.token();
        FollowUp::Debate(id, DebateInput::Open(Box::new(Opening::of(request))))
    };
    detection::debates(&detected).map(open).collect()
}

fn of_debate(record: StoredEvent<DebateEvent>) -> Vec<FollowUp> {
    let Ok(debate_id) = DebateId::new(record.meta.id.as_str()) else {
        return Vec::new();
    };
    let released = |reason| {
        FollowUp::Queue(QueueInput::Release {
            debate_id: debate_id.clone(),
            reason,
        })
    };
    match record.event {
        DebateEvent::Escalated(escalated) => {
            let enqueue = enqueue(debate_id, &escalated, &record.meta);
            enqueue
                .map(|enqueue| FollowUp::Queue(QueueInput::Enqueue(Box::new(enqueue))))
                .into_iter()
                .collect()
        }
        DebateEvent::Reminded(reminded) => reminded
            .expert
            .filter(|_| reminded.returns)
            .map(|expert| FollowUp::Queue(QueueInput::GiveBack { debate_id, expert }))
            .into_iter()
            .collect(),
        DebateEvent::FellBack(_) => vec![released(ReleaseReason::TimedOut)],
        DebateEvent::Resolved(resolved) => {
            // Without a level it never was on the ladder.
            let Some(level) = resolved.outcome.level else {
                return Vec::new();
            };
            let release =
                (level >= Level::Person).then(|| released(reason_of(resolved.outcome.status)));
            release
                .into_iter()
                .chain([FollowUp::Verdict(resolved)])
                .collect()
        }
        DebateEvent::OutcomeKnown(known) => vec![FollowUp::Outcome(record.meta.id, known)],
        _ => Vec::new(),
    }
}

fn enqueue(debate_id: DebateId, escalated: &Escalated, meta: &EventMeta) -> Option<Enqueue> {
    let entry = escalated.queue.as_ref()?;
    Some(Enqueue {
        entry: Enqueued {
            debate_id,
            case_id: escalated.case_id.clone(),
            priority: entry.priority,
            opened_by: entry.opened_by.clone(),
            opener_waiting_max: 0,
            domain: entry.domain.clone(),
            excluded: entry.excluded.clone(),
            entered_at: meta.at,
            due: entry.due,
        },
        overflow: entry.overflow,
        queue_max: entry.queue_max,
    })
}

fn reason_of(status: Status) -> ReleaseReason {
    match status {
        Status::Ruling => ReleaseReason::Ruled,
        Status::Cancelled => ReleaseReason::Cancelled,
        _ => ReleaseReason::Resolved,
    }
}

/// What the queue decided reaches the debate first; then the queue goes on.
fn of_queue(event: ReviewQueueEvent) -> Vec<FollowUp> {
    let mut told = match event {
        ReviewQueueEvent::Assigned(assigned) => {
            let (expert, contact) = (assigned.expert, assigned.contact);
            vec![FollowUp::order(
                &assigned.debate_id,
                assignment(expert, contact),
            )]
        }
        ReviewQueueEvent::Reassigned(reassigned) => {
            let (expert, contact) = (reassigned.to, reassigned.contact);
            vec![FollowUp::order(
                &reassigned.debate_id,
                assignment(expert, contact),
            )]
        }
        ReviewQueueEvent::Overflowed(overflowed) => {
            vec![FollowUp::order(
                &overflowed.debate_id,
                Command::Overflowed {
                    handling: overflowed.handling,
                },
            )]
        }
        ReviewQueueEvent::ExpertLeft(left) => {
            let order = || Command::Unassigned {
                expert: left.agent_id.clone(),
                reason: UnassignedReason::Left,
            };
            left.returned
                .iter()
                .map(|debate| FollowUp::order(debate, order()))
                .collect()
        }
        ReviewQueueEvent::Returned(returned) => {
            let order = Command::Unassigned {
                expert: returned.expert,
                reason: UnassignedReason::DidNotAct,
            };
            vec![FollowUp::order(&returned.debate_id, order)]
        }
        ReviewQueueEvent::ExpertRegistered(_)
        | ReviewQueueEvent::Enqueued(_)
        | ReviewQueueEvent::Released(_) => Vec::new(),
    };
    told.push(FollowUp::Queue(QueueInput::Advance));
    told
}

/// The queue knows nothing of what the expert is shown; that is read when the step is done.
fn assignment(expert: AgentId, contact: Contact) -> Command {
    Command::Assigned {
        expert,
        contact,
        background: None,
    }
}

/// An arbiter is an expert of the queue for as long as they are one.
fn of_person(record: StoredEvent<PersonEvent>) -> Vec<FollowUp> {
    let follows = record.sequence;
    let leave = |agent_id, by, why, was_expert| QueueInput::Leave {
        agent_id,
        by,
        why,
        follows,
        was_expert,
    };
    let register = |expert, by| {
        QueueInput::Register(Box::new(ExpertRegistered {
            expert,
            by,
            follows,
        }))
    };
    let input = match record.event {
        PersonEvent::Registered(PersonRegistered {
            person,
            by,
            was_arbiter,
        }) => match person.expert() {
            Some(expert) => register(expert, by),
            None => {
                let why = "no arbiter any more".to_owned();
                leave(person.name, by, why, was_arbiter)
            }
        },
        PersonEvent::Suspended(PersonSuspended {
            name,
            by,
            why,
            was_arbiter,
        }) => leave(name, by, why, was_arbiter),
        PersonEvent::Resumed(PersonResumed { person, by, .. }) => match person.expert() {
            Some(expert) => register(expert, by),
            None => return Vec::new(),
        },
    };
    vec![FollowUp::Queue(input)]
}

fn of_case(record: StoredEvent<CaseEvent>) -> Vec<FollowUp> {
    match record.event {
        CaseEvent::GateReviewed(reviewed) => {
            let debate_id = reviewed.debate_id.clone();
            vec![FollowUp::order(&debate_id, review(*reviewed))]
        }
        CaseEvent::Cancelled(cancelled) => {
            vec![FollowUp::CaseCancelled(record.meta.id, Box::new(cancelled))]
        }
        _ => Vec::new(),
    }
}

fn review(reviewed: GateReviewed) -> Command {
    let again = reviewed.again.map(|asked| asked.conflict.conflict_id);
    Command::Reviewed {
        by: reviewed.heard.agent_id,
        first: reviewed.first_reviewer,
        first_rationale: reviewed.first_rationale,
        review: Box::new(reviewed.review),
        again,
    }
}
