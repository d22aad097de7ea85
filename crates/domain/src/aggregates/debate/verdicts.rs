//! Verdicts: which parties of a debate were right, for their track records. A person has decided
//! it, or it proved later.

use concord_events::{DebateOpened, DebateResolved, OutcomeKnown};
use concord_wire::payload::track_record::Source;
use concord_wire::payload::{
    Circumstances, Conflict, ConflictOutcome, DebateTerms, Observation, Position, Status,
};
use concord_wire::{AgentId, Timestamp};

use crate::aggregates::track_record::Observe;
use crate::rules::conflict_type::is_valueless;
use crate::rules::proved::holds;

/// An observation for the track record of this agent.
pub type Verdict = (AgentId, Observe);

/// The field in which the debate counts for track records: its domain, else its subject.
pub fn domain_of(terms: &DebateTerms, conflict: &Conflict) -> String {
    terms
        .domain
        .clone()
        .unwrap_or_else(|| conflict.subject.clone())
}

/// The verdict on each party of a resolved debate; empty unless a person decided it, and where their words state no value of what is a number or a
/// clause and nobody holds the same words. `provisional` is the decision that stood before.
pub fn of_resolution(
    opened: &DebateOpened,
    provisional: Option<&ConflictOutcome>,
    resolved: &DebateResolved,
    now: Timestamp,
) -> Vec<Verdict> {
    let outcome = &resolved.outcome;
    let source = match outcome.status {
        Status::Ruling | Status::Confirmed => Source::Ruling,
        Status::Overridden => Source::Override,
        _ => return Vec::new(),
    };
    let (Some(right), Some(ruled)) = (&outcome.resolution, &outcome.ruled_by) else {
        return Vec::new();
    };
    let stood = provisional.and_then(|provisional| provisional.resolution.as_ref());
    let judged = Judged {
        opened,
        at: outcome.resolved_at.min(now),
        circumstances: &opened.terms.circumstances,
        source,
        by: &ruled.expert,
    };
    let is_right = |held: &Position| holds(opened, held, &right.position, right.value.as_ref());
    let is_unknown = is_valueless(&opened.conflict, &opened.policy, right);
    if is_unknown && !outcome.positions.iter().any(is_right) {
        return Vec::new();
    }
    let verdict = |held: &Position| {
        let overridden = source == Source::Override
            && stood.is_some_and(|one| one.supporters.contains(&held.agent_id));
        judged.verdict(&held.agent_id, is_right(held), overridden)
    };
    outcome.positions.iter().map(verdict).collect()
}

/// The verdict on each party of a debate of which the outcome became known.
pub fn of_outcome(opened: &DebateOpened, known: &OutcomeKnown) -> Vec<Verdict> {
    let judged = Judged {
        opened,
        at: known.at,
        circumstances: &known.circumstances,
        source: Source::Outcome,
        by: &known.heard.agent_id,
    };
    known
        .parties
        .iter()
        .map(|party| judged.verdict(&party.agent_id, party.correct, false))
        .collect()
}

/// What all verdicts on one debate have in common.
struct Judged<'a> {
    opened: &'a DebateOpened,
    at: Timestamp,
    circumstances: &'a Circumstances,
    source: Source,
    by: &'a AgentId,
}

impl Judged<'_> {
    fn verdict(&self, agent: &AgentId, correct: bool, overridden: bool) -> Verdict {
        let conflict = &self.opened.conflict;
        let observation = Observation {
            at: self.at,
            correct,
            domain: domain_of(&self.opened.terms, conflict),
            regime: self.circumstances.regime.clone(),
            context: self.circumstances.judging(&conflict.subject),
            source: self.source,
            overridden,
        };
        let observe = Observe {
            observation,
            debate_id: Some(conflict.conflict_id.clone()),
            case_id: Some(self.opened.case_id.clone()),
            opened_by: self.opened.terms.opened_by.clone(),
            by: self.by.clone(),
            imported: None,
            tell: None,
        };
        (agent.clone(), observe)
    }
}

#[cfg(test)]
mod tests {
    use concord_events::DebateEvent;
    use concord_wire::payload::{ConflictType, Resolution, RuledBy};
    use serde_json::json;

    use super::*;
    use crate::aggregates::debate::DebateMachine;
    use crate::fixtures::*;

    /// The opening of a debate about this conflict.
    fn opened(conflict: Conflict) -> DebateOpened {
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(&said("c-1-5-0", 0), &open_debate(conflict, policy()));
        match &story.last().event {
            DebateEvent::Opened(opened) => (**opened).clone(),
            other => panic!("it is open: {other:?}"),
        }
    }

    /// Whether each party is said to have been right by a ruling.
    fn given_by(conflict: Conflict, ruled: &str, value: Option<serde_json::Value>) -> Vec<bool> {
        let mut ended = outcome(&conflict, Status::Ruling, None);
        ended.positions.clone_from(&conflict.positions);
        ended.resolution = Some(Resolution {
            position: ruled.to_owned(),
            value,
            supporters: vec![agent("eve")],
        });
        ended.ruled_by = Some(RuledBy {
            expert: agent("eve"),
            first_reviewer: None,
            first_rationale: None,
            rationale: "so".to_owned(),
            digest: None,
            key: None,
        });
        let resolved = DebateResolved {
            case_id: case_id(),
            last: None,
            topic: "t".to_owned(),
            outcome: ended,
            heard: None,
            ruling: None,
        };
        let given = of_resolution(&opened(conflict), None, &resolved, after(9));
        let given = given.iter();
        given.map(|(_, one)| one.observation.correct).collect()
    }

    #[test]
    fn words_that_state_no_value_say_of_nobody_that_they_were_wrong() {
        let scores = [("ann", json!(30), 0.5), ("ben", json!(80), 0.5)];
        let clause = [("ann", json!(true), 0.5), ("ben", json!(false), 0.5)];
        let words = [("ann", json!("sign"), 0.5), ("ben", json!("reject"), 0.5)];
        let (of_scores, of_clauses, of_words) = (
            ConflictType::RiskScoreDisagreement,
            ConflictType::ClausePresenceDisagreement,
            ConflictType::RecommendationConflict,
        );
        for (kind, subject, held, ruled, value, verdicts) in [
            (
                of_scores,
                "risk_score",
                &scores,
                "somewhat lower",
                None,
                vec![],
            ),
            (
                of_scores,
                "risk_score",
                &scores,
                "30",
                Some(json!(30)),
                vec![true, false],
            ),
            (
                of_scores,
                "risk_score",
                &scores,
                "50",
                Some(json!(50)),
                vec![false, false],
            ),
            (of_clauses, "Term", &clause, "in part", None, vec![]),
            (
                of_clauses,
                "Term",
                &clause,
                "absent",
                Some(json!(false)),
                vec![false, true],
            ),
            (
                of_words,
                "recommendation",
                &words,
                "hold",
                Some(json!("hold")),
                vec![false, false],
            ),
        ] {
            let conflict = conflict("d-1", kind, subject, held);
            let given = given_by(conflict, ruled, value);
            assert_eq!(given, verdicts, "{ruled}");
        }
    }
}
