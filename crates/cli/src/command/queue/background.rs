//! What a brief shows beside the positions, as text.

use std::fmt::{Result, Write};

use concord_wire::CaseId;
use concord_wire::payload::{
    Background, Brief, BriefedFinding, Credibility, Dependence, PrecedentClaim, PrecedentGuidance,
    RelatedConflict, Statement, SuccessRate, TaskExcerpt,
};

use super::brief::TEXT;
use crate::shared::debate_file::{claim_text, value_text};
use crate::shared::flags;
use crate::shared::held_back::held_back;
use crate::shared::output::{DOUBTFUL, FAINT, NAMED, PLAIN, STRONG, count, one_line, styled};

/// At most so many lines of the matter are shown; the JSON has all that was sent.
const INPUT_LINES: usize = 40;

/// The matter and what each party found: what stands before the positions.
pub(super) fn write_before(out: &mut String, brief: &Brief) -> Result {
    let Some(background) = &brief.background else {
        return Ok(());
    };
    write_task(out, &brief.case_id, &background.task)?;
    write_findings(out, background)
}

/// What was said, how far each is to be believed, and what depends on it: what stands after the positions.
pub(super) fn write_after(out: &mut String, brief: &Brief) -> Result {
    let Some(background) = &brief.background else {
        return Ok(());
    };
    write_said(out, background)?;
    write_credibility(out, background)?;
    write_depends(out, &background.depends)?;
    flags::write(out, &background.alerts)
}

fn heading(out: &mut String, text: &str) -> Result {
    writeln!(out, "\n{}", styled(STRONG, text))
}

fn omitted(out: &mut String, number: u32, what: &str) -> Result {
    match number {
        0 => Ok(()),
        number => writeln!(
            out,
            "  {}",
            styled(DOUBTFUL, format!("and {}", count(number, what)))
        ),
    }
}

fn write_task(out: &mut String, case: &CaseId, task: &TaskExcerpt) -> Result {
    heading(out, "The matter")?;
    let title = match task.title.as_str() {
        "" => String::new(),
        title => format!(": {}", one_line(title, TEXT)),
    };
    let opened = format!("(opened by {})", task.opened_by);
    writeln!(
        out,
        "  {}{title} {}",
        one_line(&task.kind, TEXT),
        styled(FAINT, opened)
    )?;
    for line in task.input.lines().take(INPUT_LINES) {
        writeln!(out, "  | {}", one_line(line, TEXT))?;
    }
    let more = task.input.lines().count().saturating_sub(INPUT_LINES);
    omitted(out, u32::try_from(more).unwrap_or(u32::MAX), "further line")?;
    let size = count(task.bytes, "byte");
    let whole = format!("{size} in all; the whole: concord case show {case} --json");
    writeln!(out, "  {}", styled(FAINT, whole))
}

fn write_findings(out: &mut String, background: &Background) -> Result {
    if background.findings.is_empty() {
        return Ok(());
    }
    heading(out, "What each party found")?;
    background
        .findings
        .iter()
        .try_for_each(|finding| write_finding(out, finding))?;
    omitted(out, background.findings_omitted, "further finding")
}

fn write_finding(out: &mut String, finding: &BriefedFinding) -> Result {
    let mut figures = vec![format!("confidence {:.2}", finding.confidence)];
    figures.extend(finding.risk_score.map(|score| format!("risk {score}")));
    figures.extend(finding.severity.map(|one| one.as_str().to_owned()));
    figures.extend(
        finding
            .recommendation
            .as_ref()
            .map(|one| format!("recommends {}", one_line(one, TEXT))),
    );
    writeln!(
        out,
        "  {} {}: {}",
        styled(NAMED, &finding.agent_id),
        styled(FAINT, figures.join(", ")),
        one_line(&finding.summary, TEXT)
    )?;
    if let Some(impact) = &finding.impact {
        writeln!(out, "      impact: {}", one_line(impact, TEXT))?;
    }
    for line in &finding.about {
        writeln!(out, "      {}", one_line(line, TEXT))?;
    }
    for item in &finding.evidence {
        writeln!(out, "      evidence: {}", one_line(item, TEXT))?;
    }
    match finding.omitted {
        0 => Ok(()),
        number => writeln!(
            out,
            "      {}",
            styled(DOUBTFUL, format!("and {}", count(number, "further item")))
        ),
    }
}

fn write_said(out: &mut String, background: &Background) -> Result {
    if background.said.is_empty() {
        return Ok(());
    }
    heading(out, "What was said")?;
    omitted(out, background.said_omitted, "earlier statement")?;
    background
        .said
        .iter()
        .try_for_each(|said| write_statement(out, said))
}

fn write_statement(out: &mut String, said: &Statement) -> Result {
    let round = match said.round {
        0 => "before".to_owned(),
        number => format!("round {number}"),
    };
    let position = match (&said.position, said.moved) {
        (Some(position), true) => format!("now holds {}", one_line(position, TEXT)),
        (Some(position), false) => format!("stays with {}", one_line(position, TEXT)),
        (None, _) => "says".to_owned(),
    };
    let words = match said.words.as_str() {
        "" => String::new(),
        words => format!(": {}", one_line(words, TEXT)),
    };
    let agent = styled(NAMED, &said.agent_id);
    writeln!(out, "  {} {agent} {position}{words}", styled(FAINT, round))
}

fn write_credibility(out: &mut String, background: &Background) -> Result {
    if background.credibility.is_empty() {
        return Ok(());
    }
    heading(out, "How far each is to be believed, by track record now")?;
    for (agent, known) in &background.credibility {
        let Credibility {
            score,
            interval,
            data_points,
            factors,
            held_back: above,
            ..
        } = known;
        let figures = format!(
            "{score:.3} ({:.3} to {:.3}), {data_points:.1} data points",
            interval.low, interval.high
        );
        writeln!(out, "  {} {figures}", styled(NAMED, agent))?;
        for factor in factors.iter().filter(|factor| factor.applied) {
            writeln!(
                out,
                "      x {:.3} {}: {}",
                factor.value,
                factor.name.as_str(),
                one_line(&factor.explanation, TEXT)
            )?;
        }
        if let Some(above) = above {
            writeln!(out, "      {}", styled(DOUBTFUL, held_back(above)))?;
        }
    }
    Ok(())
}

fn write_depends(out: &mut String, depends: &Dependence) -> Result {
    heading(out, "What depends on it")?;
    let decision = match (depends.decision, depends.awaited) {
        (Some(version), _) => format!(
            "the case is decided, version {version}; a ruling that changes something gives the next"
        ),
        (None, true) => "the case is not decided before this debate has ended".to_owned(),
        (None, false) => {
            "the case is not decided yet, and does not wait for this debate".to_owned()
        }
    };
    writeln!(out, "  {decision}")?;
    if let Some(gate) = &depends.gate {
        let gate = one_line(gate, TEXT);
        writeln!(
            out,
            "  without a ruling the gate {gate} reviews what stands"
        )?;
    }
    for dependant in &depends.dependants {
        writeln!(out, "  rests on it: {}", one_line(dependant, TEXT))?;
    }
    for related in &depends.related {
        write_related(out, related)?;
    }
    omitted(out, depends.related_omitted, "further conflict")
}

fn write_related(out: &mut String, related: &RelatedConflict) -> Result {
    let how = match (&related.status, &related.position) {
        (None, _) => "not settled".to_owned(),
        (Some(status), None) => status.as_str().to_owned(),
        (Some(status), Some(position)) => {
            format!("{}: {}", status.as_str(), one_line(position, TEXT))
        }
    };
    let topic = one_line(&related.topic, TEXT);
    let debate = styled(NAMED, &related.debate_id);
    writeln!(
        out,
        "  about the same: {debate} {topic} {}",
        styled(FAINT, format!("({how})"))
    )
}

/// How often a position proved right.
fn rate_text(rate: &SuccessRate) -> String {
    match rate.known {
        0 => "not known".to_owned(),
        known => format!(
            "{} of {known} (95 %: {:.0}-{:.0} %)",
            rate.right,
            rate.interval.low * 100.0,
            rate.interval.high * 100.0
        ),
    }
}

/// What the earlier debates say about this one.
pub(super) fn write_guidance(out: &mut String, known: &PrecedentGuidance) -> Result {
    writeln!(
        out,
        "  what was chosen proved right  {}",
        rate_text(&known.chosen)
    )?;
    if let Some(lower) = &known.lower {
        writeln!(out, "  the lower number proved right {}", rate_text(lower))?;
    }
    for one in &known.positions {
        let position = one_line(&one.position, TEXT);
        writeln!(out, "  {position}: proved right {}", rate_text(&one.rate))?;
    }
    writeln!(
        out,
        "  in common: {}",
        one_line(&known.conditions.join(", "), TEXT)
    )?;
    for risk in &known.risks {
        writeln!(out, "  {}", styled(DOUBTFUL, one_line(risk, TEXT)))?;
    }
    Ok(())
}

/// What parties claim about earlier cases, beside what is known.
pub(super) fn write_claims(out: &mut String, claims: &[PrecedentClaim]) -> Result {
    for claim in claims {
        let style = if claim.is_far_outside {
            DOUBTFUL
        } else {
            PLAIN
        };
        let (rate, of) = (claim.claimed_rate, claim.claimed_observations);
        let claimed = claim_text(rate, of, claim.claimed_accuracy);
        writeln!(
            out,
            "  {} claims {claimed} in cases like this: {}",
            styled(NAMED, &claim.agent_id),
            styled(style, one_line(&claim.remark, TEXT))
        )?;
    }
    Ok(())
}

/// What proved right after an earlier debate, if that is known.
pub(super) fn write_proved(
    out: &mut String,
    brief: &Brief,
    debate: &concord_wire::DebateId,
) -> Result {
    let known = brief
        .background
        .as_ref()
        .and_then(|one| one.proved.get(debate));
    let Some(known) = known else {
        return Ok(());
    };
    writeln!(
        out,
        "      proved right: {}{}: {}",
        one_line(&known.position, TEXT),
        value_text(known.value.as_ref()),
        one_line(&known.explanation, TEXT)
    )
}
