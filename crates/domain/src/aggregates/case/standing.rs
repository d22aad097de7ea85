//! Which of several debates about the same leaves standing what another one says. One of two is a challenge, for a case has one detected
//! conflict about a subject.
//!
//! | the debate                | leaves standing                                                                                            |
//! |---------------------------|------------------------------------------------------------------------------------------------------------|
//! | that nobody has decided   | what a person decided before; what is more cautious; if it is a challenge, what settled the detected conflict |
//! | that a gate has confirmed | what another confirmed one says that is more cautious, or as cautious and was opened later                   |
//!
//! A challenge that has ended with what the challenged agent had stated says nothing that could be left standing, unless a person has
//! decided so. A detected conflict that is debated again because a reviewer wants it leaves nothing standing.

use std::cmp::Ordering;

use concord_wire::DebateId;
use concord_wire::payload::{Conflict, ConflictOutcome, ConflictType, Status};
use concord_wire::policy::Policy;
use serde::Serialize;
use serde_json::Value;

use super::FINDING;
use super::state::{CHAIN_MAX, CaseState};
use crate::rules::impact::graph::name_of;
use crate::rules::vote::{self, About};
use crate::rules::{RULES, conservative, precedent};

/// A disagreement of the case, and how it has ended so far.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    /// The conflict, with the positions at the start.
    conflict: &'a Conflict,
    /// The outcome of its debate, or of the last debate that took it up again.
    pub(super) outcome: Option<&'a ConflictOutcome>,
    is_in_vain: bool,
    /// Its place among the conflicts of the case; challenges come after what was detected, in the order in which they were opened.
    place: usize,
}

impl<'a> Said<'a> {
    fn is_challenge(&self) -> bool {
        self.conflict.kind == ConflictType::Challenge
    }

    /// Whether both are about the same, and are not the same.
    pub(super) fn is_beside(&self, other: &Said<'_>) -> bool {
        let name = name_of(&self.conflict.subject);
        (self.is_challenge() || other.is_challenge())
            && self.conflict.conflict_id != other.conflict.conflict_id
            && name != FINDING
            && name == name_of(&other.conflict.subject)
    }

    /// The value with which it has ended; of a detected conflict without one the most cautious position, which stands meanwhile.
    fn value(&self, policy: &Policy) -> Option<&'a Value> {
        let resolution = self
            .outcome
            .and_then(|outcome| outcome.resolution.as_ref()?.value.as_ref());
        resolution.or_else(|| match self.is_challenge() {
            true => None,
            false => most_cautious(RULES, self.conflict, policy),
        })
    }

    /// Whether this debate leaves standing what the other one says.
    pub(super) fn leaves_standing(&self, other: &Said<'_>, policy: &Policy) -> bool {
        let Some(ended) = self.outcome else {
            return false;
        };
        let caution = self.compared(other, policy);
        if ended.status.is_by_default() {
            let is_by_person = other.outcome.is_some_and(|before| {
                before.status.is_by_person() && before.resolved_at <= ended.resolved_at
            });
            let is_settled = other
                .outcome
                .is_some_and(|outcome| outcome.status.is_settled() && outcome.resolution.is_some());
            let is_of_conflict = self.is_challenge() && !other.is_challenge();
            let is_less = caution == Ordering::Less && !other.is_in_vain;
            return is_by_person || (is_of_conflict && is_settled) || is_less;
        }
        let is_confirmed = |outcome: &ConflictOutcome| outcome.status == Status::Confirmed;
        is_confirmed(ended)
            && other.outcome.is_some_and(is_confirmed)
            && !other.is_in_vain
            && caution.then(self.place.cmp(&other.place)) == Ordering::Less
    }

    /// `Less` where the other one says something more cautious, by the rule of the detected conflict where one of them is that.
    fn compared(&self, other: &Said<'_>, policy: &Policy) -> Ordering {
        let about = match self.is_challenge() {
            true => other.conflict,
            false => self.conflict,
        };
        let (one, other) = (self.value(policy), other.value(policy));
        conservative::compare_about(about.kind, &about.subject, policy, one, other)
    }
}

/// The most cautious of the positions with a value; of equally cautious ones that with the lowest id, as in a vote. By the rules before 2 it was
/// that of the agent whose name comes last.
pub(super) fn most_cautious<'a>(
    rules: u32,
    conflict: &'a Conflict,
    policy: &Policy,
) -> Option<&'a Value> {
    let (kind, subject) = (conflict.kind, &conflict.subject);
    let compare =
        |a: &Value, b: &Value| conservative::compare(kind, subject, policy, Some(a), Some(b));
    let values = conflict.positions.iter().map(|one| one.value.as_ref());
    if rules < 2 {
        return values.flatten().max_by(|a, b| compare(a, b));
    }
    let ids = vote::options_of(About::conflict(conflict, policy), &conflict.positions);
    let mut by_id: Vec<(usize, &Value)> = ids
        .into_iter()
        .zip(values)
        .filter_map(|(id, value)| Some((id, value?)))
        .collect();
    by_id.sort_by_key(|(id, _)| *id);
    let values = by_id.into_iter().map(|(_, value)| value);
    values.reduce(|best, one| match compare(one, best) {
        Ordering::Greater => one,
        _ => best,
    })
}

/// What stands beside a provisional decision that says something else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Beside<'a> {
    /// The outcome that stands now; none where that is the most cautious position of a conflict without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_stands: Option<&'a ConflictOutcome>,
    /// Whether the provisional decision would stand if it was confirmed.
    pub if_confirmed: bool,
}

impl CaseState {
    /// Whether this end of a debate leaves standing what was said about the same in another one.
    pub(crate) fn yields(&self, outcome: &ConflictOutcome) -> bool {
        let Some(opened) = &self.opened else {
            return false;
        };
        let Some(one) = self.said_by(outcome) else {
            return false;
        };
        if outcome.status.is_by_default() && self.is_detected_anew(outcome) {
            return false;
        }
        let mut others = self.all_said().filter(|other| one.is_beside(other));
        others.any(|other| one.leaves_standing(&other, &opened.policy))
    }

    /// Whether this is the end of a debate about a detected conflict that a reviewer has ordered.
    pub(super) fn is_detected_anew(&self, outcome: &ConflictOutcome) -> bool {
        let asked = self.asked.get(&outcome.conflict_id);
        asked.is_some_and(|asked| {
            asked.terms.refers_to.is_some() && asked.conflict.kind != ConflictType::Challenge
        })
    }

    /// Whether a challenge has ended with what the challenged agent had stated.
    pub(crate) fn is_in_vain(&self, outcome: &ConflictOutcome) -> bool {
        let Some(asked) = self.asked.get(&outcome.conflict_id) else {
            return false;
        };
        let (Some(challenge), Some(resolution)) = (&asked.terms.challenge, &outcome.resolution)
        else {
            return false;
        };
        let mut positions = asked.conflict.positions.iter();
        let stated = positions.find(|one| one.agent_id == challenge.challenged);
        stated.is_some_and(|stated| {
            let resolved = (resolution.position.as_str(), resolution.value.as_ref());
            precedent::is_same((&stated.position, stated.value.as_ref()), resolved)
        })
    }

    /// What stands in the place of this provisional decision; none where it stands itself, or what stands says the same.
    pub fn beside(&self, provisional: &ConflictOutcome) -> Option<Beside<'_>> {
        let subject = self.subject_of(&provisional.conflict_id)?;
        let now_stands = self.latest_about(&subject);
        let says_same = now_stands.is_some_and(|now| {
            let said = |one: &ConflictOutcome| one.resolution.clone();
            let (now, then) = (said(now), said(provisional));
            now.zip(then).is_some_and(|(now, then)| {
                precedent::is_same(
                    (&now.position, now.value.as_ref()),
                    (&then.position, then.value.as_ref()),
                )
            })
        });
        let stands = now_stands.map_or(!self.yields(provisional), |now| {
            now.conflict_id == provisional.conflict_id
        });
        if subject == FINDING || stands || says_same {
            return None;
        }
        let confirmed = ConflictOutcome {
            status: Status::Confirmed,
            ..provisional.clone()
        };
        Some(Beside {
            now_stands,
            if_confirmed: !self.is_in_vain(provisional) && !self.yields(&confirmed),
        })
    }

    /// The latest outcome about this subject that has an effect on what stands.
    fn latest_about(&self, subject: &str) -> Option<&ConflictOutcome> {
        let about = |outcome: &&ConflictOutcome| {
            self.subject_of(&outcome.conflict_id).as_deref() == Some(subject)
        };
        let with_result = |outcome: &&ConflictOutcome| {
            outcome.resolution.is_some() && outcome.status != Status::Cancelled
        };
        self.outcomes
            .values()
            .filter(with_result)
            .filter(about)
            .filter(|outcome| !self.is_in_vain(outcome) && !self.yields(outcome))
            .max_by_key(|outcome| outcome.resolved_at)
    }

    /// What a debate of the case is about, in the form in which names are compared.
    pub(crate) fn subject_of(&self, debate: &DebateId) -> Option<String> {
        let mut debated = self.debated.iter();
        let conflict = debated.find(|conflict| conflict.conflict_id == *debate)?;
        Some(name_of(&conflict.subject))
    }

    /// A disagreement, with the outcome that stands of it.
    pub(super) fn said<'a>(&'a self, conflict: &'a Conflict) -> Said<'a> {
        let outcome = self.standing(conflict);
        let mut debated = self.debated.iter();
        let place = debated.position(|one| one.conflict_id == conflict.conflict_id);
        Said {
            conflict,
            outcome,
            is_in_vain: outcome.is_some_and(|outcome| self.is_in_vain(outcome)),
            place: place.unwrap_or(usize::MAX),
        }
    }

    /// The disagreement of which this is an outcome, as if that stood.
    fn said_by<'a>(&'a self, outcome: &'a ConflictOutcome) -> Option<Said<'a>> {
        let first = self.taken_up(&outcome.conflict_id).last()?;
        let mut debated = self.debated.iter();
        let conflict = debated.find(|one| one.conflict_id == *first)?;
        Some(Said {
            outcome: Some(outcome),
            ..self.said(conflict)
        })
    }

    /// All disagreements; what is debated again is none of its own.
    fn all_said(&self) -> impl Iterator<Item = Said<'_>> {
        let is_anew = |conflict: &&Conflict| {
            let asked = self.asked.get(&conflict.conflict_id);
            asked.is_some_and(|asked| asked.terms.refers_to.is_some())
        };
        let all = self.debated.iter().chain(&self.deferred);
        all.filter(move |conflict| !is_anew(conflict))
            .map(|conflict| self.said(conflict))
    }

    /// The outcome that stands of this conflict and of the debates that took it up again. A debate that ended without a result leaves
    /// standing what was before it.
    pub(super) fn standing(&self, conflict: &Conflict) -> Option<&ConflictOutcome> {
        let first = self.outcomes.get(&conflict.conflict_id)?;
        let chain = std::iter::successors(Some(first), |outcome| {
            self.outcomes.get(outcome.debated_again_as.as_ref()?)
        });
        let last = chain
            .take(CHAIN_MAX)
            .filter(|outcome| outcome.resolution.is_some())
            .last();
        last.or(Some(first))
    }
}
