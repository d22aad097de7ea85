//! The summary of a panel run, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use concord_wire::payload::ConflictType;
use serde::Serialize;

use super::runner::{CaseResult, Counts};

/// The summary of a panel run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// The number of contracts.
    pub(crate) cases: u64,
    /// Cases with a decision.
    pub(crate) decided: u64,
    /// Cases by the reason of their end; `refused` for those that were not opened.
    pub(crate) reasons: BTreeMap<String, u64>,
    /// The counts of all cases; every type of conflict is named.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Findings that were not given in time.
    pub(crate) missing: u64,
    /// Comparison with the lawyers, where there are labels.
    pub(crate) lawyers: Option<Lawyers>,
    /// From the first case to the last decision, in seconds.
    pub(crate) wall_s: f64,
    /// Decided cases a second.
    pub(crate) cases_per_s: f64,
    /// Cases at a time.
    pub(crate) concurrency: usize,
}

/// Agreement with the lawyers on whether a clause is there, over all cases with labels.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Lawyers {
    /// The number of cases compared.
    pub(crate) cases: u64,
    /// The number of clauses compared.
    pub(crate) clauses: u64,
    /// The number of these that the extractor alone had right.
    pub(crate) extractor: u64,
    /// The number of these that the deliberated result had right.
    pub(crate) deliberated: u64,
    /// Clauses that only the deliberated result had right.
    pub(crate) helped: u64,
    /// Clauses that only the extractor had right.
    pub(crate) hurt: u64,
    /// Cases in which deliberation changed more for the better than for the worse.
    pub(crate) cases_helped: u64,
    /// Cases in which it changed more for the worse.
    pub(crate) cases_hurt: u64,
}

impl Summary {
    /// Adds up what became of the cases.
    pub(crate) fn new(results: &[CaseResult], wall: Duration, concurrency: usize) -> Self {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        let conflicts = ConflictType::DETECTED
            .iter()
            .map(|kind| (kind.as_str(), 0))
            .collect();
        let mut counts = Counts {
            conflicts,
            ..Counts::default()
        };
        for result in results {
            *reasons
                .entry(result.reason.clone().unwrap_or_else(|| "refused".into()))
                .or_default() += 1;
            counts.add(&result.counts);
        }
        let decided = results
            .iter()
            .filter(|result| result.reason.is_some())
            .count() as u64;
        let wall_s = wall.as_secs_f64();
        Self {
            cases: results.len() as u64,
            decided,
            reasons,
            counts,
            missing: results
                .iter()
                .map(|result| result.missing.len() as u64)
                .sum(),
            lawyers: lawyers(results),
            wall_s,
            cases_per_s: if wall_s > 0.0 {
                decided as f64 / wall_s
            } else {
                0.0
            },
            concurrency,
        }
    }

    /// Conflicts found, debated or deferred.
    fn found(&self) -> u64 {
        self.counts.conflicts.values().sum()
    }
}

fn lawyers(results: &[CaseResult]) -> Option<Lawyers> {
    let mut all = Lawyers::default();
    for one in results.iter().filter_map(|result| result.lawyers.as_ref()) {
        let (helped, hurt) = (one.helped(), one.hurt());
        all.cases += 1;
        all.clauses += one.compared;
        all.extractor += one.extractor;
        all.deliberated += one.deliberated;
        all.helped += helped as u64;
        all.hurt += hurt as u64;
        all.cases_helped += u64::from(helped > hurt);
        all.cases_hurt += u64::from(hurt > helped);
    }
    (all.cases > 0).then_some(all)
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".into()
    } else {
        format!("{:.1} %", 100.0 * part as f64 / whole as f64)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cases,
            decided,
            missing,
            wall_s,
            cases_per_s,
            concurrency,
            ..
        } = self;
        let Counts {
            conflicts,
            by_discussion,
            by_vote,
            unresolved,
            deferred,
            findings,
            late,
        } = &self.counts;
        let reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        writeln!(
            f,
            "cases        {cases}, decided {decided} ({})",
            reasons.join(", ")
        )?;
        writeln!(
            f,
            "time         {wall_s:.1} s, {cases_per_s:.1} cases/s, {concurrency} at a time"
        )?;
        writeln!(f, "findings     {findings}; missing {missing}, late {late}")?;
        writeln!(f, "conflicts    {}", self.found())?;
        for (kind, count) in conflicts {
            writeln!(
                f,
                "  {kind:<30} {count:>6}  {:>7}",
                share(*count, self.found())
            )?;
        }
        let debated = by_discussion + by_vote + unresolved;
        writeln!(f, "debated      {debated}; deferred {deferred}")?;
        for (how, count) in [
            ("by discussion", by_discussion),
            ("by vote", by_vote),
            ("unresolved", unresolved),
        ] {
            writeln!(f, "  {how:<30} {count:>6}  {:>7}", share(*count, debated))?;
        }
        match &self.lawyers {
            Some(lawyers) => lawyers.fmt(f),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Lawyers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            clauses,
            helped,
            hurt,
            ..
        } = self;
        writeln!(
            f,
            "lawyers      {clauses} clauses labelled Yes or No, in {} cases; agreement of",
            self.cases
        )?;
        for (who, right) in [
            ("the extractor alone", self.extractor),
            ("the deliberated result", self.deliberated),
        ] {
            writeln!(f, "  {who:<30} {right:>6}  {:>7}", share(right, *clauses))?;
        }
        let changed = helped + hurt;
        writeln!(
            f,
            "  deliberation changed {changed}: {helped} for the better, {hurt} for the worse"
        )?;
        writeln!(
            f,
            "  cases better {}, worse {}",
            self.cases_helped, self.cases_hurt
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::panel::agreement::{Agreement, Difference};

    fn result(reason: Option<&str>, differences: &[(bool, bool)]) -> CaseResult {
        let difference = |(lawyers, deliberated): &(bool, bool)| Difference {
            clause: "A".into(),
            lawyers: *lawyers,
            extractor: !deliberated,
            deliberated: *deliberated,
            basis: "vote".into(),
        };
        let differences: Vec<_> = differences.iter().map(difference).collect();
        CaseResult {
            case_id: concord_wire::CaseId::new("c").unwrap(),
            contract_id: "c".into(),
            reason: reason.map(Into::into),
            refused: None,
            took_ms: 1,
            counts: Counts {
                conflicts: BTreeMap::from([("factual_disagreement", 3)]),
                by_discussion: 1,
                by_vote: 1,
                unresolved: 0,
                deferred: 1,
                findings: 4,
                late: 1,
            },
            missing: vec![concord_wire::AgentId::fixed("a")],
            lawyers: Some(Agreement {
                compared: 10,
                extractor: 8,
                deliberated: 9,
                differences,
            }),
        }
    }

    #[test]
    fn cases_are_added_up() {
        let better = result(
            Some("settled"),
            &[(true, true), (true, true), (true, false)],
        );
        let worse = result(Some("timeout"), &[(true, false)]);
        let refused = CaseResult {
            lawyers: None,
            ..result(None, &[])
        };
        let summary = Summary::new(&[better, worse, refused], Duration::from_secs(4), 16);
        assert_eq!((summary.cases, summary.decided, summary.found()), (3, 2, 9));
        assert_eq!(
            json!(summary.reasons),
            json!({"settled": 1, "timeout": 1, "refused": 1})
        );
        let Counts {
            by_discussion,
            by_vote,
            unresolved,
            deferred,
            findings,
            late,
            ..
        } = summary.counts;
        assert_eq!(
            (by_discussion, by_vote, unresolved, deferred, findings, late),
            (3, 3, 0, 3, 12, 3)
        );
        assert_eq!(summary.missing, 3);
        let lawyers = summary.lawyers.clone().unwrap();
        assert_eq!(
            (
                lawyers.cases,
                lawyers.clauses,
                lawyers.extractor,
                lawyers.deliberated
            ),
            (2, 20, 16, 18)
        );
        assert_eq!(
            (
                lawyers.helped,
                lawyers.hurt,
                lawyers.cases_helped,
                lawyers.cases_hurt
            ),
            (2, 2, 1, 1)
        );
        let text = summary.to_string();
        assert!(
            text.contains("cases        3, decided 2 (refused 1, settled 1, timeout 1)"),
            "{text}"
        );
        assert!(text.contains("4.0 s, 0.5 cases/s, 16 at a time"), "{text}");
        assert!(
            text.contains("the extractor alone                16   80.0 %"),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_cases_has_a_summary() {
        let text = Summary::new(&[], Duration::ZERO, 1).to_string();
        assert!(text.contains("cases        0, decided 0"), "{text}");
        assert!(!text.contains("lawyers"), "{text}");
    }
}
