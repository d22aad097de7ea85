//! Invariant 11: every case was opened within the bounds of the policy that it names, or by an operator.
//!
//! Policies and people are read a little before a case is opened, so a policy counts in every version that was stored before, and
//! somebody who was an operator at any time before.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{
    Aggregate, CaseEvent, CaseOpened, PersonEvent, PolicyEvent, PolicyPut, StoredEvent,
};
use concord_wire::payload::Role;
use concord_wire::subject::OPERATOR;
use concord_wire::{AgentId, CaseId, MessageId};

use super::place;
use super::report::{Counts, Invariant};
use crate::aggregates::policy::{PolicyVersion, exceeds_bounds};

/// The policies and operators that there have been.
#[derive(Debug, Default)]
pub(super) struct Openings {
    policies: BTreeMap<(String, u32), PolicyPut>,
    operators: BTreeSet<AgentId>,
}

impl Openings {
    /// Takes an event of a policy into account.
    pub(super) fn policy(&mut self, record: &StoredEvent<PolicyEvent>) {
        let PolicyEvent::Put(put) = &record.event;
        let named = (put.name.as_str().to_owned(), put.version);
        self.policies.insert(named, put.clone());
    }

    /// Takes an event of a person into account.
    pub(super) fn person(&mut self, record: &StoredEvent<PersonEvent>) {
        if let PersonEvent::Registered(registered) = &record.event
            && registered.person.grant(Role::Operator).is_some()
        {
            self.operators.insert(registered.person.name.clone());
        }
    }

    /// Judges the opening of a case. Cases of before policies had bounds name no version, and are not judged.
    pub(super) fn case(&self, counts: &mut Counts, record: &StoredEvent<CaseEvent>) {
        let CaseEvent::Opened(opened) = &record.event else {
            return;
        };
        let Some(version) = opened.policy_version else {
            return;
        };
        counts.examined(Invariant::PolicyBounds);
        if let Some(what) = self.fault(record, opened, version) {
            let place = place(Aggregate::Case, &record.meta.id);
            counts.violated(Invariant::PolicyBounds, place, Some(record.sequence), what);
        }
    }

    fn fault(
        &self,
        record: &StoredEvent<CaseEvent>,
        opened: &CaseOpened,
        version: u32,
    ) -> Option<String> {
        let name = &opened.policy.preset;
        let base = match version {
            0 => PolicyVersion::shipped(name),
            number => {
                let stored = self.policies.get(&(name.clone(), number));
                stored.map(PolicyVersion::from)
            }
        };
        let Some(base) = base else {
            return Some(format!(
                "It was opened with version {version} of the policy {name:?}, which was not stored before."
            ));
        };
        if opened.by_operator && !self.is_operator(record, opened) {
            let by = &opened.opened_by;
            return Some(format!(
                "It says that an operator has opened it, and {by} was none."
            ));
        }
        let fault = exceeds_bounds(opened, &base)?;
        Some(format!(
            "Its opener has changed {} beyond the bounds of the policy {name:?}. {}",
            fault.pointer, fault.message
        ))
    }

    /// The installation's own operator asks by request and reply, which gives the request an id of the case.
    fn is_operator(&self, record: &StoredEvent<CaseEvent>, opened: &CaseOpened) -> bool {
        let by_api = CaseId::new(record.meta.id.as_str())
            .is_ok_and(|case| opened.request_id == MessageId::of_api_request(&case));
        (opened.opened_by.as_str() == OPERATOR && by_api)
            || self.operators.contains(&opened.opened_by)
    }
}
