//! What somebody may do: the one place that says which role an act needs.
//!
//! | act               | who may do it                                                              |
//! |-------------------|----------------------------------------------------------------------------|
//! | open a case       | everybody who is not suspended; the broker says who can ask at all. What   |
//! |                   | is not within the bounds of the policy: operators                          |
//! | challenge         | participants of the case, and everybody with a role other than auditor     |
//! | rule              | arbiters; the queue says on which debates                                  |
//! | review, pass      | reviewers of the gate and the domain                                       |
//! | say what was right| sources of outcomes, reviewers, operators, and the opener of the case      |
//! | alert everybody   | alerters, operators                                                        |
//!
//! Somebody who is suspended may do none of it. Who takes part, argued or decided is a matter of the
//! case or debate, which asks for it beside this.

use concord_wire::payload::{PersonRecord, Role, RoleGrant};
use concord_wire::subject::OPERATOR;
use concord_wire::{AgentId, ErrorCode, Fault};

use crate::rules::impact::graph::name_of;

/// What an installation knows of a sender: their record, and whether they are suspended. The default
/// is somebody who is not registered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authority {
    /// The person; `None` for somebody who is not registered.
    pub person: Option<PersonRecord>,
    /// Why they are suspended; `None` for somebody who may act.
    pub suspended: Option<String>,
}

/// Something that not everybody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<'a> {
    /// Opening a case.
    Open,
    /// Disputing a finding.
    Challenge {
        /// Whether the sender takes part in the case.
        participant: bool,
    },
    /// Ruling on a debate that the queue has given the sender.
    Rule,
    /// Reviewing a provisional decision, or letting a case pass a gate.
    Review {
        /// The gate.
        gate: &'a str,
        /// The domain of what is reviewed, where it has one.
        domain: Option<&'a str>,
    },
    /// Alerting everybody.
    Alert,
    /// Saying what proved right after a debate.
    TellOutcome {
        /// The domain of the debate.
        domain: &'a str,
        /// Whether the sender has opened the case.
        opened: bool,
        /// The sources of outcomes that the case's policy names; every source when there is none.
        sources: &'a [AgentId],
    },
}

impl Authority {
    /// An arbiter of before people were registered: whoever the queue knows as an expert.
    pub fn of_expert(name: &AgentId) -> Self {
        Self::with_role(name.clone(), Role::Arbiter)
    }

    /// Somebody who was found to have the right to open a case, and has it within the bounds of policies.
    pub fn of_opener(name: &AgentId) -> Self {
        Self::with_role(name.clone(), Role::Opener)
    }

    /// The operator of the installation, who asks under no name and may do everything.
    pub fn of_installation() -> Self {
        Self::with_role(AgentId::fixed(OPERATOR), Role::Operator)
    }

    fn with_role(name: AgentId, role: Role) -> Self {
        let person = PersonRecord {
            name,
            kind: Default::default(),
            display_name: None,
            roles: vec![RoleGrant::of(role)],
            user: None,
            account: None,
            contact: Default::default(),
            capacity: concord_wire::payload::CAPACITY_USUAL,
            public_key: None,
        };
        Self {
            person: Some(person),
            suspended: None,
        }
    }

    /// Whether the sender holds a role, whatever its limits, and may use it.
    pub fn holds(&self, role: Role) -> bool {
        self.suspended.is_none() && self.grant(role).is_some()
    }

    pub(super) fn grant(&self, role: Role) -> Option<&RoleGrant> {
        self.person.as_ref()?.grant(role)
    }

    /// The command by which an operator registers `who` with these arguments, for advice. It replaces the roles there are, so it names them.
    pub(super) fn registering(&self, who: &AgentId, arguments: &str) -> String {
        let command = format!("concord person register {who} {arguments}");
        let roles = self.person.iter().flat_map(|person| &person.roles);
        let roles: Vec<&str> = roles.map(|grant| grant.role.as_str()).collect();
        match roles.is_empty() {
            true => command,
            false => format!(
                "{command} --keep, with the roles there are, which these replace: {}",
                roles.join(", ")
            ),
        }
    }

    /// Checks that the sender `who` may do this.
    pub fn allow(&self, who: &AgentId, act: &Act<'_>) -> Result<(), Fault> {
        self.check_active(who)?;
        match act {
            Act::Open => Ok(()),
            Act::Challenge { participant } => self.challenge(who, *participant),
            Act::Rule => self.rule(who),
            Act::Alert => self.alert(who),
            Act::Review { gate, domain } => self.review(who, gate, *domain),
            Act::TellOutcome {
                domain,
                opened,
                sources,
            } => self.tell_outcome(who, domain, *opened, sources),
        }
    }

    /// Checks that the sender is not suspended.
    pub fn check_active(&self, who: &AgentId) -> Result<(), Fault> {
        let Some(why) = &self.suspended else {
            return Ok(());
        };
        Err(unauthorized(
            format!("{who} is suspended: {}.", why.trim_end_matches('.')),
            format!("Ask an operator, who lifts it with: concord person resume {who}"),
        ))
    }

    fn challenge(&self, who: &AgentId, participant: bool) -> Result<(), Fault> {
        let others = Role::ALL.iter().filter(|role| **role != Role::Auditor);
        if participant || others.into_iter().any(|role| self.holds(*role)) {
            return Ok(());
        }
        Err(unauthorized(
            format!("{who} takes no part in the case and is nobody whom this installation knows."),
            format!(
                "Have a participant challenge it, or ask an operator to register you: {}",
                self.registering(who, "--role opener")
            ),
        ))
    }

    fn rule(&self, who: &AgentId) -> Result<(), Fault> {
        if self.grant(Role::Arbiter).is_some() {
            return Ok(());
        }
        Err(unauthorized(
            format!("{who} is no arbiter."),
            format!(
                "An operator registers arbiters: {}",
                self.registering(who, "--role arbiter")
            ),
        ))
    }

    fn alert(&self, who: &AgentId) -> Result<(), Fault> {
        let may = [Role::Alerter, Role::Operator];
        if may.into_iter().any(|role| self.grant(role).is_some()) {
            return Ok(());
        }
        Err(unauthorized(
            format!("{who} may not alert everybody."),
            format!(
                "An operator gives that right, to a program with --agent: {}",
                self.registering(who, "--role alerter")
            ),
        ))
    }

    fn review(&self, who: &AgentId, gate: &str, domain: Option<&str>) -> Result<(), Fault> {
        let grant = self.grant(Role::Reviewer);
        let limits = gate_argument(gate);
        let advice = format!(
            "An operator registers reviewers: {}",
            self.registering(who, &format!("--role reviewer{limits}"))
        );
        let Some(grant) = grant else {
            return Err(unauthorized(
                format!("{who} is not a reviewer of the gate {gate:?}."),
                advice,
            ));
        };
        if !grant.gates.is_empty() && !grant.gates.iter().any(|one| one == gate) {
            let what = format!(
                "{who} is not a reviewer of the gate {gate:?}, but of {}.",
                grant.gates.join(", ")
            );
            return Err(unauthorized(what, advice));
        }
        if in_domain(grant, domain) {
            return Ok(());
        }
        let of = domain.map_or("of no stated domain".to_owned(), |domain| {
            format!("of the domain {domain:?}")
        });
        Err(unauthorized(
            format!(
                "{who} reviews in the domains {}, and this is {of}.",
                grant.domains.join(", ")
            ),
            "Ask a reviewer of that domain, or an operator to register you for it.",
        ))
    }

    fn tell_outcome(
        &self,
        who: &AgentId,
        domain: &str,
        opened: bool,
        sources: &[AgentId],
    ) -> Result<(), Fault> {
        let is_source = self
            .grant(Role::OutcomeSource)
            .is_some_and(|grant| in_domain(grant, Some(domain)))
            && (sources.is_empty() || sources.contains(who));
        let reviews = self
            .grant(Role::Reviewer)
            .is_some_and(|grant| in_domain(grant, Some(domain)));
        let is_opener = opened && self.grant(Role::Opener).is_some();
        if is_source || reviews || is_opener || self.grant(Role::Operator).is_some() {
            return Ok(());
        }
        Err(unauthorized(
            format!(
                "{who} is no source of outcomes in the domain {domain:?}: neither registered as one, nor reviewer, operator or \
                 registered opener of the case."
            ),
            format!(
                "An operator registers sources, programs with --agent: {}",
                self.registering(who, "--role outcome_source")
            ),
        ))
    }
}

/// Whether a role counts in a domain, however it is spelled: a metric may be one, and is as the agents write it. Where the matter has none, only a
/// role without limits does.
pub(super) fn in_domain(grant: &RoleGrant, domain: Option<&str>) -> bool {
    let Some(domain) = domain.map(name_of) else {
        return grant.domains.is_empty();
    };
    grant.domains.is_empty() || grant.domains.iter().any(|one| name_of(one) == domain)
}

/// The gate as an argument of the command that is given as advice, where it can be copied as it is.
fn gate_argument(gate: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !gate.is_empty() && gate.chars().all(is_plain) && !gate.starts_with('-') {
        format!(" --gate {gate}")
    } else {
        String::new()
    }
}

fn unauthorized(what: String, advice: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::Unauthorized, "/from_agent", what, advice.into())
}
