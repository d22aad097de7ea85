//! The resident memory of each service with many cases open.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use concord_events::topology::StreamKind;
use serde::Serialize;
use serde_json::json;

use super::installation;
use super::measurements::Options;
use super::process::resident_mb;
use super::subjects;

/// The resident memory of each service.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MemoryReport {
    /// The number of open cases.
    pub(super) open_cases: usize,
    /// The memory of each service, in megabytes.
    pub(super) resident_mb: BTreeMap<String, f64>,
    /// How often a limit of the services intervened.
    pub(super) limited: u64,
}

/// Opens cases whose agents are silent, waits until all are open, and reads the memory of the services.
pub(super) async fn measure(options: &Options) -> anyhow::Result<MemoryReport> {
    let plan = installation::unlimited(options, "memory");
    let installation = installation::start(options, plan).await?;
    installation::free_openers(&installation).await?;
    let client = async_nats::connect(installation.server_url()).await?;
    for number in 0..options.open_cases {
        let case = format!("open-{number}");
        let request = json!({
            "message_id": format!("m-{case}"), "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": "bench",
            "to_agent": "coordinator", "message_type": "request", "case_id": case,
            "payload": {"action": "open_case", "parameters": {
                "case_id": case, "policy": {"finding_timeout_ms": 600_000},
                "participants": ["a", "b", "c", "d", "e"],
                "task": {"type": "bench", "input": {"text": "x".repeat(2_000)}}
            }}
        });
        client
            .publish(
                subjects::message(&case, "bench", "coordinator", "request")?,
                request.to_string().into(),
            )
            .await?;
    }
    let context = async_nats::jetstream::new(client.clone());
    let timers = subjects::stream(&context, StreamKind::Timers).await?;
    let started = Instant::now();
    // Two deadlines a case are armed last, so then everything before has been done.
    while timers.get_info().await?.state.messages < (options.open_cases * 2) as u64 {
        if started.elapsed() > Duration::from_secs(60) {
            bail!("the cases were not open after a minute");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let resident_mb = installation::memory(&installation, resident_mb);
    let limited = installation::stop(installation, "memory").await?;
    Ok(MemoryReport {
        open_cases: options.open_cases,
        resident_mb,
        limited,
    })
}
