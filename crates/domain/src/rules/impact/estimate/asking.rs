//! Figures of which an agent is asked what becomes of them.

use concord_wire::AgentId;
use concord_wire::payload::{Dependency, EstimateModel};

use super::{Input, Now, input_name};
use crate::rules::impact::graph::{Analysis, Graph};

/// How long the answer of an agent is awaited that is asked for an estimate, in milliseconds, where the model does not say it.
pub const WITHIN_MS: u64 = 60_000;
/// How it stands with a figure of which an agent is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// The agent is to be asked, or has not answered yet.
    Awaited {
        /// The agent.
        agent: AgentId,
        /// How long its answer is awaited, in milliseconds.
        within_ms: u64,
        /// What the analysis uses, with the values that stand now.
        uses: Vec<Dependency>,
    },
    /// It has answered, so surely.
    Given(f64),
    /// There is no answer, and why.
    Failed(String),
}

impl Asked {
    /// Why there is no estimate; none where there is one.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Awaited { agent, .. } => Some(format!("{agent} is asked")),
            Self::Failed(why) => Some(why.clone()),
            Self::Given(_) => None,
        }
    }
}

/// What an agent says of a figure, where the analysis has it asked: the value, and how it stands with it.
pub(super) fn asked(
    graph: &Graph,
    analysis: &Analysis,
    metric: &str,
    inputs: &[Input<'_>],
) -> Option<(Now, Asked)> {
    let mut models = analysis.published.models.iter();
    let (agent, within_ms) = models.find_map(|model| match model {
        EstimateModel::Agent {
            metric: of,
            agent,
            within_ms,
        } if of == metric => Some((agent, within_ms.unwrap_or(WITHIN_MS))),
        _ => None,
    })?;
    let mut uses = Vec::new();
    for input in inputs {
        let mut used = input.used.clone();
        match &input.now {
            None => {}
            Some(Now::Known(now)) => used.value = Some(now.clone()),
            Some(Now::Unknown) => {
                let why = format!("what becomes of {} is not known", input_name(input.used));
                return Some((Now::Unknown, Asked::Failed(why)));
            }
        }
        uses.push(used);
    }
    let id = &analysis.published.analysis_id;
    Some(
        match graph.estimate_of(id, metric, &uses).map(|one| &one.result) {
            Some(Ok((figure, sure))) => (Now::Known(figure.clone()), Asked::Given(*sure)),
            Some(Err(why)) => (Now::Unknown, Asked::Failed(why.clone())),
            None => (
                Now::Unknown,
                Asked::Awaited {
                    agent: agent.clone(),
                    within_ms,
                    uses,
                },
            ),
        },
    )
}
