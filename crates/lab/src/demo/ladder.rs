//! `concord-lab demo --ladder`: one challenge through all five levels, an hour as a second.

use std::io::IsTerminal;
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::{CaseEvent, DebateEvent, StoredEvent};
use concord_wire::id::GateName;
use concord_wire::payload::{LogEntry, OpenCase, Task};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, MessageType, Token};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{SILENCE_MAX, Screen};
use crate::panel::events::{StoredBytes, follow};
use crate::panel::stage::Stage;
use concord_cli::shared::connection;
use concord_cli::shared::failure::Failure;
use concord_cli::shared::output::{DOUBTFUL, FAINT, GOOD, NAMED, STRONG, span, styled};
use concord_cli::shared::send::{self, OutgoingMessage, WaitArgs};

/// The time scale of the ladder: an hour is a second.
const TIME_SCALE: u32 = 3_600;
/// The gate of the case.
const GATE: &str = "valuation review";
/// How long the person at the terminal may think before the script answers.
const THINKING_MAX: Duration = Duration::from_secs(20);

/// The participants: two agents, an expert who does not answer, and a person who reviews at the gate.
struct Cast {
    finance: AgentId,
    strategy: AgentId,
    expert: AgentId,
    reviewer: AgentId,
}

/// Plays the challenge to its end; the decision log of the case.
pub(super) async fn climb(stage: &Stage, screen: &Screen) -> Result<Vec<LogEntry>, Failure> {
    let broker = &stage.broker;
    let cast = Cast {
        finance: AgentId::fixed("financial_analyst"),
        strategy: AgentId::fixed("strategy_analyst"),
        expert: AgentId::fixed("eve"),
        reviewer: AgentId::fixed("gail"),
    };
    let case = CaseId::derived(&format!("demo/{}", concord_runtime::service::clock::now()));
    let mut events = follow(broker, vec![broker.subjects().all("event")]).await?;
    open(stage, &case, &cast).await?;
    screen.print(&[
        styled(STRONG, "One challenge, five levels; an hour is a second"),
        format!(
            "  {} finds an operating margin of 25 %; {} holds 30 %",
            cast.finance, cast.strategy
        ),
    ])?;
    let mut log = Vec::new();
    loop {
        let event = match tokio::time::timeout(SILENCE_MAX, events.next()).await {
            Ok(Some(event)) => event?,
            Ok(None) => return Err(Failure::failed("the stream of events has ended")),
            Err(_) => {
                return Err(Failure::failed(format!(
                    "nothing has happened for {} s",
                    SILENCE_MAX.as_secs()
                )));
            }
        };
        match event.aggregate {
            Aggregate::Debate => on_debate_event(stage, screen, &case, &cast, &event).await?,
            Aggregate::Case
                if event.id == case.token()
                    && on_case_event(stage, screen, &case, &cast, event.read()?, &mut log)
                        .await? =>
            {
                return Ok(log);
            }
            _ => {}
        }
    }
}

/// Opens the case, registers the expert, and has both analysts give their finding.
async fn open(stage: &Stage, case: &CaseId, cast: &Cast) -> Result<(), Failure> {
    let broker = &stage.broker;
    let people = [
        (
            &cast.expert,
            json!({ "role": "arbiter", "domains": ["valuation"] }),
        ),
        (
            &cast.reviewer,
            json!({ "role": "reviewer", "gates": [GATE] }),
        ),
    ];
    for (name, role) in people {
        let person = json!({ "person": { "name": name, "roles": [role] }, "by": "operator" });
        connection::ask::<Value>(broker, Service::Coordinator, "register_person", &person).await?;
    }
    let request = OpenCase {
        case_id: Some(case.clone()),
        policy: json!({ "ladder": { "time_scale": TIME_SCALE } }),
        gates: GateName::parse(GATE).into_iter().collect(),
        ..OpenCase::new(
            vec![cast.finance.clone(), cast.strategy.clone()],
            Task {
                kind: "valuation".into(),
                title: "ACME".into(),
                input: Value::Null,
            },
        )
    };
    connection::ask::<Value>(broker, Service::Coordinator, "open_case", &request).await?;
    let found = |summary: &str| json!({ "summary": summary });
    send(
        stage,
        case,
        &cast.finance,
        MessageType::Finding,
        &found("Operating margin of 25 %."),
    )
    .await?;
    send(
        stage,
        case,
        &cast.strategy,
        MessageType::Finding,
        &found("Margins are rising."),
    )
    .await
}

async fn send(
    stage: &Stage,
    case: &CaseId,
    from: &AgentId,
    kind: MessageType,
    payload: &Value,
) -> Result<(), Failure> {
    let watched: (Aggregate, Token) = (Aggregate::Case, case.token());
    let message = OutgoingMessage {
        from,
        to: Service::Coordinator,
        kind,
        priority: Default::default(),
        case: Some(case),
        correlation_id: None,
        payload,
        watched,
    };
    send::send(&stage.broker, &message, WaitArgs { no_wait: true })
        .await
        .map(|_| ())
}

/// Acts on an event of the case; true when the case has passed its gate.
async fn on_case_event(
    stage: &Stage,
    screen: &Screen,
    case: &CaseId,
    cast: &Cast,
    stored: StoredEvent<CaseEvent>,
    log: &mut Vec<LogEntry>,
) -> Result<bool, Failure> {
    match stored.event {
        CaseEvent::Decided(_) => {
            let challenge = json!({
                "challenge_id": "CH-001", "challenger": cast.strategy, "challenged": cast.finance,
                "disputed_finding": "Operating margin of 25 %", "challenge_basis": "Margins have been rising for three years",
                "required_evidence": ["Segment margins"], "escalation_timer": 3600, "priority": "critical-path",
                "metric": "operating margin", "challenged_value": 25, "position": "30 %", "value": 30,
                "domain": "valuation", "dependants": ["dcf", "sensitivity"],
            });
            send(
                stage,
                case,
                &cast.strategy,
                MessageType::Challenge,
                &challenge,
            )
            .await?;
        }
        CaseEvent::DecisionChanged(changed) => {
            let stands = changed
                .outcome
                .resolution
                .as_ref()
                .map_or("nothing", |one| one.position.as_str());
            screen.print(&[format!(
                "  the decision has version {}: {stands} ({})",
                changed.change.version, changed.outcome.status
            )])?;
            let reviewed = changed.outcome.ruled_by.is_some();
            log.push(*changed.entry);
            if reviewed {
                let pass = json!({ "gate": GATE, "action": "pass" });
                send(stage, case, &cast.reviewer, MessageType::Review, &pass).await?;
            }
        }
        CaseEvent::GatePassed(passed) => {
            let took = span(
                stored
                    .meta
                    .at
                    .millis_since(log.first().map_or(stored.meta.at, |entry| entry.at)),
            );
            let line = format!(
                "  the case passes the gate {:?}, {took} after the cautious position was applied",
                passed.gate
            );
            screen.print(&[styled(GOOD, line)])?;
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

/// Shows an event of the debate, and reviews the provisional decision at the gate.
async fn on_debate_event(
    stage: &Stage,
    screen: &Screen,
    case: &CaseId,
    cast: &Cast,
    event: &StoredBytes,
) -> Result<(), Failure> {
    let stored: StoredEvent<DebateEvent> = event.read()?;
    let DebateEvent::AwaitsGate(awaits) = &stored.event else {
        return screen.print(&debate_lines(cast, &stored.event));
    };
    let gate = format!(
        "The gate {:?}: 1 provisional decision requires review",
        awaits.gate
    );
    screen.print(&[level(5, &gate)])?;
    let review = reviewed(screen, &event.id).await?;
    send(stage, case, &cast.reviewer, MessageType::Review, &review).await
}

/// The heading of a level.
fn level(number: u8, what: &str) -> String {
    styled(STRONG, format!("Level {number}  {what}"))
}

/// The lines that an event of the debate adds, level by level.
fn debate_lines(cast: &Cast, event: &DebateEvent) -> Vec<String> {
    match event {
        DebateEvent::Opened(opened) => vec![
            level(
                1,
                "The agents themselves: acknowledgement in 15 minutes, evidence in an hour",
            ),
            format!(
                "  {} is challenged and says nothing",
                styled(NAMED, &cast.finance)
            ),
            format!("  disputed: {}", opened.conflict.topic),
        ],
        DebateEvent::Escalated(escalated) if u8::from(escalated.to) == 2 => {
            vec![
                level(2, "Track records are compared"),
                "  nobody acknowledged in time".to_owned(),
            ]
        }
        DebateEvent::Escalated(escalated) => {
            let why = escalated
                .mediation
                .as_ref()
                .map_or("mediation was overdue", |one| one.reasoning.as_str());
            vec![
                format!("  {why}"),
                level(3, "A person is asked, for six hours"),
            ]
        }
        DebateEvent::Assigned(assigned) => vec![format!(
            "  {} is given the brief, with {} positions",
            styled(NAMED, &assigned.briefed.expert),
            assigned.briefed.brief.positions.len()
        )],
        DebateEvent::Reminded(reminded) => {
            vec![format!(
                "  {} % of the time has passed; a reminder goes out",
                reminded.percent
            )]
        }
        DebateEvent::FellBack(fell) => {
            let why = fell
                .outcome
                .provisional
                .as_ref()
                .map_or("", |one| one.rationale.as_str());
            vec![
                level(4, "The cautious position stands, provisionally, for a day"),
                styled(DOUBTFUL, format!("  {why}")),
            ]
        }
        DebateEvent::Resolved(resolved) => {
            let chosen = resolved
                .outcome
                .resolution
                .as_ref()
                .map_or("nothing", |one| one.position.as_str());
            vec![styled(
                GOOD,
                format!("  {}: {chosen}", resolved.outcome.status),
            )]
        }
        _ => Vec::new(),
    }
}

/// The review at the gate: by the person at the terminal, or else by the script.
async fn reviewed(screen: &Screen, debate: &Token) -> Result<Value, Failure> {
    let confirm = json!({ "gate": GATE, "action": "confirm", "debate_id": debate, "rationale": "Cautious is right." });
    let overriding = json!({
        "gate": GATE, "action": "override", "debate_id": debate, "position": "28 %", "value": 28,
        "rationale": "Management guidance.",
    });
    if !std::io::stdin().is_terminal() {
        screen.print(&[format!(
            "  {}",
            styled(FAINT, "the script overrides it with 28 %")
        )])?;
        return Ok(overriding);
    }
    screen.print(&[
        "  You are gail. [c]onfirm 25 %, or [o]verride with 28 %? (the script overrides in 20 s)"
            .to_owned(),
    ])?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // A thread of its own: nobody waits for it when the program ends before anything is typed.
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        // The receiver is gone when the script has answered.
        let _ = sender.send(read.is_ok_and(|_| answer.trim().to_lowercase().starts_with('c')));
    });
    let confirms = tokio::time::timeout(THINKING_MAX, receiver).await;
    Ok(if matches!(confirms, Ok(Ok(true))) {
        confirm
    } else {
        overriding
    })
}
