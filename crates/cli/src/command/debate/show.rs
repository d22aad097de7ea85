//! `concord debate show`: a debate with its positions, deadlines and events.

use std::fmt::{Result as Written, Write};

use clap::Args;
use concord_domain::aggregates::debate::DebateState;
use concord_events::{
    AggregateEvent, Deadline, DebateAssigned, DebateEvent, StoredEvent, Synced, Unassigned,
};
use concord_runtime::service::clock;
use concord_wire::payload::notification::UnassignedReason;
use concord_wire::payload::{ConflictOutcome, DebateTerms, Level, Position};
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Timestamp};
use serde::Serialize;

use super::reassigned::{Reason, Reassigned, reassigned};
use crate::command::case::decided::write_reasons;
use crate::shared::args::{JsonArg, debate_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::debate_file::{
    level_name, load, plain_resolution, resolution_text, signed_text, value_text,
};
use crate::shared::failure::Failure;
use crate::shared::output::{BAD, DOUBTFUL, FAINT, GOOD, NAMED, STRONG, one_line, span, styled};

/// Arguments of `concord debate show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  concord debate show d-4f1c\n  concord debate show d-4f1c --json"
)]
pub(crate) struct ShowArgs {
    /// The debate.
    #[arg(value_parser = debate_id)]
    debate: DebateId,
    #[command(flatten)]
    json: JsonArg,
}

/// A debate as it is printed.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    debate_id: &'a DebateId,
    case_id: CaseId,
    topic: String,
    /// None while it is discussed in rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    terms: DebateTerms,
    positions: &'a [Position],
    waits_for: Vec<Deadline>,
    /// Deadlines that an operator holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<Deadline>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expert: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional: Option<ConflictOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a ConflictOutcome>,
    #[serde(rename = "facts")]
    events: Vec<ShownEvent<'a>>,
}

/// An event of the debate.
#[derive(Debug, Serialize)]
struct ShownEvent<'a> {
    sequence: u64,
    at: Timestamp,
    #[serde(rename = "fact")]
    name: &'static str,
    cause: &'a MessageId,
    data: &'a DebateEvent,
    /// Who gave the debate to somebody else, and why. Absent for whoever may not read the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    reassigned: Option<&'a Reason>,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let (state, records) = load(&broker, &args.debate).await?;
    let reassigned = reassigned(&broker, &args.debate).await?;
    let shown = shown(&args.debate, &state, &records, &reassigned)
        .ok_or_else(|| Failure::failed(format!("debate {} was never opened", args.debate)))?;
    args.json.print(&shown, text)?;
    Ok(0)
}

fn shown<'a>(
    debate_id: &'a DebateId,
    state: &'a DebateState,
    records: &'a [StoredEvent<DebateEvent>],
    reassigned: &'a Reassigned,
) -> Option<Shown<'a>> {
    let opened = state.opened.as_ref()?;
    let ladder = state.ladder.as_deref();
    let round = state.due.map(|due| Deadline {
        name: concord_domain::aggregates::debate::round_name(state.round),
        due,
    });
    let waits_for = match (&state.outcome, ladder) {
        (Some(_), _) => Vec::new(),
        (None, Some(ladder)) => ladder.waits_for.clone(),
        (None, None) => round.into_iter().collect(),
    };
    let held = ladder
        .and_then(|ladder| ladder.held.as_ref())
        .filter(|_| state.outcome.is_none());
    let events = records.iter().map(|record| ShownEvent {
        sequence: record.sequence,
        at: record.meta.at,
        name: record.event.name(),
        cause: &record.meta.cause,
        data: &record.event,
        reassigned: reassigned.get(&record.meta.cause),
    });
    Some(Shown {
        debate_id,
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        // A review at a gate ends a debate above the level that it is on until then.
        level: ladder.map(|ladder| {
            let ended = state.outcome.as_ref().and_then(|outcome| outcome.level);
            ended.unwrap_or(ladder.level)
        }),
        terms: opened.terms.clone(),
        positions: &state.positions,
        waits_for,
        held: held.map(|(held, _)| held.clone()).unwrap_or_default(),
        expert: ladder.and_then(|ladder| ladder.expert.clone()),
        digest: ladder.and_then(|ladder| ladder.digest.clone()),
        provisional: ladder.and_then(|ladder| ladder.provisional.clone()),
        outcome: state.outcome.as_ref(),
        events: events.collect(),
    })
}

fn text(shown: &Shown<'_>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_debate(&mut text, shown);
    text
}

fn write_debate(out: &mut String, shown: &Shown<'_>) -> Written {
    writeln!(
        out,
        "debate {}  {}",
        styled(NAMED, shown.debate_id),
        styled(STRONG, one_line(&shown.topic, 200))
    )?;
    writeln!(out, "  case      {}", shown.case_id)?;
    let level = match shown.level {
        Some(level) => format!("{level}: {}", level_name(level)),
        None => "1: discussion in rounds".to_owned(),
    };
    writeln!(out, "  level     {level}")?;
    writeln!(out, "  priority  {}", shown.terms.priority.as_str())?;
    if let Some(earlier) = &shown.terms.refers_to {
        writeln!(out, "  again     takes up {earlier}")?;
    }
    if let (Some(expert), None) = (&shown.expert, shown.outcome) {
        writeln!(out, "  expert    {expert}")?;
    }
    write_deadlines(out, shown)?;
    write_result(out, shown)?;
    write_positions(out, shown)?;
    write_events(out, shown)
}

fn write_deadlines(out: &mut String, shown: &Shown<'_>) -> Written {
    for Deadline { name, due } in &shown.waits_for {
        let left = match due.millis_since(clock::now()) {
            0 => styled(BAD, "overdue"),
            left => styled(FAINT, format!("in {}", span(left))),
        };
        writeln!(out, "  waits for {name}, {due}  {left}")?;
    }
    for Deadline { name, due } in &shown.held {
        writeln!(
            out,
            "  {} {name}, {due} and later",
            styled(DOUBTFUL, "held     ")
        )?;
    }
    Ok(())
}

/// What stands provisionally, or the outcome.
fn write_result(out: &mut String, shown: &Shown<'_>) -> Written {
    let provisional = shown
        .provisional
        .as_ref()
        .filter(|_| shown.outcome.is_none());
    if let Some(resolution) = provisional.and_then(|outcome| outcome.resolution.as_ref()) {
        writeln!(
            out,
            "  {} {}",
            styled(DOUBTFUL, "stands provisionally:"),
            resolution_text(resolution)
        )?;
    }
    if let Some(outcome) = shown.outcome {
        let resolution = outcome
            .resolution
            .as_ref()
            .map_or("nothing was chosen".to_owned(), resolution_text);
        writeln!(
            out,
            "  {} {resolution}",
            styled(GOOD, format!("resolved ({}):", outcome.status))
        )?;
        let signed = outcome.ruled_by.as_ref().map(signed_text);
        if let Some(signed) = signed.filter(|text| !text.is_empty()) {
            writeln!(out, "{signed}")?;
        }
        if let Some(ruled) = &outcome.ruled_by {
            write_reasons(out, "  ", ruled)?;
        }
    }
    Ok(())
}

fn write_positions(out: &mut String, shown: &Shown<'_>) -> Written {
    writeln!(out, "\n{}", styled(STRONG, "Positions"))?;
    for held in shown.positions {
        let confidence = styled(FAINT, format!("({:.2})", held.confidence));
        let words = one_line(&held.position, 200);
        writeln!(
            out,
            "  {} {confidence}: {words}{}",
            styled(NAMED, &held.agent_id),
            value_text(held.value.as_ref())
        )?;
    }
    Ok(())
}

fn write_events(out: &mut String, shown: &Shown<'_>) -> Written {
    writeln!(out, "\n{}", styled(STRONG, "What has happened"))?;
    for event in &shown.events {
        writeln!(
            out,
            "  {}  {} {}",
            styled(FAINT, event.at),
            styled(STRONG, event.name),
            event_text(event)
        )?;
    }
    Ok(())
}

/// The JSON string of a value that is written as one.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Who had written what they know when the snapshot was taken.
fn synced_text(synced: &Synced) -> String {
    if synced.silent.is_empty() {
        return "everybody has written what they know".to_owned();
    }
    let names: Vec<&str> = synced.silent.iter().map(AgentId::as_str).collect();
    format!("without {}", names.join(", "))
}

fn assigned_text(assigned: &DebateAssigned, reassigned: Option<&Reason>) -> String {
    let to = &assigned.briefed.expert;
    let before = assigned.instead_of.as_ref();
    let before = before.map(|before| format!(", instead of {}", before.expert));
    let why = reassigned.map(|Reason { by, why }| format!(", by {by}: {why}"));
    format!(
        "to {to}{}{}",
        before.unwrap_or_default(),
        why.unwrap_or_default()
    )
}

fn unassigned_text(unassigned: &Unassigned) -> String {
    let why = match unassigned.reason {
        UnassignedReason::Left => "has left",
        UnassignedReason::DidNotAct => "has let it lie",
        UnassignedReason::Reassigned => "has it no more",
    };
    format!("{} {why}", unassigned.expert)
}

/// The main contents of an event.
fn event_text(shown: &ShownEvent<'_>) -> String {
    let text = match shown.data {
        DebateEvent::Opened(opened) => {
            format!("among {}", agents(opened.conflict.positions.iter()))
        }
        DebateEvent::Flushed(flushed) => flushed.heard.agent_id.to_string(),
        DebateEvent::Synced(synced) => synced_text(synced),
        DebateEvent::Answered(answered) => answered.received.agent_id.to_string(),
        DebateEvent::AnswerSetAside(aside) => aside.agent_id.to_string(),
        DebateEvent::RoundClosed(closed) => format!("round {}", closed.record.round),
        DebateEvent::Resolved(resolved) => resolved.outcome.status.to_string(),
        DebateEvent::Acknowledged(acknowledged) => format!("by {}", acknowledged.heard.agent_id),
        DebateEvent::Clarified(clarified) => {
            format!("{}: {}", clarified.heard.agent_id, clarified.text)
        }
        DebateEvent::EvidenceGiven(given) => format!("by {}", given.heard.agent_id),
        DebateEvent::Escalated(escalated) => {
            format!(
                "from level {} to {}: {}",
                escalated.from,
                escalated.to,
                word(escalated.reason)
            )
        }
        DebateEvent::OpinionGiven(given) => format!("{}: {}", given.heard.agent_id, given.text),
        DebateEvent::Assigned(assigned) => assigned_text(assigned, shown.reassigned),
        DebateEvent::Unassigned(unassigned) => unassigned_text(unassigned),
        DebateEvent::Reminded(reminded) => format!("at {} % of the time", reminded.percent),
        DebateEvent::RulingSetAside(aside) => {
            format!(
                "of {}: {} {}",
                aside.heard.agent_id,
                word(aside.reason),
                aside.explanation
            )
        }
        DebateEvent::OutcomeKnown(known) => {
            format!("{}, says {}", known.position, known.heard.agent_id)
        }
        DebateEvent::FellBack(fell) => fell
            .outcome
            .resolution
            .as_ref()
            .map_or(String::new(), plain_resolution),
        DebateEvent::AwaitsGate(awaits) => awaits.gate.clone(),
        DebateEvent::DeadlinesMoved(moved) => {
            let later = if moved.later_ms == 0 {
                String::new()
            } else {
                format!(" by {}", span(moved.later_ms))
            };
            format!(
                "{}{later} by {}: {}",
                word(moved.control),
                moved.by,
                moved.why
            )
        }
    };
    one_line(&text, 160)
}

fn agents<'a>(positions: impl Iterator<Item = &'a Position>) -> String {
    positions
        .map(|position| position.agent_id.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_debate_that_was_reassigned_says_by_whom_and_why() {
        let data = json!({
            "case_id": "c-1", "instead_of": { "expert": "eva" }, "waits_for": [],
            "briefed": {
                "expert": "abe", "digest": "abc", "due": "2026-01-01T01:00:00.000Z",
                "brief": { "debate_id": "d-1", "case_id": "c-1", "topic": "t", "priority": "valuation", "positions": [] },
            },
        });
        let stored = json!({
            "fact": "assigned", "aggregate": "debate", "event_id": "e", "id": "d-1", "cause": "q-7",
            "at": "2026-01-01T00:00:00.000Z", "data": data,
        });
        let bytes = serde_json::to_vec(&stored).unwrap();
        let record = StoredEvent::<DebateEvent>::decode(&bytes, 7).unwrap();
        for (cause, text) in [
            ("q-7", "to abe, instead of eva, by olga: eva is ill"),
            ("q-8", "to abe, instead of eva"),
        ] {
            let reason = Reason {
                by: AgentId::fixed("olga"),
                why: "eva is ill".into(),
            };
            let reassigned = Reassigned::from([(MessageId::new(cause).unwrap(), reason)]);
            let shown = ShownEvent {
                sequence: 7,
                at: record.meta.at,
                name: record.event.name(),
                cause: &record.meta.cause,
                data: &record.event,
                reassigned: reassigned.get(&record.meta.cause),
            };
            assert_eq!(event_text(&shown), text);
        }
    }
}
