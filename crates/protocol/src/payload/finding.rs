//! What one agent concluded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;

/// How serious something is, from harmless to critical. The order of the variants is the order of caution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Minor.
    Low,
    /// Needs attention.
    Medium,
    /// Serious.
    High,
    /// Must not be ignored.
    Critical,
}

impl Severity {
    /// The severity as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The payload of `finding`. Everything but `summary` is optional; the sender's confidence is in the metadata.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["summary"]))]
pub struct Finding {
    /// What was concluded, in a sentence or two.
    #[schemars(regex(pattern = r"\S"))]
    pub summary: String,
    /// Risk, 0 (none) to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub risk_score: Option<f64>,
    /// Overall severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// What to do, for example `sign`, `negotiate`, `escalate`, `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// Single problems, each about a topic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical_findings: Vec<CriticalFinding>,
    /// Clauses looked for, found or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<Clause>,
    /// Clause types that this finding relies on as present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affected_clauses: Vec<String>,
    /// Statements about a subject's attribute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactClaim>,
    /// Numbers that later work may depend on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub estimates: Vec<Estimate>,
    /// Quotations and references that support the finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What was taken for granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
}

/// A problem about a topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalFinding {
    /// What it is about; the same words in two findings mean the same topic.
    pub topic: String,
    /// How serious it is.
    pub severity: Severity,
    /// More about it.
    #[serde(default)]
    pub detail: String,
}

/// A clause that was looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clause {
    /// Kind of clause, for example `Governing Law`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it was found.
    pub present: bool,
    /// The clause's words, where found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One statement: this attribute of this subject has this value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactClaim {
    /// What the statement is about.
    pub subject: String,
    /// Which property of it.
    pub attribute: String,
    /// A number, a boolean, a date or a text.
    #[schemars(extend("type" = ["number", "boolean", "string"]))]
    pub value: Value,
    /// Unit of a number, for example `USD`, `days`, `%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// A number that later work may depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// What is estimated.
    pub metric: String,
    /// The estimate.
    pub value: f64,
    /// Its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Finding {
    /// Checks the ranges that the type cannot express; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self.summary.trim().is_empty() {
            return Err(Fault::invalid(
                "/payload/summary",
                "A finding needs a summary.",
                "Say in a sentence what was concluded.",
            ));
        }
        if let Some(score) = self.risk_score
            && !(0.0..=100.0).contains(&score)
        {
            return Err(Fault::invalid(
                "/payload/risk_score",
                format!("The risk score is {score}."),
                "Give a number from 0 to 100.",
            ));
        }
        for (index, fact) in self.facts.iter().enumerate() {
            if fact.value.is_array() || fact.value.is_object() || fact.value.is_null() {
                return Err(Fault::invalid(
                    format!("/payload/facts/{index}/value"),
                    "A fact's value is a number, a boolean or a text.",
                    "Split structured values into several facts.",
                ));
            }
        }
        Ok(())
    }
}
