//! Waiting until the services know which agents are registered.

use std::time::Duration;

use async_nats::jetstream;
use concord_events::topology::StreamKind;
use concord_installation::{Instance, instances};
use concord_wire::subject::Service;

use crate::stored::{last_of, layout};
use crate::{TestInstallation, wait_for};

/// The services that follow the events of agents, each process by itself.
const FOLLOW: [Service; 3] = [
    Service::Coordinator,
    Service::DebateFacilitator,
    Service::AgentAdapter,
];
/// The time in which all processes announce themselves.
const ANNOUNCED_MAX: Duration = Duration::from_secs(5);

/// Waits until every process that runs and knows agents has read what is stored of them by now. [`settled`](crate::settled) says nothing of
/// that: they follow these events beside their consumers.
///
/// # Panics
/// When it does not come about in time.
pub async fn knows_agents(installation: &TestInstallation, within: Duration) {
    let client = installation.client();
    let what = "the services to know the agents";
    wait_for(what, within, async || {
        let stream = layout().stream_name(StreamKind::Events);
        let context = jetstream::new(client.clone());
        let last = last_of(&context, &stream, "concord.v1.event.agent.>").await;
        let last = last.map_err(|error| error.to_string())?;
        let pids: Vec<u32> = installation
            .processes()
            .filter(|(service, _)| FOLLOW.contains(service))
            .filter_map(|(service, replica)| installation.pid(service, replica))
            .collect();
        let is_one = |one: &Instance| one.pid().is_some_and(|pid| pids.contains(&pid));
        let all = |found: &[Instance]| found.iter().filter(|one| is_one(one)).count() == pids.len();
        let found = instances(client, ANNOUNCED_MAX, all).await;
        let found = found.map_err(|error| error.to_string())?;
        if !all(&found) {
            return Err(format!("not all of {} processes answer", pids.len()));
        }
        for one in found.iter().filter(|one| is_one(one)) {
            let read = one.counter("concord_agents_position").await?;
            if read < last {
                return Err(format!("{} has read up to {read} of {last}", one.name));
            }
        }
        Ok(())
    })
    .await;
}
