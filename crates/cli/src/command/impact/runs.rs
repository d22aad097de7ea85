//! The runs in which analyses of a case were done again: who asked for each, and what came of its steps.

use concord_events::{
    ImpactEvent, RerunEnd, RerunNext, RerunOutcome, RerunStarted, RerunStepEnded, StoredEvent,
};
use concord_wire::payload::RerunPlan;
use concord_wire::{AgentId, Timestamp, Token};
use serde::Serialize;

use crate::shared::output::{self, BAD, DOUBTFUL, FAINT, NAMED, PLAIN, one_line, styled};

/// At most so many characters of a reason stand in a line.
const WHY: usize = 240;

/// A run.
#[derive(Debug, Serialize)]
pub(super) struct RunShown<'a> {
    run: u32,
    at: Timestamp,
    by: &'a AgentId,
    /// How many analyses were to be done again.
    analyses: usize,
    /// The steps that have ended.
    steps: Vec<StepShown<'a>>,
    /// None while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'a RerunEnd>,
    #[serde(skip)]
    plan: &'a RerunPlan,
}

/// A step that has ended.
#[derive(Debug, Serialize)]
struct StepShown<'a> {
    at: Timestamp,
    analysis_id: &'a Token,
    came_to: CameTo,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CameTo {
    Changed,
    Unchanged,
    Failed,
    /// Nothing that it uses has changed.
    NotNeeded,
    /// Something that it uses was not done.
    Blocked,
}

impl<'a> RunShown<'a> {
    fn begun(at: Timestamp, started: &'a RerunStarted) -> Self {
        let mut run = Self {
            run: started.run,
            at,
            by: &started.by,
            analyses: started.plan.required.len(),
            steps: Vec::new(),
            end: None,
            plan: &started.plan,
        };
        run.follow(at, &started.next);
        run
    }

    fn ended(&mut self, at: Timestamp, ended: &'a RerunStepEnded) {
        let (came_to, why) = match &ended.outcome {
            RerunOutcome::Changed => (CameTo::Changed, None),
            RerunOutcome::Unchanged => (CameTo::Unchanged, None),
            RerunOutcome::Failed { why } => (CameTo::Failed, Some(why.as_str())),
        };
        self.steps.push(StepShown {
            at,
            analysis_id: &ended.analysis_id,
            came_to,
            why,
        });
        self.follow(at, &ended.next);
    }

    fn follow(&mut self, at: Timestamp, next: &'a RerunNext) {
        let plan = self.plan;
        for (steps, came_to) in [
            (&next.not_needed, CameTo::NotNeeded),
            (&next.blocked, CameTo::Blocked),
        ] {
            for step in steps {
                let place = usize::try_from(*step).ok();
                let planned = place.and_then(|place| plan.required.get(place));
                self.steps.extend(planned.map(|planned| StepShown {
                    at,
                    analysis_id: &planned.analysis_id,
                    came_to,
                    why: None,
                }));
            }
        }
        self.end = next.end.as_ref().or(self.end);
    }
}

/// The runs by these events of a case's analyses, the oldest first.
pub(super) fn runs(events: &[StoredEvent<ImpactEvent>]) -> Vec<RunShown<'_>> {
    let mut runs: Vec<RunShown<'_>> = Vec::new();
    for stored in events {
        let at = stored.meta.at;
        match &stored.event {
            ImpactEvent::RerunStarted(started) => runs.push(RunShown::begun(at, started)),
            ImpactEvent::RerunStepEnded(ended) => {
                let mut of_run = runs.iter_mut().rev();
                if let Some(run) = of_run.find(|run| run.run == ended.run) {
                    run.ended(at, ended);
                }
            }
            _ => {}
        }
    }
    runs
}

/// The runs as a reader sees them; empty where there is none.
pub(super) fn text(runs: &[RunShown<'_>]) -> String {
    runs.iter().map(one).collect()
}

fn one(run: &RunShown<'_>) -> String {
    let ended = run.steps.len();
    let standing = match (run.end, run.analyses) {
        (Some(_), 1) => "1 analysis".to_owned(),
        (Some(_), all) => format!("{all} analyses"),
        (None, all) => format!("under way, {ended} of {all} analyses"),
    };
    let ago = styled(FAINT, format!("{} ago", output::ago(run.at)));
    let mut text = format!("run {}, by {}, {ago}: {standing}\n", run.run, run.by);
    for step in &run.steps {
        let (style, came_to) = match step.came_to {
            CameTo::Changed => (PLAIN, "has other figures"),
            CameTo::Unchanged => (PLAIN, "has the same figures"),
            CameTo::NotNeeded => (PLAIN, "need not be done: nothing that it uses has changed"),
            CameTo::Failed => (BAD, "was not done"),
            CameTo::Blocked => (DOUBTFUL, "waits for one that was not done"),
        };
        let why = step.why.map(|why| format!(": {}", one_line(why, WHY)));
        let name = styled(NAMED, step.analysis_id);
        let came_to = styled(style, came_to);
        text.push_str(&format!("  {name} {came_to}{}\n", why.unwrap_or_default()));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stored(sequence: u64, name: &str, data: Value) -> StoredEvent<ImpactEvent> {
        let stored = json!({
            "fact": name, "aggregate": "impact", "event_id": format!("e-{sequence}"), "id": "c-1", "cause": "m",
            "at": "2026-01-01T00:00:00.000Z", "data": data,
        });
        let bytes = serde_json::to_vec(&stored).unwrap();
        StoredEvent::decode(&bytes, sequence).unwrap()
    }

    #[test]
    fn a_run_that_failed_says_who_asked_for_it_and_why_it_failed() {
        let step = |id: &str| json!({ "analysis_id": id, "agent_id": "ann", "rerun_minutes": 5 });
        let plan = json!({
            "required": [step("dcf"), step("memo")], "optional": [], "strategy": "serial", "estimated_minutes": 10,
            "blocking": true,
        });
        let end = json!({
            "changed": 0, "unchanged": 0, "not_needed": 0, "failed": 1, "blocked": 1, "with_other_figures": [],
        });
        let events = [
            stored(
                1,
                "rerun_started",
                json!({
                    "case_id": "c-1", "run": 1, "by": "coordinator", "plan": plan, "next": {}, "told": [],
                }),
            ),
            stored(
                2,
                "rerun_step_ended",
                json!({
                    "case_id": "c-1", "run": 1, "step": 0, "analysis_id": "dcf", "outcome": { "failed": { "why": "ann is not registered" } },
                    "next": { "blocked": [1], "end": end }, "done": 1, "of": 2, "told": [],
                }),
            ),
        ];
        let runs = runs(&events);
        let text = anstream::adapter::strip_str(&text(&runs)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("run 1, by coordinator, ") && lines[0].ends_with(": 2 analyses"),
            "{text}"
        );
        assert_eq!(
            lines[1..],
            [
                "  dcf was not done: ann is not registered",
                "  memo waits for one that was not done",
            ]
        );
        let printed = serde_json::to_value(&runs).unwrap();
        assert_eq!(printed[0]["steps"][1]["came_to"], "blocked");
        assert_eq!(printed[0]["end"]["failed"], 1);
    }
}
