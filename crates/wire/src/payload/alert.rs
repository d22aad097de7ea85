//! An alert: news that everybody needs at once, such as a change of regime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AlertSource, check_name};
use crate::envelope::check_confidence;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::{AgentId, Token};
use crate::timestamp::Timestamp;

/// Most bytes of an alert, as JSON.
pub const ALERT_BYTES_MAX: usize = 65_536;
/// Most pieces of evidence, and most recommended actions, of one alert.
pub const ALERT_LIST_MAX: usize = 32;
/// The event type of an alert that says that another regime has begun.
pub const REGIME_CHANGE: &str = "regime_change";

/// The payload of an `alert`. Sent to the coordinator by somebody who may alert, everybody is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// What has happened, for example `regime_change`, `rate_move` or `threshold_breach`.
    pub event_type: String,
    /// The regime before; of a change of regime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_regime: Option<String>,
    /// The regime from now on; needed with the event type `regime_change`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_regime: Option<String>,
    /// What was before, any JSON; of every other event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_state: Option<Value>,
    /// What is now, any JSON; of every other event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_state: Option<Value>,
    /// How sure the sender is, 0 to 1; that of the envelope where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ALERT_LIST_MAX))]
    pub evidence: Vec<String>,
    /// What follows from it, by name, for example `discount_rate_changes`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub implications: Map<String, Value>,
    /// What whoever is told should do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ALERT_LIST_MAX))]
    pub recommended_actions: Vec<String>,
    /// The id of the alert. The coordinator writes it; what a sender writes here is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert: Option<Token>,
    /// Who has alerted. The coordinator writes it; what a sender writes here is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised_by: Option<AgentId>,
    /// The rule and the entry of memory that have raised it; none where somebody has. The coordinator writes it; what a sender writes here
    /// is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AlertSource>,
}

impl Alert {
    /// An alert that says no more than what has happened.
    pub fn of(event_type: impl Into<String>) -> Self {
        Self {
            event_type: event_type.into(),
            old_regime: None,
            new_regime: None,
            old_state: None,
            new_state: None,
            confidence: None,
            evidence: Vec::new(),
            implications: Map::new(),
            recommended_actions: Vec::new(),
            alert: None,
            raised_by: None,
            source: None,
        }
    }

    /// Checks the form; `pointer` is where the alert stands.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        let at = |field: &str| format!("{pointer}/{field}");
        if self.event_type.trim().is_empty() {
            return Err(Fault::invalid(
                at("event_type"),
                "It does not say what has happened.",
                "Name it in one word, for example regime_change.",
            ));
        }
        check_name(&at("event_type"), &self.event_type)?;
        if let Some(confidence) = self.confidence {
            check_confidence(&at("confidence"), confidence)?;
        }
        let new_regime = self.new_regime.as_deref().unwrap_or_default();
        if self.event_type == REGIME_CHANGE && new_regime.trim().is_empty() {
            return Err(Fault::invalid(
                at("new_regime"),
                "The regime has changed, and the new one is not named.",
                "Name it, for example BEAR_HIGH_RATES.",
            ));
        }
        let old_regime = self.old_regime.as_deref().unwrap_or_default();
        if self.event_type == REGIME_CHANGE && old_regime.trim() == new_regime.trim() {
            return Err(Fault::invalid(
                at("new_regime"),
                format!("The new regime {new_regime:?} is the old one, so nothing has changed."),
                "Name the regime that holds now, and the one before it as old_regime or not at all.",
            ));
        }
        for (field, regime) in [
            ("old_regime", &self.old_regime),
            ("new_regime", &self.new_regime),
        ] {
            check_name(&at(field), regime.as_deref().unwrap_or_default())?;
        }
        for (field, list) in [
            ("evidence", &self.evidence),
            ("recommended_actions", &self.recommended_actions),
        ] {
            if list.len() > ALERT_LIST_MAX {
                return Err(too_much(
                    at(field),
                    format!(
                        "There are {}; at most {ALERT_LIST_MAX} are accepted.",
                        list.len()
                    ),
                ));
            }
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > ALERT_BYTES_MAX {
            return Err(too_much(
                pointer.to_owned(),
                format!("The alert has {bytes} bytes; at most {ALERT_BYTES_MAX} are accepted."),
            ));
        }
        Ok(())
    }
}

fn too_much(pointer: String, what: String) -> Fault {
    Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        what,
        "Everybody is told all of it: say what matters most, and write the rest into your memory.",
    )
}

/// The action of a request to the coordinator by which a report follows an alert; the parameters are a [`ReportAlert`].
pub const REPORT_ALERT: &str = "report_alert";
/// Most bytes of a report.
pub const REPORT_BYTES_MAX: usize = 16_384;

/// The report that follows an alert; the parameters of `report_alert`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportAlert {
    /// The alert.
    pub alert: Token,
    /// What there is to say by now, or where it stands, for example a topic of memory.
    pub report: String,
}

impl ReportAlert {
    /// Checks the form; `pointer` is where the parameters stand.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        let at = format!("{pointer}/report");
        if self.report.trim().is_empty() {
            return Err(Fault::invalid(
                at,
                "It says nothing.",
                "Say what follows from the alert, or where that stands.",
            ));
        }
        let bytes = self.report.len();
        if bytes > REPORT_BYTES_MAX {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                at,
                format!("The report has {bytes} bytes; at most {REPORT_BYTES_MAX} are accepted."),
                "Write it into your memory, and say here which topic it is.",
            ));
        }
        Ok(())
    }
}

/// An alert, as a case is flagged with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertFlag {
    /// The alert.
    pub alert: Token,
    /// What has happened.
    pub event_type: String,
    /// When it was raised.
    pub at: Timestamp,
    /// Who has raised it.
    pub raised_by: AgentId,
    /// The regime before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_regime: Option<String>,
    /// The regime since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_regime: Option<String>,
    /// How sure whoever raised it was, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What follows from it, by name; left out where it is long: the alert has it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub implications: Map<String, Value>,
    /// What of the case the implications name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<AffectedPart>,
    /// At which gates it is shown; at every one where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

impl AlertFlag {
    /// Whether it is shown at this gate.
    pub fn is_shown_at(&self, gate: &str) -> bool {
        self.gates.is_empty() || self.gates.iter().any(|one| one == gate)
    }
}

/// Part of a case that an alert concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct AffectedPart {
    /// `topic`, `metric`, `assumption` or `analysis`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The implication that names it.
    pub implication: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alert_says_what_has_happened_within_bounds() {
        let many = vec!["Look again"; ALERT_LIST_MAX + 1];
        for (alert, pointer) in [
            (json!({ "event_type": "rate_move" }), None),
            (
                json!({ "event_type": "regime_change", "old_regime": "BULL_LOW_RATES", "new_regime": "BEAR_HIGH_RATES",
                        "confidence": 0.85, "implications": { "discount_rate_changes": { "Technology": 0.025 } } }),
                None,
            ),
            (json!({ "event_type": " " }), Some("/payload/event_type")),
            (
                json!({ "event_type": "e".repeat(2_000) }),
                Some("/payload/event_type"),
            ),
            (
                json!({ "event_type": "regime_change" }),
                Some("/payload/new_regime"),
            ),
            (
                json!({ "event_type": "regime_change", "old_regime": "BEAR", "new_regime": "BEAR " }),
                Some("/payload/new_regime"),
            ),
            (
                json!({ "event_type": "rate_move", "old_regime": "BEAR", "new_regime": "BEAR" }),
                None,
            ),
            (
                json!({ "event_type": "rate_move", "confidence": 3.0 }),
                Some("/payload/confidence"),
            ),
            (
                json!({ "event_type": "rate_move", "recommended_actions": many }),
                Some("/payload/recommended_actions"),
            ),
            (
                json!({ "event_type": "rate_move", "new_state": "x".repeat(ALERT_BYTES_MAX) }),
                Some("/payload"),
            ),
        ] {
            let alert: Alert = serde_json::from_value(alert).unwrap();
            let fault = alert.check("/payload").err();
            assert_eq!(fault.as_ref().map(|one| one.pointer.as_str()), pointer);
        }
    }
}
