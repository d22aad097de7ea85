//! Which agents have commitments where: every replica follows the events of commitments, so that what an agent holds is found
//! when it is gone.
//!
//! It is a view to look things up in. What it lacks for a moment ends with its lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use concord_domain::aggregates::commitment::id_of;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, CommitmentEvent, StoredEvent};
use concord_runtime::broker::followed;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_wire::{AgentId, Token};
use futures::StreamExt;
use time::OffsetDateTime;

/// Pause before the events are followed again when that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// The events of so long are read in any case: leases may have been longer before their setting was lowered.
const READ_MIN: Duration = Duration::from_secs(7 * 24 * 3_600);

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// What stands, by agent and by the aggregate of commitments. Cheap to share.
#[derive(Default)]
pub struct Holdings(Mutex<BTreeMap<AgentId, BTreeMap<Token, BTreeSet<String>>>>);

impl Holdings {
    /// Follows the events of commitments until the service stops. Every commitment that stands was granted or renewed within the
    /// longest lease that there was then, so nothing much older is read.
    pub(crate) fn follow(runner: &ServiceRunner, lease_max_ms: u64) -> Arc<Self> {
        let holdings = Arc::new(Self::default());
        let (followed, runner) = (Arc::clone(&holdings), runner.clone());
        runner.clone().spawn(async move {
            loop {
                let failed = tokio::select! {
                    failed = followed.read(&runner, lease_max_ms) => failed,
                    () = runner.stop.cancelled() => return,
                };
                if let Err(error) = failed {
                    tracing::warn!(error = %ErrorChain(error.as_ref()), "The events of commitments cannot be followed; trying again.");
                }
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = runner.stop.cancelled() => return,
                }
            }
        });
        holdings
    }

    async fn read(&self, runner: &ServiceRunner, lease_max_ms: u64) -> Result<(), AnyError> {
        let config = pull::OrderedConfig {
            filter_subject: runner
                .broker
                .subjects()
                .events_of_kind(Aggregate::Commitment),
            deliver_policy: since(OffsetDateTime::now_utc(), lease_max_ms),
            ..followed(&runner.broker.client)
        };
        let stream = runner.broker.stream(StreamKind::Events).await?;
        let mut messages = stream.create_consumer(config).await?.messages().await?;
        while let Some(message) = messages.next().await {
            let message = message?;
            let Ok(info) = message.info() else { continue };
            // What is no event changes nothing.
            if let Ok(record) = StoredEvent::decode(&message.payload, info.stream_sequence) {
                self.apply(&record);
            }
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<AgentId, BTreeMap<Token, BTreeSet<String>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a stored event into account.
    pub fn apply(&self, record: &StoredEvent<CommitmentEvent>) {
        let id = &record.meta.id;
        let mut known = self.known();
        match &record.event {
            CommitmentEvent::Granted(granted) | CommitmentEvent::Renewed(granted) => {
                let of_agent = known.entry(granted.lease.holder.clone()).or_default();
                let resources = of_agent.entry(id.clone()).or_default();
                resources.insert(granted.lease.resource.clone());
            }
            CommitmentEvent::Ended(ended) => {
                for one in &ended.leases {
                    let Some(of_agent) = known.get_mut(&one.holder) else {
                        continue;
                    };
                    if let Some(resources) = of_agent.get_mut(id) {
                        resources.remove(&one.resource);
                    }
                    of_agent.retain(|_, resources| !resources.is_empty());
                }
                known.retain(|_, of_agent| !of_agent.is_empty());
            }
        }
    }

    /// Where an agent has commitments.
    pub(crate) fn of_agent(&self, agent: &AgentId) -> Vec<Token> {
        let known = self.known();
        let of_agent = known.get(agent);
        of_agent.map_or_else(Vec::new, |all| all.keys().cloned().collect())
    }

    /// The resources outside cases that an agent has committed to.
    pub(crate) fn outside_cases(&self, agent: &AgentId) -> BTreeSet<String> {
        let known = self.known();
        let all = known.get(agent).into_iter().flatten();
        let outside = all.flat_map(|(id, resources)| {
            let is_outside = move |name: &&String| id_of(None, name) == *id;
            resources.iter().filter(is_outside)
        });
        outside.cloned().collect()
    }

    /// Who has committed to a resource of this name, and where.
    pub(crate) fn of_resource(&self, resource: &str) -> Vec<(AgentId, Token)> {
        let known = self.known();
        let all = known.iter().flat_map(|(agent, of_agent)| {
            let there = of_agent.iter();
            let there = there.filter(|(_, resources)| resources.contains(resource));
            there.map(move |(id, _)| (agent.clone(), id.clone()))
        });
        all.collect()
    }

    /// Whether somebody has commitments there.
    pub(crate) fn has(&self, id: &Token) -> bool {
        self.known().values().any(|all| all.contains_key(id))
    }
}

/// From where on events are read: as long ago as the longest lease; from the first on where that is before all time.
fn since(now: OffsetDateTime, lease_max_ms: u64) -> DeliverPolicy {
    let back = Duration::from_millis(lease_max_ms).max(READ_MIN);
    let back = time::Duration::try_from(back).ok();
    let start_time = back.and_then(|back| now.checked_sub(back));
    match start_time.filter(|start| *start > OffsetDateTime::UNIX_EPOCH) {
        Some(start_time) => DeliverPolicy::ByStartTime { start_time },
        None => DeliverPolicy::All,
    }
}

#[cfg(test)]
mod tests {
    use concord_domain::aggregates::commitment::{
        CommitmentInput, CommitmentMachine, ReceivedCommitment,
    };
    use concord_domain::{Context, Decision, Machine, machine::Versioned};
    use concord_events::{Heard, LeaseBounds};
    use concord_wire::payload::Commitment;
    use concord_wire::{CaseId, MessageId, Timestamp};

    use super::*;

    fn agent(name: &str) -> AgentId {
        AgentId::new(name).unwrap()
    }

    #[test]
    fn a_lease_of_any_length_has_a_beginning() {
        const WEEK: u64 = 7 * 24 * 3_600_000;
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let back = |ms: u64| DeliverPolicy::ByStartTime {
            start_time: now - Duration::from_millis(ms),
        };
        for (lease_max_ms, expected) in [
            (0, back(WEEK)),
            (60_000, back(WEEK)),
            (2 * WEEK, back(2 * WEEK)),
            (1_800_000_000_000, DeliverPolicy::All),
            (400_000_000_000_000, DeliverPolicy::All),
            (u64::MAX, DeliverPolicy::All),
        ] {
            assert_eq!(since(now, lease_max_ms), expected, "{lease_max_ms}");
        }
    }

    #[test]
    fn what_is_granted_is_found_until_it_has_ended() {
        let holdings = Holdings::default();
        let mut known = Versioned::<CommitmentMachine>::default();
        let id = Token::new("c-1").unwrap();
        let mut play = |n: u64, input: &CommitmentInput| {
            let message_id = MessageId::new(format!("m-{n}")).unwrap();
            let context = Context::of_message(Timestamp::from_unix_millis(0), message_id);
            let Decision::Append(event) = CommitmentMachine::decide(&known.state, &context, input)
            else {
                panic!("it is no event");
            };
            let mut record = known.record(&id, &context, event);
            record.sequence = n;
            known.apply(record.clone());
            holdings.apply(&record);
        };
        let commit = |from: &str, n: u64| {
            let said: Commitment =
                serde_json::from_value(serde_json::json!({ "resource": format!("r-{n}") }))
                    .unwrap();
            CommitmentInput::Said(Box::new(ReceivedCommitment {
                heard: Heard {
                    agent_id: agent(from),
                    message_id: MessageId::new(format!("m-{n}")).unwrap(),
                    digest: String::new(),
                },
                case_id: CaseId::new("c-1").ok(),
                said,
                bounds: LeaseBounds::default(),
            }))
        };
        play(1, &commit("ann", 1));
        play(2, &commit("ann", 2));
        play(3, &commit("ben", 3));
        assert_eq!(holdings.of_agent(&agent("ann")), std::slice::from_ref(&id));
        play(4, &CommitmentInput::Done(agent("ann"), "r-1".into()));
        assert_eq!(holdings.of_agent(&agent("ann")), std::slice::from_ref(&id));
        play(5, &CommitmentInput::Gone(agent("ann")));
        assert!(holdings.of_agent(&agent("ann")).is_empty() && holdings.has(&id));
        play(6, &CommitmentInput::CaseOver);
        assert!(!holdings.has(&id) && holdings.known().is_empty());
    }
}
