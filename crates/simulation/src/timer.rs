//! The escalation timer: makes the broker's scheduler agree with the facts, and notices what it missed.

use concord_domain::aggregates::deadline::{Fire, TimerAction, timer_actions};
use concord_domain::{Context, machine::Ignored};
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::{Deadline, EventMeta, FiredBy};
use concord_runtime::broker::Operation;
use concord_runtime::{Consistency, Outcome};
use concord_wire::{MessageId, Token};

use crate::faults::Plant;
use crate::network::{Reply, Request, WATCHDOG_GRACE_MS};
use crate::process::{Delivery, HandleError, Process};

/// A fact that may move deadlines: the scheduler is told.
pub(crate) async fn arm(process: &Process, delivery: &Delivery) -> Result<(), HandleError> {
    let subjects = process.connection.subjects();
    let Ok(SystemSubject::Event { aggregate, id, .. }) = subjects.parse(&delivery.subject) else {
        return Err(HandleError::Failed);
    };
    for action in timer_actions(&EventMeta::decode(&delivery.body)?) {
        match action {
            TimerAction::Arm(deadline) => hold(process, aggregate, &id, &deadline).await?,
            TimerAction::Cancel(name) => {
                let target = subjects.build(&SystemSubject::TimerDue {
                    aggregate,
                    id: id.clone(),
                    name,
                });
                process
                    .connection
                    .ask(Operation::ScheduleDeadline, Request::Cancel { target })
                    .await?;
            }
        }
    }
    Ok(())
}

async fn hold(
    process: &Process,
    aggregate: Aggregate,
    id: &Token,
    deadline: &Deadline,
) -> Result<(), HandleError> {
    let subject = SystemSubject::TimerDue {
        aggregate,
        id: id.clone(),
        name: deadline.name.clone(),
    };
    let target = process.connection.subjects().build(&subject);
    let body = serde_json::to_vec(deadline).unwrap_or_default().into();
    process
        .connection
        .ask(
            Operation::ScheduleDeadline,
            Request::Arm {
                target,
                due: deadline.due,
                body,
            },
        )
        .await?;
    Ok(())
}

/// The broker has delivered a deadline: what counts is what the aggregate's last fact says of it. That it is open and due
/// is believed on the word of any copy, everything else on the leader's alone.
pub(crate) async fn due(process: &Process, delivery: &Delivery) -> Result<(), HandleError> {
    let Ok(SystemSubject::TimerDue {
        aggregate,
        id,
        name,
    }) = process.connection.subjects().parse(&delivery.subject)
    else {
        return Err(HandleError::Failed);
    };
    let early = process.connection.plant() == Some(Plant::EarlyFire);
    let stands = async |read| {
        let last = process.ledger.last(aggregate, &id, read).await?;
        Ok::<_, HandleError>(last.and_then(|meta| {
            meta.deadlines
                .into_iter()
                .find(|deadline| deadline.name == name)
        }))
    };
    if let Some(open) = stands(Consistency::Any)
        .await?
        .filter(|open| process.connection.now() >= open.due)
    {
        return fire(process, aggregate, id, open, FiredBy::Scheduler).await;
    }
    let Some(open) = stands(Consistency::Leader).await? else {
        return Ok(());
    };
    // Open with a later due than the broker has delivered: it was moved while the broker delivered it.
    if early || process.connection.now() >= open.due {
        return fire(process, aggregate, id, open, FiredBy::Scheduler).await;
    }
    hold(process, aggregate, &id, &open).await
}

/// Looks for deadlines that are open although they were due some time ago, and fires them.
pub(crate) async fn watch(process: &Process) {
    if process.connection.plant() == Some(Plant::NoWatchdog) {
        return;
    }
    let Ok(Reply::Events(facts, _)) = process
        .connection
        .ask(Operation::ListDeadlines, Request::Overdue)
        .await
    else {
        return;
    };
    for (_, subject, body) in facts {
        let Ok(SystemSubject::Event { aggregate, id, .. }) =
            process.connection.subjects().parse(&subject)
        else {
            continue;
        };
        let Ok(meta) = EventMeta::decode(&body) else {
            continue;
        };
        let now = process.connection.now();
        for deadline in meta
            .deadlines
            .into_iter()
            .filter(|d| now.millis_since(d.due) > WATCHDOG_GRACE_MS)
        {
            // What fails now is found again at the next look.
            let _ = fire(process, aggregate, id.clone(), deadline, FiredBy::Watchdog).await;
        }
    }
}

async fn fire(
    process: &Process,
    aggregate: Aggregate,
    id: Token,
    deadline: Deadline,
    fired_by: FiredBy,
) -> Result<(), HandleError> {
    let plant = process.connection.plant();
    let mut now = process.connection.now();
    if plant == Some(Plant::EarlyFire) {
        now = now.max(deadline.due);
    }
    let fire = Fire {
        aggregate,
        id,
        deadline,
        fired_by,
    };
    let id = fire.deadline_id();
    // The cause is the deadline itself, so whoever notices it, and however often, makes the same fact.
    let mut cause = MessageId::of_deadline(&fire.id, &fire.deadline.name, fire.deadline.due);
    if plant == Some(Plant::DeadlineTwice) {
        let noticed = process.connection.world.lock().random.next();
        cause = MessageId::new(format!("noticed-{noticed}")).unwrap_or(cause);
    }
    let context = Context::of_message(now, cause);
    let outcome = process.deadlines.step(&id, &context, &fire, None).await?;
    match (fired_by, outcome) {
        // The owner has not acted yet, or the fact is on its way.
        (
            _,
            Outcome::Ignored(Ignored::AlreadyDone | Ignored::DeadlineNotOpen)
            | Outcome::Rejected(_),
        ) => {}
        (FiredBy::Watchdog, Outcome::Appended { .. }) => {
            process.connection.world.lock().counts.watchdog_fires += 1
        }
        _ => {}
    }
    Ok(())
}
