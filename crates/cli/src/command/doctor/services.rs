//! The services: which are there, and whether they can work.

use std::collections::BTreeSet;

use concord_installation::{Instance, SERVICES, binary_name};
use concord_runtime::Broker;
use concord_wire::subject::Service;
use serde::Deserialize;

use super::running::{Running, Silent};
use super::{Check, processes};
use crate::command::deadlines;
use crate::shared::connection::{SEE_DOCTOR, ask};
use crate::shared::output::{count, span};

const AREA: &str = "Services";
const DEADLINES: &str = "Deadlines";
/// A deadline that was due longer ago than this has been forgotten: the watchdog is slower than the scheduler.
const OVERDUE_MAX_MS: u64 = 15_000;

/// The answer of a service to the verb `status`.
#[derive(Debug, Deserialize)]
struct Status {
    ready: bool,
    reasons: Vec<String>,
}

/// Looks for each service. That one of `without` is not there is no fault.
pub(super) async fn look(
    broker: &Broker,
    running: Result<Running, async_nats::Error>,
    without: &[Service],
) -> Vec<Check> {
    let Running {
        answer: found,
        silent,
    } = match running {
        Ok(running) => running,
        Err(error) => {
            let found = format!("the services cannot be asked: {error}");
            return vec![Check::fault(
                AREA,
                found,
                "allow this user to publish on $SRV.> and to subscribe to _INBOX.>",
            )];
        }
    };
    let mut checks = Vec::new();
    for service in SERVICES {
        let of_service: Vec<&Instance> = found
            .iter()
            .filter(|i| i.name == binary_name(service))
            .collect();
        let silent = silent.iter().filter(|one| one.service == service);
        let silent: Vec<Check> = silent.map(stands_still).collect();
        // That none answers is said of each that is there.
        let is_missed = silent.is_empty() && !without.contains(&service);
        if is_missed || !of_service.is_empty() {
            checks.push(one(broker, service, &of_service).await);
        }
        checks.extend(silent);
    }
    checks.extend(processes::look(broker, &found).await);
    let versions: BTreeSet<&str> = found
        .iter()
        .map(|instance| instance.version.as_str())
        .collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        let found = format!(
            "different versions run beside each other: {}",
            versions.join(", ")
        );
        checks.push(Check::note(
            AREA,
            found,
            "fine while an upgrade is under way; otherwise restart the older ones",
        ));
    }
    checks
}

async fn one(broker: &Broker, service: Service, found: &[&Instance]) -> Check {
    if found.is_empty() {
        let advice = format!(
            "start {}, or look in the log of one that runs: the broker may not let it in any more; cases wait until it is there, and \
             nothing is lost",
            binary_name(service)
        );
        return Check::fault(AREA, format!("{service} does not answer"), advice);
    }
    let pids: Vec<String> = found
        .iter()
        .filter_map(|instance| instance.pid())
        .map(|pid| pid.to_string())
        .collect();
    let there = format!(
        "{service}: {} (pid {})",
        count(found.len() as u64, "process"),
        pids.join(", ")
    );
    match ask::<Status>(broker, service, "status", &serde_json::Value::Null).await {
        Ok(Status { ready: true, .. }) => Check::good(AREA, there),
        Ok(Status { reasons, .. }) => {
            let found = format!("{service} is not ready: {}", reasons.join("; "));
            Check::fault(
                AREA,
                found,
                "wait if it has just started; otherwise look at its log",
            )
        }
        Err(failure) => {
            let failure = failure.to_string();
            let found = format!("{there}: {}", failure.trim_end_matches(SEE_DOCTOR));
            let advice = "restart it; nothing that it had under way is lost";
            Check::fault(AREA, found, advice)
        }
    }
}

/// A process that the broker takes for one that works.
fn stands_still(process: &Silent) -> Check {
    let Silent { service, process } = process;
    let found = format!("{service} ({process}) is connected and does not answer");
    let advice = "it stands still: let it go on (kill -CONT), or end it (kill -KILL) and start it again; until then it is given a part of \
                  what people and agents ask, and nobody answers that. Nothing that it had under way is lost";
    Check::fault(AREA, found, advice)
}

/// Checks that deadlines fire.
pub(super) async fn deadlines(broker: &Broker) -> Vec<Check> {
    // A timer that is not there has been reported above.
    let Ok(armed) = deadlines::armed(broker).await else {
        return Vec::new();
    };
    let late = armed
        .iter()
        .map(|deadline| deadline.overdue_ms)
        .filter(|late| *late > OVERDUE_MAX_MS);
    let (number, latest) = late.fold((0_u64, 0), |(number, latest), late| {
        (number + 1, latest.max(late))
    });
    if number == 0 {
        return vec![Check::good(
            DEADLINES,
            format!("{} armed, none overdue", armed.len()),
        )];
    }
    let found = format!(
        "{} overdue, by up to {}",
        count(number, "deadline"),
        span(latest)
    );
    vec![Check::fault(
        DEADLINES,
        found,
        "restart the escalation-timer; its watchdog fires what is overdue",
    )]
}
