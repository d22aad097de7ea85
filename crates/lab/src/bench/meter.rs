//! What a measurement used: processor time by kind of process, broker messages, and what the machine did besides.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Context;
use concord_installation::NatsServer;
use serde::Serialize;

use super::host::{HostReport, HostTimes};
use super::installation::processor_times;
use super::numbers::round;

/// The kind of the processes of agents.
pub(super) const AGENTS: &str = "agents";
/// The kind of this process, which opens cases and waits for decisions.
pub(super) const DRIVER: &str = "driver";
/// The kind of the broker's process.
pub(super) const BROKER: &str = "nats-server";

/// The processes of a measurement: a kind, and an id.
pub(super) type Processes = Vec<(String, u32)>;

/// What processes, the machine and the broker had used at one moment.
pub(super) struct Meter {
    at: Instant,
    host: HostTimes,
    cpu_seconds: BTreeMap<String, f64>,
    broker: (u64, u64),
}

/// What `cases` used each.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Usage {
    /// Cases decided a second.
    pub(super) per_second: f64,
    /// Processor time of a case in milliseconds, all processes.
    pub(super) cpu_ms_per_case: f64,
    /// The same, by kind of process; the replicas of a service are added up.
    pub(super) cpu_ms_by_process: BTreeMap<String, f64>,
    /// Messages that the broker was sent for a case, acknowledgements and requests to it among them.
    pub(super) broker_in_per_case: f64,
    /// Messages that the broker sent for a case.
    pub(super) broker_out_per_case: f64,
    /// Where the machine's processor time went.
    pub(super) host: HostReport,
}

impl Meter {
    /// Reads it; a process that has ended is an error.
    pub(super) async fn read(processes: &Processes, broker: &NatsServer) -> anyhow::Result<Self> {
        let varz = broker.monitoring("/varz").await?;
        let count = |name: &str| {
            let count = varz.get(name).and_then(serde_json::Value::as_u64);
            count.with_context(|| format!("the broker does not say {name}"))
        };
        Ok(Self {
            at: Instant::now(),
            host: HostTimes::now()?,
            cpu_seconds: processor_times(processes)?,
            broker: (count("in_msgs")?, count("out_msgs")?),
        })
    }

    /// What each of `cases` used from `self` to `after`.
    pub(super) fn until(&self, after: &Self, cases: usize) -> Usage {
        let each = |value: f64| round(value / cases as f64);
        let used: BTreeMap<&String, f64> = after
            .cpu_seconds
            .iter()
            .map(|(kind, seconds)| {
                let before = self.cpu_seconds.get(kind).copied().unwrap_or_default();
                (kind, seconds - before)
            })
            .collect();
        let all: f64 = used.values().sum();
        let took = after.at.duration_since(self.at).as_secs_f64();
        Usage {
            per_second: round(cases as f64 / took),
            cpu_ms_per_case: each(all * 1_000.0),
            cpu_ms_by_process: used
                .into_iter()
                .map(|(kind, seconds)| (kind.clone(), each(seconds * 1_000.0)))
                .collect(),
            broker_in_per_case: each((after.broker.0 - self.broker.0) as f64),
            broker_out_per_case: each((after.broker.1 - self.broker.1) as f64),
            host: self.host.until(after.host, all),
        }
    }
}

impl Usage {
    /// Warns when the machine had other things to do.
    pub(super) fn warn_if_disturbed(&self, measurement: &str) {
        let HostReport {
            others,
            steal,
            disturbed,
            ..
        } = self.host;
        if disturbed {
            eprintln!(
                "warning: {measurement}: other processes used {:.0} % of the machine's processor time and its host took away {:.0} %; \
                 rates are too low, and only processor times and counts mean something",
                others * 100.0,
                steal * 100.0
            );
        }
    }
}
