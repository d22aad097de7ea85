//! Heartbeats: every replica hears them all and concludes how agents are; what one concludes is an event, once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use concord_domain::aggregates::agent::liveness::{Heartbeats, conclude};
use concord_domain::aggregates::agent::{AgentInput, AgentMachine, AgentState};
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::api::{self, Verb, answer};
use concord_runtime::{Aggregates, Directory, NatsPorts, service::clock};
use concord_wire::payload::{AgentStatus, Beat, Card};
use concord_wire::subject::Subject;
use concord_wire::{AgentId, Timestamp};
use futures::StreamExt;
use serde::Serialize;

use crate::silence::{retry_due, store};

/// How often it is looked who has missed heartbeats. Fine enough for the shortest interval that a card can state.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A look that comes so much later than the one before may come from a process that was frozen, or whose clock was set: heartbeats of that
/// time may still wait to be read.
const GAP_MAX: Duration = Duration::from_secs(1);
/// When storing what a look has found takes longer, the others are looked at again.
const STORING_MAX: Duration = Duration::from_secs(1);

/// What this replica has heard of each registered agent.
pub(crate) type Beats = Arc<Mutex<BTreeMap<AgentId, Heartbeats>>>;

/// Listens for heartbeats and says what follows from them.
pub(crate) struct Liveness {
    runner: ServiceRunner,
    agents: Arc<Aggregates<AgentMachine, NatsPorts>>,
    directory: Arc<Directory>,
    beats: Beats,
    last: Mutex<LastLook>,
}

/// The beginning of the last look.
struct LastLook {
    began: Instant,
    began_at: Timestamp,
    /// How often this process had connected to hear by then; none while it had no connection.
    connects: Option<u64>,
}

impl LastLook {
    fn now(runner: &ServiceRunner) -> Self {
        Self {
            began: Instant::now(),
            began_at: clock::now(),
            connects: runner.broker.hears_since(),
        }
    }

    /// Whether every heartbeat since then has been heard, as far as this process can know.
    fn has_heard_since(&self, now: &Self) -> bool {
        let gap = now.began.duration_since(self.began);
        let by_clock = Duration::from_millis(now.began_at.millis_since(self.began_at));
        gap.max(by_clock) < GAP_MAX && now.connects.is_some() && now.connects == self.connects
    }
}

impl Liveness {
    /// Listens until the service stops.
    pub(crate) async fn start(
        runner: &ServiceRunner,
        agents: &Arc<Aggregates<AgentMachine, NatsPorts>>,
        directory: &Arc<Directory>,
    ) -> Result<Beats, async_nats::SubscribeError> {
        let beats = Beats::default();
        let (runner, agents, directory) =
            (runner.clone(), Arc::clone(agents), Arc::clone(directory));
        let mut heard = runner
            .broker
            .heard
            .subscribe(runner.broker.subjects().beats())
            .await?;
        let liveness = Self {
            runner: runner.clone(),
            agents,
            directory,
            beats: Arc::clone(&beats),
            last: Mutex::new(LastLook::now(&runner)),
        };
        runner.spawn(async move {
            let mut look = tokio::time::interval(LOOK_INTERVAL);
            look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    Some(message) = heard.next() => liveness.record_beat(&message),
                    _ = look.tick() => liveness.check_agents().await,
                    () = liveness.runner.stop.cancelled() => return,
                }
            }
        });
        Ok(beats)
    }

    fn beats(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentId, Heartbeats>> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One heartbeat. Those of agents that are not registered are not kept, so that nobody can fill the memory.
    fn record_beat(&self, message: &async_nats::Message) {
        let subject = self.runner.broker.subjects().parse(&message.subject).ok();
        let Some(Subject::Beat { agent }) = subject else {
            return self.runner.count_ignored("bad_heartbeat");
        };
        let Some(beat) = Beat::decode(&message.payload) else {
            return self.runner.count_ignored("bad_heartbeat");
        };
        if self.directory.agent(&agent).is_none() {
            return self.runner.count_ignored("heartbeat_of_nobody");
        }
        let now = clock::now();
        self.beats()
            .entry(agent)
            .or_insert_with(|| Heartbeats::none(now))
            .beat(now, beat.status);
    }

    /// Looks at every agent once.
    async fn check_agents(&self) {
        let look = LastLook::now(&self.runner);
        let now = look.began_at;
        let has_heard = self.last_look().has_heard_since(&look);
        for (agent_id, status, why) in self.conclude_of_each(now, has_heard) {
            let id = agent_id.token();
            let input = AgentInput::Status {
                agent_id,
                status,
                why,
            };
            store(&self.runner, &self.agents, id, input).await;
            // By then others may have been heard of. They are looked at again.
            if look.began.elapsed() > STORING_MAX {
                break;
            }
        }
        retry_due(&self.runner, &self.agents, &self.directory).await;
        // What this look took is time in which nothing was heard.
        *self.last_look() = look;
    }

    /// The agents whose status changes by what was heard of them.
    fn conclude_of_each(
        &self,
        now: Timestamp,
        has_heard: bool,
    ) -> Vec<(AgentId, AgentStatus, String)> {
        let mut changes = Vec::new();
        let mut registered = 0;
        let mut beats = self.beats();
        self.directory.each(|agent, state| {
            registered += 1;
            // Nearly all are known, and looked at ten times a second.
            if !beats.contains_key(agent) {
                beats.insert(agent.clone(), Heartbeats::none(now));
            }
            let Some(heard) = beats.get_mut(agent) else {
                return;
            };
            if !has_heard {
                heard.listen_anew(now);
            }
            if let Some((status, why)) = conclude(state, heard, now) {
                heard.changed_at = Some(now);
                changes.push((agent.clone(), status, why));
            }
        });
        if beats.len() > registered {
            beats.retain(|agent, _| self.directory.agent(agent).is_some());
        }
        changes
    }

    fn last_look(&self) -> std::sync::MutexGuard<'_, LastLook> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered agent, as `concord agents` shows it.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    card: Card,
    status: AgentStatus,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    since: Option<Timestamp>,
    last_heartbeat: Option<Timestamp>,
    /// How many requests and tasks in a row it has let pass without an answer.
    silent_in_a_row: u32,
    /// The time at which it is tried again, while it is unavailable for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<Timestamp>,
}

/// Answers `agents`: everyone on the register with how they are.
pub(crate) fn verb(directory: &Arc<Directory>, beats: &Beats) -> Verb {
    let state = (Arc::clone(directory), Arc::clone(beats));
    api::verb(state, |(directory, beats), _| async move {
        let heard = beats.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let list = |(agent, state): (AgentId, Arc<AgentState>)| {
            let last_heartbeat = heard.get(&agent).and_then(|heard| heard.last);
            let AgentState {
                card,
                status,
                why,
                since,
                silence,
                ..
            } = AgentState::clone(&state);
            card.map(|card| Listed {
                card,
                status,
                why,
                since,
                last_heartbeat,
                silent_in_a_row: silence.in_a_row,
                retry_at: silence.retry_at,
            })
        };
        let listed: Vec<Listed> = directory.agents().into_iter().filter_map(list).collect();
        answer(&listed)
    })
}
