//! The installations that are measured, and whether one of their limits intervened.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use async_nats::Client;
use concord_installation::{Installation, MONITORING, Plan};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::measurements::Options;
use super::meter::{BROKER, DRIVER, Processes};
use super::numbers::round;
use super::process::cpu_seconds;
use super::subjects;

/// The services whose memory and processor time are reported.
pub(super) const MEASURED: [Service; 4] = [
    Service::Coordinator,
    Service::ConflictDetector,
    Service::DebateFacilitator,
    Service::EscalationTimer,
];

/// Agents of a measurement send everything at once. With the usual limit they would be taken for a flood, and the limit
/// would be measured.
const UNLIMITED: [&str; 2] = ["work.agent_rate_max=1000000", "work.agent_bytes_max=0"];
/// One opener opens all cases. This many may be open at once.
const UNBOUNDED: &str = "service.quota.open_cases=1000000";

/// What the services count when they refuse a message over its sender's limit, and when they read more slowly because a
/// sender floods.
const LIMITED: [&str; 2] = ["concord_rate_limited_total", "concord_held_back_total"];

/// An installation of the measured services, without hosted agents, with the usual limits.
pub(super) fn limited(options: &Options, name: &str) -> Plan {
    let mut plan = Plan::new(options.directory.join(name)).with_setting("telemetry.log=warn");
    plan.nats_config = format!("{MONITORING}\n");
    plan.replicas = MEASURED.iter().map(|service| (*service, 1)).collect();
    plan
}

/// The same without a limit on what agents send and openers open.
pub(super) fn unlimited(options: &Options, name: &str) -> Plan {
    let plan = limited(options, name);
    let plan = UNLIMITED.into_iter().fold(plan, Plan::with_setting);
    plan.with_service_setting(Service::Coordinator, UNBOUNDED)
}

/// Starts an installation; the settings of the command line come last.
pub(super) async fn start(options: &Options, mut plan: Plan) -> anyhow::Result<Installation> {
    plan.settings.extend(options.settings.iter().cloned());
    plan.binaries.clone_from(&options.binaries);
    Ok(Installation::start(plan, |_| {}).await?)
}

/// Replaces the usual preset by one of which an opener may change everything: what is measured opens cases by message.
pub(super) async fn free_openers(installation: &Installation) -> anyhow::Result<()> {
    let client = async_nats::connect(installation.server_url()).await?;
    let request = json!({
        "name": "contract-review", "bounds": { "*": "any" }, "by": "bench", "why": "cases of a measurement",
    });
    operate(&client, "put_policy", &request).await
}

/// Registers somebody with one role.
pub(super) async fn register(client: &Client, name: &str, role: &str) -> anyhow::Result<()> {
    let person = json!({ "name": name, "kind": "agent", "roles": [{ "role": role }] });
    let request = json!({ "person": person, "by": "bench" });
    operate(client, "register_person", &request).await
}

/// Has the coordinator do what an operator may have done.
async fn operate(client: &Client, verb: &'static str, request: &Value) -> anyhow::Result<()> {
    let subject = subjects::api(Service::Coordinator, verb);
    let answer = client.request(subject, request.to_string().into()).await?;
    let refusal = answer.headers.as_ref();
    match refusal.and_then(|headers| headers.get("Nats-Service-Error")) {
        Some(refusal) => bail!("{verb} of the measurement was refused: {refusal}"),
        None => Ok(()),
    }
}

/// Stops an installation after a measurement; how often a limit has intervened in it. More than 0 is
/// reported on standard error.
pub(super) async fn stop(installation: Installation, measurement: &str) -> anyhow::Result<u64> {
    let mut interventions = 0;
    for counter in LIMITED {
        interventions += installation.counter(counter).await?;
    }
    installation.stop().await;
    if interventions > 0 {
        eprintln!(
            "warning: {measurement}: the limit on what an agent may send (work.agent_rate_max) intervened \
             {interventions} times; the numbers are those of the limit"
        );
    }
    Ok(interventions)
}

/// The processes of the services, the broker, and this one; one that has ended is an error.
pub(super) fn processes(installation: &Installation) -> anyhow::Result<Processes> {
    let mut processes = Processes::new();
    for (service, replica) in installation.processes() {
        let pid = installation.pid(service, replica);
        let pid = pid.with_context(|| {
            format!(
                "{service}-{replica} has ended; the ends of the logs:\n{}",
                installation.log_tails()
            )
        })?;
        processes.push((service.to_string(), pid));
    }
    let broker = installation.broker().and_then(|broker| broker.pid());
    processes.push((BROKER.to_owned(), broker.context("the broker has ended")?));
    processes.push((DRIVER.to_owned(), std::process::id()));
    Ok(processes)
}

/// Processor time until now in seconds, by kind of process.
pub(super) fn processor_times(processes: &Processes) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut times = BTreeMap::new();
    for (kind, pid) in processes {
        *times.entry(kind.clone()).or_default() += cpu_seconds(*pid)?;
    }
    Ok(times)
}

/// Memory in megabytes, as `megabytes` reads it of a process, of the largest process of each service.
pub(super) fn memory(
    installation: &Installation,
    megabytes: fn(u32) -> anyhow::Result<f64>,
) -> BTreeMap<String, f64> {
    let mut memory: BTreeMap<String, f64> = BTreeMap::new();
    for (service, replica) in installation.processes() {
        let pid = installation.pid(service, replica);
        if let Some(megabytes) = pid.and_then(|pid| megabytes(pid).ok()) {
            let largest = memory.entry(service.to_string()).or_default();
            *largest = largest.max(round(megabytes));
        }
    }
    memory
}
