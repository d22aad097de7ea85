//! What is known of a debate.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_events::{
    DeadlineControl, DebateEvent, DebateOpened, Escalated, Heard as HeardMessage, ReceivedAnswer,
    StoredEvent,
};
use concord_wire::payload::{
    ConflictOutcome, Contact, Level, Position, RoundRecord, SetAsideReason,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, Timestamp};

use crate::aggregates::escalation::{self, Ladder};

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
    /// Its way on the ladder, from when it is on it.
    pub ladder: Option<Box<Ladder>>,
    /// How it ended.
    pub outcome: Option<ConflictOutcome>,
    /// Who has said what proved right, once that is known.
    pub proved_by: Option<AgentId>,
    /// Senders and digests of the messages that were recorded, to know a repetition.
    pub seen: BTreeMap<MessageId, (AgentId, String)>,
    /// Facts of the queue by which it was given to an expert or taken back. One that is delivered again after a later one must
    /// not undo that.
    pub queued_by: Vec<MessageId>,
    /// Answers recorded and not used.
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
        match record.event {
            DebateEvent::Opened(opened) => {
                self.positions.clone_from(&opened.conflict.positions);
                self.begin(record.sequence, 1, opened.asked.clone(), opened.due);
                if opened.terms.challenge.is_some() {
                    self.ladder = Some(Box::new(Ladder::at(
                        Level::Agents,
                        opened.waits_for.clone(),
                    )));
                }
                self.opened = Some(Arc::new(*opened));
                // The request's id is used up. A fact's id follows from its cause: an answer under it could never be
                // stored, and is no repetition of anything.
                let opener = Service::ConflictDetector.agent_id();
                self.seen.insert(record.meta.cause, (opener, String::new()));
            }
            DebateEvent::Answered(answered) => self.take(answered.received),
            DebateEvent::AnswerSetAside(aside) => {
                self.seen.insert(
                    aside.message_id.clone(),
                    (aside.agent_id.clone(), aside.digest),
                );
                self.set_aside
                    .push((aside.agent_id, aside.message_id, aside.reason));
            }
            DebateEvent::RoundClosed(closed) => {
                if let Some(last) = closed.last {
                    self.take(last);
                }
                self.rounds.push(closed.record);
                self.begin(
                    record.sequence,
                    closed.next_round,
                    closed.asked,
                    Some(closed.due),
                );
            }
            DebateEvent::Resolved(resolved) => {
                let resolved = *resolved;
                if let Some(last) = resolved.last {
                    self.take(last);
                }
                if let Some(heard) = resolved.heard {
                    self.remember(heard);
                }
                self.rounds.clone_from(&resolved.outcome.rounds);
                self.outcome = Some(resolved.outcome);
                self.due = None;
            }
            DebateEvent::OutcomeKnown(known) => {
                self.proved_by = Some(known.heard.agent_id.clone());
                self.remember(known.heard);
            }
            other => self.climb(other, record.meta.at),
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
        let ReceivedAnswer {
            agent_id,
            message_id,
            digest,
            agrees,
            position,
            ..
        } = received;
        self.seen.insert(message_id, (agent_id.clone(), digest));
        if let Some(held) = self
            .positions
            .iter_mut()
            .find(|held| held.agent_id == agent_id)
        {
            *held = position;
        }
        self.answers.push(Heard { agent_id, agrees });
    }

    fn remember(&mut self, heard: HeardMessage) {
        self.seen
            .insert(heard.message_id, (heard.agent_id, heard.digest));
    }

    /// Facts of the ladder.
    fn climb(&mut self, event: DebateEvent, at: Timestamp) {
        match event {
            DebateEvent::Acknowledged(acknowledged) => {
                self.remember(acknowledged.heard);
                self.on_ladder(|ladder| {
                    ladder.acknowledged = true;
                    ladder.rearrange(acknowledged.waits_for, acknowledged.held);
                });
            }
            DebateEvent::Clarified(clarified) => {
                self.remember(clarified.heard);
                self.on_ladder(|ladder| ladder.clarifications += 1);
            }
            DebateEvent::EvidenceGiven(given) => {
                let given = *given;
                self.remember(given.heard);
                let mut changes = Vec::new();
                if let Some(held) = self
                    .positions
                    .iter_mut()
                    .find(|held| held.agent_id == given.position.agent_id)
                {
                    changes = escalation::changes(held, &given.position);
                    *held = given.position;
                }
                self.on_ladder(|ladder| {
                    ladder.acknowledged |= given.question.is_some();
                    ladder.evaluating |= given.question.is_some();
                    ladder.evidence += 1;
                    ladder.rearrange(given.waits_for, given.held);
                    if let Some(briefed) = given.brief {
                        let before = ladder.digest.replace(briefed.digest).unwrap_or_default();
                        ladder
                            .changes
                            .extend(changes.into_iter().map(|line| (before.clone(), line)));
                    }
                });
            }
            DebateEvent::Escalated(escalated) => self.escalated(*escalated),
            DebateEvent::OpinionGiven(given) => {
                self.remember(given.heard);
                self.on_ladder(|ladder| {
                    ladder.opinion = Some(given.text);
                    ladder.rearrange(given.waits_for, given.held);
                });
            }
            DebateEvent::Assigned(assigned) => self.on_ladder(|ladder| {
                ladder.expert = Some(assigned.briefed.expert);
                ladder.contact = assigned.contact;
                ladder.digest = Some(assigned.briefed.digest);
                ladder.waits_for = assigned.waits_for;
            }),
            DebateEvent::Unassigned(_) => self.on_ladder(|ladder| {
                ladder.expert = None;
                ladder.contact = Contact::default();
                ladder.digest = None;
            }),
            DebateEvent::Reminded(reminded) => {
                self.on_ladder(|ladder| ladder.waits_for = reminded.waits_for)
            }
            DebateEvent::RulingSetAside(aside) => self.remember(aside.heard),
            DebateEvent::FellBack(fell) => self.on_ladder(|ladder| {
                ladder.level = Level::Fallback;
                ladder.waits_for = fell.waits_for;
                ladder.held = None;
                ladder.provisional = Some(fell.outcome);
            }),
            DebateEvent::AwaitsGate(_) => self.on_ladder(|ladder| {
                ladder.level = Level::Gate;
                ladder.waits_for.clear();
            }),
            DebateEvent::DeadlinesMoved(moved) => self.on_ladder(|ladder| {
                ladder.waits_for = moved.waits_for;
                ladder.held = match moved.control {
                    DeadlineControl::Hold => Some((moved.held, at)),
                    DeadlineControl::Resume => None,
                    DeadlineControl::Extend => {
                        ladder.held.take().map(|(_, since)| (moved.held, since))
                    }
                };
            }),
            // These are no facts of the ladder.
            DebateEvent::Opened(_)
            | DebateEvent::Answered(_)
            | DebateEvent::AnswerSetAside(_)
            | DebateEvent::RoundClosed(_)
            | DebateEvent::Resolved(_)
            | DebateEvent::OutcomeKnown(_) => {}
        }
    }

    fn escalated(&mut self, escalated: Escalated) {
        if let Some(heard) = escalated.heard {
            self.remember(heard);
        }
        let mut tally = None;
        if let Some(discussion) = escalated.discussion {
            if let Some(last) = discussion.last {
                self.take(last);
            }
            self.rounds = discussion.rounds;
            tally = discussion.tally;
            self.due = None;
        }
        let mut ladder = self
            .ladder
            .take()
            .unwrap_or_else(|| Box::new(Ladder::at(Level::Agents, Vec::new())));
        ladder.level = escalated.to;
        ladder.waits_for = escalated.waits_for;
        ladder.held = None;
        ladder.tally = ladder.tally.or(tally);
        ladder.mediation = escalated.mediation.or(ladder.mediation);
        self.ladder = Some(ladder);
    }

    fn on_ladder(&mut self, change: impl FnOnce(&mut Ladder)) {
        if let Some(ladder) = &mut self.ladder {
            change(ladder);
        }
    }
}
