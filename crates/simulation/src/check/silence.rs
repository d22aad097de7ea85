//! Agents that fall silent: while one is unavailable for its silence nobody gives it a task, and it is tried again when its time has
//! come. That its tasks end nevertheless is checked with all tasks.

use std::collections::BTreeMap;

use concord_domain::Machine;
use concord_domain::aggregates::agent::{AgentMachine, AgentState};
use concord_events::topology::StreamKind;
use concord_events::{AgentEvent, StoredEvent, TaskEvent};
use concord_wire::{AgentId, Timestamp};

use super::archive::Archive;
use crate::world::World;

/// How long a step takes at most that was begun while the agent was there: three slow messages, and the broker away in between.
const STEP_MS: u64 = 12_000;
/// How long after its time an agent is tried again at the latest: every process looks at least every ten seconds, and some are down.
const RETRY_MS: u64 = 60_000;

/// From when to when an agent was unavailable for its silence.
type Away = Vec<(u64, u64)>;

pub(super) fn check(archive: &Archive, now: Timestamp, violations: &mut Vec<String>) {
    let mut away: BTreeMap<AgentId, Away> = BTreeMap::new();
    for (id, records) in archive.histories::<AgentEvent>() {
        let Ok(agent) = AgentId::new(id.as_str()) else {
            continue;
        };
        let mut state = AgentState::default();
        let mut since = None;
        for record in records {
            let at = stored_at(archive, record.sequence);
            AgentMachine::apply(&mut state, record);
            match (since, state.silence.is_open()) {
                (None, true) => since = Some(at),
                (Some(from), false) => {
                    away.entry(agent.clone()).or_default().push((from, at));
                    since = None;
                }
                _ => {}
            }
        }
        let retry_at = state.silence.retry_at;
        if let Some(at) = retry_at.filter(|at| at.plus_millis(RETRY_MS) < now) {
            violations.push(format!("silence: {agent} was not tried again at {at}"));
        }
        if let Some(from) = since {
            away.entry(agent).or_default().push((from, u64::MAX));
        }
    }
    for records in archive.histories::<TaskEvent>().values() {
        asked(archive, records, &away, violations);
    }
}

/// Whether somebody is unavailable for its silence, and is yet to be tried again.
pub(crate) fn is_anybody_away(world: &World) -> bool {
    let mut states: BTreeMap<String, AgentState> = BTreeMap::new();
    for stored in world.broker.messages(StreamKind::Events) {
        let (subject, body) = (&stored.publication.subject, &stored.publication.body);
        if subject.contains(".event.agent.")
            && let Ok(record) = StoredEvent::<AgentEvent>::decode(body, stored.sequence)
        {
            let state = states.entry(record.meta.id.to_string()).or_default();
            AgentMachine::apply(state, record);
        }
    }
    states.values().any(|state| state.silence.is_open())
}

/// How often an agent has become unavailable for its silence.
pub(super) fn count(archive: &Archive) -> u64 {
    let histories = archive.histories::<AgentEvent>();
    let opens = |event: &AgentEvent| matches!(event, AgentEvent::Silent(silent) if silent.retry_at.is_some());
    let events = histories.values().flatten();
    events.filter(|record| opens(&record.event)).count() as u64
}

/// Nobody is chosen, nor given a task, who had been away for longer than the step to it takes. Who is asked in turn was chosen when the
/// task was opened: who has gone since gets no task.
fn asked(
    archive: &Archive,
    records: &[StoredEvent<TaskEvent>],
    away: &BTreeMap<AgentId, Away>,
    violations: &mut Vec<String>,
) {
    let mut chosen_at = None;
    for record in records {
        let at = stored_at(archive, record.sequence);
        let opened_at = *chosen_at.get_or_insert(at);
        let chosen_at = match &record.event {
            TaskEvent::HandedOn(_) => at,
            _ => opened_at,
        };
        let next = record.event.next().into_iter();
        let asked = next.flat_map(|next| next.ask.iter().chain(&next.call));
        let given = match &record.event {
            TaskEvent::Assigned(assigned) => Some(&assigned.agent),
            _ => None,
        };
        let asked = asked.map(|agent| (agent, chosen_at));
        for (agent, at) in asked.chain(given.map(|agent| (agent, at))) {
            let times = away.get(agent).map_or(&[][..], Vec::as_slice);
            let is_away = |(from, until): &(u64, u64)| from + STEP_MS < at && at < *until;
            if times.iter().any(is_away) {
                let id = &record.meta.id;
                violations.push(format!(
                    "silence: {agent} was asked to do {id} while it was away"
                ));
            }
        }
    }
}

fn stored_at(archive: &Archive, sequence: u64) -> u64 {
    archive
        .stored_at
        .get(&sequence)
        .copied()
        .unwrap_or_default()
}
