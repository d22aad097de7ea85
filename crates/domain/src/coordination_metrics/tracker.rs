//! The tracker: finds what counts in messages and activation decisions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use concord_events::WakeDecided;
use concord_wire::payload::Card;
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, Recipient, Timestamp, Token};

use super::classify::{Ask, TrackedMessage};
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

/// A message that may still be answered.
#[derive(Debug)]
struct Open {
    since: Timestamp,
    asked: Option<Asked>,
    /// The agents that it woke, and whether each was woken by a match; `None` while that is not
    /// known.
    woken: Option<BTreeMap<AgentId, bool>>,
    /// The first reaction of each agent to it, and the message of that reaction.
    reactions: BTreeMap<AgentId, (Feedback, MessageId)>,
}

#[derive(Debug)]
struct Asked {
    from: AgentId,
    ask: Ask,
    between_peers: bool,
    helped: bool,
    taken_up: bool,
}

/// Tracks messages and activation decisions. Each message costs a few lookups.
#[derive(Debug)]
pub struct Tracker {
    limits: Limits,
    leads: BTreeSet<AgentId>,
    open: BTreeMap<MessageId, Open>,
    order: VecDeque<MessageId>,
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
        let mut follow = Self {
            limits,
            leads: BTreeSet::new(),
            open: BTreeMap::new(),
            order: VecDeque::new(),
            seen: Recent::new(limits.messages_max),
            sessions: Recent::new(limits.sessions_max),
            registrations: Recent::new(REGISTRATIONS_MAX),
        };
        follow.set_leads(leads);
        follow
    }

    /// Replaces the leads; the coordinator stays one.
    pub fn set_leads(&mut self, leads: BTreeSet<AgentId>) {
        self.leads = leads;
        self.leads.insert(Service::Coordinator.agent_id());
    }

    /// Takes a stored message into account. A repetition counts nothing.
    pub fn message(&mut self, said: &TrackedMessage) -> Vec<Counted> {
        let mut counted = Vec::new();
        let is_open = self
            .open
            .get(&said.message_id)
            .is_some_and(|open| open.asked.is_some());
        if is_open || self.seen.contains(&said.message_id) || self.is_about_the_register(said) {
            return counted;
        }
        self.seen.insert(said.message_id.clone(), ());
        let mut count = |what| {
            counted.push(Counted {
                because: said.message_id.clone(),
                what,
            })
        };
        let between_agents = self.is_agent(&said.from) && self.is_agent_or_many(&said.to);
        let through_lead = self.leads.contains(&said.from) || self.is_lead(&said.to);
        if between_agents {
            count(Countable::Message { through_lead });
            if !self.sessions.contains(&said.session) {
                self.sessions.insert(said.session.clone(), ());
                count(Countable::Session);
            }
        }
        let between_peers = between_agents && !through_lead;
        if between_peers && (said.offers || matches!(said.asks, Some(Ask::Peer | Ask::Invite))) {
            count(Countable::Collaboration);
        }
        if between_peers && said.asks.is_some() {
            count(Countable::Asked);
        }
        if said.may_answer {
            self.answer(said, between_peers, &mut counted);
        }
        if said.asks.is_some() || said.may_wake {
            self.ask(said, between_peers, &mut counted);
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
        let open = Self::open(&mut self.open, &mut self.order, id, decided.said.at);
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
        self.make_room(&mut counted);
        counted
    }

    /// Closes every message whose window is over.
    pub fn close_expired(&mut self, now: Timestamp) -> Vec<Counted> {
        let (mut counted, window_ms) = (Vec::new(), self.limits.window_ms);
        let is_over = |open: &Open| now.millis_since(open.since) > window_ms;
        let open = &mut self.open;
        self.order.retain(|id| {
            if !open.get(id).is_some_and(is_over) {
                return true;
            }
            if let Some(closed) = open.remove(id) {
                closed.close(id, &mut counted);
            }
            false
        });
        counted
    }

    /// What may still be answered.
    pub fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for open in self.open.values() {
            let asks = open
                .asked
                .as_ref()
                .is_some_and(|asked| asked.between_peers && !asked.helped);
            waiting.asks += u64::from(asks);
            for (_, matched) in open.silent() {
                waiting.wakes += 1;
                waiting.matches += u64::from(matched);
            }
        }
        waiting
    }

    fn is_about_the_register(&mut self, said: &TrackedMessage) -> bool {
        if said.registers {
            self.registrations.insert(said.message_id.to_string(), ());
            return true;
        }
        let names = [&said.reply_to, &said.correlation_id];
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
    fn answer(&mut self, said: &TrackedMessage, between_peers: bool, counted: &mut Vec<Counted>) {
        let Some(open) = self.answered(said) else {
            return;
        };
        if said.at.millis_since(open.since) > self.limits.window_ms {
            return;
        }
        let Some(open) = self.open.get_mut(&open.id) else {
            return;
        };
        let mut count = |what| {
            counted.push(Counted {
                because: said.message_id.clone(),
                what,
            })
        };
        let is_first =
            !open.reactions.contains_key(&said.from) && open.reactions.len() < REACTIONS_MAX;
        if is_first {
            let feedback = if said.declines {
                Feedback::Declined
            } else {
                Feedback::Accepted
            };
            open.reactions
                .insert(said.from.clone(), (feedback, said.message_id.clone()));
            if let Some(matched) = open.woken.as_ref().and_then(|woken| woken.get(&said.from)) {
                count(Countable::Feedback {
                    matched: *matched,
                    feedback,
                });
            }
        }
        let Some(asked) = open
            .asked
            .as_mut()
            .filter(|asked| asked.between_peers && !said.declines)
        else {
            return;
        };
        let reaches = match &said.to {
            Recipient::Agent(agent) => *agent == asked.from,
            Recipient::All | Recipient::Any => true,
        };
        if reaches && !std::mem::replace(&mut asked.helped, true) {
            count(Countable::Helped {
                after_ms: said.at.millis_since(open.since),
            });
        }
        // An offer that is also an answer was counted as an offer already.
        if between_peers && is_first && !said.offers {
            count(Countable::Collaboration);
        }
        if between_peers && asked.ask == Ask::Group && !std::mem::replace(&mut asked.taken_up, true)
        {
            count(Countable::Collaboration);
        }
    }

    /// The message that an answer belongs to: the first one that it names, is open, and was not
    /// sent by the same agent.
    fn answered(&self, said: &TrackedMessage) -> Option<Answered> {
        let names = [&said.reply_to, &said.correlation_id];
        names.into_iter().flatten().find_map(|name| {
            let id = MessageId::new(name.as_str()).ok()?;
            let open = self.open.get(&id)?;
            let is_own = open
                .asked
                .as_ref()
                .is_some_and(|asked| asked.from == said.from);
            (!is_own).then_some(Answered {
                id,
                since: open.since,
            })
        })
    }

    fn ask(&mut self, said: &TrackedMessage, between_peers: bool, counted: &mut Vec<Counted>) {
        let open = Self::open(&mut self.open, &mut self.order, &said.message_id, said.at);
        let asked = |ask| Asked {
            from: said.from.clone(),
            ask,
            between_peers,
            helped: false,
            taken_up: false,
        };
        open.asked = said.asks.map(asked);
        self.make_room(counted);
    }

    fn open<'a>(
        open: &'a mut BTreeMap<MessageId, Open>,
        order: &mut VecDeque<MessageId>,
        id: &MessageId,
        since: Timestamp,
    ) -> &'a mut Open {
        open.entry(id.clone()).or_insert_with(|| {
            order.push_back(id.clone());
            Open {
                since,
                asked: None,
                woken: None,
                reactions: BTreeMap::new(),
            }
        })
    }

    fn make_room(&mut self, counted: &mut Vec<Counted>) {
        while self.order.len() > self.limits.open_max {
            let Some(id) = self.order.pop_front() else {
                return;
            };
            if let Some(closed) = self.open.remove(&id) {
                closed.close(&id, counted);
            }
        }
    }
}

struct Answered {
    id: MessageId,
    since: Timestamp,
}

impl Open {
    /// The agents that were woken and have not answered, and whether each was woken by a match.
    fn silent(&self) -> impl Iterator<Item = (&AgentId, bool)> {
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
        if self
            .asked
            .as_ref()
            .is_some_and(|asked| asked.between_peers && !asked.helped)
        {
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
