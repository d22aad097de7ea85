//! A case as text.

use std::fmt::{Result, Write};

use concord_events::ReceivedFinding;
use concord_wire::payload::{Conflict, Level, Position, SetAsideReason, Tally};

use crate::command::case::compared::write_compared;
use crate::command::case::decided::{names, number, write_decision, write_ended};
use crate::command::case::decision_versions;
use crate::command::case::show::{phase_name, phase_style};
use crate::shared::case_file::{CaseFile, DebateFile, RoundFile};
use crate::shared::debate_file::{level_name, similar_lines};
use crate::shared::flags;
use crate::shared::output::{
    Cell, DOUBTFUL, FAINT, GOOD, NAMED, STRONG, Table, ago, count, one_line, span, styled,
};

/// At most so many characters of a sentence are shown.
const SENTENCE: usize = 100;
/// At most so many characters of the reason of an operator.
const REASON: usize = 4_096;
/// Most earlier cases that are shown of one finding.
const SIMILAR_MAX: usize = 5;

/// A case as text.
pub(super) fn text(file: &CaseFile) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_case(&mut text, file);
    text
}

fn write_case(out: &mut String, file: &CaseFile) -> Result {
    let package = &file.package;
    let phase = styled(phase_style(package.phase), phase_name(package.phase));
    let title = styled(STRONG, one_line(&package.task.title, SENTENCE));
    writeln!(
        out,
        "case {}  {phase}  {title}",
        styled(NAMED, &package.case_id)
    )?;
    writeln!(
        out,
        "  opened        {} by {}, {} ago",
        package.opened_at,
        package.opened_by,
        ago(package.opened_at)
    )?;
    if let Some(decided) = package.decided_at {
        writeln!(
            out,
            "  decided       {decided}, after {}",
            span(decided.millis_since(package.opened_at))
        )?;
    }
    if let Some(cancelled) = &package.cancelled {
        writeln!(
            out,
            "  cancelled     {} by {}, {} ago: {}",
            cancelled.at,
            cancelled.by,
            ago(cancelled.at),
            one_line(&cancelled.why, REASON)
        )?;
    }
    writeln!(
        out,
        "  task          {}",
        one_line(&package.task.kind, SENTENCE)
    )?;
    writeln!(out, "  policy        {}", package.policy.preset)?;
    let importance = &package.policy.importance;
    if importance.filtered {
        writeln!(
            out,
            "  importance    told at once above {}, at checkpoints above {}; `concord case insights` shows what",
            importance.broadcast_above, importance.hold_above
        )?;
    }
    writeln!(out, "  participants  {}", names(&package.participants))?;
    flags::write(out, &package.alerts)?;
    write_findings(out, file)?;
    write_similar(out, &file.package.findings)?;
    write_conflicts(out, file)?;
    if let Some(decision) = &package.decision {
        write_decision(out, decision)?;
        decision_versions::write(out, decision, file)?;
        decision_versions::write_passed(out, &file.gates_passed)?;
    } else if file.state.waits_for_debates {
        writeln!(
            out,
            "\n{}",
            styled(
                DOUBTFUL,
                "The time of the case is over; by its policy it waits for its debates."
            )
        )?;
    }
    Ok(())
}

fn write_findings(out: &mut String, file: &CaseFile) -> Result {
    let findings = &file.package.findings;
    writeln!(
        out,
        "\n{}",
        styled(
            STRONG,
            format!(
                "Findings ({} of {})",
                findings.len(),
                file.package.participants.len()
            )
        )
    )?;
    let mut table = Table::new([
        "AGENT",
        "CONFIDENCE",
        "RISK",
        "SEVERITY",
        "RECOMMENDATION",
        "SUMMARY",
    ])
    .indented("  ");
    let optional = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for received in findings {
        let finding = &received.finding;
        table.row([
            Cell::text(&received.agent_id).with(NAMED),
            Cell::text(confidence(file, received)),
            Cell::number(optional(finding.risk_score.map(number))),
            Cell::text(optional(
                finding
                    .severity
                    .map(|severity| severity.as_str().to_owned()),
            )),
            Cell::text(optional(
                finding
                    .recommendation
                    .as_deref()
                    .map(|text| one_line(text, 20)),
            )),
            Cell::text(one_line(&finding.summary, 70)),
        ]);
    }
    if !findings.is_empty() {
        write!(out, "{table}")?;
    }
    if !file.state.missing.is_empty() {
        writeln!(
            out,
            "  {} {}",
            styled(DOUBTFUL, "missing:"),
            names(&file.state.missing)
        )?;
    }
    for aside in &file.package.set_aside {
        let why = match aside.note.reason {
            SetAsideReason::Late => "late",
            SetAsideReason::Repeated => "repeated",
        };
        let note = styled(FAINT, format!("set aside ({why}):"));
        writeln!(
            out,
            "  {note} {}: {}",
            aside.note.agent_id,
            one_line(&aside.finding.summary, SENTENCE)
        )?;
    }
    Ok(())
}

/// The earlier cases that agents name in their findings.
fn write_similar(out: &mut String, findings: &[ReceivedFinding]) -> Result {
    for received in findings {
        let context = received.finding.historical_context.as_ref();
        let named = context.map(|context| similar_lines(context, SIMILAR_MAX));
        for line in named.unwrap_or_default() {
            let agent = styled(NAMED, &received.agent_id);
            writeln!(out, "  {agent} names earlier cases: {line}")?;
        }
    }
    Ok(())
}

/// How sure the author of a finding is, and how sure it is with what others have confirmed.
fn confidence(file: &CaseFile, received: &ReceivedFinding) -> String {
    let stated = format!("{:.2}", received.confidence);
    let mut confirmed = file.package.confirmed.iter();
    let Some(confirmed) = confirmed.find(|one| one.finding == received.message_id) else {
        return stated;
    };
    let by: Vec<&str> = confirmed.by.iter().map(|one| one.agent.as_str()).collect();
    let with = one_line(&by.join(", "), 40);
    format!("{stated} ({:.2} with {with})", confirmed.strengthened)
}

fn write_conflicts(out: &mut String, file: &CaseFile) -> Result {
    let (debated, deferred) = (&file.debates, &file.state.deferred);
    let heading = match (debated.len(), deferred.len()) {
        (0, 0) => "Conflicts (none)".to_owned(),
        (debated, 0) => format!("Conflicts ({debated} debated)"),
        (debated, deferred) => format!("Conflicts ({debated} debated, {deferred} deferred)"),
    };
    writeln!(out, "\n{}", styled(STRONG, heading))?;
    for (index, debate) in debated.iter().enumerate() {
        write_conflict(out, &format!("{}.", index + 1), &debate.conflict)?;
        if !debate.dependants.is_empty() {
            let names = debate.dependants.join(", ");
            writeln!(out, "     rest on it: {}", one_line(&names, SENTENCE))?;
        }
        write_debate(out, debate)?;
    }
    for conflict in deferred {
        write_conflict(out, &styled(FAINT, "deferred:"), conflict)?;
    }
    write_compared(out, file)
}

fn write_conflict(out: &mut String, mark: &str, conflict: &Conflict) -> Result {
    let kind = styled(FAINT, conflict.kind.as_str());
    writeln!(
        out,
        "  {mark} {}  {kind}",
        styled(DOUBTFUL, one_line(&conflict.topic, SENTENCE))
    )?;
    for held in &conflict.positions {
        writeln!(out, "     {}", position(held))?;
    }
    Ok(())
}

fn position(held: &Position) -> String {
    let confidence = styled(FAINT, format!("({:.2})", held.confidence));
    format!(
        "{} {confidence}: {}",
        styled(NAMED, &held.agent_id),
        one_line(&held.position, SENTENCE)
    )
}

fn write_debate(out: &mut String, debate: &DebateFile) -> Result {
    let mut held: Vec<&Position> = debate.conflict.positions.iter().collect();
    for round in &debate.rounds {
        write_round(out, round, &held)?;
        let answered = round.answers.iter().map(|answer| &answer.position);
        held = answered.chain(held).collect();
    }
    let Some(outcome) = &debate.outcome else {
        let waits = match debate.level {
            None => "not settled yet".to_owned(),
            Some(Level::Fallback | Level::Gate) => {
                "not settled yet: the cautious position stands until a gate has reviewed it"
                    .to_owned()
            }
            Some(level) => format!("not settled yet; it is with {}", level_name(level)),
        };
        let more = format!("concord debate show {}", debate.conflict.conflict_id);
        return writeln!(
            out,
            "     {}  {}",
            styled(DOUBTFUL, waits),
            styled(FAINT, more)
        );
    };
    if let Some(tally) = &outcome.tally {
        write_tally(out, tally)?;
    }
    write_ended(out, outcome)
}

/// A round, before which the parties `held` this, the latest first.
fn write_round(out: &mut String, round: &RoundFile, held: &[&Position]) -> Result {
    let figures = match &round.record {
        Some(record) => format!(
            "{} of {} answered, {} agreed; {} before, {} after",
            record.answered.len(),
            round.asked.len(),
            record.agreements,
            count(record.positions_before, "position"),
            record.positions_after
        ),
        None => format!(
            "{} of {} have answered",
            round.answers.len(),
            round.asked.len()
        ),
    };
    writeln!(out, "     round {}: {figures}", round.round)?;
    for answer in &round.answers {
        let verdict = match (answer.agrees, has_moved(held, &answer.position)) {
            (true, _) => styled(GOOD, "agrees"),
            (false, true) => styled(DOUBTFUL, "moves to"),
            (false, false) => styled(DOUBTFUL, "holds"),
        };
        let (who, held) = (
            styled(NAMED, &answer.agent_id),
            one_line(&answer.position.position, SENTENCE),
        );
        let confidence = styled(FAINT, format!("({:.2})", answer.position.confidence));
        let why = match one_line(&answer.answer.reasoning, SENTENCE) {
            why if why.is_empty() => why,
            why => format!(" - {why}"),
        };
        writeln!(out, "       {who} {verdict} {confidence}: {held}{why}")?;
    }
    for silent in round.record.iter().flat_map(|record| &record.silent) {
        writeln!(
            out,
            "       {} {}",
            styled(NAMED, silent),
            styled(FAINT, "did not answer")
        )?;
    }
    Ok(())
}

/// Whether a party holds something else than before; `held` has its latest position first.
fn has_moved(held: &[&Position], now: &Position) -> bool {
    let mut before = held.iter();
    let before = before.find(|before| before.agent_id == now.agent_id);
    before.is_some_and(|before| match (&before.value, &now.value) {
        (Some(before), Some(now)) => before != now,
        _ => before.position != now.position,
    })
}

fn write_tally(out: &mut String, tally: &Tally) -> Result {
    let rule = serde_json::to_value(tally.rule)
        .ok()
        .and_then(|rule| rule.as_str().map(str::to_owned));
    let tie = tally
        .tie_broken_by
        .as_ref()
        .map_or(String::new(), |by| format!(", tie broken by {by}"));
    writeln!(
        out,
        "     vote by {}, margin {:.2}{tie}",
        rule.unwrap_or_default(),
        tally.margin
    )?;
    for option in &tally.options {
        let wins = tally.winner.as_ref() == Some(&option.position_id);
        let mark = if wins {
            styled(GOOD, "*")
        } else {
            " ".to_owned()
        };
        let voters: Vec<String> = option
            .voters
            .iter()
            .map(|voter| format!("{} {:.2}", voter.agent_id, voter.weight))
            .collect();
        let (position, voters) = (
            one_line(&option.position, SENTENCE),
            styled(FAINT, voters.join(", ")),
        );
        writeln!(
            out,
            "     {mark} {:>5.2}  {position}  {voters}",
            option.weight
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_has_moved_does_not_hold() {
        let held = |value: u8| json!({ "agent_id": "ann", "position": format!("Risk score: {value}"), "value": value, "confidence": 0.5 });
        let before: Position = serde_json::from_value(held(30)).unwrap();
        for (now, agrees, verdict) in [
            (30, false, "holds"),
            (40, false, "moves to"),
            (40, true, "agrees"),
        ] {
            let answer = json!({
                "agent_id": "ann", "message_id": "m-1", "digest": "", "round": 1, "agrees": agrees,
                "answer": { "reasoning": "" }, "position": held(now),
            });
            let round = RoundFile {
                round: 1,
                asked: vec![],
                due: None,
                answers: vec![serde_json::from_value(answer).unwrap()],
                record: None,
            };
            let mut text = String::new();
            write_round(&mut text, &round, &[&before]).unwrap();
            let text = anstream::adapter::strip_str(&text).to_string();
            let expected = format!("ann {verdict} (0.50): Risk score: {now}\n");
            assert!(text.contains(&expected), "{text}");
        }
    }
}
