//! The event that brings the decision. The decision holds the outcome that led to it, so the stored form refers to that one by its
//! debate in place of a copy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::NameMatch;
use concord_wire::id::{AgentId, DebateId};
use concord_wire::payload::{ConflictOutcome, Decision, LogEntry};

/// Contents of `decided`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "StoredDecided", into = "StoredDecided")]
pub struct Decided {
    /// The debate whose end decided the case, if one did.
    pub last: Option<ConflictOutcome>,
    /// That debate's entry in the decision log.
    pub entry: Option<Box<LogEntry>>,
    /// Who is told of the end of that debate: who is in the case. Nobody in events of earlier versions.
    pub concluded_for: Vec<AgentId>,
    /// Names that the sentence model took for words of the policy's vocabulary, where the case has not recorded them before.
    pub scored: Vec<NameMatch>,
    /// The decision.
    pub decision: Decision,
}

/// An outcome is referred to that the decision does not hold.
#[derive(Debug, thiserror::Error)]
#[error("the decision has no outcome of the debate {0} that led to it")]
struct NoOutcome(DebateId);

/// `decided` as it is stored.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct StoredDecided {
    /// The debate whose end decided the case, if one did; its outcome is among those of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_debate: Option<DebateId>,
    /// That outcome, in place of `last_debate`: where the decision has it shortened, and in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<ConflictOutcome>,
    /// That debate's entry in the decision log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<Box<LogEntry>>,
    /// Who is told of the end of that debate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    concluded_for: Vec<AgentId>,
    /// Names that the sentence model took for words of the policy's vocabulary, where the case has not recorded them before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scored: Vec<NameMatch>,
    /// The decision.
    decision: Decision,
}

impl From<Decided> for StoredDecided {
    fn from(decided: Decided) -> Self {
        let Decided {
            last,
            entry,
            concluded_for,
            scored,
            decision,
        } = decided;
        let (last_debate, last) = match last {
            Some(last) if decision.outcomes.contains(&last) => (Some(last.conflict_id), None),
            last => (None, last),
        };
        Self {
            last_debate,
            last,
            entry,
            concluded_for,
            scored,
            decision,
        }
    }
}

impl TryFrom<StoredDecided> for Decided {
    type Error = NoOutcome;

    fn try_from(stored: StoredDecided) -> Result<Self, NoOutcome> {
        let last = match &stored.last_debate {
            Some(debate) => Some(outcome_of(&stored.decision, debate)?),
            None => stored.last,
        };
        Ok(Self {
            last,
            entry: stored.entry,
            concluded_for: stored.concluded_for,
            scored: stored.scored,
            decision: stored.decision,
        })
    }
}

fn outcome_of(decision: &Decision, debate: &DebateId) -> Result<ConflictOutcome, NoOutcome> {
    let mut outcomes = decision.outcomes.iter();
    let found = outcomes.find(|outcome| outcome.conflict_id == *debate);
    found.cloned().ok_or_else(|| NoOutcome(debate.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(debate: &str) -> Value {
        json!({ "conflict_id": debate, "status": "vote", "rounds": [], "positions": [], "resolved_at": "2026-11-21T20:00:00.000Z" })
    }

    fn decision(outcomes: &[Value]) -> Value {
        json!({
            "version": 1, "outcome": {}, "findings": [], "missing": [], "set_aside": [], "conflicts": [], "outcomes": outcomes,
            "deferred": [], "reason": "settled", "policy_digest": "d"
        })
    }

    fn decided(stored: &Value) -> Result<Decided, String> {
        serde_json::from_value(stored.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_outcome_that_decided_is_stored_once() {
        let both = decision(&[outcome("d-1"), outcome("d-2")]);
        let whole = decided(&json!({ "last": outcome("d-2"), "decision": both })).unwrap();
        let lean = json!({ "last_debate": "d-2", "decision": both });
        assert_eq!(json!(whole), lean);
        assert_eq!(decided(&lean), Ok(whole));
        let without = json!({ "decision": both });
        assert_eq!(json!(decided(&without).unwrap()), without);
    }

    #[test]
    fn an_outcome_that_the_decision_has_shortened_is_stored_whole() {
        let mut shortened = outcome("d-2");
        shortened["positions_omitted"] = json!(3);
        let stored = json!({ "last": outcome("d-2"), "decision": decision(&[shortened]) });
        assert_eq!(json!(decided(&stored).unwrap()), stored);
    }

    #[test]
    fn a_reference_to_nothing_is_an_error() {
        let stored = json!({ "last_debate": "d-3", "decision": decision(&[outcome("d-2")]) });
        let error = decided(&stored).unwrap_err();
        assert!(error.contains("d-3"), "{error}");
    }
}
