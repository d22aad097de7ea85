//! A precedent: how the last debates of one kind about one subject ended. Owned by the debate
//! facilitator. A debate is entered twice: under its kind and subject ([`id_of`]), and under its kind,
//! policy and domain ([`field_id_of`]), where debates about like subjects are found. What proved right
//! is entered when it becomes known, in place of the entry that did not say it.
//!
//! | state                               | an entry                                         |
//! |-------------------------------------|--------------------------------------------------|
//! | any                                 | refused: no level from 1 to 5, no or a bad status |
//! | has the same                        | ignored: repetition                              |
//! | has a later one of the same debate  | ignored: already done                            |
//! | has an earlier one of it            | recorded, in its place                           |
//! | fewer than 20 debates               | recorded                                         |
//! | 20 debates, all of them later       | ignored: already done                            |
//! | 20 other debates                    | recorded; the oldest is forgotten                |
//!
//! A provisional decision is recorded when it is made. When a person overrides it, the entry of the
//! override takes its place. Of two entries the one with the later time is the later one; at the
//! same time, the one of the higher level. An entry that would be forgotten at once is not
//! recorded: it may have been recorded before.

use std::collections::BTreeSet;

use concord_events::{PrecedentEvent, PrecedentRecorded, StoredEvent};
use concord_wire::payload::{ConflictType, Precedent, PrecedentMatter};
use concord_wire::{DebateId, Timestamp, Token};
use serde::{Deserialize, Serialize};

use crate::machine::{Carry, Context, Decision, Ignored, Machine, forgetting};
use crate::rules::canonical::normalise;
use crate::rules::conflict_type::rule_of;
use crate::rules::precedent::{is_like, like};
use crate::rules::size_budget::truncate;

/// Most debates of one precedent; beyond that the oldest are forgotten.
pub const DEBATES_MAX: usize = 20;

/// The state machine of a precedent.
#[derive(Debug, Clone, Copy)]
pub struct PrecedentMachine;

/// The state of a precedent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PrecedentState {
    /// One entry for each debate, the oldest first; entries of one instant in the order of their
    /// arrival.
    entries: Vec<Precedent>,
}

impl PrecedentState {
    /// The entry of a debate.
    pub fn of(&self, debate: &DebateId) -> Option<&Precedent> {
        self.entries.iter().find(|entry| entry.debate_id == *debate)
    }

    /// Whether an entry of this time, of a new debate, would be forgotten at once.
    fn is_past(&self, at: Timestamp, most: usize) -> bool {
        self.entries.len() >= most && self.entries.first().is_some_and(|oldest| at <= oldest.at)
    }

    /// Adds an entry in place of an earlier one of its debate, and forgets the oldest beyond
    /// `most`.
    fn keep(&mut self, entry: Precedent, most: usize) {
        self.entries
            .retain(|earlier| earlier.debate_id != entry.debate_id);
        let place = self.entries.partition_point(|other| other.at <= entry.at);
        self.entries.insert(place, entry);
        let surplus = self.entries.len().saturating_sub(most);
        self.entries.drain(..surplus);
        debug_assert!(
            self.entries.is_sorted_by_key(|entry| entry.at),
            "entries are kept in the order of their times"
        );
    }
}

/// The newest entries, of at most `most` debates, the newest first.
pub fn recent(state: &PrecedentState, most: usize) -> Vec<&Precedent> {
    state.entries.iter().rev().take(most).collect()
}

/// The id of the precedent in which debates of one kind, policy and domain are kept, whatever they are about.
pub fn field_id_of(matter: &PrecedentMatter) -> Token {
    let domain = matter.domain.as_deref().map(normalise).unwrap_or_default();
    Token::derived(&format!(
        "{}//{}/{domain}",
        matter.kind.as_str(),
        normalise(&matter.policy)
    ))
}

/// The entries of either precedent that are like this matter, of each debate one, the newest first. Of those that were entered
/// before it was kept what they are about, the ones under the same kind and subject count, unless that is the score or the
/// recommendation, of which every case has one.
pub fn alike<'a>(
    matter: &PrecedentMatter,
    exact: &'a PrecedentState,
    field: &'a PrecedentState,
    most: usize,
) -> Vec<&'a Precedent> {
    let old = |one: &&Precedent| {
        one.matter.is_none()
            && !rule_of(matter.kind).is_about_the_result()
            && is_like(matter, matter)
    };
    let exact_old = exact.entries.iter().filter(old);
    let known = exact.entries.iter().chain(&field.entries);
    let mut found: Vec<&Precedent> = like(matter, known).chain(exact_old).collect();
    found.sort_by(|a, b| {
        let order = b.at.cmp(&a.at).then_with(|| a.debate_id.cmp(&b.debate_id));
        order.then_with(|| b.proved.is_some().cmp(&a.proved.is_some()))
    });
    let mut seen = BTreeSet::new();
    found.retain(|one| seen.insert(&one.debate_id));
    found.truncate(most);
    found
}

/// The same without the debates of a case's own, which are no earlier decisions to that case.
pub fn alike_elsewhere<'a>(
    matter: &PrecedentMatter,
    (exact, field): (&'a PrecedentState, &'a PrecedentState),
    own: &BTreeSet<DebateId>,
    most: usize,
) -> Vec<&'a Precedent> {
    let mut found = alike(matter, exact, field, usize::MAX);
    found.retain(|one| !own.contains(&one.debate_id));
    found.truncate(most);
    found
}

/// The id of the precedent for conflicts of this kind about this subject. Spellings of the subject
/// that compare as equal give the same id.
pub fn id_of(kind: ConflictType, subject: &str) -> Token {
    Token::derived(&format!("{}/{}", kind.as_str(), normalise(subject)))
}

/// The JSON pointer of the entry in the message that brings it.
const POINTER: &str = "/payload/precedent";

/// Which of two entries of one debate is the later one: that of the later time, then of the higher level, then the one that says
/// what proved right.
fn order(entry: &Precedent) -> (Timestamp, u8, bool) {
    (entry.at, entry.level, entry.proved.is_some())
}

impl Machine for PrecedentMachine {
    type State = PrecedentState;
    type Event = PrecedentEvent;
    type Input = Precedent;

    // 20 entries count, for as long as there are debates like these.
    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    fn state_bytes_max(state: &PrecedentState) -> usize {
        forgetting(state.entries.len() * 4_096)
    }

    fn decide(state: &PrecedentState, _: &Context, input: &Precedent) -> Decision<PrecedentEvent> {
        if let Err(fault) = input.check(POINTER) {
            return Decision::Reject(fault);
        }
        let entry = Precedent {
            topic: truncate::topic(&input.topic),
            position: truncate::topic(&input.position),
            ..input.clone()
        };
        match state.of(&entry.debate_id) {
            Some(known) if *known == entry => Decision::Ignore(Ignored::Repetition),
            Some(known) if order(known) > order(&entry) => Decision::Ignore(Ignored::AlreadyDone),
            None if state.is_past(entry.at, DEBATES_MAX) => Decision::Ignore(Ignored::AlreadyDone),
            _ => Decision::Append(PrecedentEvent::Recorded(PrecedentRecorded {
                precedent: entry,
            })),
        }
    }

    fn apply(state: &mut PrecedentState, record: StoredEvent<PrecedentEvent>) {
        let PrecedentEvent::Recorded(recorded) = record.event;
        state.keep(recorded.precedent, DEBATES_MAX);
    }
}

#[cfg(test)]
mod tests;
