//! The facilitator's step: ten answers to each of many debates, all waiting in its inbox, at the same concurrency as the
//! raw broker.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::Client;
use async_nats::jetstream::{self, stream::Stream};
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_installation::Installation;
use concord_wire::payload::{Conflict, ConflictType, DebateTerms, OpenDebate, Position};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId};
use serde_json::{Value, json};

use super::measurements::Options;
use super::process::{Rate, Times};
use super::{installation, subjects};

/// Parties of each debate; the last answer ends it.
const PARTIES: usize = 10;
/// All debates fit in it. They are answered in turn, so of a cache that is a little too small each would be gone when its next answer
/// comes. What the raw broker's client needs to know is in memory, too.
const CACHED_BYTES: usize = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than a measurement takes.
const PAUSE: Duration = Duration::from_secs(600);

/// A facilitator with debates whose answers all wait in its inbox.
struct Load {
    installation: Installation,
    client: Client,
    context: jetstream::Context,
    messages: Stream,
    events: Stream,
    /// The name of the consumer that is the facilitator's inbox.
    inbox: String,
    debates: usize,
}

/// Measures the facilitator's steps; how many it handles a second, and how often a limit intervened.
pub(super) async fn measure(options: &Options, round: usize) -> anyhow::Result<(Rate, u64)> {
    let load = Load::start(options, round).await?;
    load.open_debates().await?;
    load.pause().await?;
    answer_all(&load.client, &load.context, load.debates).await?;
    let rate = load.steps().await?;
    let limited = installation::stop(load.installation, "steps").await?;
    Ok((rate, limited))
}

impl Load {
    async fn start(options: &Options, round: usize) -> anyhow::Result<Self> {
        let mut plan = installation::unlimited(options, &format!("step-{round}"))
            .with_setting(format!("work.in_flight_max={}", options.in_flight))
            .with_setting(format!("work.cached_bytes_max={CACHED_BYTES}"));
        plan.replicas = [(Service::DebateFacilitator, 1)].into();
        let installation = installation::start(options, plan).await?;
        let client = async_nats::connect(installation.server_url()).await?;
        let context = jetstream::new(client.clone());
        let messages = subjects::stream(&context, StreamKind::Messages).await?;
        let events = subjects::stream(&context, StreamKind::Events).await?;
        let inbox = subjects::consumers(ConsumerKind::Inbox(Service::DebateFacilitator))
            .next()
            .context("an inbox")?;
        Ok(Self {
            installation,
            client,
            context,
            messages,
            events,
            inbox,
            debates: options.messages / PARTIES,
        })
    }

    async fn open_debates(&self) -> anyhow::Result<()> {
        for number in 0..self.debates {
            open(&self.client, number).await?;
        }
        self.client.flush().await?;
        // Each debate begins with one event; when the inbox is empty too, every question is out.
        wait("the debates are open", || async {
            let stored = self.events.get_info().await?.state.last_sequence;
            Ok(stored >= self.debates as u64 && self.under_way().await? == 0)
        })
        .await
    }

    /// Pauses the inbox, so that all answers wait in it, and what follows from events: that is no part of the step that
    /// stores an event, and whole cases are measured with it.
    async fn pause(&self) -> anyhow::Result<()> {
        let until = time::OffsetDateTime::now_utc() + PAUSE;
        self.messages.pause_consumer(&self.inbox, until).await?;
        let own = Service::DebateFacilitator;
        for kind in [ConsumerKind::Effects(own), ConsumerKind::Events(own)] {
            for follows in subjects::consumers(kind) {
                self.events.pause_consumer(&follows, until).await?;
            }
        }
        Ok(())
    }

    /// Lets the facilitator handle the answers, and measures from the first delivery to the last acknowledgement.
    async fn steps(&self) -> anyhow::Result<Rate> {
        let answers = self.debates * PARTIES;
        let waiting = self.messages.consumer_info(&self.inbox).await?.num_pending;
        // A pull that was under way when the consumer paused still gets a few.
        if (waiting as usize) < answers * 9 / 10 {
            bail!("{waiting} answers wait in the inbox instead of about {answers}");
        }
        self.messages.resume_consumer(&self.inbox).await?;
        // The broker begins to deliver when it is next asked for messages, up to a second later.
        wait("the first answers are delivered", || async {
            Ok(self.under_way().await? < waiting)
        })
        .await?;
        let started = Instant::now();
        let before = self.times()?;
        let left = self.under_way().await?;
        wait("the answers are handled", || async {
            Ok(self.under_way().await? == 0)
        })
        .await?;
        let took = started.elapsed();
        Ok(Rate::new(
            usize::try_from(left)?,
            took,
            &before,
            &self.times()?,
        ))
    }

    fn times(&self) -> anyhow::Result<Times> {
        let facilitator = self
            .installation
            .pid(Service::DebateFacilitator, 0)
            .context("the facilitator has ended")?;
        let broker = self
            .installation
            .broker()
            .and_then(|broker| broker.pid())
            .context("the broker has ended")?;
        Times::of([("nats-server", broker), ("debate-facilitator", facilitator)])
    }

    /// The number of messages in the inbox that are not acknowledged.
    async fn under_way(&self) -> anyhow::Result<u64> {
        let info = self.messages.consumer_info(&self.inbox).await?;
        Ok(info.num_pending + info.num_ack_pending as u64)
    }
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
    // The answers come later than any usual deadline allows. The step is measured, and not what the parties are told of
    // each other's answers.
    let policy = Policy {
        rounds_max: 1,
        answer_timeout_ms: 600_000,
        hear_answers: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_limit_that_intervenes_is_counted_and_the_measurement_has_none() {
        concord_testkit::nats_server();
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            binaries: Some(concord_testkit::binaries()),
            messages: 3_000,
            ..Options::new(folder.path())
        };
        let (rate, limited) = measure(&options, 1).await.unwrap();
        assert_eq!(limited, 0, "{rate:?}");
        let low = Options {
            settings: vec!["work.agent_rate_max=20".into()],
            ..options
        };
        let (rate, limited) = measure(&low, 2).await.unwrap();
        assert!(limited > 0, "{rate:?}");
    }
}
