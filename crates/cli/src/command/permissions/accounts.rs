//! Accounts: Concord's, and one for each agent or person, with what goes from one to the other.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::AgentId;
use concord_wire::subject::{Permissions, SubjectSpace};
use serde::Serialize;

use super::quoted;
use crate::shared::failure::Failure;
use crate::shared::speaker::Speaker;

/// The prefix of the name of an agent's account, so that no agent's account has the name of Concord's.
const AGENT_ACCOUNT: &str = "agent-";

/// The accounts of an installation.
#[derive(Debug, Serialize)]
pub(super) struct Accounts {
    /// The account of the services and operators.
    concord: ConcordAccount,
    /// One account for each agent or person.
    agents: Vec<AgentAccount>,
}

/// The account of the services and operators.
#[derive(Debug, Serialize)]
struct ConcordAccount {
    account: String,
    user: String,
    password: String,
    exports: Vec<Export>,
}

/// Subjects that other accounts may import.
#[derive(Debug, Serialize)]
struct Export {
    kind: Direction,
    subject: String,
    accounts: Vec<String>,
}

/// The direction in which messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    /// Into Concord's account, with an answer to whoever sent them and to nobody else.
    Service,
    /// Out of Concord's account.
    Stream,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Stream => "stream",
        }
    }
}

/// The account of an agent or person.
#[derive(Debug, Serialize)]
struct AgentAccount {
    account: String,
    user: AgentId,
    /// The variable of the configuration that holds the password.
    password: String,
    permissions: Permissions,
    exports: Vec<Export>,
    imports: Vec<Import>,
}

#[derive(Debug, Serialize)]
struct Import {
    kind: Direction,
    /// Whose account exports it.
    account: String,
    subject: String,
}

impl AgentAccount {
    /// The account of one of these agents and people.
    fn new(space: &SubjectSpace, speaker: &Speaker, all: &[Speaker]) -> Self {
        let agent = &speaker.name;
        let concord = concord_account(space);
        let import = |kind| {
            let concord = &concord;
            move |subject| Import {
                kind,
                account: concord.clone(),
                subject,
            }
        };
        let published = speaker.publish(space).into_iter();
        let received = space.subscribe_subjects(agent).into_iter();
        let mut imports: Vec<Import> = published
            .map(import(Direction::Service))
            .chain(received.map(import(Direction::Stream)))
            .collect();
        let others = || {
            let others = all.iter().filter(|other| *other != speaker);
            others.map(|other| &other.name)
        };
        // The broker gives what it has imported as a service to nobody's stream, so agents are heard directly. People speak to
        // services alone.
        let is_agent = |name: &&AgentId| {
            let mut agents = all.iter().filter(|one| one.roles.is_empty());
            agents.any(|one| one.name == **name)
        };
        imports.extend(others().filter(is_agent).flat_map(|other| {
            let account = account_of(other);
            let subjects = space.publish_subjects_between(other, agent).into_iter();
            subjects.map(move |subject| Import {
                kind: Direction::Stream,
                account: account.clone(),
                subject,
            })
        }));
        let accounts: Vec<String> = others().map(account_of).collect();
        let spoken = space
            .publish_subjects_to_agents(agent)
            .into_iter()
            .filter(|_| is_agent(&agent) && !accounts.is_empty());
        let exports = spoken.map(|subject| Export {
            kind: Direction::Stream,
            subject,
            accounts: accounts.clone(),
        });
        Self {
            account: account_of(agent),
            user: agent.clone(),
            password: variable(agent.as_str()),
            permissions: speaker.permissions_in_own_account(space),
            exports: exports.collect(),
            imports,
        }
    }
}

impl Accounts {
    /// The accounts of these agents and people under a prefix.
    pub(super) fn new(space: &SubjectSpace, all: &[Speaker]) -> Result<Self, Failure> {
        let prefix = space.prefix();
        let account = concord_account(space);
        let mut exports: BTreeMap<(Direction, String), Vec<String>> = BTreeMap::new();
        let mut variables = BTreeSet::from([variable(prefix)]);
        let mut of_agents = Vec::new();
        for speaker in all {
            let agent = &speaker.name;
            let password = variable(agent.as_str());
            if agent.as_str() == prefix || !variables.insert(password.clone()) {
                return Err(Failure::usage(format!(
                    "{agent} cannot have an account beside the others: its user or its variable {password} is taken already; \
                     name each agent once"
                )));
            }
            let of_agent = AgentAccount::new(space, speaker, all);
            let own = of_agent.imports.iter();
            for import in own.filter(|import| import.account == account) {
                exports
                    .entry((import.kind, import.subject.clone()))
                    .or_default()
                    .push(of_agent.account.clone());
            }
            of_agents.push(of_agent);
        }
        let exports = exports.into_iter();
        let exports = exports
            .map(|((kind, subject), accounts)| Export {
                kind,
                subject,
                accounts,
            })
            .collect();
        let concord = ConcordAccount {
            account,
            user: prefix.to_owned(),
            password: variable(prefix),
            exports,
        };
        Ok(Self {
            concord,
            agents: of_agents,
        })
    }

    /// In the form of the broker's configuration.
    pub(super) fn text(&self) -> String {
        let ConcordAccount {
            account: own,
            user,
            password,
            exports,
        } = &self.concord;
        let concord = format!(
            "  \"{own}\": {{\n    jetstream: enabled\n    users: [{{ user: \"{user}\", password: ${password} }}]\n    \
             exports: [\n{}    ]\n  }}\n",
            text_of(exports)
        );
        let agents = self.agents.iter().map(|AgentAccount { account, user, password, permissions, exports, imports }| {
            let imports = imports.iter().map(|Import { kind, account, subject }| {
                let kind = kind.as_str();
                format!("      {{ {kind}: {{ account: \"{account}\", subject: \"{subject}\" }} }}\n")
            });
            format!(
                "  \"{account}\": {{\n    users: [{{\n      user: \"{user}\", password: ${password}\n      permissions: {{\n        \
                 publish: [{}]\n        subscribe: [{}]\n      }}\n    }}]\n    exports: [\n{}    ]\n    imports: [\n{}    ]\n  }}\n",
                quoted(&permissions.publish),
                quoted(&permissions.subscribe),
                text_of(exports),
                imports.collect::<String>()
            )
        });
        format!(
            "# Passwords are variables: of the broker's environment, or lines such as {password} = \"...\" above.\n\
             accounts {{\n{concord}{}}}\n",
            agents.collect::<String>()
        )
    }
}

fn text_of(exports: &[Export]) -> String {
    let exports = exports.iter().map(
        |Export {
             kind,
             subject,
             accounts,
         }| {
            format!(
                "      {{ {}: \"{subject}\", accounts: [{}] }}\n",
                kind.as_str(),
                quoted(accounts)
            )
        },
    );
    exports.collect()
}

/// The name of the account of the services and operators.
fn concord_account(space: &SubjectSpace) -> String {
    space.prefix().to_ascii_uppercase()
}

fn account_of(agent: &AgentId) -> String {
    format!("{AGENT_ACCOUNT}{agent}")
}

/// The variable of the configuration that holds the password of a user.
fn variable(user: &str) -> String {
    format!("PASSWORD_{}", user.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(agents: &[&str]) -> Result<Accounts, Failure> {
        let speaker = |name: &&str| match name.contains('=') {
            true => super::super::person(name).unwrap(),
            false => Speaker::agent(&AgentId::new(*name).unwrap()),
        };
        let all: Vec<Speaker> = agents.iter().map(speaker).collect();
        Accounts::new(&SubjectSpace::default(), &all)
    }

    #[test]
    fn a_person_asks_services_and_speaks_to_them_alone() {
        let found = accounts(&["ben", "eva=reviewer,auditor"]).unwrap();
        let text = found.text();
        for line in [
            r#"{ service: "concord.v1.api.*.events.eva", accounts: ["agent-eva"] }"#,
            r#"{ service: "concord.v1.msg.*.eva.coordinator.review", accounts: ["agent-eva"] }"#,
            r#"{ service: { account: "CONCORD", subject: "concord.v1.api.*.messages.eva" } }"#,
            r#"{ stream: { account: "agent-ben", subject: "concord.v1.msg.*.ben.eva.*" } }"#,
            r#"{ stream: "concord.v1.msg.*.ben.*.*", accounts: ["agent-eva"] }"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        for line in [
            "api.*.*.eva",
            "open_case.eva",
            "msg.*.eva.>",
            "eva.ben",
            "debate-facilitator.ruling",
        ] {
            assert!(!text.contains(line), "{line} is in\n{text}");
        }
    }

    #[test]
    fn each_agent_may_import_what_is_its_own_and_what_is_for_everyone() {
        let found = accounts(&["eva", "bo-b"]).unwrap();
        let of = |subject: &str| {
            let exports = found
                .concord
                .exports
                .iter()
                .filter(|export| export.subject == subject);
            exports
                .map(|export| (export.kind, export.accounts.join(" ")))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("concord.v1.msg.*.eva.>"),
            [(Direction::Service, "agent-eva".to_owned())]
        );
        assert_eq!(
            of("concord.v1.beat.bo-b"),
            [(Direction::Service, "agent-bo-b".to_owned())]
        );
        assert_eq!(
            of("concord.v1.urgent.*.*.bo-b.*"),
            [(Direction::Stream, "agent-bo-b".to_owned())]
        );
        assert_eq!(
            of("concord.v1.msg.*.*._all.*"),
            [(Direction::Stream, "agent-eva agent-bo-b".to_owned())]
        );
        assert_eq!(found.concord.exports.len(), 30);
        let text = found.text();
        for line in [
            r#"users: [{ user: "concord", password: $PASSWORD_concord }]"#,
            r#"{ service: "concord.v1.urgent.*.bo-b.>", accounts: ["agent-bo-b"] }"#,
            r#"user: "bo-b", password: $PASSWORD_bo_b"#,
            r#"{ stream: { account: "CONCORD", subject: "concord.v1.msg.*.*.eva.*" } }"#,
            r#"{ stream: "concord.v1.msg.*.eva.*.*", accounts: ["agent-bo-b"] }"#,
            r#"{ stream: { account: "agent-eva", subject: "concord.v1.msg.*.eva.bo-b.*" } }"#,
            r#"{ stream: { account: "agent-eva", subject: "concord.v1.urgent.*.eva._all.*" } }"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn no_two_users_share_a_name_or_a_variable() {
        for agents in [&["eva", "eva"][..], &["a-b", "a_b"], &["concord"]] {
            assert!(accounts(agents).is_err(), "{agents:?}");
        }
    }
}
