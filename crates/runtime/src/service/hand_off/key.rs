//! What deliveries have in common that are best worked on by one replica.

use concord_domain::effect::source_of;
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::topology::ConsumerKind;
use concord_wire::subject::{Service, Subject as WireSubject, SubjectSpace};
use concord_wire::{CaseId, MessageType};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::delivery::Delivery;
use crate::delivery::route::is_between_agents;

/// What the deliveries have in common that are best worked on by one replica: mostly their case. None where it does not matter.
pub(super) fn key_of(
    kind: ConsumerKind,
    subjects: &SubjectSpace,
    delivery: &Delivery,
) -> Option<String> {
    match kind {
        ConsumerKind::Inbox(_)
        | ConsumerKind::UrgentInbox(_)
        | ConsumerKind::Wake
        | ConsumerKind::Exchange => {
            let subject = subjects.parse(&delivery.subject).ok()?;
            let case = case_of(&subject).filter(|_| is_acted_on(kind, &subject));
            task_of(kind, &subject, delivery).or_else(|| case.map(CaseId::to_string))
        }
        ConsumerKind::Events(service) => of_event(service, subjects, delivery),
        // What opens a deadline and what closes it meet.
        ConsumerKind::Deadlines => match subjects.parse(&delivery.subject).ok()? {
            SystemSubject::Event { aggregate, id, .. } => Some(format!("{aggregate}.{id}")),
            _ => None,
        },
        // What ends a case gives its opener's place back, for which the case is read.
        ConsumerKind::Effects(Service::Coordinator) => {
            match subjects.parse(&delivery.subject).ok()? {
                SystemSubject::Event {
                    aggregate: Aggregate::Case,
                    id,
                    event,
                } => ENDS.contains(&event.as_str()).then(|| id.to_string()),
                // By them places are taken and given back, for which the task is read.
                SystemSubject::Event {
                    aggregate: Aggregate::Task,
                    id,
                    ..
                } => Some(id.to_string()),
                _ => None,
            }
        }
        ConsumerKind::Effects(_)
        | ConsumerKind::Due
        | ConsumerKind::Completions
        | ConsumerKind::Notices(_) => None,
    }
}

fn case_of(subject: &WireSubject) -> Option<&CaseId> {
    match subject {
        WireSubject::Message { case, .. } => case.as_ref(),
        _ => None,
    }
}

/// The task that an agent's word to the coordinator is about, by the message that it answers.
fn task_of(kind: ConsumerKind, subject: &WireSubject, delivery: &Delivery) -> Option<String> {
    let is_inbox = matches!(
        kind,
        ConsumerKind::Inbox(Service::Coordinator) | ConsumerKind::UrgentInbox(Service::Coordinator)
    );
    let WireSubject::Message { kind: of, .. } = subject else {
        return None;
    };
    if !is_inbox || !ABOUT_TASKS.iter().any(|kind| kind.as_str() == of.as_str()) {
        return None;
    }
    let answer = serde_json::from_slice::<Answer<'_>>(&delivery.payload).ok()?;
    let (id, _) = source_of(answer.reply_to?)?;
    Some(id.to_owned())
}

/// What agents say about the tasks that they were asked to do.
const ABOUT_TASKS: [MessageType; 4] = [
    MessageType::TaskResult,
    MessageType::Bid,
    MessageType::Refuse,
    MessageType::Handoff,
];

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    reply_to: Option<&'a str>,
}

/// Whether a consumer that is given messages to others may make something of one. What services say to agents is most of what
/// there is, and whoever gets it passes it over.
fn is_acted_on(kind: ConsumerKind, subject: &WireSubject) -> bool {
    let WireSubject::Message { from, kind: of, .. } = subject else {
        return false;
    };
    match kind {
        ConsumerKind::Exchange => is_between_agents(subject),
        // With its briefing an agent joins the conversation of a case.
        ConsumerKind::Wake => {
            Service::parse(from.as_str()).is_err()
                || of.as_str() == MessageType::SessionBriefing.as_str()
        }
        _ => true,
    }
}

/// Events that may be the end of a case.
const ENDS: [&str; 5] = [
    "decided",
    "decision_changed",
    "gate_reviewed",
    "gate_passed",
    "cancelled",
];

/// All steps of the queue of people are those of one aggregate.
const QUEUE: &str = "queue";

fn of_event(service: Service, subjects: &SubjectSpace, delivery: &Delivery) -> Option<String> {
    let SystemSubject::Event {
        aggregate,
        id,
        event,
    } = subjects.parse(&delivery.subject).ok()?
    else {
        return None;
    };
    // It reads the case from the stream either way, and steps on what nobody else does.
    if service == Service::ConflictDetector {
        return None;
    }
    let queues = matches!(event.as_str(), "escalated" | "reminded" | "fell_back");
    match aggregate {
        Aggregate::Case | Aggregate::Detection => Some(id.to_string()),
        Aggregate::ReviewQueue | Aggregate::Person => Some(QUEUE.to_owned()),
        Aggregate::Debate if service == Service::DebateFacilitator && queues => {
            Some(QUEUE.to_owned())
        }
        // Where it never was on the ladder, nothing follows for the facilitator.
        Aggregate::Debate
            if service == Service::DebateFacilitator
                && event.as_str() == "resolved"
                && named_in(delivery).outcome.level.is_none() =>
        {
            None
        }
        Aggregate::Debate => named_in(delivery).case_id.map(str::to_owned),
        // What was admitted is compared with its case or task.
        Aggregate::Opener => {
            let named = named_in(delivery);
            named.case_id.or(named.task_id).map(str::to_owned)
        }
        Aggregate::Worklist => {
            let named = named_in(delivery);
            // The task that is given to the agent now, where one is.
            let given = match event.as_str() {
                "taken" => named.task_id,
                "released" => named.next,
                _ => None,
            };
            given.map(str::to_owned)
        }
        Aggregate::Deadline => named_in(delivery).id.map(str::to_owned),
        _ => None,
    }
}

/// What an event names of its contents, where it does.
#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    case_id: Option<&'a str>,
    #[serde(borrow, default)]
    id: Option<&'a str>,
    #[serde(borrow, default)]
    task_id: Option<&'a str>,
    #[serde(borrow, default)]
    next: Option<&'a str>,
    #[serde(default)]
    outcome: Outcome,
}

/// How a debate has ended.
#[derive(Default, Deserialize)]
struct Outcome {
    /// On which level of the ladder; none where it never was on it.
    #[serde(default)]
    level: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    data: Named<'a>,
}

fn named_in(delivery: &Delivery) -> Named<'_> {
    let read = serde_json::from_slice::<Stored<'_>>(&delivery.payload);
    read.map(|stored| stored.data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use concord_wire::Timestamp;

    use super::*;
    use crate::delivery::Cost;

    fn delivery(subject: &str, payload: &'static str) -> Delivery {
        Delivery {
            subject: subject.to_owned(),
            payload: payload.into(),
            headers: None,
            trace: None,
            stream: "S".to_owned(),
            sequence: 1,
            deliveries: 1,
            stored_at: Timestamp::from_unix_millis(0),
            consumer: "c".into(),
            over_limit: None,
            cost: Cost::default(),
        }
    }

    fn check(cases: &[(ConsumerKind, &str, &'static str, Option<&str>)]) {
        for (kind, subject, payload, key) in cases {
            let delivery = delivery(&format!("concord.v1.{subject}"), payload);
            let found = key_of(*kind, &SubjectSpace::default(), &delivery);
            assert_eq!(found.as_deref(), *key, "{subject}");
        }
    }

    #[test]
    fn what_is_said_in_one_case_is_kept_together_where_somebody_acts_on_it() {
        use ConsumerKind::{Exchange, Inbox, Wake};
        let inbox = Inbox(Service::Coordinator);
        check(&[
            (inbox, "msg.c-1.ann.coordinator.finding", "", Some("c-1")),
            (inbox, "msg._.ann.coordinator.request", "", None),
            (inbox, "anything", "", None),
            (Wake, "msg.c-1.ann.bob.peer_request", "", Some("c-1")),
            (Wake, "msg.c-1.coordinator.bob.task_assignment", "", None),
            (
                Wake,
                "msg.c-1.coordinator.bob.session_briefing",
                "",
                Some("c-1"),
            ),
            (Exchange, "msg.c-1.ann.bob.request", "", Some("c-1")),
            (Exchange, "msg.c-1.ann.coordinator.response", "", None),
            (
                Exchange,
                "msg.c-1.debate-facilitator._all.notification",
                "",
                None,
            ),
        ]);
    }

    #[test]
    fn events_of_what_belongs_to_one_case_are_kept_together() {
        use ConsumerKind::{Deadlines, Due, Effects, Events};
        use Service::{Coordinator, DebateFacilitator};
        let of_case = r#"{"data":{"case_id":"c-1"}}"#;
        let of_ladder = r#"{"data":{"case_id":"c-1","outcome":{"level":1,"status":"settled"}}}"#;
        let (coordinator, facilitator) = (Events(Coordinator), Events(DebateFacilitator));
        let ends = Effects(Coordinator);
        check(&[
            (
                coordinator,
                "event.detection.c-1.completed",
                "{}",
                Some("c-1"),
            ),
            (
                Events(Service::ConflictDetector),
                "event.case.c-1.findings_closed",
                "{}",
                None,
            ),
            (
                coordinator,
                "event.opener.olga.admitted",
                of_case,
                Some("c-1"),
            ),
            (
                coordinator,
                "event.debate.d-1.resolved",
                of_case,
                Some("c-1"),
            ),
            (facilitator, "event.debate.d-1.resolved", of_case, None),
            (
                facilitator,
                "event.debate.d-1.resolved",
                of_ladder,
                Some("c-1"),
            ),
            (
                facilitator,
                "event.debate.d-1.escalated",
                "{}",
                Some("queue"),
            ),
            (
                facilitator,
                "event.queue.queue.assigned",
                "{}",
                Some("queue"),
            ),
            (coordinator, "event.debate.d-1.resolved", "no JSON", None),
            (
                coordinator,
                "event.deadline.x.case_elapsed",
                r#"{"data":{"id":"c-1"}}"#,
                Some("c-1"),
            ),
            (Deadlines, "event.debate.d-1.opened", "", Some("debate.d-1")),
            (ends, "event.case.c-1.decided", "", Some("c-1")),
            (ends, "event.case.c-1.opened", "", None),
            (Due, "timer.due.case.c-1.findings", "", None),
        ]);
    }

    #[test]
    fn what_is_said_and_stored_of_one_task_is_kept_together() {
        let answer = r#"{"reply_to":"t-1-43-0"}"#;
        let of_task = r#"{"data":{"task_id":"t-1"}}"#;
        let of_next = r#"{"data":{"task_id":"t-1","next":"t-2"}}"#;
        let inbox = ConsumerKind::Inbox(Service::Coordinator);
        let events = ConsumerKind::Events(Service::Coordinator);
        let effects = ConsumerKind::Effects(Service::Coordinator);
        check(&[
            (
                inbox,
                "msg._.ann.coordinator.task_result",
                answer,
                Some("t-1"),
            ),
            (inbox, "msg.c-1.ann.coordinator.bid", answer, Some("t-1")),
            (
                inbox,
                "msg.c-1.ann.coordinator.task_result",
                "no JSON",
                Some("c-1"),
            ),
            (
                events,
                "event.opener.olga.task_admitted",
                of_task,
                Some("t-1"),
            ),
            (events, "event.worklist.ann.taken", of_task, Some("t-1")),
            (events, "event.worklist.ann.queued", of_task, None),
            (events, "event.worklist.ann.released", of_next, Some("t-2")),
            (events, "event.worklist.ann.released", of_task, None),
            (effects, "event.task.t-1.result", "", Some("t-1")),
        ]);
    }
}
