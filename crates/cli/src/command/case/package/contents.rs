//! What a decision package says to a reader, the most important first.

use concord_domain::aggregates::case::{Cancellation, DecisionPackage};
use concord_domain::meeting::{CalibratedFinding, Dispute, MeetingPackage, SupportedOption};
use concord_wire::payload::ConflictOutcome;
use concord_wire::payload::track_record::Interval;
use serde_json::Value;

use super::document::{Bar, Block, Document, Section};
use super::past;
use crate::shared::debate_file::reasons;
use crate::shared::output::one_line;

/// At most so many characters of what others wrote stand in a cell, and in a sentence.
pub(super) const CELL: usize = 120;
const SENTENCE: usize = 400;
/// Most items of a list of sentences.
const LIST_MAX: usize = 12;

/// The package as a document.
pub(super) fn document(package: &MeetingPackage) -> Document {
    let case = &package.case;
    let sections = [
        Section::new("In short", in_short(package)),
        Section::new("Figures of the decision", past::figures(package)),
        Section::new("What speaks for each option", options(package)),
        Section::new("What is not certain", vec![shortened(&package.uncertainty)]),
        Section::new("Disputes", disputes(package)),
        Section::new("Findings", findings(package)),
        Section::new("Earlier decisions like these", past::earlier(package)),
        Section::new("The agents' records", past::records(package)),
        Section::new("What the decision changes", past::impact(package)),
        Section::reference("Evidence", evidence(package)),
        Section::reference("Factors of credibility", past::factors(package)),
        Section::reference("Versions of the decision", past::versions(package)),
        Section::reference("Gates passed", past::gates(package)),
        Section::reference("How the numbers are computed", past::formulas(package)),
    ];
    let decided = case.decided_at.map(|at| format!(", decided {at}"));
    Document {
        title: one_line(&case.task.title, CELL),
        subtitle: format!(
            "Case {}, {}, policy {}{}. Made {}.",
            case.case_id,
            one_line(&case.task.kind, CELL),
            case.policy.preset,
            decided.unwrap_or_default(),
            package.made_at
        ),
        sections: sections.into_iter().flatten().collect(),
    }
}

/// The first items, and how many more there are.
fn shortened(lines: &[String]) -> Block {
    let mut shown: Vec<String> = lines
        .iter()
        .take(LIST_MAX)
        .map(|line| one_line(line, SENTENCE))
        .collect();
    let more = lines.len().saturating_sub(LIST_MAX);
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    Block::List(shown)
}

fn in_short(package: &MeetingPackage) -> Vec<Block> {
    let ours = &package.recommendation;
    let decision = package.case.decision.as_ref();
    let decided = ours.decided.as_deref().unwrap_or("no recommendation");
    let mut blocks: Vec<Block> = package.case.cancelled.iter().map(cancelled).collect();
    blocks.push(Block::Key(format!(
        "The decision: {} ({})",
        one_line(decided, CELL),
        standing(&package.case)
    )));
    blocks.extend(weighed(package).map(Block::Text));
    let mut lines = Vec::new();
    if let Some(risk) = ours.risk_score {
        lines.push(format!("Risk score {} of 100.", number(risk)));
    }
    if let Some(severity) = decision.and_then(|decision| decision.outcome.severity) {
        lines.push(format!("Highest severity: {}.", severity.as_str()));
    }
    let dissent = package
        .disputes
        .iter()
        .filter(|one| !one.dissent.is_empty());
    lines.push(format!(
        "Findings: {} of {} participants. Disputes: {}, with dissent at the end: {}.",
        package.findings.len(),
        package.case.participants.len(),
        package.disputes.len(),
        dissent.count()
    ));
    lines.extend(package.withheld.iter().cloned());
    blocks.push(Block::List(lines));
    blocks
}

/// By whom and why the case was cancelled.
fn cancelled(cancelled: &Cancellation) -> Block {
    Block::Key(format!(
        "The case was cancelled by {} at {}: {}",
        cancelled.by,
        cancelled.at,
        one_line(&cancelled.why, SENTENCE)
    ))
}

/// Which version the decision has, and whether that is the last.
fn standing(case: &DecisionPackage) -> String {
    let Some(decision) = &case.decision else {
        return match case.cancelled {
            Some(_) => "not decided".to_owned(),
            None => "not decided yet".to_owned(),
        };
    };
    let open = match case.cancelled {
        Some(_) => "when the case was cancelled",
        None if decision.is_final() => "final",
        None => "not final",
    };
    format!("version {}, {open}", decision.version.max(1))
}

/// What the weighing of all findings comes to, before and after the adjustment for risk.
fn weighed(package: &MeetingPackage) -> Option<String> {
    let ours = &package.recommendation;
    let best = ours.options.first()?;
    let name = |option: &SupportedOption| one_line(&option.recommendation, CELL);
    let heaviest = ours.options.iter();
    let heaviest = heaviest.reduce(|a, b| if b.share > a.share { b } else { a })?;
    let share = percent(heaviest.share);
    let range = interval(heaviest.interval);
    let weight = format!(
        "All findings weighed: {} has {share} of the weight (95 %: {range}).",
        name(heaviest)
    );
    let risk = if best.recommendation == heaviest.recommendation {
        " It leads after the adjustment for risk, too.".to_owned()
    } else {
        format!(
            " Adjusted for risk, {} leads: {} against {}.",
            name(best),
            percent(best.risk_adjusted),
            percent(heaviest.risk_adjusted)
        )
    };
    let agrees = match (&ours.decided, ours.differs(&package.case.policy)) {
        (None, _) => "",
        (Some(_), true) => " This is not what the decision says.",
        (Some(_), false) => " The decision says the same.",
    };
    Some(weight + &risk + agrees)
}

fn options(package: &MeetingPackage) -> Vec<Block> {
    let options = &package.recommendation.options;
    let bar = |option: &SupportedOption| Bar {
        label: one_line(&option.recommendation, CELL),
        share: option.risk_adjusted,
        note: format!(
            "{} adjusted for risk, {} before",
            percent(option.risk_adjusted),
            percent(option.share)
        ),
    };
    let row = |option: &SupportedOption| {
        let held: Vec<&str> = option.held_by.iter().map(|one| one.as_str()).collect();
        vec![
            one_line(&option.recommendation, CELL),
            one_line(&held.join(", "), CELL),
            format!("{:.2}", option.calibrated),
            past::rate(&option.precedents),
            format!("{:.2}", option.precedent_factor),
            format!("{:.2}", option.weight),
            interval(option.interval),
        ]
    };
    vec![
        Block::Bars(options.iter().map(bar).collect()),
        Block::Table {
            headings: &[
                "Option",
                "Recommended by",
                "Calibrated confidence",
                "Proved right before",
                "Factor",
                "Weight",
                "Share, 95 %",
            ],
            rows: options.iter().map(row).collect(),
        },
    ]
}

fn disputes(package: &MeetingPackage) -> Vec<Block> {
    let mut blocks = Vec::new();
    for dispute in &package.disputes {
        blocks.push(Block::Heading(one_line(&dispute.topic, CELL)));
        blocks.push(Block::Text(ended(dispute)));
        let dissent = dispute.dissent.iter().map(|held| {
            let reasoning = held.reasoning.as_deref().map(|why| format!(": {why}"));
            format!(
                "{} holds {} ({:.2}){}",
                held.agent_id,
                one_line(&held.position, CELL),
                held.confidence,
                one_line(&reasoning.unwrap_or_default(), SENTENCE)
            )
        });
        blocks.push(shortened(&dissent.collect::<Vec<String>>()));
        let provisional = dispute.outcome.as_ref().map(provisional);
        blocks.push(Block::List(provisional.unwrap_or_default()));
    }
    blocks
}

fn ended(dispute: &Dispute) -> String {
    let Some(outcome) = &dispute.outcome else {
        return "Not settled yet.".to_owned();
    };
    let Some(chosen) = &outcome.resolution else {
        return format!("Ended without a position: {}.", outcome.status);
    };
    let chosen = position(&chosen.position, chosen.value.as_ref());
    let status = outcome.status;
    match &outcome.ruled_by {
        None => format!("{chosen} ({status})"),
        Some(ruled) => {
            let reasons = reasons(ruled, SENTENCE).join("; ");
            format!("{chosen} ({status}), {reasons}")
        }
    }
}

/// A position, with its value where the words do not have it.
pub(super) fn position(words: &str, value: Option<&Value>) -> String {
    let words = one_line(words, CELL);
    let value = value.map(|value| match value {
        Value::String(text) => one_line(text, CELL),
        Value::Number(known) => known.as_f64().map_or_else(|| known.to_string(), number),
        other => one_line(&other.to_string(), CELL),
    });
    match value {
        Some(value) if !words.contains(&value) => format!("{words} ({value})"),
        _ => words,
    }
}

/// What a provisional outcome says besides its position.
fn provisional(outcome: &ConflictOutcome) -> Vec<String> {
    let Some(provisional) = &outcome.provisional else {
        return Vec::new();
    };
    let gate = provisional.review_at.as_deref();
    let gate = gate.map(|gate| format!(", to be reviewed at the gate {}", one_line(gate, CELL)));
    let mut lines = vec![format!(
        "Provisional{}: {}",
        gate.unwrap_or_default(),
        one_line(&provisional.rationale, SENTENCE)
    )];
    if !provisional.dependants.is_empty() {
        let dependants = provisional.dependants.join(", ");
        lines.push(format!("Rest on it: {}", one_line(&dependants, SENTENCE)));
    }
    lines
}

fn findings(package: &MeetingPackage) -> Vec<Block> {
    let row = |one: &CalibratedFinding| {
        vec![
            one.agent_id.to_string(),
            one_line(one.recommendation.as_deref().unwrap_or("-"), CELL),
            format!("{:.2}", one.stated),
            format!("{:.2}", one.calibrated),
            interval(one.interval),
            number(one.data_points),
            one_line(&one.summary, SENTENCE) + &impact(one),
        ]
    };
    vec![Block::Table {
        headings: &[
            "Agent",
            "Recommends",
            "Says",
            "Calibrated",
            "95 %",
            "Data points",
            "Finding",
        ],
        rows: package.findings.iter().map(row).collect(),
    }]
}

/// What follows from a finding for others, behind its summary.
fn impact(finding: &CalibratedFinding) -> String {
    let words = finding.impact.as_deref();
    words.map_or_else(String::new, |impact| {
        format!(" Impact: {}", one_line(impact, SENTENCE))
    })
}

fn evidence(package: &MeetingPackage) -> Vec<Block> {
    let mut blocks = Vec::new();
    for finding in &package.findings {
        if !finding.evidence.is_empty() {
            blocks.push(Block::Heading(finding.agent_id.to_string()));
            blocks.push(shortened(&finding.evidence));
        }
    }
    blocks
}

/// A share of 1 in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The ends of an interval in percent.
pub(super) fn interval(of: Interval) -> String {
    format!("{:.0}–{:.0} %", of.low * 100.0, of.high * 100.0)
}

/// A number to one digit behind the point.
pub(super) fn number(number: f64) -> String {
    format!("{}", (number * 10.0).round() / 10.0)
}
