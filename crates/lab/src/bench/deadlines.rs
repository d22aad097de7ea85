//! Ten thousand debates whose deadline is due at one instant: how late each is on its new level, and beside it how late
//! the broker's own scheduler is with as many bare schedules, on the same broker in the same run.
//!
//! The debates are challenges that nobody acknowledges, opened as the coordinator opens them. Each is opened with the
//! time that is left until one common instant; what the way to the facilitator takes spreads them by some milliseconds.
//! Lateness is counted from each debate's own deadline to the time at which the broker has stored the event.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use async_nats::Client;
use async_nats::jetstream;
use async_nats::jetstream::consumer::pull;
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_wire::payload::{
    ChallengeTerms, Conflict, ConflictType, DebateTerms, OpenDebate, Position,
};
use concord_wire::policy::{LadderPolicy, LevelTimes, Policy};
use concord_wire::subject::{Service, SubjectSpace};
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Timestamp};
use serde::Serialize;
use serde_json::json;

mod lateness;

use super::installation::{self, processor_times};
use super::measurements::Options;
use super::numbers::round;
use super::process::{peak_mb, resident_mb};
use super::{aims, broker_schedules, subjects};

pub(super) use lateness::Lateness;

/// Debates opened a second: slow enough for each to be opened at once, so that their deadlines stay together.
const OPENED_PER_SECOND: usize = 500;
/// Opened at a time.
const BATCH: usize = 10;
/// From the last opening to the common instant: everything is armed, and the services rest.
const REST: Duration = Duration::from_secs(15);
/// The time after the instant in which all debates must be on their new level.
const PATIENCE: Duration = Duration::from_secs(120);

/// Many deadlines at one instant.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DeadlinesReport {
    /// Debates open, each with a deadline at that instant.
    pub(super) debates: usize,
    /// Processes of each service.
    pub(super) replicas: usize,
    /// From the first to the last of these deadlines, in milliseconds.
    pub(super) spread_ms: u64,
    /// The broker alone: bare schedules, delivered to a durable consumer.
    pub(super) broker: Lateness,
    /// The lateness of the delivery of a deadline by the broker.
    pub(super) delivered: Lateness,
    /// The lateness of the event that the deadline has elapsed.
    pub(super) elapsed: Lateness,
    /// The lateness of the event of the debate's new level.
    pub(super) escalated: Lateness,
    /// Memory with all debates open, by process, in megabytes.
    pub(super) resident_mb: BTreeMap<String, f64>,
    /// The most memory until all debates were on their new level.
    pub(super) peak_mb: BTreeMap<String, f64>,
    /// Processor time from the instant until all debates were on their new level, by process, in seconds.
    pub(super) cpu_seconds: BTreeMap<String, f64>,
    /// How often a limit of the services intervened.
    pub(super) limited: u64,
    /// What is wanted, and whether it is so.
    pub(super) aims: Vec<aims::Aim>,
}

/// Opens the debates, waits for the instant, and reads from what is stored how late everything was.
pub(super) async fn measure(options: &Options, replicas: usize) -> anyhow::Result<DeadlinesReport> {
    let debates = options.open_debates;
    let mut plan = installation::unlimited(options, "deadlines");
    plan.replicas
        .values_mut()
        .for_each(|count| *count *= replicas);
    let installation = installation::start(options, plan).await?;
    let client = async_nats::connect(installation.server_url()).await?;
    let context = jetstream::new(client.clone());
    let broker = broker_schedules::measure(&context, debates).await?;
    let opening = Duration::from_secs_f64(debates as f64 / OPENED_PER_SECOND as f64);
    let instant = now_ms()? + u64::try_from((opening + REST).as_millis())?;
    open_all(&client, debates, instant).await?;
    // Two deadlines each, of which one is due at the instant.
    armed(&context, debates * 2, instant).await?;
    let resident_mb = installation::memory(&installation, resident_mb);
    let processes = installation::processes(&installation)?;
    let before = processor_times(&processes)?;
    all_escalated(&context, debates, instant).await?;
    let after = processor_times(&processes)?;
    let peak_mb = installation::memory(&installation, peak_mb);
    let measured = lateness::read(&context, debates).await?;
    let limited = installation::stop(installation, "deadlines").await?;
    let used = after.into_iter().map(|(name, seconds)| {
        let before = before.get(&name).copied().unwrap_or(0.0);
        (name, round(seconds - before))
    });
    let mut report = DeadlinesReport {
        debates,
        replicas,
        spread_ms: measured.spread_ms,
        broker,
        delivered: measured.delivered,
        elapsed: measured.elapsed,
        escalated: measured.escalated,
        resident_mb,
        peak_mb,
        cpu_seconds: used.collect(),
        limited,
        aims: Vec::new(),
    };
    report.aims = vec![aims::of_deadlines(&report)];
    Ok(report)
}

pub(super) fn now_ms() -> anyhow::Result<u64> {
    Ok(u64::try_from(
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis(),
    )?)
}

async fn open_all(client: &Client, debates: usize, instant: u64) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(
        BATCH as f64 / OPENED_PER_SECOND as f64,
    ));
    for number in 0..debates {
        if number % BATCH == 0 {
            ticks.tick().await;
        }
        let left = instant
            .checked_sub(now_ms()?)
            .context("the debates were not opened before their deadlines")?;
        let request = request(number, left)?;
        let case = format!("c-late-{number}");
        let subject = subjects::message(&case, "coordinator", "debate-facilitator", "request")?;
        client.publish(subject, request.to_string().into()).await?;
    }
    Ok(client.flush().await?)
}

/// A request to open the debate of a challenge, of which nobody will take notice. A mediator is to be asked on the next
/// level, so that the deadline at which track records are compared is not due at the same instant.
fn request(number: usize, acknowledge_ms: u64) -> anyhow::Result<serde_json::Value> {
    let case_id = CaseId::new(format!("c-late-{number}"))?;
    let (challenger, challenged) = (AgentId::new("strategy")?, AgentId::new("finance")?);
    let conflict = Conflict {
        conflict_id: DebateId::new(format!("d-late-{number}"))?,
        kind: ConflictType::Challenge,
        topic: "Operating margin of 25 %".into(),
        subject: "operating margin".into(),
        weight: 1.0,
        positions: vec![position(&challenged, 25), position(&challenger, 30)],
        positions_omitted: 0,
    };
    let times = LevelTimes {
        acknowledge_ms,
        ..LevelTimes::default()
    };
    let policy = Policy {
        ladder: LadderPolicy {
            times,
            mediator: Some(AgentId::new("mediator")?),
            ..LadderPolicy::default()
        },
        ..Policy::contract_review()
    };
    let challenge = ChallengeTerms {
        challenge_id: MessageId::new(format!("ch-{number}"))?,
        challenger,
        challenged,
        basis: "The return declines despite the claims.".into(),
        required_evidence: vec!["Historical data".into()],
        escalation_timer: None,
        provisional_resolution: None,
        historical_context: None,
    };
    let terms = DebateTerms {
        challenge: Some(challenge),
        domain: Some("valuation".into()),
        ..DebateTerms::default()
    };
    let parameters = OpenDebate {
        case_id: case_id.clone(),
        conflict,
        policy,
        terms,
    };
    Ok(json!({
        "message_id": format!("open-late-{number}"), "timestamp": Timestamp::from_unix_millis(i64::try_from(now_ms()?)?),
        "from_agent": Service::Coordinator.agent_id(), "to_agent": Service::DebateFacilitator.agent_id(),
        "message_type": "request", "case_id": case_id, "payload": { "action": "open_debate", "parameters": parameters },
    }))
}

fn position(agent: &AgentId, percent: u32) -> Position {
    Position {
        agent_id: agent.clone(),
        position: format!("{percent} %"),
        value: Some(json!(percent)),
        confidence: 0.8,
        evidence: vec!["10-K, page 45".into()],
        reasoning: None,
        evidence_omitted: 0,
    }
}

/// Waits until the broker holds all deadlines, and then until a second before the instant.
async fn armed(context: &jetstream::Context, deadlines: usize, instant: u64) -> anyhow::Result<()> {
    let timers = subjects::stream(context, StreamKind::Timers).await?;
    while (timers.get_info().await?.state.messages as usize) < deadlines {
        ensure!(
            now_ms()? < instant,
            "the deadlines were not armed before the first was due"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left = Duration::from_millis(instant.saturating_sub(now_ms()?));
    tokio::time::sleep(left.saturating_sub(Duration::from_secs(1))).await;
    Ok(())
}

/// Waits until all debates have climbed.
async fn all_escalated(
    context: &jetstream::Context,
    debates: usize,
    instant: u64,
) -> anyhow::Result<()> {
    let events = subjects::stream(context, StreamKind::Events).await?;
    // The number that a consumer has before it costs the broker nothing to say.
    let config = pull::Config {
        filter_subject: SubjectSpace::default().event_of_kind(Aggregate::Debate, "escalated"),
        inactive_threshold: PATIENCE * 2,
        memory_storage: true,
        ..pull::Config::default()
    };
    let mut counter = events.create_consumer(config).await?;
    let started = Instant::now();
    while (counter.info().await?.num_pending as usize) < debates {
        if started.elapsed() > PATIENCE {
            let late = now_ms()?.saturating_sub(instant);
            bail!(
                "{late} ms after the instant {} of {debates} debates had climbed",
                counter.cached_info().num_pending
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
