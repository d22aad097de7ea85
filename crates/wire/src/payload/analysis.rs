//! What an agent publishes of an analysis in a case: its figures, and what they rest on.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_name, objects};
use crate::envelope::check_confidence;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::{AgentId, Token};

/// The action of a request to the coordinator that publishes an analysis in a case; the parameters are a [`PublishAnalysis`].
pub const PUBLISH_ANALYSIS: &str = "publish_analysis";
/// Most figures of an analysis, and most dependencies.
pub const ANALYSIS_ITEMS_MAX: usize = 64;
/// Most bytes of an analysis as JSON.
pub const ANALYSIS_BYTES_MAX: usize = 32 * 1024;
/// The longest that doing an analysis again may take, in minutes: thirty days.
pub const RERUN_MINUTES_MAX: u32 = 30 * 24 * 60;

/// The names under which no figure is published: how sure the agent is has a field of its own.
const CONFIDENCE_NAMES: [&str; 2] = ["confidence", "confidence_score"];

/// One figure: a number, or a text such as a rating.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, or a text such as a rating")]
pub enum Figure {
    /// A number.
    Number(f64),
    /// A text, of which nothing is known but whether it is the same.
    Text(String),
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// What an analysis can depend on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DependencyKind {
    /// How a debate of the case ended (its id), or a part of the case's decision (the id of the case).
    Decision,
    /// An assumption, by its name. A debate whose subject is that name decides about it.
    Assumption,
    /// Another analysis of the case.
    Analysis,
}

impl DependencyKind {
    /// The kind as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Assumption => "assumption",
            Self::Analysis => "analysis",
        }
    }
}

/// One thing that an analysis has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// What it is.
    pub kind: DependencyKind,
    /// The debate or case, the name of the assumption, or the analysis.
    pub id: String,
    /// The figure that was used: of an analysis one that it has published; of the case's decision `risk_score`, `recommendation`, or
    /// `clauses/` and a clause type. Absent where the whole was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The value that was used; the one that stands at publishing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Figure>,
    /// How sure the used value was, 0 to 1; what stands at publishing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// The version of the analysis, or of the case's decision, that was used; the one that stands at publishing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// How one figure of an analysis follows from what it uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum EstimateModel {
    /// It changes by some percent for each point by which the used number changes.
    Sensitivity {
        /// The figure.
        metric: String,
        /// What is used: its metric, or else its id; with the id and a dot before it where several have one metric.
        input: String,
        /// By how many percent; 0 says that it does not depend on it.
        percent: f64,
    },
    /// It changes by some percent for each percent by which the used number changes.
    Elasticity {
        /// The figure.
        metric: String,
        /// What is used.
        input: String,
        /// By how many percent; 0 says that it does not depend on it.
        percent: f64,
    },
    /// It is worked out from what is used.
    Formula {
        /// The figure.
        metric: String,
        /// Arithmetic on the names of what is used: `fcf * (1 + growth) / (wacc - growth)`.
        #[schemars(length(min = 1, max = 1024))]
        formula: String,
    },
    /// An agent of the case is asked what becomes of it, as a task of the type `estimate_change`.
    Agent {
        /// The figure.
        metric: String,
        /// The agent.
        agent: AgentId,
        /// How long its answer is awaited, in milliseconds; a minute when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 3_600_000))]
        within_ms: Option<u64>,
    },
}

impl EstimateModel {
    /// The figure that it is about.
    pub fn metric(&self) -> &str {
        match self {
            Self::Sensitivity { metric, .. }
            | Self::Elasticity { metric, .. }
            | Self::Formula { metric, .. }
            | Self::Agent { metric, .. } => metric,
        }
    }
}

/// The parameters of `publish_analysis`. Published again by the same agent, it is a new version of the analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishAnalysis {
    /// The id of the analysis in its case, for example `dcf`.
    pub analysis_id: Token,
    /// What kind of analysis it is, for example `valuation` or `risk_assessment`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 256))]
    pub kind: String,
    /// Its results, by metric: `{"target_price": 85, "rating": "hold"}`.
    #[serde(default)]
    pub figures: BTreeMap<String, Figure>,
    /// How sure the agent is of them, 0 to 1; that of the envelope when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// What it has used.
    #[serde(default)]
    pub depends_on: Vec<Dependency>,
    /// How its figures follow from that. A change whose effect no model says must be worked out by doing the analysis again.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "objects"
    )]
    pub models: Vec<EstimateModel>,
    /// How long doing it again takes, in minutes.
    #[serde(default)]
    #[schemars(range(max = 43_200))]
    pub rerun_minutes: u32,
}

impl PublishAnalysis {
    /// Checks the form; `pointer` is where the parameters stand.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        check_filled(&format!("{pointer}/type"), &self.kind)?;
        if let Some(confidence) = self.confidence {
            check_confidence(&format!("{pointer}/confidence"), confidence)?;
        }
        if self.rerun_minutes > RERUN_MINUTES_MAX {
            return Err(Fault::invalid(
                format!("{pointer}/rerun_minutes"),
                format!("It would take {} minutes.", self.rerun_minutes),
                format!("Give 0 to {RERUN_MINUTES_MAX} minutes."),
            ));
        }
        self.check_figures(&format!("{pointer}/figures"))?;
        self.check_dependencies(&format!("{pointer}/depends_on"))?;
        check_count(&format!("{pointer}/models"), self.models.len())?;
        // Whatever it is, it can be written.
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |text| text.len());
        if bytes <= ANALYSIS_BYTES_MAX {
            return Ok(());
        }
        Err(Fault::new(
            ErrorCode::CapacityExceeded,
            pointer,
            format!("The analysis has {bytes} bytes; at most {ANALYSIS_BYTES_MAX} are kept."),
            "Publish the figures that others use, and put the rest where it can be read.",
        ))
    }

    fn check_figures(&self, pointer: &str) -> Result<(), Fault> {
        check_count(pointer, self.figures.len())?;
        for (name, figure) in &self.figures {
            let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            check_filled(&place, name)?;
            if CONFIDENCE_NAMES.contains(&name.as_str()) {
                return Err(Fault::invalid(
                    place,
                    "How sure you are is no figure.",
                    "State it as `confidence` of the analysis.",
                ));
            }
            if let Figure::Text(text) = figure {
                check_filled(&place, text)?;
            }
        }
        Ok(())
    }

    fn check_dependencies(&self, pointer: &str) -> Result<(), Fault> {
        check_count(pointer, self.depends_on.len())?;
        let mut seen = BTreeSet::new();
        for (place, one) in self.depends_on.iter().enumerate() {
            let place = format!("{pointer}/{place}");
            one.check(&place)?;
            if !seen.insert((one.kind, &one.id, &one.metric)) {
                return Err(Fault::invalid(
                    place,
                    format!("{} {:?} stands there twice.", one.kind.as_str(), one.id),
                    "Name each thing once, with the metric that was used.",
                ));
            }
        }
        Ok(())
    }
}

impl Dependency {
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        let id = format!("{pointer}/id");
        check_filled(&id, &self.id)?;
        if self.kind != DependencyKind::Assumption
            && let Err(error) = Token::new(self.id.as_str())
        {
            return Err(Fault::invalid(
                id,
                format!("It {error}."),
                "Give the id of a debate or the case for a decision, and of an analysis for an analysis.",
            ));
        }
        if let Some(metric) = &self.metric {
            check_filled(&format!("{pointer}/metric"), metric)?;
        }
        if let Some(Figure::Text(text)) = &self.value {
            check_filled(&format!("{pointer}/value"), text)?;
        }
        match self.confidence {
            Some(confidence) => check_confidence(&format!("{pointer}/confidence"), confidence),
            None => Ok(()),
        }
    }
}

fn check_count(pointer: &str, count: usize) -> Result<(), Fault> {
    if count <= ANALYSIS_ITEMS_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        format!("There are {count}; at most {ANALYSIS_ITEMS_MAX} are kept of an analysis."),
        "Divide it into several analyses.",
    ))
}

fn check_filled(pointer: &str, text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(Fault::invalid(
            pointer,
            "It is blank.",
            "Give a name or a value, or leave the field out.",
        ));
    }
    check_name(pointer, text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::envelope::from_json;

    fn read(changes: &[(&str, Value)]) -> Result<PublishAnalysis, Fault> {
        let mut good = json!({
            "analysis_id": "dcf", "type": "valuation", "figures": { "target_price": 85, "rating": "hold" }, "confidence": 0.8,
            "depends_on": [{ "kind": "assumption", "id": "operating_margin", "value": 25 }], "rerun_minutes": 5,
        });
        for (field, value) in changes {
            good[*field] = value.clone();
        }
        let analysis: PublishAnalysis = from_json(good.to_string().as_bytes(), "/p")?;
        analysis.check("/p").map(|()| analysis)
    }

    #[test]
    fn an_analysis_within_its_bounds_is_taken() {
        let analysis = read(&[]).unwrap();
        assert_eq!(analysis.figures["target_price"], Figure::Number(85.0));
        assert_eq!(analysis.figures["rating"], Figure::Text("hold".into()));
        read(&[("figures", json!({})), ("depends_on", json!([]))]).unwrap();
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let used = |fields: Value| {
            let mut one = json!({ "kind": "analysis", "id": "wacc" });
            for (name, value) in fields.as_object().unwrap() {
                one[name] = value.clone();
            }
            json!([one])
        };
        let many = json!(vec![1; ANALYSIS_ITEMS_MAX + 1]);
        let many: BTreeMap<String, Value> = (0..=ANALYSIS_ITEMS_MAX)
            .map(|n| (format!("m{n}"), many[n].clone()))
            .collect();
        for (field, value, pointer) in [
            ("analysis_id", json!("a b"), "/p/analysis_id"),
            ("type", json!(" "), "/p/type"),
            ("confidence", json!(1.2), "/p/confidence"),
            ("rerun_minutes", json!(-1), "/p/rerun_minutes"),
            (
                "rerun_minutes",
                json!(RERUN_MINUTES_MAX + 1),
                "/p/rerun_minutes",
            ),
            ("figures", json!(many), "/p/figures"),
            (
                "figures",
                json!({ "confidence": 0.5 }),
                "/p/figures/confidence",
            ),
            ("figures", json!({ "rating": "" }), "/p/figures/rating"),
            ("figures", json!({ "a/b": "" }), "/p/figures/a~1b"),
            ("models", json!([["agent", "beta", "ann"]]), "/p/models/0"),
            (
                "depends_on",
                used(json!({ "id": "a.b" })),
                "/p/depends_on/0/id",
            ),
            (
                "depends_on",
                used(json!({ "metric": " " })),
                "/p/depends_on/0/metric",
            ),
            (
                "depends_on",
                used(json!({ "value": " " })),
                "/p/depends_on/0/value",
            ),
            (
                "depends_on",
                used(json!({ "confidence": 7 })),
                "/p/depends_on/0/confidence",
            ),
            (
                "depends_on",
                json!([
                    { "kind": "analysis", "id": "wacc" }, { "kind": "analysis", "id": "wacc", "value": 8 }
                ]),
                "/p/depends_on/1",
            ),
        ] {
            let fault = read(&[(field, value)]).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fault}");
        }
        let fault = read(&[("figures", json!({ "rating": true }))]).unwrap_err();
        assert!(
            fault.to_string().contains("a text such as a rating"),
            "{fault}"
        );
    }
}
