//! What an expert is shown beside the positions: read when the expert is given the debate, and then kept in its events.
//!
//! Nothing of it is stored before a person has the debate, so debates that reach none cost nothing. It is not read again
//! while that expert has it: only what is said in the debate itself changes the brief.

use std::collections::BTreeMap;

use concord_events::{DebateEvent, DebateOpened, OutcomeKnown, ReceivedFinding, StoredEvent};
use concord_wire::payload::{
    AlertFlag, Background, BriefedFinding, Credibility, Dependence, Evidence, Position,
    ProvedRight, RelatedConflict, Statement, Task, TaskExcerpt,
};
use concord_wire::policy::Decide;
use concord_wire::{AgentId, DebateId};

use crate::aggregates::case::CaseState;
use crate::rules::conflict_type::about;
use crate::rules::impact::graph::name_of;
use crate::rules::precedent;
use crate::rules::size_budget::truncate::{self, Room};
use crate::rules::size_budget::{count, json_bytes};

/// Most bytes of the excerpt of a case's input.
const INPUT_BYTES_MAX: usize = 16 * 1024;
/// Most findings, and most bytes of their summaries, statements and evidence together.
const FINDINGS_MAX: usize = 16;
const FINDINGS_BYTES_MAX: usize = 32 * 1024;
/// Most bytes of everything that was said, and of the words of one statement.
const SAID_BYTES_MAX: usize = 24 * 1024;
const WORDS_BYTES_MAX: usize = 1_024;
/// Most parties whose credibility is shown with its factors.
const CREDIBILITY_SHOWN: usize = 8;
/// Most other conflicts, and most analyses that rest on what is disputed.
const RELATED_MAX: usize = 8;
const DEPENDANTS_MAX: usize = 16;
/// Most changes of regime.
const ALERTS_MAX: usize = 3;
/// Most bytes of a text that is one line among others.
const LINE_BYTES_MAX: usize = 256;

/// What is read of other aggregates for a brief.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The credibility of the parties, with factors.
    pub credibility: BTreeMap<AgentId, Credibility>,
    /// What proved right after the precedents of the debate.
    pub proved: BTreeMap<DebateId, OutcomeKnown>,
}

/// What an expert is shown beside the positions of the debate that was opened so and has these events; `None` where the case
/// is not known.
pub fn background(
    opened: &DebateOpened,
    history: &[StoredEvent<DebateEvent>],
    case: &CaseState,
    sources: Sources,
) -> Option<Background> {
    let case_opened = case.opened.as_ref()?;
    let (findings, findings_omitted) = findings(opened, case);
    let (said, said_omitted) = said(opened, history);
    let claims = precedent::claims(opened, &case.findings, &sources.credibility);
    let proved = sources.proved.into_iter();
    Some(Background {
        task: excerpt(&case_opened.task, &case_opened.opened_by),
        findings,
        findings_omitted,
        said,
        said_omitted,
        credibility: sources.credibility,
        proved: proved
            .map(|(id, known)| (id, proved_right(&known)))
            .collect(),
        claims,
        depends: depends(opened, case),
        alerts: alerts(case),
    })
}

/// The last changes of regime; what follows from them at length is shown by `concord alert show`.
fn alerts(case: &CaseState) -> Vec<AlertFlag> {
    let skipped = case.flags.len().saturating_sub(ALERTS_MAX);
    let last = case.flags.iter().skip(skipped);
    last.map(|flag| AlertFlag {
        implications: Default::default(),
        ..(**flag).clone()
    })
    .collect()
}

/// The parties whose credibility is shown: those whose track records were compared, the most credible first, then others.
pub fn believed(opened: &DebateOpened) -> Vec<AgentId> {
    let mut parties: Vec<(&AgentId, f64)> = super::parties_of(opened)
        .map(|agent| {
            let known = opened.credibility.get(agent);
            (agent, known.map_or(0.0, |known| known.score))
        })
        .collect();
    parties.sort_by(|(a, one), (b, other)| other.total_cmp(one).then_with(|| a.cmp(b)));
    let shown = parties.into_iter().take(CREDIBILITY_SHOWN);
    shown.map(|(agent, _)| agent.clone()).collect()
}

fn excerpt(task: &Task, opened_by: &AgentId) -> TaskExcerpt {
    let input = match &task.input {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    TaskExcerpt {
        kind: truncate::topic(&task.kind),
        title: truncate::topic(&task.title),
        input: truncate::excerpt(&input, INPUT_BYTES_MAX),
        bytes: u64::try_from(json_bytes(&task.input)).unwrap_or(u64::MAX),
        opened_by: opened_by.clone(),
    }
}

/// The findings of the parties, in the order of their names, and how many more there are.
fn findings(opened: &DebateOpened, case: &CaseState) -> (Vec<BriefedFinding>, u32) {
    let is_party = |agent: &AgentId| super::parties_of(opened).any(|party| party == agent);
    let mut concerned: Vec<&ReceivedFinding> = case
        .findings
        .iter()
        .filter(|received| is_party(&received.agent_id))
        .collect();
    concerned.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    let shown = concerned.len().min(FINDINGS_MAX);
    let room = Room::share_of(FINDINGS_BYTES_MAX, shown);
    let subject = &opened.conflict.subject;
    let findings = concerned.iter().take(shown);
    (
        findings
            .map(|received| briefed_finding(received, subject, room))
            .collect(),
        count(concerned.len() - shown),
    )
}

fn briefed_finding(received: &ReceivedFinding, subject: &str, room: Room) -> BriefedFinding {
    let finding = &received.finding;
    let about = about::lines(finding, subject);
    let items = about.iter().chain(&finding.evidence).map(String::as_str);
    let support = truncate::support(Some(&finding.summary), items, room);
    let mut kept = support.evidence;
    let evidence = kept.split_off(about.len().min(kept.len()));
    BriefedFinding {
        agent_id: received.agent_id.clone(),
        message_id: received.message_id.clone(),
        confidence: received.confidence,
        summary: support.reasoning.unwrap_or_default(),
        impact: finding
            .impact
            .as_deref()
            .map(|impact| truncate::line(impact, LINE_BYTES_MAX)),
        recommendation: finding.recommendation.clone(),
        risk_score: finding.risk_score,
        severity: finding.severity,
        about: kept,
        evidence,
        omitted: support.omitted,
    }
}

/// What was said in the debate, the oldest first, and how many earlier statements there are.
fn said(opened: &DebateOpened, history: &[StoredEvent<DebateEvent>]) -> (Vec<Statement>, u32) {
    let mut held: BTreeMap<&AgentId, &Position> = opened
        .conflict
        .positions
        .iter()
        .map(|position| (&position.agent_id, position))
        .collect();
    let mut said = Vec::new();
    for record in history {
        said.extend(statement(&record.event, &mut held));
    }
    let mut left = SAID_BYTES_MAX;
    let kept = said
        .iter()
        .rev()
        .take_while(|one| {
            let rest = left.checked_sub(json_bytes(one) + 1);
            rest.inspect(|rest| left = *rest).is_some()
        })
        .count();
    let omitted = said.len() - kept;
    (said.split_off(omitted), count(omitted))
}

/// What an event says in words; `held` are the positions before it, and those after it when this returns.
fn statement<'a>(
    event: &'a DebateEvent,
    held: &mut BTreeMap<&'a AgentId, &'a Position>,
) -> Option<Statement> {
    let (round, agent_id, agrees, position, words) = match event {
        DebateEvent::Clarified(clarified) => {
            let agent = &clarified.heard.agent_id;
            (0, agent, None, None, clarified.text.clone())
        }
        DebateEvent::EvidenceGiven(given) => {
            let agent = &given.heard.agent_id;
            let words = words_of(&given.evidence);
            (0, agent, None, Some(&given.position), words)
        }
        other => {
            let received = other.answer()?;
            let words = received.answer.reasoning.clone();
            let agent = &received.agent_id;
            let agrees = Some(received.agrees);
            (
                received.round,
                agent,
                agrees,
                Some(&received.position),
                words,
            )
        }
    };
    let before = position.and_then(|after| held.insert(agent_id, after));
    let moved = position.zip(before).is_some_and(|(after, before)| {
        (&after.position, &after.value) != (&before.position, &before.value)
    });
    Some(Statement {
        round,
        agent_id: agent_id.clone(),
        agrees,
        moved,
        position: position.map(|one| truncate::line(&one.position, LINE_BYTES_MAX)),
        words: truncate::line(&words, WORDS_BYTES_MAX),
    })
}

fn words_of(evidence: &Evidence) -> String {
    let items = std::iter::once(&evidence.statement)
        .chain(&evidence.evidence)
        .chain(&evidence.limitation)
        .filter(|text| !text.is_empty());
    items.cloned().collect::<Vec<_>>().join("; ")
}

fn proved_right(known: &OutcomeKnown) -> ProvedRight {
    ProvedRight {
        position: truncate::topic(&known.position),
        value: known.value.as_ref().map(truncate::value),
        explanation: truncate::topic(&known.explanation),
        at: known.at,
    }
}

fn depends(opened: &DebateOpened, case: &CaseState) -> Dependence {
    let conflict = &opened.conflict;
    let subject = name_of(&conflict.subject);
    let others: Vec<_> = case
        .debated
        .iter()
        .filter(|other| {
            other.conflict_id != conflict.conflict_id && name_of(&other.subject) == subject
        })
        .collect();
    let related = others.iter().take(RELATED_MAX).map(|other| {
        let outcome = case.outcomes.get(&other.conflict_id);
        let stands = outcome.and_then(|outcome| outcome.resolution.as_ref());
        RelatedConflict {
            debate_id: other.conflict_id.clone(),
            topic: truncate::topic(&other.topic),
            status: outcome.map(|outcome| outcome.status),
            position: stands.map(|one| truncate::line(&one.position, LINE_BYTES_MAX)),
        }
    });
    Dependence {
        gate: opened.terms.gate.clone(),
        decision: case.decision.as_ref().map(|decision| decision.version),
        awaited: case.decision.is_none() && opened.policy.decide == Decide::WhenSettled,
        dependants: dependants(&opened.terms.dependants),
        related: related.collect(),
        related_omitted: count(others.len().saturating_sub(RELATED_MAX)),
    }
}

fn dependants(all: &[String]) -> Vec<String> {
    let shown = all.iter().take(DEPENDANTS_MAX);
    let mut lines: Vec<String> = shown
        .map(|one| truncate::line(one, LINE_BYTES_MAX))
        .collect();
    let more = all.len().saturating_sub(DEPENDANTS_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
