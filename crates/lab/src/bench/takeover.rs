//! How long everybody waits when the coordinator that works is killed or frozen, and another takes over: of each service there are two
//! processes. Quiet agents go on asking the coordinator, and somebody who has opened many cases before opens one.
//!
//! What the replica had been given comes again after `work.ack_wait_ms`, for anything else somebody must take over.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use async_nats::Client;
use concord_installation::{Installation, Instance, instances};
use concord_runtime::settings::WorkSettings;
use concord_wire::subject::Service;
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::aims::{self, Aim};
use super::cases::{Load, Running};
use super::driver;
use super::measurements::Options;
use super::quiet::{AnswerTimes, Answered, INTERVAL, quiet_agents};

/// Processes of each service.
const REPLICAS: usize = 2;
/// After this time a message comes again that a replica was given and did not acknowledge.
const ACK_WAIT: &str = "work.ack_wait_ms=";
/// Messages of each quiet agent around each blow, ten a second, and the time after the first of them at which it falls.
const MESSAGES: usize = 40;
const BEFORE: Duration = Duration::from_secs(1);
/// The time in which one replica must work and the other stand by.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to the replica that works.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Blow {
    /// SIGKILL.
    Killed,
    /// SIGSTOP.
    Frozen,
}

/// One kind of blow.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BlowReport {
    /// What happened to the coordinator that worked.
    pub(super) blow: Blow,
    /// How often.
    pub(super) times: usize,
    /// From each blow until the first answer to something that was sent after it.
    pub(super) first_answer: AnswerTimes,
    /// Messages sent after the blows that came again, because the one that was struck had been given them.
    pub(super) given_to_it: usize,
    /// The times until they were answered.
    pub(super) given_to_it_answered: AnswerTimes,
    /// From the opening of a case right after each blow until its decision.
    pub(super) case: AnswerTimes,
    /// All other messages sent after the blows.
    pub(super) others: usize,
    /// The times until they were answered.
    pub(super) others_answered: AnswerTimes,
}

/// How long agents wait when a replica is lost.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TakeoverReport {
    /// Processes of each service.
    pub(super) replicas: usize,
    /// The cases that the one opener had opened before, all decided.
    pub(super) cases: usize,
    /// Both kinds of blows.
    pub(super) blows: Vec<BlowReport>,
    /// What is wanted of them.
    pub(super) aims: Vec<Aim>,
}

/// Strikes the coordinator that works `times` times in each way.
pub(super) async fn measure(options: &Options, times: usize) -> anyhow::Result<TakeoverReport> {
    let load = Load {
        replicas: REPLICAS,
        agents: options.agents.clone(),
        concurrency: options.replicas_concurrency,
        total: options.cases,
        hear_answers: false,
    };
    let running = Running::start(options, &load).await?;
    running.drive("before", load.total, || {}).await?;
    quiet_agents(running.installation.server_url(), "warm", 10).await?;
    let mut blows = Vec::new();
    for blow in [Blow::Killed, Blow::Frozen] {
        let struck = strike_often(&running, blow, times, ack_wait(&options.settings)?);
        blows.push(struck.await?);
    }
    running.stop("takeover").await?;
    Ok(TakeoverReport {
        replicas: REPLICAS,
        cases: load.total,
        aims: aims::of_takeover(&blows),
        blows,
    })
}

/// The `work.ack_wait_ms` of the services: the last setting counts.
fn ack_wait(settings: &[String]) -> anyhow::Result<Duration> {
    let mut set = settings.iter().rev();
    let millis = match set.find_map(|one| one.strip_prefix(ACK_WAIT)) {
        Some(millis) => millis.parse().context("work.ack_wait_ms")?,
        None => WorkSettings::default().ack_wait_ms,
    };
    Ok(Duration::from_millis(millis))
}

async fn strike_often(
    running: &Running,
    blow: Blow,
    times: usize,
    ack_wait: Duration,
) -> anyhow::Result<BlowReport> {
    let installation = &running.installation;
    let client = driver::connect(installation.server_url()).await?;
    let (mut first, mut cases, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..times {
        let replica = working(installation, &client).await?;
        let phase = format!("{blow:?}-{number}");
        let (answered, struck) = tokio::join!(
            quiet_agents(installation.server_url(), &phase, MESSAGES),
            strike(running, &phase, blow, replica)
        );
        let (struck, case) = struck?;
        cases.push(case.as_secs_f64() * 1_000.0);
        let mut answered = answered?;
        answered.retain(|answered| answered.sent > struck);
        let firsts = answered
            .iter()
            .map(|answered| answered.sent + answered.took);
        let answer = firsts.min().context("nothing was sent after the blow")?;
        first.push((answer - struck).as_secs_f64() * 1_000.0);
        after.extend(answered);
        match blow {
            Blow::Killed => installation.restart(Service::Coordinator, replica).await?,
            Blow::Frozen => ensure!(
                installation.thaw(Service::Coordinator, replica)?,
                "it has ended"
            ),
        }
    }
    let came_again = |answered: &Answered| answered.took >= ack_wait;
    let (given, others): (Vec<Answered>, Vec<Answered>) = after.into_iter().partition(came_again);
    Ok(BlowReport {
        blow,
        times,
        first_answer: AnswerTimes::of(first),
        case: AnswerTimes::of(cases),
        given_to_it: given.len(),
        given_to_it_answered: AnswerTimes::of_answers(&given),
        others: others.len(),
        others_answered: AnswerTimes::of_answers(&others),
    })
}

/// Strikes when the agents have begun, and has a case decided; when it struck, and how long the case took.
async fn strike(
    running: &Running,
    phase: &str,
    blow: Blow,
    replica: usize,
) -> anyhow::Result<(Instant, Duration)> {
    sleep(BEFORE).await;
    let (installation, at) = (&running.installation, Instant::now());
    match blow {
        Blow::Killed => installation.kill(Service::Coordinator, replica)?,
        Blow::Frozen => ensure!(
            installation.freeze(Service::Coordinator, replica)?,
            "it has ended"
        ),
    }
    let took = running.drive(phase, 1, || {}).await?;
    Ok((at, took.iter().sum()))
}

/// The coordinator that works, when the other stands by.
async fn working(installation: &Installation, client: &Client) -> anyhow::Result<usize> {
    let one = async {
        loop {
            if let Some(replica) = only_working(installation, client).await? {
                return Ok(replica);
            }
            sleep(INTERVAL).await;
        }
    };
    match timeout(PATIENCE, one).await {
        Ok(found) => found,
        Err(_) => bail!(
            "not one coordinator works while the other stands by, after {} s",
            PATIENCE.as_secs()
        ),
    }
}

async fn only_working(
    installation: &Installation,
    client: &Client,
) -> anyhow::Result<Option<usize>> {
    let pids: Vec<_> = (0..REPLICAS)
        .map(|replica| installation.pid(Service::Coordinator, replica))
        .collect();
    let is_of = |pid: Option<u32>| pids.iter().position(|of| pid.is_some() && *of == pid);
    let all = |found: &[Instance]| {
        found
            .iter()
            .filter(|one| is_of(one.pid()).is_some())
            .count()
            == REPLICAS
    };
    let found = instances(client, Duration::from_secs(1), all)
        .await
        .map_err(anyhow::Error::from_boxed)?;
    if !all(&found) {
        return Ok(None);
    }
    let mut working = Vec::new();
    for instance in &found {
        if let Some(replica) = is_of(instance.pid())
            && instance
                .counter("concord_working")
                .await
                .map_err(anyhow::Error::msg)?
                == 1
        {
            working.push(replica);
        }
    }
    Ok(match *working.as_slice() {
        [replica] => Some(replica),
        _ => None,
    })
}
