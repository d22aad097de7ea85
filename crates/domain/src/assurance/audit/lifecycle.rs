//! Invariants 1, 3 and 7: every case and debate ends, once, and its facts can be replayed.

use std::collections::BTreeMap;

use concord_events::{
    AggregateEvent, CaseEvent, DeadlineEvent, DebateEvent, DetectionEvent, PrecedentEvent,
    ReviewQueueEvent, StoredEvent, TrackRecordEvent,
};
use concord_wire::Token;
use concord_wire::payload::{Level, Status};

use super::report::{Invariant, Ledgers};
use super::{Ending, place};
use crate::aggregates::agent::AgentMachine;
use crate::aggregates::case::{CaseMachine, CaseState};
use crate::aggregates::deadline::DeadlineMachine;
use crate::aggregates::debate::{DebateMachine, DebateState};
use crate::aggregates::detection::DetectionMachine;
use crate::aggregates::escalation::Ladder;
use crate::aggregates::precedent::PrecedentMachine;
use crate::aggregates::review_queue::{QueueState, ReviewQueueMachine};
use crate::aggregates::track_record::TrackRecordMachine;
use crate::assurance::replay;
use crate::machine::{Machine, Versioned};

mod exchange;
use crate::activation::conversation::WakeMachine;
use crate::aggregates::request::RequestMachine;

/// How the facts of one kind of aggregate follow each other.
pub(super) trait Life: Machine {
    /// Whether such an aggregate must end some day.
    const ENDS: bool;
    /// Whether what begins one may also come later.
    const MAY_BEGIN_LATER: bool = false;

    /// Whether the fact is the first of every such aggregate.
    fn begins(event: &Self::Event) -> bool;
    /// Whether the fact ends it.
    fn ends(event: &Self::Event) -> bool;
    /// Whether the fact may still come after the end.
    fn may_follow_end(event: &Self::Event) -> bool;
    /// Whether the fact is, after the end, the beginning of another under the same name.
    fn begins_again(_event: &Self::Event) -> bool {
        false
    }
    /// Whether one may wait for nothing but people, for ever if they wish.
    fn may_rest(_state: &Self::State) -> bool {
        false
    }
    /// What is wrong with the order of the fact, given the state before it.
    fn misplaced(_before: &Self::State, _event: &Self::Event) -> Option<String> {
        None
    }
    /// Decides again what can be decided again, given the state after the fact.
    fn recount(_after: &Self::State, _record: &StoredEvent<Self::Event>) -> Vec<String> {
        Vec::new()
    }
    /// Where lives of this kind are kept.
    fn lives(all: &mut Lives) -> &mut LivesOf<Self>;
}

impl Life for CaseMachine {
    const ENDS: bool = true;

    fn begins(event: &CaseEvent) -> bool {
        matches!(event, CaseEvent::Opened(_))
    }

    fn ends(event: &CaseEvent) -> bool {
        matches!(event, CaseEvent::Decided(_) | CaseEvent::Cancelled(_))
    }

    fn may_follow_end(event: &CaseEvent) -> bool {
        // On the ladder a debate may go on when the case has been decided, and gates come after the decision.
        !matches!(
            event,
            CaseEvent::FindingRecorded(_)
                | CaseEvent::FindingsClosed(_)
                | CaseEvent::ConflictsReceived(_)
                | CaseEvent::Decided(_)
        )
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.cases
    }
}

impl Life for DebateMachine {
    const ENDS: bool = true;

    fn begins(event: &DebateEvent) -> bool {
        matches!(event, DebateEvent::Opened(_))
    }

    fn ends(event: &DebateEvent) -> bool {
        matches!(event, DebateEvent::Resolved(_))
    }

    fn may_follow_end(event: &DebateEvent) -> bool {
        matches!(
            event,
            DebateEvent::AnswerSetAside(_)
                | DebateEvent::RulingSetAside(_)
                | DebateEvent::OutcomeKnown(_)
        )
    }

    fn may_rest(state: &DebateState) -> bool {
        // At a gate somebody reviews it; what an operator holds, an operator resumes.
        state
            .ladder
            .as_ref()
            .is_some_and(|ladder| ladder.level == Level::Gate || ladder.held.is_some())
    }

    fn misplaced(before: &DebateState, event: &DebateEvent) -> Option<String> {
        if let Some(ladder) = before.ladder.as_deref() {
            return off_the_ladder(before, ladder, event);
        }
        let now = before.round;
        match event {
            DebateEvent::RoundClosed(closed) => {
                let right = closed.record.round == now
                    && closed.next_round == now.saturating_add(1)
                    && closed.next_round <= closed.rounds_max;
                (!right).then(|| {
                    let (closed, next, max) = (closed.record.round, closed.next_round, closed.rounds_max);
                    format!("In round {now} of at most {max} it closes round {closed} and begins round {next}.")
                })
            }
            DebateEvent::Resolved(resolved) => {
                let rounds: Vec<u32> = resolved
                    .outcome
                    .rounds
                    .iter()
                    .map(|round| round.round)
                    .collect();
                let closed = before.rounds.iter().map(|round| round.round);
                let held = before
                    .opened
                    .as_ref()
                    .is_some_and(|opened| opened.policy.rounds_max > 0);
                // What is cancelled in the middle of a round has not held it.
                let held = held && resolved.outcome.status != Status::Cancelled;
                let expected: Vec<u32> = closed.chain(held.then_some(now)).collect();
                (rounds != expected)
                    .then(|| format!("It reports the rounds {rounds:?}; held were {expected:?}."))
            }
            DebateEvent::Answered(answered) if answered.received.round != now => {
                let round = answered.received.round;
                Some(format!(
                    "In round {now} it takes an answer into account that belongs to round {round}."
                ))
            }
            _ => None,
        }
    }

    fn recount(after: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<String> {
        replay::recount_one(after, record)
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.debates
    }
}

/// What is wrong with a fact of a debate that is on the ladder: a debate never goes back to a lower level.
fn off_the_ladder(before: &DebateState, ladder: &Ladder, event: &DebateEvent) -> Option<String> {
    let (level, to) = match event {
        DebateEvent::Escalated(escalated) if escalated.from != ladder.level => {
            return Some(format!(
                "On level {} it leaves level {}.",
                ladder.level, escalated.from
            ));
        }
        DebateEvent::Escalated(escalated) => (ladder.level, escalated.to),
        DebateEvent::FellBack(_) => (ladder.level, Level::Fallback),
        DebateEvent::AwaitsGate(_) => (ladder.level, Level::Gate),
        DebateEvent::Resolved(resolved) if resolved.outcome.rounds != before.rounds => {
            return Some("It reports other rounds than were held.".to_owned());
        }
        DebateEvent::Answered(_) | DebateEvent::RoundClosed(_) => {
            return Some(format!(
                "On level {} a round of discussion goes on.",
                ladder.level
            ));
        }
        _ => return None,
    };
    (to <= level).then(|| format!("It goes from level {level} to level {to}."))
}

impl Life for DetectionMachine {
    const ENDS: bool = false;

    fn begins(_: &DetectionEvent) -> bool {
        true
    }

    fn ends(_: &DetectionEvent) -> bool {
        true
    }

    fn may_follow_end(_: &DetectionEvent) -> bool {
        false
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.detections
    }
}

impl Life for DeadlineMachine {
    const ENDS: bool = false;

    fn begins(_: &DeadlineEvent) -> bool {
        true
    }

    fn ends(_: &DeadlineEvent) -> bool {
        false
    }

    fn may_follow_end(_: &DeadlineEvent) -> bool {
        true
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.deadlines
    }
}

impl Life for TrackRecordMachine {
    const ENDS: bool = false;

    fn begins(_: &TrackRecordEvent) -> bool {
        true
    }

    fn ends(_: &TrackRecordEvent) -> bool {
        false
    }

    fn may_follow_end(_: &TrackRecordEvent) -> bool {
        true
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.records
    }
}

impl Life for PrecedentMachine {
    const ENDS: bool = false;

    fn begins(_: &PrecedentEvent) -> bool {
        true
    }

    fn ends(_: &PrecedentEvent) -> bool {
        false
    }

    fn may_follow_end(_: &PrecedentEvent) -> bool {
        true
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.precedents
    }
}

impl Life for ReviewQueueMachine {
    const ENDS: bool = false;

    fn begins(_: &ReviewQueueEvent) -> bool {
        true
    }

    fn ends(_: &ReviewQueueEvent) -> bool {
        false
    }

    fn may_follow_end(_: &ReviewQueueEvent) -> bool {
        true
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.queues
    }
}

/// One aggregate.
#[derive(Debug)]
struct One<M: Machine> {
    /// Its state; the empty one after its end, of which only the sequences are needed.
    versioned: Versioned<M>,
    ended: bool,
    last: u64,
}

impl<M: Machine> Default for One<M> {
    fn default() -> Self {
        Self {
            versioned: Versioned::default(),
            ended: false,
            last: 0,
        }
    }
}

/// All aggregates of one kind.
#[derive(Debug)]
pub(super) struct LivesOf<M: Machine>(BTreeMap<Token, One<M>>);

impl<M: Machine> Default for LivesOf<M> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<M: Life> LivesOf<M> {
    pub(super) fn event(&mut self, ledgers: &mut Ledgers, record: &StoredEvent<M::Event>) {
        let place = place(M::Event::AGGREGATE, &record.meta.id);
        let one = self.0.entry(record.meta.id.clone()).or_default();
        let is_first = one.versioned.sequences.is_empty();
        one.ended &= !M::begins_again(&record.event);
        if is_first && M::ENDS {
            ledgers.examined(Invariant::EndsOnce);
        }
        for what in misplaced::<M>(one, is_first, &record.event) {
            ledgers.violated(
                Invariant::EndsOnce,
                place.clone(),
                Some(record.sequence),
                what,
            );
        }
        let mut differences = replay::step(&mut one.versioned, record);
        // Facts after the end are applied to an empty state, from which nothing can be counted again.
        if !one.ended {
            differences.extend(M::recount(&one.versioned.state, record));
        }
        for what in differences {
            ledgers.violated(
                Invariant::Replay,
                place.clone(),
                Some(record.sequence),
                what,
            );
        }
        one.last = record.sequence;
        one.ended |= M::ends(&record.event);
        if one.ended {
            one.versioned.state = M::State::default();
        }
    }

    fn state(&self, id: &Token) -> Option<&M::State> {
        self.0
            .get(id)
            .filter(|one| !one.ended)
            .map(|one| &one.versioned.state)
    }

    fn stuck(&self, ledgers: &mut Ledgers, ending: &Ending) {
        for (id, one) in &self.0 {
            ledgers.examined(Invariant::NothingStuck);
            if one.ended || M::may_rest(&one.versioned.state) {
                continue;
            }
            let open = M::deadlines(&one.versioned.state);
            let what = match open.iter().map(|deadline| deadline.due).max() {
                None => "It has not ended, and waits for nothing.".to_owned(),
                Some(last)
                    if ending.quiescent && ending.now > last.plus_millis(ending.grace_ms) =>
                {
                    format!(
                        "It has not ended, although the last of its deadlines was due at {last}."
                    )
                }
                Some(_) => continue,
            };
            ledgers.violated(
                Invariant::NothingStuck,
                place(M::Event::AGGREGATE, id),
                Some(one.last),
                what,
            );
        }
    }
}

fn misplaced<M: Life>(one: &One<M>, is_first: bool, event: &M::Event) -> Vec<String> {
    let fact = event.name();
    let mut found = Vec::new();
    let begins = M::begins(event);
    if M::ENDS && (is_first && !begins || !is_first && begins && !M::MAY_BEGIN_LATER) {
        found.push(if is_first {
            format!("It begins with {fact}.")
        } else {
            format!("It has {fact} a second time.")
        });
    }
    if one.ended && !M::may_follow_end(event) {
        found.push(format!("It has {fact} after its end."));
    }
    if !one.ended {
        found.extend(M::misplaced(&one.versioned.state, event));
    }
    found
}

/// Everything that lives.
#[derive(Debug, Default)]
pub(super) struct Lives {
    cases: LivesOf<CaseMachine>,
    debates: LivesOf<DebateMachine>,
    detections: LivesOf<DetectionMachine>,
    deadlines: LivesOf<DeadlineMachine>,
    records: LivesOf<TrackRecordMachine>,
    precedents: LivesOf<PrecedentMachine>,
    queues: LivesOf<ReviewQueueMachine>,
    agents: LivesOf<AgentMachine>,
    requests: LivesOf<RequestMachine>,
    conversations: LivesOf<WakeMachine>,
}

impl Lives {
    /// The state of a case that has not ended.
    pub(super) fn case(&self, id: &Token) -> Option<&CaseState> {
        self.cases.state(id)
    }

    /// The state of the queue.
    pub(super) fn queue(&self, id: &Token) -> Option<&QueueState> {
        self.queues.state(id)
    }

    /// Whether there is a case of this id, ended or not.
    pub(super) fn has_case(&self, id: &Token) -> bool {
        self.cases.0.contains_key(id)
    }

    /// Whether there is a debate of this id, ended or not.
    pub(super) fn has_debate(&self, id: &Token) -> bool {
        self.debates.0.contains_key(id)
    }

    pub(super) fn finish(&self, ledgers: &mut Ledgers, ending: &Ending) {
        self.cases.stuck(ledgers, ending);
        self.debates.stuck(ledgers, ending);
        self.requests.stuck(ledgers, ending);
    }
}
