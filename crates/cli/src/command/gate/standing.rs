//! What somebody lets pass at a gate: the decision of the case, and how its debates ended.

use std::fmt::{Result as Written, Write};

use concord_domain::aggregates::case::CaseState;
use concord_wire::payload::{ConflictOutcome, Decision, Outcome};
use serde::Serialize;

use crate::command::case::decided::{write_decision, write_ended};
use crate::shared::output::{NAMED, STRONG, one_line, styled};

/// At most so many characters of a title or a topic.
const TITLE: usize = 200;

/// The decision of a case.
#[derive(Debug, Serialize)]
pub(super) struct Standing<'a> {
    title: &'a str,
    version: u32,
    reason: &'a str,
    outcome: &'a Outcome,
    debates: Vec<Debate<'a>>,
    #[serde(skip)]
    decision: &'a Decision,
}

/// A debate of the case that has ended.
#[derive(Debug, Serialize)]
struct Debate<'a> {
    topic: &'a str,
    #[serde(flatten)]
    outcome: &'a ConflictOutcome,
}

impl<'a> Standing<'a> {
    /// None while the case has no decision.
    pub(super) fn of(state: &'a CaseState) -> Option<Self> {
        let (opened, decision) = (state.opened.as_ref()?, state.decision.as_ref()?);
        let topic = |outcome: &ConflictOutcome| {
            let mut conflicts = decision.conflicts.iter();
            conflicts
                .find(|conflict| conflict.conflict_id == outcome.conflict_id)
                .map(|conflict| conflict.topic.as_str())
        };
        let debates = decision.outcomes.iter().map(|outcome| Debate {
            topic: topic(outcome).unwrap_or_default(),
            outcome,
        });
        Some(Self {
            title: &opened.task.title,
            version: decision.version.max(1),
            reason: &decision.reason,
            outcome: &decision.outcome,
            debates: debates.collect(),
            decision,
        })
    }

    pub(super) fn write(&self, out: &mut String) -> Written {
        write_decision(out, self.decision)?;
        let title = one_line(self.title, TITLE);
        if !title.is_empty() {
            writeln!(out, "  title           {title}")?;
        }
        for debate in &self.debates {
            let id = styled(NAMED, &debate.outcome.conflict_id);
            let topic = styled(STRONG, one_line(debate.topic, TITLE));
            writeln!(out, "  {id}  {topic}")?;
            write_ended(out, debate.outcome)?;
        }
        Ok(())
    }
}
