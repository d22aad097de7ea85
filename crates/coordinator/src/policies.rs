//! The policies that operators store: what is read of them before a case is opened, and the verbs of the API.

use std::sync::Arc;

use concord_domain::aggregates::policy::{
    KnownPolicies, PolicyInput, PolicyMachine, PolicyState, PolicyVersion, id_of,
};
use concord_events::{Aggregate, PolicyPut};
use concord_runtime::event_store::step;
use concord_runtime::service::ServiceContext;
use concord_runtime::service::api::{self, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_runtime::{Aggregates, Ports};
use concord_wire::envelope::from_json;
use concord_wire::id::PolicyName;
use concord_wire::policy::{Policy, PolicyBounds, PolicyRequest};
use concord_wire::{AgentId, Fault, Timestamp, Token};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The stored policies. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Policies<P> {
    ports: P,
    pub(crate) stored: Arc<Aggregates<PolicyMachine, P>>,
}

impl<P: Ports> Policies<P> {
    pub(crate) fn new(context: &ServiceContext<P>) -> Self {
        let ports = context.ports.clone();
        let stored = Aggregates::new(ports.clone(), &context.cache);
        Self {
            ports,
            stored: Arc::new(stored),
        }
    }

    /// What is stored under the name of a policy that is asked for. All names are read only where there is nothing: then the request
    /// is refused, and whoever sent it is told them.
    pub(crate) async fn known(&self, requested: &Value) -> Result<KnownPolicies, step::Error> {
        // What is no request is refused by the machine.
        let Ok(request) = PolicyRequest::parse(requested, "") else {
            return Ok(KnownPolicies::default());
        };
        let Ok(name) = PolicyName::parse(request.name()) else {
            return Ok(KnownPolicies::default());
        };
        self.under(&name).await
    }

    async fn under(&self, name: &PolicyName) -> Result<KnownPolicies, step::Error> {
        let stored = self.stored.load(&id_of(name)).await?.state;
        let names = match stored.find(name.as_str(), None) {
            Some(_) => Vec::new(),
            None => self.names().await?,
        };
        Ok(KnownPolicies { stored, names })
    }

    async fn names(&self) -> Result<Vec<PolicyName>, step::Error> {
        let all = self.all().await?;
        let last = all.iter().filter_map(|state| state.versions.last());
        Ok(last.map(|last| last.0.name.clone()).collect())
    }

    /// Every stored policy, by name.
    async fn all(&self) -> Result<Vec<Arc<PolicyState>>, step::Error> {
        let ids = self.ports.ids(Aggregate::Policy).await;
        let ids = ids.map_err(|source| step::Error::EventStore {
            aggregate: Aggregate::Policy.to_string(),
            source,
        })?;
        let mut all = Vec::new();
        for id in ids {
            all.push(self.stored.load(&id).await?.state);
        }
        let name = |state: &Arc<PolicyState>| state.versions.last().map(|last| last.0.name.clone());
        all.sort_by_key(name);
        Ok(all)
    }

    /// Answers `policies`: every policy that a case can name, with its current version.
    pub(crate) fn list_verb(&self) -> Verb {
        api::verb(self.clone(), |policies, _| async move {
            let all = policies.all().await.map_err(|error| unread(&error))?;
            let stored: Vec<Row> = all.iter().filter_map(|state| Row::stored(state)).collect();
            let is_replaced = |preset: &&str| stored.iter().any(|row| row.name.as_str() == *preset);
            let shipped = Policy::PRESETS.iter().copied();
            let shipped = shipped.filter(|preset| !is_replaced(preset));
            let rows: Vec<Row> = shipped.filter_map(Row::shipped).collect();
            let rows: Vec<Row> = rows.into_iter().chain(stored).collect();
            answer(&json!({ "policies": rows }))
        })
    }

    /// Answers `policy`: one version of one, whole.
    pub(crate) fn show_verb(&self) -> Verb {
        api::verb(self.clone(), |policies, call| async move {
            policies.show(&call.body).await
        })
    }

    async fn show(&self, request: &[u8]) -> Result<bytes::Bytes, Fault> {
        let Asked { name, version } = from_json(request, "")?;
        let known = self.under(&name).await.map_err(|error| unread(&error))?;
        let state = &known.stored;
        if state.find(name.as_str(), None).is_none() {
            return Err(known.unknown("/name", name.as_str()));
        }
        let Some(found) = state.find(name.as_str(), version) else {
            return Err(no_version(&name, version.unwrap_or_default(), state));
        };
        answer(&Shown::new(&name, found, state))
    }
}

/// A policy in the list.
#[derive(Debug, Serialize)]
struct Row {
    name: PolicyName,
    version: u32,
    #[serde(flatten)]
    put: Option<PutBy>,
}

/// Who stored a version, when and why; not said of what is shipped.
#[derive(Debug, Serialize)]
struct PutBy {
    by: AgentId,
    why: String,
    at: Timestamp,
}

impl PutBy {
    fn new((put, at): &(PolicyPut, Timestamp)) -> Self {
        Self {
            by: put.by.clone(),
            why: put.why.clone(),
            at: *at,
        }
    }
}

impl Row {
    fn shipped(name: &str) -> Option<Self> {
        Some(Self {
            name: PolicyName::parse(name).ok()?,
            version: 0,
            put: None,
        })
    }

    fn stored(state: &PolicyState) -> Option<Self> {
        let last = state.versions.last()?;
        Some(Self {
            name: last.0.name.clone(),
            version: last.0.version,
            put: Some(PutBy::new(last)),
        })
    }
}

/// One version of a policy.
#[derive(Debug, Serialize)]
struct Shown {
    name: PolicyName,
    version: u32,
    #[serde(flatten)]
    put: Option<PutBy>,
    /// SHA-256 of the policy, as a case that changes nothing of it has it.
    digest: String,
    policy: Policy,
    bounds: PolicyBounds,
    /// All versions that there are.
    versions: Vec<u32>,
}

impl Shown {
    fn new(name: &PolicyName, found: PolicyVersion, state: &PolicyState) -> Self {
        let mut stored = state.versions.iter();
        let put = stored.find(|one| one.0.version == found.version);
        Self {
            name: name.clone(),
            version: found.version,
            put: put.map(|put| PutBy::new(put)),
            digest: found.policy.digest(),
            policy: found.policy,
            bounds: found.bounds,
            versions: versions(name, state),
        }
    }
}

fn versions(name: &PolicyName, state: &PolicyState) -> Vec<u32> {
    let shipped = Policy::preset(name.as_str()).map(|_| 0);
    let stored = state.versions.iter().map(|one| one.0.version);
    shipped.into_iter().chain(stored).collect()
}

fn no_version(name: &PolicyName, version: u32, state: &PolicyState) -> Fault {
    let versions = versions(name, state);
    let (first, last) = (versions.first(), versions.last());
    let (first, last) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
    Fault::invalid(
        "/version",
        format!("The policy {name} has no version {version}."),
        format!("Its versions are {first} to {last}; leave it out for the last one."),
    )
}

/// `policy`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: PolicyName,
    #[serde(default)]
    version: Option<u32>,
}

/// `put_policy`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    name: PolicyName,
    /// The name of a preset as it is shipped, or an object with `preset` and the fields that differ.
    #[serde(default)]
    policy: Value,
    #[serde(default)]
    bounds: PolicyBounds,
    by: AgentId,
    why: String,
}

/// The policy that an operator stores.
pub(crate) fn read_put(request: &[u8]) -> Result<(Token, PolicyInput), Fault> {
    let Put {
        name,
        policy,
        bounds,
        by,
        why,
    } = from_json(request, "")?;
    let policy = Box::new(Policy::resolve(&policy, "/policy")?);
    let id = id_of(&name);
    Ok((
        id,
        PolicyInput::Put {
            name,
            policy,
            bounds,
            by,
            why,
        },
    ))
}
