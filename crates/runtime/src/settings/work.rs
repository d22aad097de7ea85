//! How work is done.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;

/// Most deliveries that may be under way at once; the broker gives out fewer of a consumer.
const IN_FLIGHT_MAX: usize = 1_000_000;

/// How work is done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkSettings {
    /// Deliveries of one consumer under way at once in this process; 1,000,000 at most.
    pub in_flight_max: usize,
    /// How long one delivery may take before the broker gives it to another process, in milliseconds.
    pub ack_wait_ms: u64,
    /// Deliveries of one message before it is given up and kept under `dead`. It is given up when the waits between as many
    /// tries are over, too: the broker counts deliveries that no process had time for.
    pub deliveries_max: u64,
    /// Messages a second of one agent that this process works on; what is more is refused. 0 for no limit. An agent
    /// that takes part in 300 cases a second sends half as many.
    pub agent_rate_max: u32,
    /// Messages of one agent at once, after a pause, before `agent_rate_max` counts.
    pub agent_burst_max: u32,
    /// Bytes a second that one agent may cause this process to work on: what it sends, what that expands to, the large payloads that
    /// it refers to, and what is sent on because of it to each participant of a case. 0 for no limit.
    pub agent_bytes_max: u32,
    /// Such bytes of one agent at once, after a pause, before `agent_bytes_max` counts.
    pub agent_bytes_burst_max: u32,
    /// How long work under way may take to end after SIGTERM, in milliseconds.
    pub drain_ms: u64,
    /// Bytes of the aggregates that are kept in memory, of all kinds together, counted as the events that they were made from; in
    /// memory they take about twice as much. What is not kept is read from the broker when it is needed.
    pub cached_bytes_max: usize,
    /// Threads of this process that work at once. A service grows by replicas rather than by threads.
    pub threads: NonZeroUsize,
    /// Whether a replica that is not needed stands by: as long as the oldest one can do the work, it has all of it. What comes for a
    /// hosted agent is shared by all.
    pub standby: bool,
}

impl Default for WorkSettings {
    fn default() -> Self {
        Self {
            in_flight_max: 128,
            ack_wait_ms: 5_000,
            deliveries_max: 20,
            agent_rate_max: 2_000,
            agent_burst_max: 20_000,
            agent_bytes_max: 16 << 20,
            agent_bytes_burst_max: 64 << 20,
            drain_ms: 10_000,
            cached_bytes_max: 16 << 20,
            threads: NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN),
            standby: true,
        }
    }
}

impl WorkSettings {
    /// Refuses what nothing could be done with.
    pub fn check(&self) -> Result<(), Error> {
        for (key, value) in [
            ("work.deliveries_max", self.deliveries_max),
            ("work.ack_wait_ms", self.ack_wait_ms),
            ("work.in_flight_max", self.in_flight_max as u64),
        ] {
            if value == 0 {
                return Err(Error::Value {
                    key: key.into(),
                    message: "It must be at least 1: with 0 nothing would be worked on".into(),
                });
            }
        }
        if self.in_flight_max > IN_FLIGHT_MAX {
            return Err(Error::Value {
                key: "work.in_flight_max".into(),
                message: format!(
                    "It is {} and may be at most {IN_FLIGHT_MAX}",
                    self.in_flight_max
                ),
            });
        }
        Ok(())
    }
}
