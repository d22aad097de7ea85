//! What a decision package says of the past: earlier decisions, records of agents, versions; and what follows from it.

use concord_domain::aggregates::case::PassedGate;
use concord_domain::meeting::{EarlierDecision, MeetingPackage, RecordInDomain};
use concord_wire::AgentId;
use concord_wire::payload::track_record::FactorName;
use concord_wire::payload::{Figure, PrecedentClaim, PrecedentGuidance, SuccessRate};

use super::contents::{CELL, interval, number, percent};
use super::document::Block;
use crate::shared::debate_file::{both, claim_text, claimed_text, pass_reasons, similar_lines};
use crate::shared::output::{count, one_line};

/// Most rows of a table of earlier decisions.
const EARLIER_MAX: usize = 5;
/// At most so many characters of the reason for passing a gate: all of it.
const REASON: usize = 4_096;
/// Most rows of a table of affected analyses.
const IMPACTS_MAX: usize = 10;

/// A rate with its interval.
pub(super) fn rate(rate: &SuccessRate) -> String {
    match rate.known {
        0 => "not known".to_owned(),
        known => format!(
            "{} of {known} (95 %: {})",
            rate.right,
            interval(rate.interval)
        ),
    }
}

/// Earlier decisions like the disputes of the case, those that proved wrong, and what was learned.
pub(super) fn earlier(package: &MeetingPackage) -> Vec<Block> {
    let mut blocks = Vec::new();
    for dispute in &package.disputes {
        let history = &dispute.history;
        if history.earlier.is_empty() && dispute.claims.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(one_line(&dispute.topic, CELL)));
        if !history.earlier.is_empty() {
            blocks.push(Block::Text(format!(
                "{}; the chosen position proved right: {}.",
                count(history.earlier.len() as u64, "earlier decision"),
                rate(&history.success)
            )));
        }
        blocks.extend(
            dispute
                .guidance
                .as_ref()
                .map(|known| Block::List(guidance(known))),
        );
        let claims = dispute.claims.iter();
        let claims =
            claims.map(|claim| format!("{} {}: {}", claim.agent_id, claimed(claim), claim.remark));
        blocks.push(Block::List(claims.collect()));
        if !history.earlier.is_empty() {
            let shown = history.earlier.iter().take(EARLIER_MAX);
            blocks.push(Block::Table {
                headings: &["When", "Decided", "By", "Proved right"],
                rows: shown.map(row).collect(),
            });
        }
    }
    blocks.extend(named(package));
    if !package.cautionary.is_empty() {
        blocks.push(Block::Heading("Proved wrong: take care".to_owned()));
        let line = |one: &EarlierDecision| {
            format!(
                "{}: decided was {}, right was {}.",
                one_line(&one.topic, CELL),
                one_line(&one.position, CELL),
                one_line(one.proved.as_deref().unwrap_or_default(), CELL)
            )
        };
        let shown = package.cautionary.iter().take(EARLIER_MAX);
        blocks.push(Block::List(shown.map(line).collect()));
    }
    if !package.lessons.is_empty() {
        blocks.push(Block::Heading("Lessons".to_owned()));
        let shown = package.lessons.iter().take(EARLIER_MAX);
        let line = |lesson: &concord_domain::meeting::Lesson| {
            format!(
                "{}: {}",
                one_line(&lesson.topic, CELL),
                one_line(&lesson.explanation, 2 * CELL)
            )
        };
        blocks.push(Block::List(shown.map(line).collect()));
    }
    blocks
}

/// What somebody claims about earlier cases.
fn claimed(claim: &PrecedentClaim) -> String {
    let (rate, of) = (claim.claimed_rate, claim.claimed_observations);
    format!("claims {}", claim_text(rate, of, claim.claimed_accuracy))
}

/// The earlier cases that agents name in their findings, and what they claim about them where no dispute says it.
fn named(package: &MeetingPackage) -> Vec<Block> {
    let compared: Vec<&AgentId> = package
        .disputes
        .iter()
        .flat_map(|dispute| dispute.claims.iter().map(|claim| &claim.agent_id))
        .collect();
    let mut lines = Vec::new();
    for received in &package.case.findings {
        let Some(context) = &received.finding.historical_context else {
            continue;
        };
        let agent = &received.agent_id;
        if let Some(claimed) = claimed_text(context).filter(|_| !compared.contains(&agent)) {
            lines.push(format!("{agent}: claims {claimed}"));
        }
        let similar = similar_lines(context, EARLIER_MAX);
        lines.extend(similar.iter().map(|line| format!("{agent}: {line}")));
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let heading = "What agents say of earlier cases; nothing of it is checked here";
    vec![Block::Heading(heading.to_owned()), Block::List(lines)]
}

/// What the earlier decisions say about a dispute, line by line.
fn guidance(known: &PrecedentGuidance) -> Vec<String> {
    let lower = known.lower.as_ref();
    let lower = lower.map(|lower| format!("The lower estimate proved right in {}.", rate(lower)));
    let positions = known.positions.iter();
    let positions = positions.filter(|one| one.rate.right > 0).map(|one| {
        let position = one_line(&one.position, CELL);
        format!("{position} proved right in {}.", rate(&one.rate))
    });
    let conditions = format!("In common: {}.", known.conditions.join(", "));
    let lines = lower.into_iter().chain(positions);
    let lines = lines.chain([conditions]).chain(known.risks.iter().cloned());
    lines.map(|line| one_line(&line, 2 * CELL)).collect()
}

fn row(one: &EarlierDecision) -> Vec<String> {
    let proved = match (&one.proved, one.was_right) {
        (None, _) => "not known".to_owned(),
        (Some(_), Some(true)) => "yes".to_owned(),
        (Some(proved), Some(false)) => format!("no: {}", one_line(proved, CELL)),
        // What was chosen states no value.
        (Some(proved), None) => format!("not known: {}", one_line(proved, CELL)),
    };
    vec![
        one.at.to_string(),
        one_line(&one.position, CELL),
        one_line(&one.status, CELL),
        proved,
    ]
}

/// The records of all agents, in each domain.
fn each_record(package: &MeetingPackage) -> impl Iterator<Item = (&AgentId, &RecordInDomain)> {
    let agents = package.credibility.iter();
    agents.flat_map(|(agent, records)| records.iter().map(move |record| (agent, record)))
}

/// The records of the agents in short.
pub(super) fn records(package: &MeetingPackage) -> Vec<Block> {
    let row = |(agent, record): (&AgentId, &RecordInDomain)| {
        let known = &record.credibility;
        let trend = known.factors.iter();
        let mut trend = trend.filter(|factor| factor.name == FactorName::TrendAdjusted);
        let trend = match trend.next().filter(|factor| factor.applied) {
            Some(factor) if factor.value > 1.0 => format!("better (× {:.2})", factor.value),
            Some(factor) if factor.value < 1.0 => format!("worse (× {:.2})", factor.value),
            _ => "none seen".to_owned(),
        };
        let points = number(known.data_points);
        let thin = if record.is_thin() { ", few" } else { "" };
        vec![
            agent.to_string(),
            one_line(&record.domain, CELL),
            format!("{:.2}", known.score),
            interval(known.interval),
            format!("{points}{thin}"),
            trend,
        ]
    };
    vec![Block::Table {
        headings: &[
            "Agent",
            "Field",
            "Credibility",
            "95 %",
            "Data points",
            "Trend",
        ],
        rows: each_record(package).map(row).collect(),
    }]
}

/// Why each record has its value.
pub(super) fn factors(package: &MeetingPackage) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (agent, record) in each_record(package) {
        blocks.push(Block::Heading(format!(
            "{agent}, {}",
            one_line(&record.domain, CELL)
        )));
        let factors = record.credibility.factors.iter();
        let rows = factors.map(|factor| {
            vec![
                factor.name.as_str().to_owned(),
                format!("{:.3}", factor.value),
                one_line(&factor.explanation, 2 * CELL),
            ]
        });
        blocks.push(Block::Table {
            headings: &["Factor", "Value", "Why"],
            rows: rows.collect(),
        });
    }
    blocks
}

/// What a changed decision does to analyses: the last reports.
pub(super) fn impact(package: &MeetingPackage) -> Vec<Block> {
    let mut blocks = Vec::new();
    for one in package.impact.iter().rev().take(3) {
        let report = &one.assessed.report;
        let changed = &report.changed_assumption;
        blocks.push(Block::Text(format!(
            "{}: {} {} was {}, is {}; {} analyses affected, {} to be done again.",
            one.at,
            changed.kind.as_str(),
            one_line(&changed.id, CELL),
            figure(changed.old_value.as_ref()),
            figure(changed.new_value.as_ref()),
            report.affected_count,
            report.high_impact_count
        )));
        let rows = report.impacts.iter().take(IMPACTS_MAX).map(|impact| {
            let is_due = package.to_do_again.contains(&impact.analysis_id);
            let again = match (impact.requires_rerun, is_due) {
                (false, _) => "no",
                (true, true) => "yes",
                (true, false) => "not any more",
            };
            let unknown = match impact.unknown.as_slice() {
                [] => String::new(),
                some => format!("; unknown: {}", some.join(", ")),
            };
            vec![
                impact.analysis_id.to_string(),
                one_line(impact.metric.as_deref().unwrap_or("-"), CELL),
                figure(impact.old_value.as_ref()),
                figure(impact.estimated_new_value.as_ref()),
                impact.delta.map_or_else(|| "unknown".to_owned(), percent),
                one_line(&format!("{again}{unknown}"), CELL),
            ]
        });
        blocks.push(Block::Table {
            headings: &[
                "Analysis",
                "Figure",
                "Before",
                "Estimate",
                "Change",
                "To be done again",
            ],
            rows: rows.collect(),
        });
    }
    blocks
}

/// The figures of analyses that the decision has.
pub(super) fn figures(package: &MeetingPackage) -> Vec<Block> {
    let Some(decision) = &package.case.decision else {
        return Vec::new();
    };
    let rows = decision.figures.iter().flat_map(|(analysis, recorded)| {
        recorded.figures.iter().map(move |(metric, value)| {
            vec![
                analysis.to_string(),
                recorded.version.to_string(),
                one_line(metric, CELL),
                figure(Some(value)),
            ]
        })
    });
    let table = Block::Table {
        headings: &["Analysis", "Version", "Figure", "Value"],
        rows: rows.collect(),
    };
    let omitted = decision.figures_omitted;
    let more = format!("The decision has no room for {omitted} further analyses.");
    let more = (omitted > 0).then_some(Block::Text(more));
    [table].into_iter().chain(more).collect()
}

fn figure(figure: Option<&Figure>) -> String {
    match figure {
        None => "?".to_owned(),
        Some(Figure::Number(number)) => format!("{}", (number * 1e6).round() / 1e6),
        Some(Figure::Text(text)) => one_line(text, CELL),
    }
}

/// How the versions of the decision came to be.
pub(super) fn versions(package: &MeetingPackage) -> Vec<Block> {
    let row = |note: &concord_domain::aggregates::case::VersionNote| {
        let change = &note.change;
        let first = change.first_reviewer.as_ref();
        let by = change.by.as_ref();
        let by = by.map_or_else(|| "-".to_owned(), |by| both(first, by));
        let parts = change.changed.iter().map(|part| {
            let (before, after) = (part.before.to_string(), part.after.to_string());
            format!("{}: {before} is now {after}", part.part)
        });
        vec![
            change.version.to_string(),
            note.at.to_string(),
            one_line(&change.topic, CELL),
            change.status.to_string(),
            by,
            one_line(&parts.collect::<Vec<_>>().join("; "), 2 * CELL),
        ]
    };
    vec![Block::Table {
        headings: &["Version", "When", "About", "By", "Person", "What changed"],
        rows: package.case.changes.iter().map(row).collect(),
    }]
}

/// The gates that the case has passed: when, by whom, and why.
pub(super) fn gates(package: &MeetingPackage) -> Vec<Block> {
    let row = |passed: &PassedGate| {
        vec![
            one_line(&passed.gate, CELL),
            passed.at.to_string(),
            pass_reasons(passed, REASON).join("; "),
        ]
    };
    vec![Block::Table {
        headings: &["Gate", "When", "By whom and why"],
        rows: package.gates_passed.iter().map(row).collect(),
    }]
}

/// The formulas.
pub(super) fn formulas(package: &MeetingPackage) -> Vec<Block> {
    let formulas = package.formulas.iter();
    let version = package.credibility_version.as_str();
    vec![
        Block::Table {
            headings: &["Number", "Formula"],
            rows: formulas
                .map(|(name, formula)| vec![(*name).to_owned(), (*formula).to_owned()])
                .collect(),
        },
        Block::Text(format!(
            "Credibility is computed by the version {version}. The policy of the case has the digest {}.",
            package
                .case
                .decision
                .as_ref()
                .map_or("-", |decision| decision.policy_digest.as_str())
        )),
    ]
}
