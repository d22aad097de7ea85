//! What runs have come to.

use std::sync::Arc;

use concord_events::RerunEnd;
use concord_wire::payload::RecordedFigures;

use super::ImpactState;

/// The figures that a run has come to, of one analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFigures {
    /// The last run in which the analysis got other figures.
    pub run: u32,
    /// The figures at its end.
    pub recorded: RecordedFigures,
}

impl ImpactState {
    /// Remembers what a run has come to. A case that hears of the end of this run before that of the one before is given both: else
    /// the figures of the earlier one would be in no decision.
    pub(super) fn run_ended(&mut self, run: u32, end: Option<&RerunEnd>) {
        for id in end.iter().flat_map(|end| &end.with_other_figures) {
            let analysis = self.graph.get(id);
            let Some(analysis) = analysis.filter(|one| !one.published.figures.is_empty()) else {
                continue;
            };
            let recorded = RecordedFigures {
                version: analysis.version,
                figures: analysis.published.figures.clone(),
            };
            Arc::make_mut(&mut self.figures).insert(id.clone(), RunFigures { run, recorded });
        }
    }
}
