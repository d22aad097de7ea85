//! What an operator brings in of an agent's record from elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Context, Observation, Source};
use crate::fault::Fault;
use crate::id::AgentId;
use crate::payload::check_name;
use crate::timestamp::Timestamp;

/// One time that an agent proved right or wrong outside of Concord.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportedRecord {
    /// What identifies it among the imported records of the agent: the same id again changes nothing.
    pub id: String,
    /// The agent.
    pub agent: AgentId,
    /// The domain it was judged in.
    pub domain: String,
    /// The metric that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The regime at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<String>,
    /// The sector that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector: Option<String>,
    /// Whether the agent was right.
    pub correct: bool,
    /// When that became known.
    pub at: Timestamp,
    /// Where the record comes from, for example `back-test 2025`.
    pub source: String,
}

impl ImportedRecord {
    /// Checks the names; `pointer` is where the record stands in its request.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        for (field, name) in [("id", &self.id), ("source", &self.source)] {
            if name.trim().is_empty() {
                return Err(Fault::invalid(
                    format!("{pointer}/{field}"),
                    format!("{field} is empty."),
                    "Name it.",
                ));
            }
            check_name(&format!("{pointer}/{field}"), name)?;
        }
        let observation = self.observation();
        observation.check(pointer)?;
        for (field, name) in [
            ("metric", &self.metric),
            ("regime", &self.regime),
            ("sector", &self.sector),
        ] {
            if name.as_ref().is_some_and(|name| name.trim().is_empty()) {
                return Err(Fault::invalid(
                    format!("{pointer}/{field}"),
                    format!("{field} is empty."),
                    "Name it, or leave it out.",
                ));
            }
        }
        Ok(())
    }

    /// What it adds to the agent's track record.
    pub fn observation(&self) -> Observation {
        Observation {
            at: self.at,
            correct: self.correct,
            domain: self.domain.clone(),
            regime: self.regime.clone(),
            context: Context {
                metric: self.metric.clone(),
                sector: self.sector.clone(),
                ..Context::default()
            },
            source: Source::Import,
            overridden: false,
        }
    }
}
