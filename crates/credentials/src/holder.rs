//! Whom credentials are for.

use std::fmt;
use std::str::FromStr;

use concord_wire::AgentId;
use concord_wire::payload::Role;
use concord_wire::subject::{OPERATOR, Service, whose_name};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Whom credentials are for. Written `service:coordinator`, `agent:eva`, `person:olga=reviewer,arbiter` or `operator:ops`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Holder {
    /// A service of Concord; all its replicas have the same.
    Service(Service),
    /// An agent.
    Agent(AgentId),
    /// A person with roles.
    Person {
        /// The person's name.
        name: AgentId,
        /// What the person may do; at least one.
        roles: Vec<Role>,
    },
    /// Who runs the installation: without limits within its account.
    Operator(AgentId),
}

/// How a holder is written.
const FORMS: &str =
    "write service:coordinator, agent:eva, person:olga=reviewer,arbiter or operator:ops";

impl Holder {
    /// What it is, as it stands before the colon.
    fn kind(&self) -> &'static str {
        match self {
            Self::Service(_) => "service",
            Self::Agent(_) => "agent",
            Self::Person { .. } => "person",
            Self::Operator(_) => "operator",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Service(service) => service.as_str(),
            Self::Agent(name) | Self::Person { name, .. } | Self::Operator(name) => name.as_str(),
        }
    }

    /// What tells it from other holders, whatever the roles: `person-olga`. Its file is named so.
    pub fn key(&self) -> String {
        format!("{}-{}", self.kind(), self.name())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').ok_or(FORMS)?;
        match kind {
            "service" => Service::parse(rest).map(Self::Service).map_err(|_| {
                let known: Vec<&str> = Service::ALL
                    .iter()
                    .map(|service| service.as_str())
                    .collect();
                format!("services are {}", known.join(", "))
            }),
            "agent" => speaker(rest).map(Self::Agent),
            // Who may do everything may have that name as well.
            "operator" if rest == OPERATOR => Ok(Self::Operator(AgentId::fixed(OPERATOR))),
            "operator" => speaker(rest).map(Self::Operator),
            "person" => {
                let (name, roles) = rest.split_once('=').ok_or(
                    "a person is named with roles, for example person:eva=reviewer,arbiter",
                )?;
                let known = || Role::ALL.map(Role::as_str).join(", ");
                let role = |text| Role::parse(text).ok_or_else(|| format!("roles are {}", known()));
                let roles: Result<Vec<Role>, String> = roles.split(',').map(role).collect();
                Ok(Self::Person {
                    name: speaker(name)?,
                    roles: roles?,
                })
            }
            _ => Err(FORMS.to_owned()),
        }
    }
}

/// A name under which somebody speaks who is neither a service nor the installation's operator.
fn speaker(text: &str) -> Result<AgentId, String> {
    let name = AgentId::new(text).map_err(|error| format!("the name {error}"))?;
    match whose_name(text) {
        Some(whose) => Err(format!("{text} is the name of {whose}; choose another")),
        None => Ok(name),
    }
}

impl FromStr for Holder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).map_err(|why| Error::Holder {
            text: text.to_owned(),
            why,
        })
    }
}

impl TryFrom<String> for Holder {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Holder> for String {
    fn from(holder: Holder) -> Self {
        holder.to_string()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())?;
        if let Self::Person { roles, .. } = self {
            let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
            write!(f, "={}", roles.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_read_as_it_is_written() {
        for text in [
            "service:debate-facilitator",
            "agent:eva",
            "person:olga=reviewer,arbiter",
            "operator:ops",
        ] {
            let holder: Holder = text.parse().unwrap();
            assert_eq!(holder.to_string(), text);
            assert_eq!(
                holder.key(),
                text.split('=').next().unwrap().replace(':', "-")
            );
        }
    }

    #[test]
    fn whoever_is_no_holder_is_told_why() {
        for (text, word) in [
            ("eva", "write service:coordinator"),
            ("robot:eva", "write service:coordinator"),
            ("service:eva", "services are coordinator"),
            ("agent:a.b", "the name"),
            ("agent:", "the name"),
            ("agent:coordinator", "is the name of a service"),
            ("person:agent-adapter=opener", "is the name of a service"),
            ("agent:operator", "is the name of the operator"),
            ("person:operator=opener", "is the name of the operator"),
            ("person:olga", "is named with roles"),
            ("person:olga=king", "roles are"),
            ("person:olga=", "roles are"),
        ] {
            let error = text.parse::<Holder>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
