//! Invariant 12: what people have signed is as they signed it, with a key that was registered with them then.
//!
//! Nothing in the domain can verify a signature: the auditor is given a function that can.

use std::collections::BTreeMap;

use concord_events::{
    Aggregate, CaseEvent, DebateEvent, GateReviewed, Heard, PersonEvent, StoredEvent,
};
use concord_wire::payload::{
    ConflictOutcome, Resolution, Review, ReviewAction, RuledBy, Ruling, Signature, Status,
};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp, Token};

use super::place;
use super::report::{Counts, Invariant};
use crate::aggregates::case::CaseState;
use crate::aggregates::debate::{DebateState, review_differences, ruling_differences};

/// Whether a signature fits a text and the key that it names.
pub type Verify = fn(&Signature, &str) -> bool;

/// How long after a key was replaced something signed with it may be stored, in milliseconds: it was verified before.
const REPLACED_GRACE_MS: u64 = 60_000;

/// What was chosen at the end of a debate, and by whom.
type End = (Option<Resolution>, Option<RuledBy>);

/// What is known of keys, and of what was signed with them and is told elsewhere later.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    verify: Option<Verify>,
    /// The keys of each person in the order in which they were registered, with the time; none where a registration has none.
    keys: BTreeMap<Token, Vec<(Option<String>, Timestamp)>>,
    /// Signed reviews of debates that have not ended yet.
    reviews: BTreeMap<DebateId, GateReviewed>,
    /// What the ends of debates that somebody has signed say, until their cases have told them.
    ends: BTreeMap<DebateId, End>,
}

/// Something that was signed, where it stands in the log.
struct Kept<'a> {
    by: &'a Heard,
    signature: &'a Signature,
    text: String,
    at: Timestamp,
}

/// The end of a debate as coordinators of earlier versions tell it, which pass over what the first of two reviewers said, or who that was.
fn as_told_before((resolution, ruled_by): &End) -> [End; 2] {
    let told = |with_first: bool| {
        let mut ruled_by = ruled_by.clone();
        if let Some(ruled) = &mut ruled_by {
            ruled.first_rationale = None;
            ruled.first_reviewer = ruled.first_reviewer.take().filter(|_| with_first);
        }
        (resolution.clone(), ruled_by)
    };
    [told(true), told(false)]
}

impl Signatures {
    pub(super) fn verified_with(verify: Verify) -> Self {
        Self {
            verify: Some(verify),
            ..Self::default()
        }
    }

    /// Takes an event of a person into account: they may have another key.
    pub(super) fn person(&mut self, record: &StoredEvent<PersonEvent>) {
        let PersonEvent::Registered(registered) = &record.event else {
            return;
        };
        let keys = self.keys.entry(record.meta.id.clone()).or_default();
        let key = registered.person.public_key.clone();
        if keys.last().is_none_or(|(last, _)| *last != key) {
            keys.push((key, record.meta.at));
        }
    }

    /// Takes an event of a debate into account, given the state before it.
    pub(super) fn debate(
        &mut self,
        counts: &mut Counts,
        before: Option<&DebateState>,
        record: &StoredEvent<DebateEvent>,
    ) {
        let DebateEvent::Resolved(resolved) = &record.event else {
            return;
        };
        let outcome = &resolved.outcome;
        let ruled_by = outcome.ruled_by.as_ref();
        let has_key = ruled_by.is_some_and(|ruled| ruled.key.is_some());
        let faults = match (outcome.status, &resolved.ruling) {
            (Status::Ruling, Some(ruling)) => {
                counts.examined(Invariant::Signatures);
                let kept = (&resolved.case_id, resolved.heard.as_ref());
                self.ruling(kept, before, outcome, (ruling, record.meta.at))
            }
            (Status::Ruling, None) if has_key => {
                vec!["It names the key of a ruling that is not there.".to_owned()]
            }
            (Status::Ruling, None) => asked_for(before.is_some_and(|state| {
                let opened = state.opened.as_ref();
                opened.is_some_and(|opened| opened.policy.ladder.signed)
            })),
            (_, Some(_)) => vec!["It has a signed ruling, and nobody ruled.".to_owned()],
            (Status::Confirmed | Status::Overridden | Status::Redebated, None) => {
                self.end_at_gate(before, outcome, has_key)
            }
            _ => Vec::new(),
        };
        if has_key {
            let end = (outcome.resolution.clone(), outcome.ruled_by.clone());
            self.ends.insert(outcome.conflict_id.clone(), end);
        }
        let place = place(Aggregate::Debate, &record.meta.id);
        violated(counts, &place, record.sequence, faults);
    }

    fn ruling(
        &self,
        (case_id, heard): (&CaseId, Option<&Heard>),
        before: Option<&DebateState>,
        outcome: &ConflictOutcome,
        (ruling, at): (&Ruling, Timestamp),
    ) -> Vec<String> {
        let Some((by, signature)) = heard.zip(ruling.signature.as_ref()) else {
            return vec!["It keeps a ruling without its signature or its message.".to_owned()];
        };
        let text = ruling.signed_text(&by.agent_id, case_id, &by.message_id);
        let kept = Kept {
            by,
            signature,
            text,
            at,
        };
        let mut faults = self.faults(&kept);
        if let Some(before) = before {
            let differences = ruling_differences(before, outcome, &by.agent_id, ruling);
            faults.extend(differences.iter().map(|one| differs(&by.agent_id, one)));
        }
        faults
    }

    fn end_at_gate(
        &mut self,
        before: Option<&DebateState>,
        outcome: &ConflictOutcome,
        has_key: bool,
    ) -> Vec<String> {
        match (self.reviews.remove(&outcome.conflict_id), has_key) {
            (None, false) => Vec::new(),
            (None, true) => vec!["It names the key of a review that is not there.".to_owned()],
            (Some(reviewed), _) => {
                let by = &reviewed.heard.agent_id;
                let differences =
                    before.map(|before| review_differences(before, outcome, &reviewed));
                let differences = differences.unwrap_or_default();
                differences.iter().map(|one| differs(by, one)).collect()
            }
        }
    }

    /// Takes an event of a case into account, given the state before it.
    pub(super) fn case(
        &mut self,
        counts: &mut Counts,
        before: Option<&CaseState>,
        record: &StoredEvent<CaseEvent>,
    ) {
        let faults = match &record.event {
            CaseEvent::ReviewRecorded(recorded) => self.review(
                counts,
                before,
                record,
                (&recorded.heard, Some(&recorded.review)),
            ),
            CaseEvent::GateReviewed(reviewed) => {
                let (heard, review) = (&reviewed.heard, &reviewed.review);
                let mut faults = self.review(counts, before, record, (heard, Some(review)));
                if review.signature.is_some() {
                    if review.debate_id.as_ref() != Some(&reviewed.debate_id) {
                        faults.push(differs(&heard.agent_id, "the debate is another one"));
                    }
                    let signed = GateReviewed {
                        again: None,
                        ..GateReviewed::clone(reviewed)
                    };
                    self.reviews.insert(reviewed.debate_id.clone(), signed);
                }
                faults
            }
            CaseEvent::GatePassed(passed) => {
                let (heard, review) = (&passed.heard, passed.review.as_deref());
                let mut faults = self.review(counts, before, record, (heard, review));
                let is_other = review.is_some_and(|review| {
                    (review.action, &review.gate, &review.rationale)
                        != (ReviewAction::Pass, &passed.gate, &passed.rationale)
                });
                if is_other {
                    faults.push(differs(
                        &heard.agent_id,
                        "the gate or the reason is another",
                    ));
                }
                faults
            }
            CaseEvent::DebateSettled(settled) => self.told(&settled.outcome),
            CaseEvent::Decided(decided) => {
                let last = decided.last.as_ref();
                last.map_or_else(Vec::new, |outcome| self.told(outcome))
            }
            CaseEvent::DecisionChanged(changed) => self.told(&changed.outcome),
            _ => Vec::new(),
        };
        let place = place(Aggregate::Case, &record.meta.id);
        violated(counts, &place, record.sequence, faults);
    }

    fn review(
        &self,
        counts: &mut Counts,
        before: Option<&CaseState>,
        record: &StoredEvent<CaseEvent>,
        (by, review): (&Heard, Option<&Review>),
    ) -> Vec<String> {
        let signed = review.and_then(|review| Some((review, review.signature.as_ref()?)));
        let Some((review, signature)) = signed else {
            return asked_for(before.is_some_and(|state| {
                let opened = state.opened.as_ref();
                opened.is_some_and(|opened| opened.policy.ladder.signed)
            }));
        };
        counts.examined(Invariant::Signatures);
        let Ok(case_id) = CaseId::new(record.meta.id.as_str()) else {
            return Vec::new();
        };
        self.faults(&Kept {
            by,
            signature,
            text: review.signed_text(&by.agent_id, &case_id, &by.message_id),
            at: record.meta.at,
        })
    }

    /// What a case tells of a debate that somebody has signed is what that debate's own event says.
    fn told(&mut self, outcome: &ConflictOutcome) -> Vec<String> {
        let is_end = outcome.status != Status::Provisional;
        let end = is_end.then(|| self.ends.remove(&outcome.conflict_id));
        let told = (outcome.resolution.clone(), outcome.ruled_by.clone());
        match end.flatten() {
            Some(end) if end != told && !as_told_before(&end).contains(&told) => vec![format!(
                "What it tells of {} is not how that debate has ended, which a person has signed.",
                outcome.conflict_id
            )],
            _ => Vec::new(),
        }
    }

    fn faults(&self, kept: &Kept<'_>) -> Vec<String> {
        let who = &kept.by.agent_id;
        let key = kept.signature.fingerprint();
        let mut faults: Vec<String> = self.unregistered(kept).into_iter().collect();
        let fits = self
            .verify
            .is_none_or(|verify| verify(kept.signature, &kept.text));
        if !fits {
            faults.push(format!(
                "What {who} is said to have signed with the key {key} does not fit the signature."
            ));
        }
        faults
    }

    /// What is wrong with the key that a signature names.
    fn unregistered(&self, kept: &Kept<'_>) -> Option<String> {
        let who = &kept.by.agent_id;
        let keys = self.keys.get(&who.token()).map_or(&[][..], Vec::as_slice);
        let used = &kept.signature.key;
        let is_it = |key: &Option<String>| {
            key.as_ref()
                .is_some_and(|key| key.eq_ignore_ascii_case(used))
        };
        let replaced = keys.iter().skip(1).map(|(_, since)| Some(*since));
        let mut periods = keys.iter().zip(replaced.chain([None]));
        let counted = periods.clone().any(|((key, _), until)| {
            let late = until.is_some_and(|until| kept.at.millis_since(until) > REPLACED_GRACE_MS);
            is_it(key) && !late
        });
        if counted {
            return None;
        }
        let was = if periods.any(|((key, _), _)| is_it(key)) {
            "had been replaced then"
        } else {
            "was never registered with them"
        };
        let key = kept.signature.fingerprint();
        Some(format!(
            "{who} is said to have signed with the key {key}, which {was}."
        ))
    }
}

fn asked_for(is_required: bool) -> Vec<String> {
    let unsigned = "The policy of the case asks for a signature, and there is none.";
    is_required
        .then(|| unsigned.to_owned())
        .into_iter()
        .collect()
}

fn differs(who: &AgentId, what: &str) -> String {
    format!("It is not what {who} has signed: {what}.")
}

fn violated(counts: &mut Counts, place: &str, sequence: u64, faults: Vec<String>) {
    for what in faults {
        counts.violated(Invariant::Signatures, place, Some(sequence), what);
    }
}
