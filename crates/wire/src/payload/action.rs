//! The standard actions of requests between agents, and what their parameters must be (specification 5).
//!
//! Other actions are free: what they mean is between the agents. A standard action is checked before anybody is asked to
//! wait for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::{BATCH, Batch};
use crate::envelope::from_json;
use crate::fault::Fault;

/// The action of a request to the coordinator that opens a case.
pub const OPEN_CASE: &str = "open_case";
/// The action of a request to the debate facilitator that opens a debate.
pub const OPEN_DEBATE: &str = "open_debate";
/// The action of a request to an expert for a ruling.
pub const RULE: &str = "rule";
/// The action of a request to a mediator for an opinion.
pub const MEDIATE: &str = "mediate";

/// The standard actions.
pub const ACTIONS: [&str; 4] = ["review_code", "run_tests", "update_documentation", BATCH];

/// Parameters of `review_code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewCode {
    /// The files to review.
    pub files: Vec<String>,
    /// What to look for: one or several of `security`, `performance`, `style`, `functionality`, with `|` between them.
    #[schemars(regex(
        pattern = r"^(security|performance|style|functionality)(\|(security|performance|style|functionality))*$"
    ))]
    pub review_type: String,
    /// `low`, `normal` or `high`; several with `|` between them mean any of these.
    #[serde(default = "normal")]
    #[schemars(regex(pattern = r"^(low|normal|high)(\|(low|normal|high))*$"))]
    pub urgency: String,
}

fn normal() -> String {
    "normal".into()
}

/// Parameters of `run_tests`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTests {
    /// One or several of `unit`, `integration`, `e2e`, `all`, with `|` between them.
    #[schemars(regex(pattern = r"^(unit|integration|e2e|all)(\|(unit|integration|e2e|all))*$"))]
    pub test_suite: String,
    /// Files whose tests to run; all when empty.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether coverage is to be measured.
    #[serde(default)]
    pub coverage_required: bool,
}

/// Parameters of `update_documentation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateDocumentation {
    /// One or several of `api`, `feature`, `bugfix`, with `|` between them.
    #[schemars(regex(pattern = r"^(api|feature|bugfix)(\|(api|feature|bugfix))*$"))]
    pub change_type: String,
    /// The components that have changed.
    #[serde(default)]
    pub affected_components: Vec<String>,
    /// The version that the documentation is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Checks the parameters of a standard action; those of any other are free.
pub(super) fn check_action(action: &str, parameters: &Value, pointer: &str) -> Result<(), Fault> {
    let bytes = || parameters.to_string().into_bytes();
    match action {
        "review_code" => {
            let read: ReviewCode = from_json(&bytes(), pointer)?;
            let kinds = ["security", "performance", "style", "functionality"];
            one_of(&read.review_type, &kinds, &format!("{pointer}/review_type"))?;
            one_of(
                &read.urgency,
                &["low", "normal", "high"],
                &format!("{pointer}/urgency"),
            )
        }
        "run_tests" => {
            let read: RunTests = from_json(&bytes(), pointer)?;
            one_of(
                &read.test_suite,
                &["unit", "integration", "e2e", "all"],
                &format!("{pointer}/test_suite"),
            )
        }
        "update_documentation" => {
            let read: UpdateDocumentation = from_json(&bytes(), pointer)?;
            one_of(
                &read.change_type,
                &["api", "feature", "bugfix"],
                &format!("{pointer}/change_type"),
            )
        }
        BATCH => from_json::<Batch>(&bytes(), pointer)?.check(pointer),
        _ => Ok(()),
    }
}

fn one_of(text: &str, allowed: &[&str], pointer: &str) -> Result<(), Fault> {
    if text.split('|').all(|one| allowed.contains(&one)) {
        return Ok(());
    }
    Err(Fault::invalid(
        pointer,
        format!(
            "{:?} is none of {}.",
            super::shortened(text),
            allowed.join(", ")
        ),
        "Name one of them, or several with | between them.",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(action: &str, parameters: &Value) -> Result<(), String> {
        check_action(action, parameters, "/p").map_err(|fault| fault.pointer)
    }

    #[test]
    fn the_standard_actions_are_accepted_as_the_specification_prints_them() {
        for (action, parameters) in [
            (
                "review_code",
                json!({ "files": ["path1"], "review_type": "security|performance|style|functionality", "urgency": "low|normal|high" }),
            ),
            (
                "review_code",
                json!({ "files": ["a.rs"], "review_type": "security" }),
            ),
            (
                "run_tests",
                json!({ "test_suite": "unit|integration|e2e|all", "files": ["specific files or all"], "coverage_required": true }),
            ),
            (
                "update_documentation",
                json!({ "change_type": "api|feature|bugfix", "affected_components": [], "version": "string" }),
            ),
            ("anything", json!(null)),
            (
                "batch",
                json!({ "requests": [{ "action": "run_tests", "parameters": { "test_suite": "unit" } }, { "action": "x" }] }),
            ),
        ] {
            assert_eq!(check(action, &parameters), Ok(()), "{action}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_at_its_place() {
        let many = vec![json!({ "action": "x" }); 101];
        for (action, parameters, pointer) in [
            ("review_code", json!(null), "/p"),
            (
                "review_code",
                json!({ "review_type": "security" }),
                "/p/files",
            ),
            (
                "review_code",
                json!({ "files": "a.rs", "review_type": "security" }),
                "/p/files",
            ),
            (
                "review_code",
                json!({ "files": [], "review_type": "taste" }),
                "/p/review_type",
            ),
            (
                "review_code",
                json!({ "files": [], "review_type": "style", "urgency": "" }),
                "/p/urgency",
            ),
            (
                "run_tests",
                json!({ "test_suite": "unit|" }),
                "/p/test_suite",
            ),
            (
                "update_documentation",
                json!({ "change_type": "API" }),
                "/p/change_type",
            ),
            ("batch", json!({ "requests": [] }), "/p/requests"),
            ("batch", json!({ "requests": many }), "/p/requests"),
            (
                "batch",
                json!({ "requests": [{ "action": "batch", "parameters": {} }] }),
                "/p/requests/0/action",
            ),
            (
                "batch",
                json!({ "requests": [{ "action": "x", "callback_url": "https://example.org/x" }] }),
                "/p/requests/0/callback_url",
            ),
            (
                "batch",
                json!({ "requests": [{ "action": " " }] }),
                "/p/requests/0/action",
            ),
            (
                "batch",
                json!({ "requests": [{ "action": "x" }, { "action": "run_tests", "parameters": { "test_suite": "x" } }] }),
                "/p/requests/1/parameters/test_suite",
            ),
        ] {
            assert_eq!(
                check(action, &parameters),
                Err(pointer.to_owned()),
                "{action} {parameters}"
            );
        }
    }
}
