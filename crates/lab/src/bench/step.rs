//! The facilitator's step: ten answers to each of many debates, all waiting in its inbox, at the same concurrency as the
//! raw broker.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::Client;
use async_nats::jetstream;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_installation::{Installation, Plan};
use concord_wire::payload::{Conflict, ConflictType, DebateTerms, OpenDebate, Position};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId};
use serde_json::{Value, json};

use super::measurements::Options;
use super::process::{Rate, Times};
use super::subjects;

/// Parties of each debate; the last answer ends it.
const PARTIES: usize = 10;
const PATIENCE: Duration = Duration::from_secs(120);

/// The facilitator's steps.
pub(super) async fn measure(options: &Options, round: usize) -> anyhow::Result<Rate> {
    let mut plan = Plan::new(options.directory.join(format!("step-{round}")))
        .with_setting("telemetry.log=warn")
        // Ten parties that have sent everything at once are a flood, and would be read as slowly as they may send.
        .with_setting("work.agent_rate_max=1000000")
        .with_setting(format!("work.in_flight_max={}", options.in_flight));
    plan.replicas = [(Service::DebateFacilitator, 1)].into();
    plan.binaries.clone_from(&options.binaries);
    let installation = Installation::start(plan, |_| {}).await?;
    let client = async_nats::connect(installation.server_url()).await?;
    let context = jetstream::new(client.clone());
    let messages = subjects::stream(&context, StreamKind::Messages).await?;
    let inbox = subjects::consumers(ConsumerKind::Inbox(Service::DebateFacilitator))
        .next()
        .context("an inbox")?;
    let debates = options.messages / PARTIES;
    for number in 0..debates {
        open(&client, number).await?;
    }
    client.flush().await?;
    // One debate, one opening fact; then every question is out as well.
    let events = subjects::stream(&context, StreamKind::Events).await?;
    wait("the debates are open", || async {
        Ok(
            events.get_info().await?.state.last_sequence >= debates as u64
                && under_way(&messages, &inbox).await? == 0,
        )
    })
    .await?;
    let until = time_in(Duration::from_secs(600));
    messages.pause_consumer(&inbox, until).await?;
    // What follows from a fact is no part of the step that stores it. Whole cases are measured with it.
    for effects in subjects::consumers(ConsumerKind::Effects(Service::DebateFacilitator)) {
        events.pause_consumer(&effects, until).await?;
    }
    answer_all(&client, &context, debates).await?;
    let waiting = messages.consumer_info(&inbox).await?.num_pending;
    // A pull that was under way when the consumer paused still gets a few.
    if (waiting as usize) < debates * PARTIES * 9 / 10 {
        bail!(
            "{waiting} answers wait in the inbox instead of about {}",
            debates * PARTIES
        );
    }
    messages.resume_consumer(&inbox).await?;
    // The broker begins to deliver when it is next asked for messages, up to a second later.
    wait("the first answers are delivered", || async {
        Ok(under_way(&messages, &inbox).await? < waiting)
    })
    .await?;
    let times = || {
        let pid = installation
            .pid(Service::DebateFacilitator, 0)
            .context("the facilitator has ended")?;
        let broker = installation
            .broker()
            .and_then(|broker| broker.pid())
            .context("the broker has ended")?;
        Times::of([("nats-server", broker), ("debate-facilitator", pid)])
    };
    let (started, before, left) = (
        Instant::now(),
        times()?,
        under_way(&messages, &inbox).await?,
    );
    wait("the answers are handled", || async {
        Ok(under_way(&messages, &inbox).await? == 0)
    })
    .await?;
    let rate = Rate::new(
        usize::try_from(left)?,
        started.elapsed(),
        &before,
        &times()?,
    );
    installation.stop().await;
    Ok(rate)
}

fn time_in(later: Duration) -> time::OffsetDateTime {
    time::OffsetDateTime::now_utc() + later
}

/// Messages in the inbox that are not acknowledged.
async fn under_way(messages: &jetstream::stream::Stream, inbox: &str) -> anyhow::Result<u64> {
    let info = messages.consumer_info(inbox).await?;
    Ok(info.num_pending + info.num_ack_pending as u64)
}

async fn wait<F: Future<Output = anyhow::Result<bool>>>(
    what: &str,
    done: impl Fn() -> F,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while !done().await? {
        if started.elapsed() > PATIENCE {
            bail!("waited two minutes until {what}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn debate_id(number: usize) -> anyhow::Result<DebateId> {
    Ok(DebateId::new(format!("d-bench-{number}"))?)
}

async fn open(client: &Client, number: usize) -> anyhow::Result<()> {
    let positions: Result<Vec<Position>, _> = (0..PARTIES).map(position).collect();
    let conflict = Conflict {
        conflict_id: debate_id(number)?,
        kind: ConflictType::RiskScoreDisagreement,
        topic: "Risk score spread: 10-100".into(),
        subject: "risk_score".into(),
        weight: 0.5,
        positions: positions?,
        positions_omitted: 0,
    };
    let case_id = CaseId::new(format!("c-bench-{number}"))?;
    // The answers come later than any usual deadline allows.
    let policy = Policy {
        rounds_max: 1,
        answer_timeout_ms: 600_000,
        ..Policy::contract_review()
    };
    let terms = DebateTerms::default();
    let parameters = OpenDebate {
        case_id: case_id.clone(),
        conflict,
        policy,
        terms,
    };
    let request = message(
        "conflict-detector",
        &case_id,
        "request",
        json!({
            "action": "open_debate", "parameters": parameters
        }),
    );
    let subject = subjects::message(
        case_id.as_str(),
        "conflict-detector",
        "debate-facilitator",
        "request",
    )?;
    Ok(client.publish(subject, request.to_string().into()).await?)
}

fn position(party: usize) -> anyhow::Result<Position> {
    Ok(Position {
        agent_id: AgentId::new(format!("party-{party}"))?,
        position: format!("Risk score: {}", (party + 1) * 10),
        value: Some(json!((party + 1) * 10)),
        confidence: 0.8,
        evidence: vec!["The Supplier may terminate at any time.".into()],
        reasoning: None,
        evidence_omitted: 0,
    })
}

fn message(from: &str, case: &CaseId, kind: &str, payload: Value) -> Value {
    json!({
        "message_id": format!("{kind}-{from}-{case}"), "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": from,
        "to_agent": "debate-facilitator", "message_type": kind, "case_id": case, "payload": payload,
        "metadata": {"confidence": 0.8}
    })
}

async fn answer_all(
    client: &Client,
    context: &jetstream::Context,
    debates: usize,
) -> anyhow::Result<()> {
    let stream = subjects::stream(context, StreamKind::Messages).await?;
    let before = stream.get_info().await?.state.last_sequence;
    for party in 0..PARTIES {
        for number in 0..debates {
            let case = CaseId::new(format!("c-bench-{number}"))?;
            let from = format!("party-{party}");
            let mut answer = message(
                &from,
                &case,
                "disagreement",
                json!({
                    "agrees_with_peer": false, "reasoning": "I keep my position."
                }),
            );
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("correlation_id".into(), json!(debate_id(number)?));
            }
            let subject =
                subjects::message(case.as_str(), &from, "debate-facilitator", "disagreement")?;
            client.publish(subject, answer.to_string().into()).await?;
        }
    }
    client.flush().await?;
    let expected = before + (debates * PARTIES) as u64;
    let all_stored = || async { Ok(stream.get_info().await?.state.last_sequence >= expected) };
    wait("the answers are stored", all_stored)
        .await
        .context("preparing the answers")
}
