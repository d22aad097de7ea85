//! People, and agents that were given a role: who they are, and what each may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::expert::{Contact, Expert, check_text};
use super::shortened;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::AgentId;
use crate::subject::whose_name;

/// Most domains, and most gates, of one role.
const LIMITS_MAX: usize = 64;
/// Most characters of a public key: 32 bytes in hexadecimal digits.
const KEY_CHARACTERS: usize = 64;

/// What somebody may do beside what every agent may. The roles are held by the installation: only an operator gives them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Opens cases, and says afterwards what proved right in them.
    Opener,
    /// Rules on the debates that the queue has given them.
    Arbiter,
    /// Reviews what stands provisionally, and lets cases pass gates.
    Reviewer,
    /// Registers people and agents, and has the last word on queue, deadlines and cases.
    Operator,
    /// Reads everything, and changes nothing.
    Auditor,
    /// Says what proved right after a debate.
    OutcomeSource,
    /// Alerts everybody.
    Alerter,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Opener,
        Self::Arbiter,
        Self::Reviewer,
        Self::Operator,
        Self::Auditor,
        Self::OutcomeSource,
        Self::Alerter,
    ];

    /// The role as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opener => "opener",
            Self::Arbiter => "arbiter",
            Self::Reviewer => "reviewer",
            Self::Operator => "operator",
            Self::Auditor => "auditor",
            Self::OutcomeSource => "outcome_source",
            Self::Alerter => "alerter",
        }
    }

    /// The role that is written so; none for another word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether an agent can be given it. Everything else is for people.
    pub fn is_for_agents(self) -> bool {
        matches!(self, Self::Opener | Self::OutcomeSource | Self::Alerter)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a registered name is that of a person or of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PersonKind {
    /// A person.
    #[default]
    Person,
    /// An agent: it can only be an opener or a source of outcomes.
    Agent,
}

impl PersonKind {
    /// Whether it is a person; it is not written then.
    #[allow(clippy::trivially_copy_pass_by_ref)] // The serialiser gives a reference.
    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

/// A role, and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleGrant {
    /// The role.
    pub role: Role,
    /// The domains in which it counts, compared without regard to case and spacing; every domain when there is none. An arbiter
    /// is given debates of these domains first, and others only where nobody has theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// The gates at which a reviewer reviews; every gate when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

impl RoleGrant {
    /// The role without limits.
    pub fn of(role: Role) -> Self {
        Self {
            role,
            domains: Vec::new(),
            gates: Vec::new(),
        }
    }
}

/// A person, or an agent that was given a role, as an operator registers them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonRecord {
    /// The name under which they speak: the sender in the subjects of their messages, which the broker enforces.
    pub name: AgentId,
    /// Whether it is a person or an agent.
    #[serde(default, skip_serializing_if = "PersonKind::is_person")]
    pub kind: PersonKind,
    /// A name for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What they may do; each role once.
    pub roles: Vec<RoleGrant>,
    /// Their NATS user, for a reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Their NATS account, for a reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Where they are told that something waits for them.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// Debates that an arbiter has at most at a time.
    #[serde(default = "super::expert::capacity_usual")]
    #[schemars(range(min = 1, max = 100))]
    pub capacity: u32,
    /// Their public ed25519 key, 64 hexadecimal digits: what they sign when they rule or review is verified with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
}

impl PersonRecord {
    /// What was granted under a role.
    pub fn grant(&self, role: Role) -> Option<&RoleGrant> {
        self.roles.iter().find(|grant| grant.role == role)
    }

    /// The expert of the queue of people that an arbiter is; none for anybody else.
    pub fn expert(&self) -> Option<Expert> {
        let grant = self.grant(Role::Arbiter)?;
        Some(Expert {
            agent_id: self.name.clone(),
            name: self.display_name.clone(),
            domains: grant.domains.clone(),
            contact: self.contact.clone(),
            capacity: self.capacity,
        })
    }

    /// Checks roles, ranges, lengths and forms; `pointer` is where the record stands, for the fault.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        if let Some(whose) = whose_name(self.name.as_str()) {
            return Err(Fault::invalid(
                format!("{pointer}/name"),
                format!("{} is the name of {whose}.", self.name),
                "Give the person another name.",
            ));
        }
        if self.roles.is_empty() {
            return Err(Fault::invalid(
                format!("{pointer}/roles"),
                "No role is given.",
                "Name at least one: opener, arbiter, reviewer, operator, auditor or outcome_source.",
            ));
        }
        for (place, grant) in self.roles.iter().enumerate() {
            self.check_grant(&format!("{pointer}/roles/{place}"), place, grant)?;
        }
        let texts = [
            ("display_name", &self.display_name),
            ("user", &self.user),
            ("account", &self.account),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                check_text(&format!("{pointer}/{field}"), text)?;
            }
        }
        self.check_key(pointer)?;
        let particulars = Expert {
            agent_id: self.name.clone(),
            name: None,
            domains: Vec::new(),
            contact: self.contact.clone(),
            capacity: self.capacity,
        };
        particulars.check(pointer)
    }

    fn check_grant(&self, pointer: &str, place: usize, grant: &RoleGrant) -> Result<(), Fault> {
        let role = grant.role;
        if self.kind == PersonKind::Agent && !role.is_for_agents() {
            return Err(Fault::new(
                ErrorCode::Unauthorized,
                format!("{pointer}/role"),
                format!("An agent can be no {role}."),
                "Agents can be opener, outcome_source or alerter; register a person for everything else.",
            ));
        }
        if self
            .roles
            .iter()
            .take(place)
            .any(|earlier| earlier.role == role)
        {
            return Err(Fault::invalid(
                format!("{pointer}/role"),
                format!("The role {role} is given twice."),
                "Give each role once, with all its domains and gates.",
            ));
        }
        if !grant.gates.is_empty() && role != Role::Reviewer {
            return Err(Fault::invalid(
                format!("{pointer}/gates"),
                format!("The role {role} has to do with no gates."),
                "Name gates for the role reviewer only.",
            ));
        }
        for (field, texts) in [("domains", &grant.domains), ("gates", &grant.gates)] {
            if texts.len() > LIMITS_MAX {
                return Err(Fault::new(
                    ErrorCode::CapacityExceeded,
                    format!("{pointer}/{field}"),
                    format!("There are {} {field}.", texts.len()),
                    format!("Name at most {LIMITS_MAX}, or none where the role counts everywhere."),
                ));
            }
            for (place, text) in texts.iter().enumerate() {
                check_text(&format!("{pointer}/{field}/{place}"), text)?;
            }
        }
        Ok(())
    }

    fn check_key(&self, pointer: &str) -> Result<(), Fault> {
        let is_key = |key: &&str| {
            key.len() == KEY_CHARACTERS && key.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        match self.public_key.as_deref() {
            Some(key) if !is_key(&key) => Err(Fault::invalid(
                format!("{pointer}/public_key"),
                format!("{:?} is no ed25519 key.", shortened(key)),
                format!("Write its 32 bytes as {KEY_CHARACTERS} hexadecimal digits."),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn person(fields: Value) -> PersonRecord {
        let mut whole = json!({ "name": "eva", "roles": [{ "role": "arbiter" }] });
        whole
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_person_is_written_with_what_was_said_of_them() {
        let eva = person(json!({}));
        assert_eq!(eva.check("/p"), Ok(()));
        assert_eq!(
            serde_json::to_value(&eva).unwrap(),
            json!({ "name": "eva", "roles": [{ "role": "arbiter" }], "capacity": 3 })
        );
        let misspelt = json!({ "name": "eva", "roles": [], "rolls": [] });
        assert!(serde_json::from_value::<PersonRecord>(misspelt).is_err());
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
    }

    #[test]
    fn an_arbiter_is_the_expert_with_the_domains_of_that_role() {
        let eva = person(json!({
            "roles": [{ "role": "reviewer", "gates": ["valuation"] }, { "role": "arbiter", "domains": ["tax"] }],
            "display_name": "Eva", "capacity": 5, "contact": { "email": "eva@example.org" },
        }));
        let expert = eva.expert().unwrap();
        assert_eq!(
            (expert.domains, expert.capacity, expert.name.as_deref()),
            (vec!["tax".to_owned()], 5, Some("Eva"))
        );
        assert!(
            person(json!({ "roles": [{ "role": "auditor" }] }))
                .expert()
                .is_none()
        );
    }

    #[test]
    fn nonsense_is_refused_at_its_place() {
        for (fields, pointer) in [
            (json!({ "name": "coordinator" }), "/p/name"),
            (json!({ "roles": [] }), "/p/roles"),
            (
                json!({ "roles": [{ "role": "auditor" }, { "role": "auditor" }] }),
                "/p/roles/1/role",
            ),
            (json!({ "kind": "agent" }), "/p/roles/0/role"),
            (
                json!({ "kind": "agent", "roles": [{ "role": "operator" }] }),
                "/p/roles/0/role",
            ),
            (
                json!({ "roles": [{ "role": "opener", "gates": ["g"] }] }),
                "/p/roles/0/gates",
            ),
            (
                json!({ "roles": [{ "role": "reviewer", "gates": [" "] }] }),
                "/p/roles/0/gates/0",
            ),
            (
                json!({ "roles": [{ "role": "reviewer", "domains": vec!["tax"; 65] }] }),
                "/p/roles/0/domains",
            ),
            (json!({ "display_name": "" }), "/p/display_name"),
            (json!({ "user": "x".repeat(257) }), "/p/user"),
            (json!({ "capacity": 0 }), "/p/capacity"),
            (json!({ "contact": { "email": "eva" } }), "/p/contact/email"),
            (json!({ "public_key": "abc" }), "/p/public_key"),
        ] {
            let fault = person(fields.clone()).check("/p").unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fields}");
        }
        let agent = json!({ "kind": "agent", "roles": [{ "role": "outcome_source" }] });
        assert_eq!(person(agent).check("/p"), Ok(()));
        assert_eq!(
            person(json!({ "public_key": "0a".repeat(32) })).check(""),
            Ok(())
        );
    }
}
