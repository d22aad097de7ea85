//! The messages that may still be answered, oldest first.

use std::collections::{BTreeMap, VecDeque};

use concord_wire::{AgentId, MessageId, Timestamp};

use super::classify::{Ask, TrackedMessage};
use super::tally::Waiting;
use super::tracker::{Countable, Counted, Feedback};

/// A message that may still be answered.
#[derive(Debug)]
pub(super) struct OpenMessage {
    pub(super) since: Timestamp,
    pub(super) question: Option<Question>,
    /// The agents that it woke, and whether each was woken by a match; `None` while that is not
    /// known.
    pub(super) woken: Option<BTreeMap<AgentId, bool>>,
    /// The first reaction of each agent to it, and the message of that reaction.
    pub(super) reactions: BTreeMap<AgentId, (Feedback, MessageId)>,
}

/// A request for help.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) from: AgentId,
    pub(super) ask: Ask,
    pub(super) between_peers: bool,
    /// Whether an answer has reached the sender.
    pub(super) helped: bool,
    /// Whether somebody has answered a question to the group.
    pub(super) taken_up: bool,
}

impl Question {
    fn is_unanswered(&self) -> bool {
        self.between_peers && !self.helped
    }
}

/// The messages that may still be answered.
#[derive(Debug)]
pub(super) struct OpenMessages {
    open: BTreeMap<MessageId, OpenMessage>,
    order: VecDeque<MessageId>,
    max: usize,
}

impl OpenMessages {
    /// No messages yet, and at most `max`.
    pub(super) fn new(max: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    pub(super) fn get(&self, id: &MessageId) -> Option<&OpenMessage> {
        self.open.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &MessageId) -> Option<&mut OpenMessage> {
        self.open.get_mut(id)
    }

    /// The message with this id, opened if it was not open. [`trim`](Self::trim) must follow.
    pub(super) fn open(&mut self, id: &MessageId, since: Timestamp) -> &mut OpenMessage {
        let order = &mut self.order;
        self.open.entry(id.clone()).or_insert_with(|| {
            order.push_back(id.clone());
            OpenMessage {
                since,
                question: None,
                woken: None,
                reactions: BTreeMap::new(),
            }
        })
    }

    /// Closes the oldest messages beyond the maximum.
    pub(super) fn trim(&mut self, counted: &mut Vec<Counted>) {
        while self.order.len() > self.max {
            let Some(id) = self.order.pop_front() else {
                return;
            };
            if let Some(closed) = self.open.remove(&id) {
                closed.close(&id, counted);
            }
        }
        debug_assert_eq!(
            self.order.len(),
            self.open.len(),
            "every open message has its place in the order"
        );
    }

    /// Closes every message that is older than `window_ms`.
    pub(super) fn close_expired(
        &mut self,
        now: Timestamp,
        window_ms: u64,
        counted: &mut Vec<Counted>,
    ) {
        let is_over = |open: &OpenMessage| now.millis_since(open.since) > window_ms;
        let open = &mut self.open;
        self.order.retain(|id| {
            if !open.get(id).is_some_and(is_over) {
                return true;
            }
            if let Some(closed) = open.remove(id) {
                closed.close(id, counted);
            }
            false
        });
    }

    /// The id of the message that an answer belongs to: the first one that it names, is open, and
    /// was not sent by the same agent.
    pub(super) fn answered_by(&self, answer: &TrackedMessage) -> Option<MessageId> {
        let names = [&answer.reply_to, &answer.correlation_id];
        names.into_iter().flatten().find_map(|name| {
            let id = MessageId::new(name.as_str()).ok()?;
            let question = self.open.get(&id)?.question.as_ref();
            let is_own = question.is_some_and(|question| question.from == answer.from);
            (!is_own).then_some(id)
        })
    }

    /// What may still be answered.
    pub(super) fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for open in self.open.values() {
            let asks = open.question.as_ref().is_some_and(Question::is_unanswered);
            waiting.asks += u64::from(asks);
            for (_, matched) in open.silent() {
                waiting.wakes += 1;
                waiting.matches += u64::from(matched);
            }
        }
        waiting
    }
}

impl OpenMessage {
    /// The agents that were woken and have not answered, and whether each was woken by a match.
    pub(super) fn silent(&self) -> impl Iterator<Item = (&AgentId, bool)> {
        let woken = self
            .woken
            .iter()
            .flatten()
            .map(|(agent, matched)| (agent, *matched));
        woken.filter(|(agent, _)| !self.reactions.contains_key(*agent))
    }

    fn close(self, id: &MessageId, counted: &mut Vec<Counted>) {
        let mut count = |what| {
            counted.push(Counted {
                because: id.clone(),
                what,
            })
        };
        if self.question.as_ref().is_some_and(Question::is_unanswered) {
            count(Countable::Unanswered);
        }
        for (_, matched) in self.silent() {
            count(Countable::Feedback {
                matched,
                feedback: Feedback::Silent,
            });
        }
    }
}
