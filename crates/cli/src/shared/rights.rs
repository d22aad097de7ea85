//! What lets people do what they were not let do, for advice.

use concord_events::subject::matches;
use concord_wire::AgentId;
use concord_wire::payload::Role;
use concord_wire::subject::SubjectSpace;

use crate::shared::speaker::Speaker;

/// Who gives somebody rights, for advice; where it is known which roles do, they are named.
pub(super) fn rights_of(caller: &AgentId, roles: &[Role]) -> String {
    let (first, further) = match roles {
        [] => ("ROLE", String::new()),
        [first, others @ ..] => {
            let others: Vec<&str> = others.iter().map(|role| role.as_str()).collect();
            let further = match others.as_slice() {
                [] => String::new(),
                others => format!("; other roles that do: {}", others.join(", ")),
            };
            (first.as_str(), further)
        }
    };
    format!(
        "operators register people (concord person register {caller} --role {first}) and print what their user may do (concord \
         permissions --role {first} {caller}){further}; registering replaces the roles that they have"
    )
}

/// The roles whose user the broker lets do what it has not let the caller do. An operator may do everything, and is named only where
/// nobody else may.
pub(super) fn roles_for(caller: &AgentId, said: &str, space: &SubjectSpace) -> Vec<Role> {
    let quoted = said
        .split_once("Publish to \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let Some((subject, _)) = quoted else {
        return Vec::new();
    };
    let lets = |role: &Role| {
        let speaker = Speaker {
            name: caller.clone(),
            roles: vec![*role],
        };
        let mut subjects = speaker.publish(space).into_iter();
        subjects.any(|filter| matches(&filter, subject))
    };
    let (operators, mut roles): (Vec<Role>, Vec<Role>) = Role::ALL
        .into_iter()
        .filter(lets)
        .partition(|role| *role == Role::Operator);
    if roles.is_empty() {
        roles = operators;
    }
    roles
}

#[cfg(test)]
mod tests {
    use concord_wire::Token;

    use super::*;

    #[test]
    fn the_role_that_would_do_is_named_where_it_is_known() {
        let eva = AgentId::new("eva").unwrap();
        let space = SubjectSpace::new(&Token::fixed("concord"));
        let advice = |subject: &str| {
            let said = format!("Permissions Violation for Publish to \"{subject}\"");
            rights_of(&eva, &roles_for(&eva, &said, &space))
        };
        for (subject, expected) in [
            (
                "concord.v1.msg.c-1.eva.coordinator.review",
                "concord person register eva --role reviewer)",
            ),
            (
                "concord.v1.msg.c-1.eva.debate-facilitator.ruling",
                "concord person register eva --role arbiter)",
            ),
            (
                "concord.v1.api.coordinator.register_person.eva",
                "concord person register eva --role operator)",
            ),
            (
                "concord.v1.elsewhere",
                "concord person register eva --role ROLE)",
            ),
        ] {
            let advice = advice(subject);
            assert!(advice.contains(expected), "{subject}: {advice}");
        }
    }
}
