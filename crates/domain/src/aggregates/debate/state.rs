//! The state of a debate, and how its events change it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::escalation::parties;
use concord_events::{
    DebateEvent, DebateOpened, DebateResolved, Heard, ReceivedAnswer, StoredEvent,
};
use concord_wire::payload::{
    ConflictOutcome, Level, Position, RoundRecord, SetAsideReason, Snapshot,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, Timestamp};

mod ladder;
mod position_changes;

pub use ladder::Ladder;
#[cfg(test)]
pub(super) use position_changes::position_changes;

/// An answer of the round under way. Its text is in its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundAnswer {
    /// The sender.
    pub agent_id: AgentId,
    /// Whether the party now holds a peer's position.
    pub agrees: bool,
}

/// The parties are awaited to write what they know into shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySyncState {
    /// Until when.
    pub until: Timestamp,
    /// Those that have said that everything is written.
    pub flushed: BTreeSet<AgentId>,
}

/// The state of a debate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DebateState {
    /// How it was opened. Shared, because a state is copied to look ahead and this part of it never
    /// changes.
    pub opened: Option<Arc<DebateOpened>>,
    /// When it was opened.
    pub opened_at: Option<Timestamp>,
    /// That the parties are awaited before the first round, as long as they are.
    pub sync: Option<MemorySyncState>,
    /// The snapshot of shared memory that the debate refers to.
    pub snapshot: Option<Snapshot>,
    /// The round under way, from 1; 0 before the first.
    pub round: u32,
    /// Sequence of the event that began the round; questions of the round carry it in their ids.
    pub round_sequence: u64,
    /// The agents that are asked in the round.
    pub asked: Vec<AgentId>,
    /// Until when answers of the round count.
    pub due: Option<Timestamp>,
    /// Answers of the round, in the order of arrival.
    pub answers: Vec<RoundAnswer>,
    /// What each party holds now, ordered by agent id.
    pub positions: Vec<Position>,
    /// What each party held when the round began.
    pub round_positions: Vec<Position>,
    /// Rounds that have closed.
    pub rounds: Vec<RoundRecord>,
    /// Its way on the ladder, from when it is on it.
    pub ladder: Option<Box<Ladder>>,
    /// How it ended.
    pub outcome: Option<ConflictOutcome>,
    /// The agent that reported what proved right, once one has.
    pub proved_by: Option<AgentId>,
    /// Ids and senders of the messages that were recorded, with their digests, to recognise a repetition.
    pub seen: BTreeMap<(MessageId, AgentId), String>,
    /// Events of the review queue by which the debate was assigned or taken back. One that is
    /// delivered again after a later one must not undo that.
    pub queued_by: Vec<MessageId>,
    /// Answers that were recorded and not used.
    pub set_aside: Vec<(AgentId, MessageId, SetAsideReason)>,
}

impl DebateState {
    pub(super) fn apply(&mut self, record: StoredEvent<DebateEvent>) {
        if matches!(
            record.event,
            DebateEvent::Assigned(_) | DebateEvent::Unassigned(_)
        ) {
            self.queued_by.push(record.meta.cause.clone());
        }
        self.snapshot = taken_by(&record).or(self.snapshot);
        match record.event {
            DebateEvent::Flushed(flushed) => {
                if let Some(sync) = &mut self.sync {
                    sync.flushed.insert(flushed.heard.agent_id.clone());
                }
                self.remember(flushed.heard);
            }
            DebateEvent::Synced(synced) => {
                self.sync = None;
                if let Some(last) = synced.last {
                    self.remember(last);
                }
                self.begin_round(record.sequence, 1, synced.asked, Some(synced.due));
            }
            DebateEvent::Opened(opened) => {
                self.opened_at = Some(record.meta.at);
                self.open(*opened, record.sequence, record.meta.cause);
            }
            DebateEvent::Answered(answered) => self.take(answered.received),
            DebateEvent::AnswerSetAside(aside) => {
                self.seen.insert(
                    (aside.message_id.clone(), aside.agent_id.clone()),
                    aside.digest,
                );
                self.set_aside
                    .push((aside.agent_id, aside.message_id, aside.reason));
            }
            DebateEvent::RoundClosed(closed) => {
                if let Some(last) = closed.last {
                    self.take(last);
                }
                self.rounds.push(closed.record);
                self.begin_round(
                    record.sequence,
                    closed.next_round,
                    closed.asked,
                    Some(closed.due),
                );
            }
            DebateEvent::Resolved(resolved) => self.resolve(*resolved),
            DebateEvent::OutcomeKnown(known) => {
                self.proved_by = Some(known.heard.agent_id.clone());
                self.remember(known.heard);
            }
            other => self.apply_ladder_event(other, record.meta.at),
        }
    }

    fn open(&mut self, opened: DebateOpened, sequence: u64, cause: MessageId) {
        self.positions.clone_from(&opened.conflict.positions);
        self.begin_round(sequence, 1, opened.asked.clone(), opened.due);
        // Without a first round it begins on the ladder.
        if opened.due.is_none() {
            self.ladder = Some(Box::new(Ladder::at(
                Level::Agents,
                opened.waits_for.clone(),
            )));
        }
        self.sync = opened.sync_until.map(|until| MemorySyncState {
            until,
            flushed: BTreeSet::new(),
        });
        self.opened = Some(Arc::new(opened));
        // The request's id is used up. An event's id follows from its cause: an answer under this
        // id could never be stored, and is no repetition of anything.
        let opener = Service::ConflictDetector.agent_id();
        self.seen.insert((cause, opener), String::new());
    }

    fn resolve(&mut self, resolved: DebateResolved) {
        if let Some(last) = resolved.last {
            self.take(last);
        }
        if let Some(heard) = resolved.heard {
            self.remember(heard);
        }
        self.rounds.clone_from(&resolved.outcome.rounds);
        self.outcome = Some(resolved.outcome);
        self.sync = None;
        self.due = None;
        if let Some(ladder) = &mut self.ladder {
            ladder.background = None;
        }
    }

    fn begin_round(
        &mut self,
        sequence: u64,
        round: u32,
        asked: Vec<AgentId>,
        due: Option<Timestamp>,
    ) {
        self.round = round;
        self.round_sequence = sequence;
        self.asked = asked;
        self.due = due;
        self.answers.clear();
        self.round_positions.clone_from(&self.positions);
    }

    /// Takes an answer into account: remembers the message and moves the party to its new position.
    fn take(&mut self, received: ReceivedAnswer) {
        let ReceivedAnswer {
            agent_id,
            message_id,
            digest,
            agrees,
            position,
            ..
        } = received;
        self.seen.insert((message_id, agent_id.clone()), digest);
        if let Some(held) = self
            .positions
            .iter_mut()
            .find(|held| held.agent_id == agent_id)
        {
            *held = position;
        }
        self.answers.push(RoundAnswer { agent_id, agrees });
    }

    fn remember(&mut self, message: Heard) {
        self.seen
            .insert((message.message_id, message.agent_id), message.digest);
    }

    /// Whose messages a deadline of the debate waits for, as long as it is not resolved: those of its parties, of its mediator and of the
    /// expert who has it.
    pub fn heard_in_time(&self) -> Vec<AgentId> {
        let Some(opened) = self.opened.as_ref().filter(|_| self.outcome.is_none()) else {
            return Vec::new();
        };
        let mediator = opened.policy.ladder.mediator.as_ref();
        let expert = self.ladder.as_ref().and_then(|one| one.expert.as_ref());
        let mut heard = parties(opened);
        heard.extend(mediator.into_iter().chain(expert).cloned());
        heard
    }

    /// Whether a message of another than `sender` was recorded under this id.
    pub(super) fn is_taken(&self, id: &MessageId, sender: &AgentId) -> bool {
        let mut seen = self.seen.keys();
        seen.any(|(used, by)| used == id && by != sender)
    }
}

/// The snapshot that an event is: that with which the discussion or a challenge begins.
pub(super) fn taken_by(record: &StoredEvent<DebateEvent>) -> Option<Snapshot> {
    let takes = match &record.event {
        DebateEvent::Synced(_) => true,
        DebateEvent::Opened(opened) => {
            opened.policy.memory_sync_ms > 0 && opened.sync_until.is_none()
        }
        _ => false,
    };
    takes.then_some(Snapshot(record.sequence))
}
