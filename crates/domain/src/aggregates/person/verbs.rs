//! Which roles a verb of the services' API needs, when it is asked for by somebody with a name.

use concord_wire::payload::Role;
use concord_wire::{AgentId, ErrorCode, Fault};

use super::Authority;

/// Whoever works with cases.
const EVERYBODY: &[Role] = &Role::ALL;

/// Every verb that others than operators can ask for. Operators can ask for all of them, and for every other.
const VERBS: &[(&str, &[Role])] = &[
    ("status", EVERYBODY),
    ("agents", EVERYBODY),
    ("armed", &[Role::Auditor]),
    ("open_case", &[Role::Opener]),
];

/// The roles that may ask for a verb, beside operators.
pub fn roles_of(verb: &str) -> &'static [Role] {
    let row = VERBS.iter().find(|(name, _)| *name == verb);
    row.map_or(&[], |(_, roles)| roles)
}

/// Checks that the caller of a verb has a role that it needs.
pub fn check_verb(authority: &Authority, caller: &AgentId, verb: &str) -> Result<(), Fault> {
    authority.check_active(caller)?;
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
    Err(Fault::new(
        ErrorCode::Unauthorized,
        "",
        format!(
            "{caller} may not ask for {verb}: that needs the role {}.",
            named.join(" or ")
        ),
        format!(
            "An operator gives roles: concord person register {caller} --role {}",
            named.last().copied().unwrap_or("operator")
        ),
    ))
}
