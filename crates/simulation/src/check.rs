//! What must hold of a world in which nothing moves any more.
//!
//! The invariants of the design are checked by [`concord_domain::assurance::audit`], as `concord check` does on a real
//! installation. Here is what only a simulator can know: virtual time, which message became of what, and whether
//! deciding again comes to the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use concord_domain::assurance::audit::{
    Auditor, Content, Dead, Ending, RawEvent, Report, StoredMessage,
};
use concord_domain::assurance::replay::{Difference, rebuild, recount};
use concord_domain::{Machine, MachineVisitor, visit_machine};
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{CaseEvent, DeadlineEvent, FiredBy, StoredEvent};
use concord_runtime::signing;
use concord_wire::subject::Lane;
use concord_wire::subject::Subject;
use concord_wire::{Envelope, MessageId};

use crate::broker::Stored;
use crate::report::{Counts, SeedReport, WORLD_VERSION};
use crate::world::{World, instant};

mod again;
mod archive;
mod authority;
mod breaker;
mod conclusions;
mod confirmations;
mod effects;
mod estimates;
mod exchange;
pub(crate) mod hosted;
mod in_time;
mod joining;
mod kept;
mod ladder;
mod openers;
mod questions;
mod queue;
mod records;
mod shared;
mod silence;
mod tasks;
mod wake;

pub(crate) use archive::Archive;
pub(crate) use ladder::held;
pub(crate) use silence::is_anybody_away;

/// More violations than these are counted and not told.
const TOLD_MAX: usize = 20;

/// Checks a world and sums it up. `stuck` says why it did not come to rest, if so.
pub(crate) fn check(seed: u64, world: &World, stuck: Option<String>) -> SeedReport {
    let archive = Archive::read(world);
    let mut violations: Vec<String> = stuck.into_iter().collect();
    audit(world, &archive, violations.is_empty(), &mut violations);
    violations.extend(world.given_up.iter().cloned());
    on_time(world, &mut violations);
    in_time::check(&archive, &mut violations);
    archive.rebuilt(&mut violations);
    again::check(&archive, &mut violations);
    kept::check(&archive, &mut violations);
    ladder::check(&archive, &mut violations);
    queue::check(&archive, &mut violations);
    openers::check(&archive, &mut violations);
    records::check(&archive, &mut violations);
    conclusions::check(&archive, &mut violations);
    confirmations::check(&archive, &mut violations);
    tasks::check(&archive, &mut violations);
    joining::check(&archive, &mut violations);
    silence::check(&archive, instant(world.now), &mut violations);
    questions::check(&archive, &mut violations);
    exchange::check(&archive, &mut violations);
    wake::check(&archive, &mut violations);
    shared::check(&archive, &mut violations);
    effects::check(&archive, &mut violations);
    estimates::check(&archive, &mut violations);
    let ladder = ladder::counts(&archive);
    let counts = Counts {
        ladder,
        ..counts(world, &archive, violations.len())
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

fn counts(world: &World, archive: &Archive, violations: usize) -> Counts {
    let length = |kind| world.broker.messages(kind).len() as u64;
    let decided = |records: &&Vec<StoredEvent<CaseEvent>>| {
        records
            .iter()
            .any(|record| matches!(record.event, CaseEvent::Decided(_)))
    };
    let (wakes, loops) = wake::counts(archive);
    let (tasks, tasks_done) = tasks::counts(archive);
    let (puts, commitments, reports) = shared::counts(archive);
    let (reruns, override_reruns, redone) = shared::reruns::counts(archive);
    let (questions, questions_answered) = questions::counts(archive);
    Counts {
        seeds: 1,
        cases: archive.cases.len() as u64,
        decided: archive.cases.values().filter(decided).count() as u64,
        debates: archive.debates.len() as u64,
        requests: exchange::ended(archive),
        wakes,
        loops,
        tasks,
        tasks_done,
        alerts: shared::alerts_raised(archive),
        alerts_by_rules: shared::alerts_by_rules(archive),
        silences: silence::count(archive),
        joined: joining::count(archive),
        memories: archive.memories.values().flatten().count() as u64,
        puts,
        reports,
        reruns,
        override_reruns,
        redone,
        commitments,
        questions,
        questions_answered,
        events: length(StreamKind::Events) - world.counts.foreign,
        messages: length(StreamKind::Messages) + length(StreamKind::Urgent),
        dead: length(StreamKind::Dead),
        watchdog_fires: fired_by_watchdog(archive),
        violations: violations as u64,
        ..world.counts
    }
}

fn fired_by_watchdog(archive: &Archive) -> u64 {
    let elapsed = archive.deadlines.values().flatten();
    let fired_by = elapsed.map(|record| record.event.clone().into_elapsed().fired_by);
    fired_by.filter(|by| *by == FiredBy::Watchdog).count() as u64
}

/// The invariants of the design, by the auditor.
fn audit(world: &World, archive: &Archive, quiescent: bool, violations: &mut Vec<String>) {
    let mut auditor = Auditor::verifying(signing::fits);
    for stored in world.broker.messages(StreamKind::Events) {
        let Ok(SystemSubject::Event {
            aggregate,
            id,
            event,
        }) = world.subjects().parse(&stored.publication.subject)
        else {
            violations.push(format!(
                "{} is no subject of an event",
                stored.publication.subject
            ));
            continue;
        };
        let bytes = &stored.publication.body;
        auditor.event(&RawEvent {
            sequence: stored.sequence,
            aggregate,
            id: &id,
            event: &event,
            bytes,
        });
    }
    let normal = archive.messages.iter().map(|one| (Lane::Normal, one));
    let urgent = archive.urgent.iter().map(|one| (Lane::Urgent, one));
    for (lane, message) in normal.chain(urgent) {
        let Message {
            sequence,
            subject,
            envelope,
            body,
            ..
        } = message;
        let Some(subject) = subject else {
            auditor.malformed_message(lane, *sequence);
            continue;
        };
        let content = envelope
            .as_ref()
            .map_or(Content::Bytes(body), Content::Envelope);
        auditor.message(&StoredMessage {
            sequence: *sequence,
            subject,
            declared: None,
            content,
        });
    }
    audit_dead(world, archive, &mut auditor);
    let now = instant(world.now);
    let ending = match quiescent {
        true => Ending::quiescent(now),
        false => Ending::under_load(now),
    };
    describe(&auditor.finish(&ending), violations);
}

/// What is kept among the dead.
fn audit_dead(world: &World, archive: &Archive, auditor: &mut Auditor) {
    for stored in world.broker.messages(StreamKind::Dead) {
        let Some((kind, sequence, _)) = stored.publication.original else {
            continue;
        };
        let (lane, said) = match kind {
            StreamKind::Messages => (Lane::Normal, &archive.messages),
            StreamKind::Urgent => (Lane::Urgent, &archive.urgent),
            _ => continue,
        };
        let original = usize::try_from(sequence - 1)
            .ok()
            .and_then(|place| said.get(place));
        let subject = original.and_then(|message| message.subject.as_ref());
        let message_id: Option<&MessageId> =
            original.and_then(|message| Some(&message.envelope.as_ref()?.message_id));
        auditor.dead(&Dead {
            subject,
            position: Some((lane, sequence)),
            message_id,
        });
    }
}

/// Adds what a report finds wrong, one sentence for each violation.
fn describe(report: &Report, violations: &mut Vec<String>) {
    let told = report.violations().map(|(checked, violation)| {
        let at = violation
            .sequence
            .map(|sequence| format!(" at {sequence}"))
            .unwrap_or_default();
        format!(
            "{} ({} times): {}{at}: {}",
            checked.name, checked.violations, violation.place, violation.what
        )
    });
    violations.extend(told);
}

/// A deadline elapses when its time has come by the world's clock, not only by that of the process that says so.
fn on_time(world: &World, violations: &mut Vec<String>) {
    for stored in world.broker.messages(StreamKind::Events) {
        let Ok(SystemSubject::Event {
            aggregate: Aggregate::Deadline,
            ..
        }) = world.subjects().parse(&stored.publication.subject)
        else {
            continue;
        };
        let Ok(record) =
            StoredEvent::<DeadlineEvent>::decode(&stored.publication.body, stored.sequence)
        else {
            continue;
        };
        let elapsed = record.event.into_elapsed();
        if instant(stored.at) < elapsed.due {
            let place = format!("{}/{}/{}", elapsed.aggregate, elapsed.id, elapsed.name);
            violations.push(format!(
                "{place} elapsed at {}, due at {}",
                instant(stored.at),
                elapsed.due
            ));
        }
    }
}

/// A digest over everything that is stored, in order. It is compared with another run of the same build only, so a
/// quick one will do.
fn digest(world: &World) -> String {
    let mut digest = DefaultHasher::new();
    for kind in StreamKind::ALL {
        for Stored {
            sequence,
            at,
            publication,
        } in world.broker.messages(kind)
        {
            (sequence, at, &publication.subject).hash(&mut digest);
            digest.write(&publication.body);
        }
    }
    format!("{:016x}", digest.finish())
}

/// A stored message with what can be read of it.
pub(crate) struct Message {
    pub(crate) sequence: u64,
    pub(crate) at: u64,
    pub(crate) subject: Option<Subject>,
    pub(crate) envelope: Option<Envelope>,
    pub(crate) body: std::sync::Arc<[u8]>,
}

impl Archive {
    /// Rebuilds everything: the same events give the same state, deadlines and votes.
    fn rebuilt(&self, violations: &mut Vec<String>) {
        let all = Aggregate::ALL.iter();
        let told = all.flat_map(|aggregate| visit_machine(*aggregate, Rebuild(self)));
        violations
            .extend(told.map(|d| format!("replay: {} at {}: {}", d.aggregate, d.sequence, d.what)));
    }
}

/// Rebuilds all aggregates of one kind.
struct Rebuild<'a>(&'a Archive);

impl MachineVisitor for Rebuild<'_> {
    type Output = Vec<Difference>;

    fn visit<M: Machine>(self) -> Vec<Difference> {
        let histories = self.0.histories::<M::Event>();
        let mut differences = Vec::new();
        for records in histories.values() {
            differences.extend(rebuild::<M>(records).1);
            differences.extend(recount::<M>(records));
        }
        differences
    }
}
