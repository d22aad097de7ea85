//! Which roles a verb of the services' API needs, when it is asked for by somebody with a name.

use concord_wire::payload::Role;
use concord_wire::subject::MEMBER_VERBS;
use concord_wire::{AgentId, ErrorCode, Fault};

use super::Authority;

/// Whoever works with cases.
const EVERYBODY: &[Role] = &Role::ALL;

/// Every verb that others than operators can ask for. Operators can ask for all of them, and for every other.
const VERBS: &[(&str, &[Role])] = &[
    ("status", EVERYBODY),
    ("agents", EVERYBODY),
    // What of it each role may read, `reading.rs` says.
    ("events", EVERYBODY),
    (
        "messages",
        &[Role::Opener, Role::Arbiter, Role::Reviewer, Role::Auditor],
    ),
    ("armed", &[Role::Auditor]),
    ("open_case", &[Role::Opener]),
    ("open_task", &[Role::Opener]),
    // Whoever opened it, says the task itself.
    ("cancel_task", &[Role::Opener]),
    ("find_agents", EVERYBODY),
    // Whether it is their case, the verb itself looks.
    ("rerun_analyses", &[Role::Opener, Role::Reviewer]),
    // An opener sees what they have themself.
    ("quotas", &[Role::Opener, Role::Auditor]),
    ("policies", EVERYBODY),
    ("policy", EVERYBODY),
    ("alert_rules", EVERYBODY),
];

/// The roles that may ask for a verb, beside operators.
pub fn roles_of(verb: &str) -> &'static [Role] {
    let row = VERBS.iter().find(|(name, _)| *name == verb);
    row.map_or(&[], |(_, roles)| roles)
}

/// The verbs that somebody with these roles may ask for; every verb where there is none, for an operator.
pub fn verbs_of(roles: &[Role]) -> Option<Vec<&'static str>> {
    if roles.contains(&Role::Operator) {
        return None;
    }
    let rows = VERBS.iter();
    let asked = rows.filter(|(_, needed)| needed.iter().any(|role| roles.contains(role)));
    let of_members = MEMBER_VERBS.map(|(_, verb)| verb);
    Some(asked.map(|(verb, _)| *verb).chain(of_members).collect())
}

/// Checks that the caller of a verb has a role that it needs. What is shared needs none: the verb itself looks who is in the case.
pub fn check_verb(authority: &Authority, caller: &AgentId, verb: &str) -> Result<(), Fault> {
    authority.check_active(caller)?;
    if MEMBER_VERBS
        .iter()
        .any(|(_, of_members)| *of_members == verb)
    {
        return Ok(());
    }
    let roles = roles_of(verb);
    let may = |role: &Role| authority.holds(*role);
    if may(&Role::Operator) || roles.iter().any(may) {
        return Ok(());
    }
    let named: Vec<&str> = std::iter::once("operator")
        .chain(
            roles
                .iter()
                .filter(|role| **role != Role::Operator)
                .map(|role| role.as_str()),
        )
        .collect();
    // Whoever is told to take a role takes the one that changes least.
    let least = match roles.contains(&Role::Auditor) {
        true => Some(Role::Auditor.as_str()),
        false => named.last().copied(),
    };
    Err(Fault::new(
        ErrorCode::Unauthorized,
        "",
        format!(
            "{caller} may not ask for {verb}: that needs the role {}.",
            named.join(" or ")
        ),
        format!(
            "An operator gives roles: {}",
            authority.registering(caller, &format!("--role {}", least.unwrap_or("operator")))
        ),
    ))
}
