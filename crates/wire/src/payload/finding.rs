//! What one agent concluded.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ErrorCode;
use crate::envelope::from_json;
use crate::fault::Fault;
use crate::payload::{HistoricalContext, json_text_bytes, null_is_absent};

/// Most bytes of a name as JSON, without its quotation marks: a topic, a type of clause, a recommendation and the like.
pub const NAME_BYTES_MAX: usize = 256;
/// Most critical findings, clauses, affected clauses, facts, and estimates of one finding, each.
pub const COMPARED_MAX: usize = 500;

/// How serious something is, from harmless to critical. The order of the variants is the order of caution.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
#[schemars(extend(
    "required" = ["summary"],
    "if" = { "not": { "anyOf": [
        { "required": ["risk_score"] }, { "required": ["severity"] }, { "required": ["recommendation"] },
        { "required": ["impact"] }, { "required": ["critical_findings"] }, { "required": ["clauses"] },
        { "required": ["affected_clauses"] }, { "required": ["facts"] }, { "required": ["estimates"] },
    ] } },
    "then" = { "properties": { "summary": { "pattern": r"\S" } } },
))]
pub struct Finding {
    /// The conclusion, in a sentence or two. It may be empty where another field concludes something.
    pub summary: String,
    /// Risk, 0 (none) to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub risk_score: Option<f64>,
    /// Overall severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The recommended action, for example `sign`, `negotiate`, `escalate`, `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// What follows from it for others, in words, for example `Adjust FCF projections`. It is told, and never compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact: Option<String>,
    /// Single problems, each about a topic.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = COMPARED_MAX))]
    pub critical_findings: Vec<CriticalFinding>,
    /// Clauses looked for, found or not.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = COMPARED_MAX))]
    pub clauses: Vec<Clause>,
    /// Clause types that this finding relies on as present.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = COMPARED_MAX))]
    pub affected_clauses: Vec<String>,
    /// Statements about a subject's attribute.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = COMPARED_MAX))]
    pub facts: Vec<FactClaim>,
    /// Numbers that later work may depend on.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = COMPARED_MAX))]
    pub estimates: Vec<Estimate>,
    /// Quotations and references that support the finding.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub evidence: Vec<String>,
    /// The assumptions that the finding rests on.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub assumptions: Vec<String>,
    /// What the agent says about earlier cases like this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub historical_context: Option<HistoricalContext>,
}

/// A problem about a topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalFinding {
    /// The topic; the same words in two findings mean the same topic.
    pub topic: String,
    /// The severity.
    pub severity: Severity,
    /// Details.
    #[serde(default, deserialize_with = "null_is_absent")]
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
    /// The subject of the statement.
    pub subject: String,
    /// The property of the subject.
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
    /// What it is an estimate of, where a case is about several: a company, a product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The estimated quantity; the same words in two findings mean the same quantity.
    pub metric: String,
    /// The estimate.
    pub value: f64,
    /// Its unit, for example `%`, `USD million`; none for a plain number, as which a share of 0.25 is the same as 25 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Estimate {
    /// The estimate that a value of shared memory is: an object with `metric` and `value`; none where it is something else.
    pub fn of_value(value: &Value) -> Option<Self> {
        value.get("metric")?;
        let estimate: Self = serde_json::from_value(value.clone()).ok()?;
        let optional = estimate.subject.iter().chain(&estimate.unit);
        let mut names = std::iter::once(&estimate.metric).chain(optional);
        let fits = names.all(|name| check_name("", name).is_ok()) && estimate.value.is_finite();
        drop(names);
        fits.then_some(estimate)
    }
}

impl Finding {
    /// Reads a finding and checks it; pointers begin with `/payload`.
    pub fn read(payload: &RawValue) -> Result<Self, Fault> {
        /// Whether there is one at all: most that leave it out have misspelt it.
        #[derive(Deserialize)]
        struct Stated {
            summary: Option<IgnoredAny>,
        }
        let finding: Self = from_json(payload.get().as_bytes(), "/payload")?;
        let states = || serde_json::from_str::<Stated>(payload.get()).ok()?.summary;
        if finding.summary.is_empty() && states().is_none() {
            return Err(without_summary());
        }
        finding.check()?;
        Ok(finding)
    }

    /// Checks the ranges that the type cannot express; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self.summary.trim().is_empty() && !self.says_more() {
            return Err(without_summary());
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
        self.check_counts()?;
        if let Some(context) = &self.historical_context {
            context.check("/payload/historical_context")?;
        }
        self.named()
            .try_for_each(|(pointer, name)| check_name(&format!("/payload/{pointer}"), name))
    }

    /// Whether it concludes something beside its summary, which specification 1 leaves empty where there is none.
    fn says_more(&self) -> bool {
        let is_said = [
            self.risk_score.is_some(),
            self.severity.is_some(),
            self.recommendation.is_some(),
            self.impact.is_some(),
            !self.critical_findings.is_empty(),
            !self.clauses.is_empty(),
            !self.affected_clauses.is_empty(),
            !self.facts.is_empty(),
            !self.estimates.is_empty(),
        ];
        is_said.contains(&true)
    }

    /// What is compared with what others say is compared one by one.
    fn check_counts(&self) -> Result<(), Fault> {
        for (list, length) in [
            ("critical_findings", self.critical_findings.len()),
            ("clauses", self.clauses.len()),
            ("affected_clauses", self.affected_clauses.len()),
            ("facts", self.facts.len()),
            ("estimates", self.estimates.len()),
        ] {
            if length > COMPARED_MAX {
                return Err(Fault::new(
                    ErrorCode::CapacityExceeded,
                    format!("/payload/{list}"),
                    format!("There are {length} {list}; at most {COMPARED_MAX} are accepted."),
                    "Report what matters most, and put the rest into `evidence`.",
                ));
            }
        }
        Ok(())
    }

    /// Every text that names something and is compared with what others name, with its place in the payload.
    fn named(&self) -> impl Iterator<Item = (String, &str)> {
        let topics = self.critical_findings.iter().enumerate();
        let topics = topics.map(|(n, critical)| {
            (
                format!("critical_findings/{n}/topic"),
                critical.topic.as_str(),
            )
        });
        let clauses = self.clauses.iter().enumerate();
        let clauses =
            clauses.map(|(n, clause)| (format!("clauses/{n}/type"), clause.kind.as_str()));
        let affected = self.affected_clauses.iter().enumerate();
        let affected = affected.map(|(n, name)| (format!("affected_clauses/{n}"), name.as_str()));
        let facts = self.facts.iter().enumerate().flat_map(|(n, fact)| {
            let named = [
                ("subject", fact.subject.as_str()),
                ("attribute", &fact.attribute),
            ];
            let unit = fact.unit.as_deref().map(|unit| ("unit", unit));
            named
                .into_iter()
                .chain(unit)
                .map(move |(field, name)| (format!("facts/{n}/{field}"), name))
        });
        let estimates = self.estimates.iter().enumerate().flat_map(|(n, estimate)| {
            let named = [
                ("subject", estimate.subject.as_deref()),
                ("metric", Some(&*estimate.metric)),
                ("unit", estimate.unit.as_deref()),
            ];
            named
                .into_iter()
                .filter_map(move |(field, name)| Some((format!("estimates/{n}/{field}"), name?)))
        });
        let recommendation = self
            .recommendation
            .as_deref()
            .map(|name| ("recommendation".to_owned(), name));
        recommendation
            .into_iter()
            .chain(topics)
            .chain(clauses)
            .chain(affected)
            .chain(facts)
            .chain(estimates)
    }
}

fn without_summary() -> Fault {
    Fault::invalid(
        "/payload/summary",
        "A finding needs a summary.",
        "Say in a sentence what was concluded.",
    )
}

/// Checks that a name is short enough to be repeated wherever it is disputed. Names are compared, so none is shortened.
pub(crate) fn check_name(pointer: &str, name: &str) -> Result<(), Fault> {
    let bytes = json_text_bytes(name);
    if bytes <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        format!("The name has {bytes} bytes; at most {NAME_BYTES_MAX} are accepted."),
        "Give a short name here, and put explanations into `detail`, `text`, `summary` or `evidence`.",
    ))
}

#[cfg(test)]
mod tests;
