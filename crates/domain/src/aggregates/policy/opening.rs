//! Under which policy a case is opened: what stands under the name that is asked for, with what the opener changes of it.

use std::sync::Arc;

use concord_events::CaseOpened;
use concord_wire::Fault;
use concord_wire::id::PolicyName;
use concord_wire::policy::{Policy, PolicyRequest, unknown_policy};
use serde_json::Value;

use super::{PolicyState, PolicyVersion};

/// What was read of the stored policies for a request to open a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnownPolicies {
    /// What is stored under the name that the request asks for.
    pub stored: Arc<PolicyState>,
    /// The names of all stored policies, where there is none under the name; for the answer.
    pub names: Vec<PolicyName>,
}

impl KnownPolicies {
    /// The policy that is asked for, and the version under the name that it was made from: the last one, or `version` where a case has
    /// begun with it already. `pointer` is where the request stands, for the fault.
    pub fn resolve(
        &self,
        requested: &Value,
        version: Option<u32>,
        pointer: &str,
    ) -> Result<(Policy, PolicyVersion), Fault> {
        let request = PolicyRequest::parse(requested, pointer)?;
        let name = request.name();
        let Some(base) = self.stored.find(name, version) else {
            return Err(self.unknown(pointer, name));
        };
        let policy = request.applied_to(&base.policy, pointer)?;
        Ok((policy, base))
    }

    /// The fault for a name under which there is nothing: it says which names there are.
    pub fn unknown(&self, pointer: &str, name: &str) -> Fault {
        let stored = self.names.iter().map(PolicyName::as_str);
        let others = stored.filter(|name| !Policy::PRESETS.contains(name));
        unknown_policy(pointer, name, Policy::PRESETS.into_iter().chain(others))
    }
}

/// Why a case must not have been opened with its policy, if so: `base` is what stood under the name of its policy, in the version
/// that the case names.
pub fn exceeds_bounds(opened: &CaseOpened, base: &PolicyVersion) -> Option<Fault> {
    if opened.by_operator {
        return None;
    }
    let checked = base.bounds.check(&base.policy, &opened.policy, "/policy");
    checked.err()
}
