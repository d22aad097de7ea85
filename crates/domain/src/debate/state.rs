//! What is known of a debate.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_protocol::event::{DebateEvent, DebateOpened, ReceivedAnswer, Record};
use concord_protocol::payload::{ConflictOutcome, Position, RoundRecord, SetAsideReason};
use concord_protocol::subject::Service;
use concord_protocol::{AgentId, MessageId, Timestamp};

/// What is remembered of an answer of the round; its words are in its fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Who answered.
    pub agent_id: AgentId,
    /// Whether the party now holds a peer's position.
    pub agrees: bool,
}

/// What is known of a debate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DebateState {
    /// How it was opened. Shared, because a state is copied to look ahead and this part of it never changes.
    pub opened: Option<Arc<DebateOpened>>,
    /// The round under way, from 1; 0 before the first.
    pub round: u32,
    /// Sequence of the fact that began the round; questions of the round carry it in their ids.
    pub round_sequence: u64,
    /// Who is asked in the round.
    pub asked: Vec<AgentId>,
    /// Until when answers of the round count.
    pub due: Option<Timestamp>,
    /// Answers of the round, in the order of arrival.
    pub answers: Vec<Heard>,
    /// What each party holds now, ordered by agent id.
    pub positions: Vec<Position>,
    /// What each party held when the round began.
    pub round_positions: Vec<Position>,
    /// Rounds that have closed.
    pub rounds: Vec<RoundRecord>,
    /// How it ended.
    pub outcome: Option<ConflictOutcome>,
    /// Senders and digests of the messages that were recorded, to know a repetition.
    pub seen: BTreeMap<MessageId, (AgentId, String)>,
    /// Answers recorded and not used.
    pub set_aside: Vec<(AgentId, MessageId, SetAsideReason)>,
}

impl DebateState {
    pub(super) fn apply(&mut self, record: Record<DebateEvent>) {
        match record.event {
            DebateEvent::Opened(opened) => {
                self.positions.clone_from(&opened.conflict.positions);
                self.begin(record.sequence, 1, opened.asked.clone(), opened.due);
                self.opened = Some(Arc::new(*opened));
                // The request's id is used up. A fact's id follows from its cause: an answer under it could never be
                // stored, and is no repetition of anything.
                let opener = Service::ConflictDetector.agent_id();
                self.seen.insert(record.meta.cause, (opener, String::new()));
            }
            DebateEvent::Answered(answered) => self.take(answered.received),
            DebateEvent::AnswerSetAside(aside) => {
                self.seen.insert(aside.message_id.clone(), (aside.agent_id.clone(), aside.digest));
                self.set_aside.push((aside.agent_id, aside.message_id, aside.reason));
            }
            DebateEvent::RoundClosed(closed) => {
                if let Some(last) = closed.last {
                    self.take(last);
                }
                self.rounds.push(closed.record);
                self.begin(record.sequence, closed.next_round, closed.asked, Some(closed.due));
            }
            DebateEvent::Resolved(resolved) => {
                let resolved = *resolved;
                if let Some(last) = resolved.last {
                    self.take(last);
                }
                self.rounds.clone_from(&resolved.outcome.rounds);
                self.outcome = Some(resolved.outcome);
                self.due = None;
            }
        }
    }

    fn begin(&mut self, sequence: u64, round: u32, asked: Vec<AgentId>, due: Option<Timestamp>) {
        self.round = round;
        self.round_sequence = sequence;
        self.asked = asked;
        self.due = due;
        self.answers.clear();
        self.round_positions.clone_from(&self.positions);
    }

    /// Takes an answer into account: remembers the message and moves the party to its new position.
    fn take(&mut self, received: ReceivedAnswer) {
        let ReceivedAnswer { agent_id, message_id, digest, agrees, position, .. } = received;
        self.seen.insert(message_id, (agent_id.clone(), digest));
        if let Some(held) = self.positions.iter_mut().find(|held| held.agent_id == agent_id) {
            *held = position;
        }
        self.answers.push(Heard { agent_id, agrees });
    }
}
