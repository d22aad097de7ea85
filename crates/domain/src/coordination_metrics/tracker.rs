//! The tracker: finds what counts in messages and activation decisions.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::WakeDecided;
use concord_wire::payload::Card;
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, Recipient, Timestamp, Token};

use super::classify::{Ask, TrackedMessage};
use super::open_messages::{OpenMessages, Question};
use super::tally::{Feedbacks, Waiting};
use crate::aggregates::review_queue::Recent;

/// The tag of a skill that marks the agent as a lead.
pub const LEAD: &str = "lead";
/// How many agents' first answers to one message are remembered.
const REACTIONS_MAX: usize = 64;
/// How many registrations are remembered, to recognise their answers.
const REGISTRATIONS_MAX: usize = 4_096;

/// How much is remembered, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long after a message an answer to it counts, in milliseconds.
    pub window_ms: u64,
    /// How many messages are remembered that may still be answered.
    pub open_max: usize,
    /// How many messages are remembered, to recognise repetitions.
    pub messages_max: usize,
    /// How many sessions are remembered.
    pub sessions_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window_ms: 300_000,
            open_max: 10_000,
            messages_max: 100_000,
            sessions_max: 100_000,
        }
    }
}

/// How an agent that was woken reacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feedback {
    /// It answered.
    Accepted,
    /// It answered that the message does not concern it, or that it will not do it.
    Declined,
    /// It did not answer within the window.
    Silent,
}

/// One thing that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Countable {
    /// A message between agents.
    Message {
        /// Whether a lead sent or received it.
        through_lead: bool,
    },
    /// The first message of a session.
    Session,
    /// A collaboration event between peers.
    Collaboration,
    /// A peer asked for help.
    Asked,
    /// A peer got the first answer.
    Helped {
        /// The response time in milliseconds.
        after_ms: u64,
    },
    /// A peer got no answer within the window.
    Unanswered,
    /// An agent was woken.
    Woken {
        /// Whether it was woken by a match.
        matched: bool,
    },
    /// An agent that was woken reacted.
    Feedback {
        /// Whether it was woken by a match.
        matched: bool,
        /// How it reacted.
        feedback: Feedback,
    },
}

/// Something that counts, and the message because of which it does. Of several processes that track
/// the same conversation, the one that owns the message counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The message.
    pub because: MessageId,
    /// The thing that counts.
    pub what: Countable,
}

/// Tracks messages and activation decisions. Each message costs a few lookups.
#[derive(Debug)]
pub struct Tracker {
    limits: Limits,
    leads: BTreeSet<AgentId>,
    open: OpenMessages,
    seen: Recent<MessageId, ()>,
    sessions: Recent<Token, ()>,
    registrations: Recent<String, ()>,
}

/// The leads among agents: those with a skill that is tagged `lead`.
pub fn leads_by_card<'a>(cards: impl IntoIterator<Item = &'a Card>) -> BTreeSet<AgentId> {
    let leads = |card: &&Card| {
        card.skills
            .iter()
            .flat_map(|skill| &skill.tags)
            .any(|tag| tag.eq_ignore_ascii_case(LEAD))
    };
    cards
        .into_iter()
        .filter(leads)
        .map(|card| card.agent_id.clone())
        .collect()
}

impl Tracker {
    /// A tracker without messages. The coordinator is a lead besides those that are named.
    pub fn new(limits: Limits, leads: BTreeSet<AgentId>) -> Self {
        let mut tracker = Self {
            limits,
            leads: BTreeSet::new(),
            open: OpenMessages::new(limits.open_max),
            seen: Recent::new(limits.messages_max),
            sessions: Recent::new(limits.sessions_max),
            registrations: Recent::new(REGISTRATIONS_MAX),
        };
        tracker.set_leads(leads);
        tracker
    }

    /// Replaces the leads; the coordinator stays one.
    pub fn set_leads(&mut self, leads: BTreeSet<AgentId>) {
        self.leads = leads;
        self.leads.insert(Service::Coordinator.agent_id());
    }

    /// Takes a stored message into account. A repetition counts nothing.
    pub fn message(&mut self, message: &TrackedMessage) -> Vec<Counted> {
        let mut counted = Vec::new();
        let is_open = self
            .open
            .get(&message.message_id)
            .is_some_and(|open| open.question.is_some());
        if is_open
            || self.seen.contains(&message.message_id)
            || self.is_about_the_register(message)
            || message.ends_question
        {
            return counted;
        }
        self.seen.insert(message.message_id.clone(), ());
        let mut count = |what| {
            counted.push(Counted {
                because: message.message_id.clone(),
                what,
            })
        };
        let between_agents = self.is_agent(&message.from) && self.is_agent_or_many(&message.to);
        let through_lead = self.leads.contains(&message.from) || self.is_lead(&message.to);
        if between_agents {
            count(Countable::Message { through_lead });
            if !self.sessions.contains(&message.session) {
                self.sessions.insert(message.session.clone(), ());
                count(Countable::Session);
            }
        }
        let between_peers = between_agents && !through_lead;
        if between_peers
            && (message.offers || matches!(message.asks, Some(Ask::Peer | Ask::Invite)))
        {
            count(Countable::Collaboration);
        }
        if between_peers && message.asks.is_some() {
            count(Countable::Asked);
        }
        if message.may_answer {
            self.answer(message, between_peers, &mut counted);
        }
        if message.asks.is_some() || message.may_wake {
            self.ask(message, between_peers, &mut counted);
        }
        counted
    }

    /// Takes a decision into account which agents a message wakes. It may come before the message,
    /// and after its answers.
    pub fn woken(&mut self, decided: &WakeDecided) -> Vec<Counted> {
        let mut counted = Vec::new();
        let id = &decided.said.message_id;
        if decided.woken.is_empty() {
            return counted;
        }
        let open = self.open.open(id, decided.said.at);
        if open.woken.is_some() {
            return counted;
        }
        let matched =
            |reason: &str| reason.starts_with("semantic:") || reason.starts_with("keyword:");
        let woken: BTreeMap<_, _> = decided
            .woken
            .iter()
            .map(|one| (one.agent_id.clone(), matched(&one.reason)))
            .collect();
        for (agent, matched) in &woken {
            let (matched, word) = (*matched, open.reactions.get(agent));
            let because = word.map_or(id, |(_, answer)| answer).clone();
            counted.push(Counted {
                because: because.clone(),
                what: Countable::Woken { matched },
            });
            if let Some((feedback, _)) = word {
                counted.push(Counted {
                    because,
                    what: Countable::Feedback {
                        matched,
                        feedback: *feedback,
                    },
                });
            }
        }
        open.woken = Some(woken);
        self.open.trim(&mut counted);
        counted
    }

    /// Closes every message whose window is over.
    pub fn close_expired(&mut self, now: Timestamp) -> Vec<Counted> {
        let mut counted = Vec::new();
        self.open
            .close_expired(now, self.limits.window_ms, &mut counted);
        counted
    }

    /// What may still be answered.
    pub fn waiting(&self) -> Waiting {
        self.open.waiting()
    }

    fn is_about_the_register(&mut self, message: &TrackedMessage) -> bool {
        if message.registers {
            self.registrations
                .insert(message.message_id.to_string(), ());
            return true;
        }
        let names = [&message.reply_to, &message.correlation_id];
        names
            .into_iter()
            .flatten()
            .any(|name| self.registrations.contains(name))
    }

    fn is_agent(&self, agent: &AgentId) -> bool {
        self.leads.contains(agent) || Service::parse(agent.as_str()).is_err()
    }

    fn is_agent_or_many(&self, to: &Recipient) -> bool {
        match to {
            Recipient::Agent(agent) => self.is_agent(agent),
            Recipient::All | Recipient::Any => true,
        }
    }

    fn is_lead(&self, to: &Recipient) -> bool {
        matches!(to, Recipient::Agent(agent) if self.leads.contains(agent))
    }

    /// Counts an answer for the message that it answers.
    fn answer(
        &mut self,
        message: &TrackedMessage,
        between_peers: bool,
        counted: &mut Vec<Counted>,
    ) {
        let Some(id) = self.open.answered_by(message) else {
            return;
        };
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        if message.at.millis_since(open.since) > self.limits.window_ms {
            return;
        }
        let mut count = |what| {
            counted.push(Counted {
                because: message.message_id.clone(),
                what,
            })
        };
        let is_first =
            !open.reactions.contains_key(&message.from) && open.reactions.len() < REACTIONS_MAX;
        if is_first {
            let feedback = if message.declines {
                Feedback::Declined
            } else {
                Feedback::Accepted
            };
            open.reactions
                .insert(message.from.clone(), (feedback, message.message_id.clone()));
            if let Some(matched) = open
                .woken
                .as_ref()
                .and_then(|woken| woken.get(&message.from))
            {
                count(Countable::Feedback {
                    matched: *matched,
                    feedback,
                });
            }
        }
        let Some(question) = open
            .question
            .as_mut()
            .filter(|question| question.between_peers && !message.declines)
        else {
            return;
        };
        let reaches = match &message.to {
            Recipient::Agent(agent) => *agent == question.from,
            Recipient::All | Recipient::Any => true,
        };
        if reaches && !std::mem::replace(&mut question.helped, true) {
            count(Countable::Helped {
                after_ms: message.at.millis_since(open.since),
            });
        }
        // An offer that is also an answer was counted as an offer already.
        if between_peers && is_first && !message.offers {
            count(Countable::Collaboration);
        }
        if between_peers
            && question.ask == Ask::Group
            && !std::mem::replace(&mut question.taken_up, true)
        {
            count(Countable::Collaboration);
        }
    }

    fn ask(&mut self, message: &TrackedMessage, between_peers: bool, counted: &mut Vec<Counted>) {
        let question = |ask| Question {
            from: message.from.clone(),
            ask,
            between_peers,
            helped: false,
            taken_up: false,
        };
        self.open.open(&message.message_id, message.at).question = message.asks.map(question);
        self.open.trim(counted);
    }
}

impl Feedbacks {
    /// Counts one more reaction.
    pub fn add(&mut self, feedback: Feedback) {
        match feedback {
            Feedback::Accepted => self.accepted += 1,
            Feedback::Declined => self.declined += 1,
            Feedback::Silent => self.silent += 1,
        }
    }
}
