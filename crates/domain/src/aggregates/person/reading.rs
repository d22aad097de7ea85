//! What somebody with a name may read of what is stored: the one place that says which role sees what.
//!
//! | role           | what they read                                                                             |
//! |----------------|--------------------------------------------------------------------------------------------|
//! | operator       | everything                                                                                 |
//! | auditor        | everything                                                                                 |
//! | arbiter        | cases, conflicts, debates, analyses, the queue, track records, precedents, alerts and their rules; no addresses |
//! | reviewer       | the same                                                                                   |
//! | opener         | the cases that they have opened, with all that belongs to them; no addresses of people     |
//! | outcome_source | debates of the domains for which they are registered; no addresses of people               |
//! | alerter        | alerts and their rules                                                                     |
//!
//! Whoever has several roles reads what any of them reads. The domains and gates of arbiters and reviewers do not limit what they
//! read: the queue gives a debate to somebody of another domain where nobody has its own, and whoever rules or reviews must see
//! what a case rests on. Whoever has no role, or is suspended, reads nothing.

use concord_events::Aggregate;
use concord_wire::fault::with_article;
use concord_wire::payload::Role;
use concord_wire::{AgentId, ErrorCode, Fault};

use super::Authority;
use super::authority::in_domain;

/// How far a role reads aggregates of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of them.
    All,
    /// Those of cases that the reader has opened.
    Opened,
    /// Those of the domains to which the role is limited.
    InDomain,
}

/// The table.
fn extent(role: Role, aggregate: Aggregate) -> Option<Extent> {
    use Aggregate::{
        Alert, Board, Case, Commitment, Debate, Detection, Impact, Precedent, ReviewQueue,
        Synthesis, TrackRecord, Watch,
    };
    match (role, aggregate) {
        (Role::Operator | Role::Auditor, _) => Some(Extent::All),
        (
            Role::Arbiter | Role::Reviewer,
            Case | Detection | Debate | Impact | ReviewQueue | TrackRecord | Precedent | Alert
            | Watch,
        ) => Some(Extent::All),
        (Role::Opener, Case | Detection | Debate | Board | Commitment | Impact | Synthesis) => {
            Some(Extent::Opened)
        }
        (Role::Alerter, Alert | Watch) => Some(Extent::All),
        (Role::OutcomeSource, Debate) => Some(Extent::InDomain),
        _ => None,
    }
}

/// What an aggregate belongs to, as far as that says who may read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matter {
    /// Who has opened the case; `None` where it belongs to no case, or to one that was never opened.
    pub opened_by: Option<AgentId>,
    /// The domain of the debate, where it has one.
    pub domain: Option<String>,
}

/// What somebody may read of the aggregates of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading<'a> {
    authority: &'a Authority,
    who: &'a AgentId,
    aggregate: Aggregate,
}

impl Authority {
    /// What the sender `who` may read of the aggregates of a kind; refused where that is nothing.
    pub fn reading<'a>(
        &'a self,
        who: &'a AgentId,
        aggregate: Aggregate,
    ) -> Result<Reading<'a>, Fault> {
        self.check_active(who)?;
        let reading = Reading {
            authority: self,
            who,
            aggregate,
        };
        if reading.extents().next().is_some() {
            return Ok(reading);
        }
        let roles = Role::ALL.into_iter();
        let roles: Vec<&str> = roles
            .filter(|role| extent(*role, aggregate).is_some())
            .map(Role::as_str)
            .collect();
        Err(refused(
            self,
            who,
            format!(
                "{who} may not read the facts of {}: that needs the role {}.",
                with_article(aggregate.as_str()),
                roles.join(" or ")
            ),
        ))
    }
}

impl Reading<'_> {
    fn extents(&self) -> impl Iterator<Item = (Role, Extent)> {
        let roles = Role::ALL.into_iter();
        let held = roles.filter(|role| self.authority.holds(*role));
        held.filter_map(|role| Some((role, extent(role, self.aggregate)?)))
    }

    /// Whether it is every aggregate of the kind, so that nobody need look what one belongs to.
    pub fn is_all(&self) -> bool {
        self.extents().any(|(_, extent)| extent == Extent::All)
    }

    /// Whether it is also the addresses at which people are notified.
    pub fn shows_contacts(&self) -> bool {
        [Role::Operator, Role::Auditor]
            .into_iter()
            .any(|role| self.authority.holds(role))
    }

    /// Whether it is an aggregate that belongs to this.
    pub fn includes(&self, matter: &Matter) -> bool {
        self.extents().any(|(role, extent)| match extent {
            Extent::All => true,
            Extent::Opened => matter.opened_by.as_ref() == Some(self.who),
            Extent::InDomain => self
                .authority
                .grant(role)
                .is_some_and(|grant| in_domain(grant, matter.domain.as_deref())),
        })
    }

    /// Checks that it is the aggregate with this id.
    pub fn check(&self, id: &str, matter: &Matter) -> Result<(), Fault> {
        if self.includes(matter) {
            return Ok(());
        }
        let (who, aggregate) = (self.who, self.aggregate);
        let own = match self.extents().next() {
            Some((_, Extent::InDomain)) => "it is of none of their domains",
            _ => "it belongs to no case that they have opened",
        };
        Err(refused(
            self.authority,
            who,
            format!("{who} may not read the {aggregate} {id}: {own}."),
        ))
    }
}

fn refused(authority: &Authority, who: &AgentId, what: String) -> Fault {
    Fault::new(
        ErrorCode::Unauthorized,
        "",
        what,
        format!(
            "Ask an operator, who gives roles, auditor to whoever is to read everything: {}",
            authority.registering(who, "--role auditor")
        ),
    )
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::RoleGrant;
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::*;

    #[test]
    fn each_role_reads_what_the_table_says() {
        use Aggregate::*;
        let of_cases = [
            Case, Detection, Debate, Board, Commitment, Impact, Synthesis,
        ];
        let of_people = [
            Case,
            Detection,
            Debate,
            Impact,
            TrackRecord,
            Precedent,
            ReviewQueue,
            Alert,
            Watch,
        ];
        let eva = agent("eva");
        for (role, all, some, contacts) in [
            (Role::Operator, Aggregate::ALL, &[][..], true),
            (Role::Auditor, Aggregate::ALL, &[], true),
            (Role::Arbiter, &of_people, &[], false),
            (Role::Reviewer, &of_people, &[], false),
            (Role::Opener, &[], &of_cases, false),
            (Role::OutcomeSource, &[], &[Debate], false),
            (Role::Alerter, &[Alert, Watch], &[], false),
        ] {
            let authority = authority("eva", &[role]);
            for aggregate in Aggregate::ALL {
                let reading = authority.reading(&eva, *aggregate);
                let found = reading.as_ref().map(Reading::is_all).ok();
                let expected = match aggregate {
                    one if all.contains(one) => Some(true),
                    one if some.contains(one) => Some(false),
                    _ => None,
                };
                assert_eq!(found, expected, "{role} {aggregate}");
                match reading {
                    Ok(reading) => assert_eq!(reading.shows_contacts(), contacts, "{role}"),
                    Err(fault) => {
                        assert_eq!(fault.code, ErrorCode::Unauthorized);
                        assert!(fault.message.contains("operator or auditor"), "{fault}");
                        assert!(fault.advice.contains("concord person register eva"));
                    }
                }
            }
        }
    }

    #[test]
    fn whoever_is_suspended_or_unknown_reads_nothing() {
        let eva = agent("eva");
        let suspended = Authority {
            suspended: Some("on leave".into()),
            ..authority("eva", &[Role::Operator])
        };
        for aggregate in Aggregate::ALL {
            let fault = suspended.reading(&eva, *aggregate).unwrap_err();
            assert!(fault.message.contains("on leave"), "{fault}");
            assert!(Authority::default().reading(&eva, *aggregate).is_err());
        }
    }

    #[test]
    fn a_source_of_outcomes_reads_the_debates_of_its_domains() {
        let grant = |domains: &[&str]| RoleGrant {
            domains: domains.iter().map(|one| (*one).to_owned()).collect(),
            ..RoleGrant::of(Role::OutcomeSource)
        };
        let eva = agent("eva");
        for (limits, domain, expected) in [
            (&["Tax"][..], Some("tax"), true),
            (&["Operating Margin"], Some("operating_margin"), true),
            (&["tax"], Some("valuation"), false),
            (&["tax"], None, false),
            (&[], Some("valuation"), true),
            (&[], None, true),
        ] {
            let mut authority = authority("eva", &[]);
            authority.person.as_mut().unwrap().roles = vec![grant(limits)];
            let reading = authority.reading(&eva, Aggregate::Debate).unwrap();
            let matter = Matter {
                opened_by: None,
                domain: domain.map(str::to_owned),
            };
            assert_eq!(reading.includes(&matter), expected, "{limits:?} {domain:?}");
        }
    }

    proptest! {
        #[test]
        fn an_opener_reads_nothing_of_a_case_of_somebody_else(
            opened_by in prop::option::of("eva|ben|olga|Eva|eva-2"), domain in prop::option::of("[a-z]{0,4}"),
            aggregate in prop::sample::select(Aggregate::ALL), is_source in any::<bool>(),
        ) {
            let mut authority = authority("eva", &[Role::Opener]);
            if is_source {
                let limited = RoleGrant { domains: vec!["none of these".into()], ..RoleGrant::of(Role::OutcomeSource) };
                authority.person.as_mut().unwrap().roles.push(limited);
            }
            let eva = agent("eva");
            let matter = Matter { opened_by: opened_by.as_deref().map(agent), domain };
            if let Ok(reading) = authority.reading(&eva, aggregate) {
                let own = opened_by.as_deref() == Some("eva");
                prop_assert_eq!(reading.includes(&matter), own);
                prop_assert_eq!(reading.check("id", &matter).is_ok(), own);
                prop_assert!(!reading.is_all() && !reading.shows_contacts());
            }
        }
    }
}
