//! What must hold of a hosted agent when nothing moves any more.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use concord_domain::resilience::breaker::BreakerState;
use concord_wire::ErrorCode;

use super::{TOLD_MAX, breaker};
use crate::executor::Incarnation;
use crate::hosted::RECOVERY_MS;
use crate::hosted::setup::{Mood, Outcome};
use crate::hosted::world::{Call, Cause, Said, What, World};
use crate::report::{Counts, HostedCounts, SeedReport, WORLD_VERSION};

/// Checks a world and sums it up. `standings` are the breakers of the processes that are up; `stuck` says why it did not
/// come to rest, if so.
pub(crate) fn check(
    seed: u64,
    world: &World,
    standings: &[(Incarnation, BreakerState)],
    stuck: Option<String>,
) -> SeedReport {
    let mut violations: Vec<String> = stuck.into_iter().collect();
    ended_once(world, &mut violations);
    told_why(world, &mut violations);
    violations.extend(
        world
            .given_up
            .iter()
            .map(|subject| format!("{subject} is given up")),
    );
    bounded(world, &mut violations);
    retried_where_safe(world, &mut violations);
    recovered(world, standings, &mut violations);
    let of_breaker = breaker::check(world, &mut violations);
    let hosted = counts(world, of_breaker);
    let counts = Counts {
        seeds: 1,
        violations: violations.len() as u64,
        hosted,
        ..world.counts
    };
    violations.truncate(TOLD_MAX);
    SeedReport {
        world: WORLD_VERSION,
        seed,
        counts,
        digest: digest(world),
        violations,
        log: Vec::new(),
    }
}

fn is_of_coordinator(said: &Said) -> bool {
    matches!(said.error, Some((_, Cause::Coordinator)))
}

/// Each message ends in one response or one error. Of a request that the coordinator has ended the adapter says nothing more;
/// what was on its way by then is said once, too.
fn ended_once(world: &World, violations: &mut Vec<String>) {
    for (sequence, asked) in world.asked.iter().enumerate() {
        let said: Vec<&Said> = world
            .said
            .iter()
            .filter(|said| said.sequence == sequence)
            .collect();
        let of_adapter = said.iter().filter(|said| !is_of_coordinator(said)).count();
        if said.is_empty() || of_adapter > 1 {
            violations.push(format!(
                "{sequence} is told {} ends, {of_adapter} of them by the adapter",
                said.len()
            ));
        }
        let too_late = |said: &&&Said| {
            !is_of_coordinator(said) && asked.ended_at.is_some_and(|at| at <= said.sent)
        };
        if let Some(said) = said.iter().find(too_late) {
            violations.push(format!(
                "{sequence} is told something at {} although its time was over",
                said.sent
            ));
        }
    }
}

/// Who is refused is told the code that the documentation promises for the reason.
fn told_why(world: &World, violations: &mut Vec<String>) {
    use ErrorCode::{AgentUnavailable, CapacityExceeded, InternalError, Timeout};
    for said in &world.said {
        let Some((code, cause)) = said.error else {
            continue;
        };
        let promised = match cause {
            Cause::Broken => AgentUnavailable,
            Cause::Full | Cause::Called(Outcome::Status(429)) => CapacityExceeded,
            Cause::Late | Cause::Coordinator | Cause::Called(Outcome::NoEnd { .. }) => Timeout,
            Cause::Called(Outcome::Unreachable | Outcome::Cut | Outcome::Status(500..)) => {
                AgentUnavailable
            }
            Cause::Called(_) => InternalError,
            Cause::Unknown => {
                violations.push(format!("{} is told {code} without a reason", said.sequence));
                continue;
            }
        };
        if code != promised {
            violations.push(format!("{} is told {code} for {cause:?}", said.sequence));
        }
    }
}

/// How many were worked on and waited in a process.
#[derive(Default)]
struct Load {
    /// Its calls that are under way.
    calls: BTreeSet<u64>,
    /// Whether there was no room when that was looked at last.
    is_full: bool,
    /// When there was no room any more for the last time.
    full_at: Option<u64>,
}

/// No more are worked on and wait than the settings say, and nobody is refused who would have found room.
fn bounded(world: &World, violations: &mut Vec<String>) {
    let permits = world.setup.instances;
    let places = world.setup.queue_max;
    let mut loads: BTreeMap<Incarnation, Load> = BTreeMap::new();
    for entry in &world.record {
        let load = loads.entry(entry.incarnation).or_default();
        let wrong = match entry.what {
            What::Load { working, waiting } => {
                // One that was full until now has refused at this moment, too.
                let was_full = load.is_full;
                load.is_full = working >= permits && waiting >= places;
                if was_full || load.is_full {
                    load.full_at = Some(entry.at);
                }
                if working <= permits && waiting <= places {
                    continue;
                }
                format!("{working} are worked on, {waiting} wait")
            }
            What::Full => {
                if load.is_full || load.full_at == Some(entry.at) {
                    continue;
                }
                "one is refused although there is room".to_owned()
            }
            What::Sent { call } => {
                load.calls.insert(call);
                if load.calls.len() <= permits {
                    continue;
                }
                format!("{} calls are under way", load.calls.len())
            }
            What::Ended { call, .. } => {
                load.calls.remove(&call);
                continue;
            }
            _ => continue,
        };
        let Incarnation { replica, number } = entry.incarnation;
        violations.push(format!(
            "queue of {replica} ({number}) at {}: {wrong}; {permits} and {places} may",
            entry.at
        ));
    }
}

/// What the endpoint may have done is not asked for again within a delivery, but of an endpoint that can tell; and no call is
/// made more often than the settings say.
fn retried_where_safe(world: &World, violations: &mut Vec<String>) {
    let mut tries: BTreeMap<(u64, u8), Vec<&Call>> = BTreeMap::new();
    for call in world.calls.values() {
        tries
            .entry((call.handling, call.part))
            .or_default()
            .push(call);
    }
    for calls in tries.values() {
        if u32::try_from(calls.len()).is_ok_and(|count| count > world.setup.tries_max) {
            violations.push(
                calls
                    .first()
                    .map(|call| format!("{} is tried too often", call.sequence))
                    .unwrap_or_default(),
            );
        }
        let may_be_done =
            |call: &&&Call| !matches!(call.taken, None | Some(Mood::Status(429 | 503)));
        let mut but_last = calls.iter().rev().skip(1);
        if let Some(call) = but_last
            .find(may_be_done)
            .filter(|_| !world.setup.idempotent)
        {
            let (sequence, taken) = (call.sequence, call.taken);
            violations.push(format!(
                "{sequence} is sent again to an endpoint that has taken it: {taken:?}"
            ));
        }
    }
}

/// When the endpoint has been well for long enough, every breaker is closed and refuses nothing.
fn recovered(
    world: &World,
    standings: &[(Incarnation, BreakerState)],
    violations: &mut Vec<String>,
) {
    for (Incarnation { replica, number }, standing) in standings {
        if *standing != BreakerState::Closed {
            let standing = standing.as_str();
            violations.push(format!(
                "breaker of {replica} ({number}) is {standing} although all is well again"
            ));
        }
    }
    let Some(calm) = world.calm_since else { return };
    let recovered = calm + world.setup.rules.open_max_ms + RECOVERY_MS * 3 / 4;
    let refused = world
        .said
        .iter()
        .filter(|said| matches!(said.error, Some((_, Cause::Broken))));
    for said in refused.filter(|said| said.at > recovered) {
        violations.push(format!(
            "{} is refused by a breaker at {} although all is well again",
            said.sequence, said.at
        ));
    }
}

fn counts(world: &World, of_breaker: HostedCounts) -> HostedCounts {
    let told = |of: fn(&Cause) -> bool| {
        let causes = world.said.iter().filter_map(|said| Some(said.error?.1));
        causes.filter(of).count() as u64
    };
    let mut ended = BTreeSet::new();
    let late = world
        .said
        .iter()
        .filter(|said| !ended.insert(said.sequence))
        .count() as u64;
    HostedCounts {
        answered: world
            .said
            .iter()
            .filter(|said| said.error.is_none())
            .count() as u64,
        refused: told(|cause| *cause == Cause::Broken),
        full: told(|cause| *cause == Cause::Full),
        late_turn: told(|cause| *cause == Cause::Late),
        failed: told(|cause| matches!(cause, Cause::Called(_))),
        by_coordinator: told(|cause| *cause == Cause::Coordinator),
        late,
        calls: world.calls.len() as u64,
        retries: retries(world),
        opened: of_breaker.opened,
        probes: of_breaker.probes,
        closed: of_breaker.closed,
        ..world.counts.hosted
    }
}

/// Calls that were made again within a delivery.
fn retries(world: &World) -> u64 {
    let calls = world.calls.values().map(|call| (call.handling, call.part));
    let first: BTreeSet<(u64, u8)> = calls.collect();
    (world.calls.len() - first.len()) as u64
}

/// A digest over everything that happened, in order.
fn digest(world: &World) -> String {
    let mut digest = DefaultHasher::new();
    world.record.hash(&mut digest);
    for said in &world.said {
        (said.at, said.sequence, said.error).hash(&mut digest);
    }
    format!("{:016x}", digest.finish())
}
