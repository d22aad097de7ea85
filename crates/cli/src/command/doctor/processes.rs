//! What each process of the services says of itself: its clock, which is compared with the broker's, why it cannot archive, and why it is not
//! ready where others of its service are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use concord_installation::Instance;
use concord_runtime::Broker;
use concord_runtime::service::clock;
use concord_wire::Timestamp;
use futures::StreamExt;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Check, broker};

const AREA: &str = "Clocks";
const SERVICES: &str = "Services";
const ARCHIVE: &str = "Archive";
/// The time that the processes have to answer.
const PATIENCE: Duration = Duration::from_millis(800);
/// A clock that is so many milliseconds wrong is a fault. It moves deadlines by as much, and does nothing else.
const SKEW_MAX: u64 = 5_000;

/// What a process says of itself when it is asked for its statistics.
#[derive(Deserialize)]
struct Stats {
    id: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    data: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    clock: Timestamp,
    /// Why the process cannot archive; none where it can, and where it need not.
    #[serde(default)]
    archive: Option<String>,
    /// Why the process is not ready; none where it is.
    reasons: Vec<String>,
}

/// What a process says of itself, with its clock as compared with that of this machine.
struct Found {
    skew: Skew,
    archive: Option<String>,
    reasons: Vec<String>,
}

/// By how many milliseconds a clock is ahead of this machine's, and the error of that.
type Skew = (i64, u64);

/// Checks the clocks of these processes. Those of earlier versions do not say what theirs is, and are passed over.
pub(super) async fn look(broker: &Broker, processes: &[Instance]) -> Vec<Check> {
    // That the broker's clock, or the services, cannot be asked is said elsewhere.
    let Ok((of_broker, within)) = broker::skew(broker).await else {
        return Vec::new();
    };
    let said = said(broker, processes.len()).await.unwrap_or_default();
    let (mut agree, mut worst) = (0, 0);
    let (mut checks, mut others) = (Vec::new(), Vec::new());
    for process in processes {
        let Some(Found {
            skew: (skew, error),
            archive,
            reasons,
        }) = said.get(&process.id)
        else {
            continue;
        };
        others.extend(archive.iter().map(|why| no_archive(process, why)));
        // Of a service with one process it is said beside the service.
        let is_one_of_several = processes
            .iter()
            .filter(|one| one.name == process.name)
            .count()
            > 1;
        if is_one_of_several && !reasons.is_empty() {
            others.push(not_ready(process, reasons));
        }
        let (skew, error) = (skew - of_broker, error + within);
        if skew.unsigned_abs().saturating_sub(error) <= SKEW_MAX {
            (agree, worst) = (agree + 1, worst.max(skew.unsigned_abs()));
        } else {
            checks.push(wrong(process, skew));
        }
    }
    if agree > 0 {
        let found = format!(
            "{agree} of the services' processes are at most {worst} ms from the broker's clock"
        );
        checks.insert(0, Check::good(AREA, found));
    }
    checks.extend(others);
    checks
}

/// The service of a process, and which of them it is.
fn named(process: &Instance) -> String {
    format!("{} ({})", process.name, process.process())
}

fn not_ready(process: &Instance, reasons: &[String]) -> Check {
    let found = format!("{} is not ready: {}", named(process), reasons.join("; "));
    let advice = "wait if it has just started; otherwise look at its log and its credentials: another process of its service answers for it";
    Check::fault(SERVICES, found, advice)
}

fn no_archive(process: &Instance, why: &str) -> Check {
    let found = format!("{} does not archive: {why}", named(process));
    let advice = "see docs/archive.md#when-something-goes-wrong; cases stay in the streams meanwhile, and nothing is lost";
    Check::fault(ARCHIVE, found, advice)
}

fn wrong(process: &Instance, skew: i64) -> Check {
    let seconds = skew.unsigned_abs() as f64 / 1_000.0;
    let side = if skew > 0 { "ahead of" } else { "behind" };
    let found = format!(
        "{}: its clock is {seconds:.1} s {side} the broker's",
        named(process)
    );
    let advice = "synchronise the clock of its machine (chrony, systemd-timesyncd): each deadline that this process sets is wrong by as much";
    Check::fault(AREA, found, advice)
}

/// What the processes answer, by their ids, until so many have or time is over.
async fn said(
    broker: &Broker,
    processes: usize,
) -> Result<BTreeMap<String, Found>, async_nats::Error> {
    let client = &broker.client;
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    let (before, begun) = (clock::now(), Instant::now());
    client
        .publish_with_reply("$SRV.STATS", inbox, "".into())
        .await?;
    client.flush().await?;
    let mut found = BTreeMap::new();
    let collect = async {
        while found.len() < processes
            && let Some(answer) = answers.next().await
        {
            let half = i64::try_from(begun.elapsed().as_millis() / 2).unwrap_or(i64::MAX);
            let Ok(stats) = serde_json::from_slice::<Stats>(&answer.payload) else {
                continue;
            };
            let said = stats.endpoints.into_iter().find_map(|one| one.data);
            if let Some(Said {
                clock,
                archive,
                reasons,
            }) = said
            {
                // It was said, at a guess, in the middle.
                let skew = clock.unix_millis() - before.unix_millis() - half;
                let skew = (skew, half.unsigned_abs() + 1);
                let said = Found {
                    skew,
                    archive,
                    reasons,
                };
                found.insert(stats.id, said);
            }
        }
    };
    // A process that does not answer in time is not compared; that it is silent is said elsewhere.
    let _ = timeout(PATIENCE, collect).await;
    Ok(found)
}
