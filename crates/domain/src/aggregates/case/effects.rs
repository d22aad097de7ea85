//! The effects of the events of a case.

use std::sync::Arc;

use concord_events::{
    CaseEvent, CaseOpened, Confirmed, DebateAsked, Decided, DecisionChanged, FiguresRecorded,
    Joined, StoredEvent,
};
use concord_wire::payload::notification::{
    CaseCancelled, CaseDecided, CaseDecisionChanged, CaseFiguresRecorded, CaseFlagged, CaseJoined,
    DebateConcluded, FindingConfirmed, GatePassed, GateReviewed, ReviewRecorded,
};
use concord_wire::payload::{ConflictOutcome, LogEntry, TaskAssignment};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Token};

use serde_json::json;

use super::briefing::shown;
use crate::effect::Effect;

pub(super) fn assignment(opened: &CaseOpened) -> TaskAssignment {
    TaskAssignment {
        task: opened.task.clone(),
        deadline: opened.findings_due,
        reply_with: vec![Token::fixed("finding")],
        participants: opened.participants.clone(),
        work: None,
    }
}

/// Whoever joins is briefed, and asked for a finding where those are collected still; everyone hears of it.
fn effects_of_joining(joined: &Joined) -> Vec<Effect> {
    let Joined { agent_id, by, .. } = joined;
    let mut effects = Vec::new();
    if let Some(heard) = &joined.request {
        effects.push(Effect::Respond {
            to: heard.agent_id.clone(),
            request_id: heard.message_id.clone(),
            result: json!({ "agent_id": agent_id }),
        });
    }
    let mut briefing = joined.briefing.clone();
    if let Some(assignment) = &joined.assignment {
        briefing.task = Some(shown(&assignment.task));
    }
    effects.push(Effect::Brief {
        to: agent_id.clone(),
        briefing,
    });
    if let Some(assignment) = &joined.assignment {
        effects.push(Effect::AssignTask {
            to: agent_id.clone(),
            assignment: Arc::new((**assignment).clone()),
        });
    }
    effects.push(Effect::tell_all(CaseJoined {
        agent_id: agent_id.clone(),
        by: by.clone(),
    }));
    effects
}

/// Who is in the case is told how a debate of it has ended: each alone, so that it also reaches agents that are hosted.
fn tell_conclusion(
    to: &[AgentId],
    outcome: Option<&ConflictOutcome>,
    entry: Option<&LogEntry>,
) -> Vec<Effect> {
    let Some(outcome) = outcome else {
        return Vec::new();
    };
    let data = DebateConcluded {
        topic: entry.map(|entry| entry.topic.clone()).unwrap_or_default(),
        outcome: outcome.clone(),
    };
    let tell = |to: &AgentId| Effect::tell(to.clone(), data.clone());
    to.iter().map(tell).collect()
}

fn tell_decision(decided: &Decided) -> Vec<Effect> {
    let tell = Effect::tell_all(CaseDecided {
        decision: decided.decision.clone(),
    });
    let (last, entry) = (decided.last.as_ref(), decided.entry.as_deref());
    let concluded = tell_conclusion(&decided.concluded_for, last, entry);
    std::iter::once(tell).chain(concluded).collect()
}

fn tell_change(changed: &DecisionChanged) -> Vec<Effect> {
    let data = CaseDecisionChanged {
        change: changed.change.clone(),
        decision: changed.decision.clone(),
    };
    let tell = |to: &AgentId| Effect::tell(to.clone(), data.clone());
    let (outcome, entry) = (Some(&changed.outcome), Some(&*changed.entry));
    let concluded = tell_conclusion(&changed.concluded_for, outcome, entry);
    changed.told.iter().map(tell).chain(concluded).collect()
}

/// Each is addressed alone, so that it also reaches agents that are hosted.
fn tell_figures(recorded: &FiguresRecorded) -> Vec<Effect> {
    let decision = &recorded.decision;
    let figures = recorded.changed.iter().filter_map(|id| {
        let one = decision.figures.get(id)?;
        Some((id.clone(), one.clone()))
    });
    let data = CaseFiguresRecorded {
        version: decision.version,
        replaces: recorded.replaces,
        run: recorded.run,
        figures: figures.collect(),
    };
    let tell = |to: &AgentId| Effect::tell(to.clone(), data.clone());
    recorded.told.iter().map(tell).collect()
}

pub(super) fn effects(record: &StoredEvent<CaseEvent>) -> Vec<Effect> {
    match &record.event {
        CaseEvent::Opened(opened) => {
            let confirm = Effect::ConfirmCase {
                to: opened.opened_by.clone(),
                request_id: opened.request_id.clone(),
            };
            let assignment = Arc::new(assignment(opened));
            let assign = opened.participants.iter().map(|agent| Effect::AssignTask {
                to: agent.clone(),
                assignment: Arc::clone(&assignment),
            });
            std::iter::once(confirm).chain(assign).collect()
        }
        CaseEvent::FindingSetAside(aside) => vec![Effect::ReportSetAside {
            to: aside.received.agent_id.clone(),
            message_id: aside.received.message_id.clone(),
            reason: aside.reason,
            what: "finding",
        }],
        CaseEvent::Decided(decided) => tell_decision(decided),
        CaseEvent::DebateSettled(settled) => {
            let (outcome, entry) = (Some(&settled.outcome), settled.entry.as_deref());
            tell_conclusion(&settled.concluded_for, outcome, entry)
        }
        CaseEvent::DecisionChanged(changed) => tell_change(changed),
        CaseEvent::FiguresRecorded(recorded) => tell_figures(recorded),
        CaseEvent::Challenged(challenged) => vec![open_debate(&challenged.asked)],
        CaseEvent::Flagged(flagged) => vec![Effect::tell_all(CaseFlagged {
            flag: flagged.flag.clone(),
        })],
        CaseEvent::ReviewRecorded(recorded) => vec![Effect::tell_all(ReviewRecorded {
            by: recorded.heard.agent_id.clone(),
            review: recorded.review.clone(),
        })],
        CaseEvent::GateReviewed(reviewed) => {
            let again = reviewed.again.as_ref();
            let tell = Effect::tell_all(GateReviewed {
                debate_id: reviewed.debate_id.clone(),
                by: reviewed.heard.agent_id.clone(),
                first_reviewer: reviewed.first_reviewer.clone(),
                review: reviewed.review.clone(),
                debated_again_as: again.map(|again| again.conflict.conflict_id.clone()),
            });
            std::iter::once(tell)
                .chain(reviewed.again.as_deref().map(open_debate))
                .collect()
        }
        CaseEvent::GatePassed(passed) => vec![Effect::tell_all(GatePassed {
            gate: passed.gate.clone(),
            by: passed.heard.agent_id.clone(),
            first_reviewer: passed.first_reviewer.clone(),
            next: passed.next.clone(),
            unreviewed: passed.unreviewed.clone(),
        })],
        CaseEvent::Joined(joined) => effects_of_joining(joined),
        CaseEvent::Confirmed(confirmed) => effects_of_confirming(confirmed),
        CaseEvent::Cancelled(cancelled) => vec![Effect::tell_all(CaseCancelled {
            by: cancelled.by.clone(),
            why: cancelled.why.clone(),
        })],
        CaseEvent::FindingRecorded(_)
        | CaseEvent::EstimateNoted(_)
        | CaseEvent::FindingsClosed(_)
        | CaseEvent::ConflictsReceived(_)
        | CaseEvent::DecisionAwaited(_) => Vec::new(),
    }
}

/// Whose finding it is hears of it, and whoever has confirmed is answered.
fn effects_of_confirming(confirmed: &Confirmed) -> Vec<Effect> {
    let heard = &confirmed.heard;
    let tell = Effect::tell(
        confirmed.author.clone(),
        FindingConfirmed {
            finding: confirmed.finding.clone(),
            by: heard.agent_id.clone(),
            confidence: confirmed.confidence,
            reasoning: confirmed.reasoning.clone(),
            strengthened: confirmed.strengthened,
        },
    );
    let (finding, author) = (&confirmed.finding, &confirmed.author);
    let result = match confirmed.while_collecting {
        true => json!({ "finding": finding, "author": author }),
        false => {
            json!({ "finding": finding, "author": author, "strengthened": confirmed.strengthened })
        }
    };
    let answer = Effect::Respond {
        to: heard.agent_id.clone(),
        request_id: heard.message_id.clone(),
        result,
    };
    vec![tell, answer]
}

fn open_debate(asked: &DebateAsked) -> Effect {
    Effect::OpenDebate {
        conflict: asked.conflict.clone(),
        policy: Box::new(asked.policy.clone()),
        terms: Box::new(asked.terms.clone()),
        from: Service::Coordinator,
    }
}
