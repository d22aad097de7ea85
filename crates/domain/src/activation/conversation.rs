//! A conversation: its last messages, and whom each of them woke. Owned by the agent adapter; its id is that of the case, or thread.
//!
//! | state                    | DecidedMessage               | Break               |
//! |--------------------------|---------------------|---------------------|
//! | has the message          | ignored: repetition | ignored: repetition |
//! | the two are paused       | decided [1]         | ignored: already done |
//! | any other                | decided [2]         | loop_broken         |
//!
//! [1] Neither wakes the other. [2] When the reply chain of two agents is too long with it ([`ReplyChains`]), the event states that:
//! from then on the two are paused, and both are told once.
//!
//! The last [`REMEMBERED_MAX`] messages are remembered; they show which agents take part. What an agent is given as context
//! when it wakes is its own window ([`ConversationWindows`]). A message that is stored between the caller's reading of the state and its
//! decision is missing from the context of the next one alone.
//!
//! What somebody says in a case who is neither in it nor may read it wakes whom it concerns like anything else, and is not
//! remembered: with twenty messages they would be all that everybody who wakes after that is given as context.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use concord_events::{
    LoopBroken, QuestionTerms, Remembered, StoredEvent, WakeDecided, WakeEvent, WakeOutcome,
    Weighed,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Envelope, MessageId, MessageType, Recipient, Token};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::windows::{ConversationWindows, context_for};
use super::{
    ChainState, Decision, Decisions, LoopBounds, NAMED_MAX, Outcome, Participation, Reason,
    ReplyChains,
};
use crate::aggregates::review_queue::Recent;
use crate::effect::Effect;
use crate::machine::{Carry, Context, Decision as Decided, Ignored, Machine, forgetting};

mod told;

use told::{report_loop, woken};

pub use told::told_bytes;

/// How many messages of a conversation are remembered.
pub const REMEMBERED_MAX: usize = 20;
/// How many bytes of a message's text are remembered.
pub const REMEMBERED_BYTES_MAX: usize = 1_024;
/// How many agents that a message does not wake its event names, the most probable first.
pub const OTHERS_MAX: usize = 10;
/// The largest message that is repeated to the agents that it wakes, in bytes of JSON.
pub const REPEATED_BYTES_MAX: usize = 262_144;
/// How many message ids are remembered, to recognise a repetition.
const CAUSES_MAX: usize = 1_024;

/// The state machine of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct WakeMachine;

/// The state of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeState {
    /// The last messages, oldest first.
    pub recent: VecDeque<Remembered>,
    /// The reply chains of pairs of agents.
    pub reply_chains: ReplyChains,
    /// What each agent may see of it.
    pub windows: ConversationWindows,
    causes: Recent<MessageId, ()>,
}

impl Default for WakeState {
    fn default() -> Self {
        Self {
            recent: VecDeque::new(),
            reply_chains: ReplyChains::default(),
            windows: ConversationWindows::default(),
            causes: Recent::new(CAUSES_MAX),
        }
    }
}

impl WakeState {
    /// The agents that have sent messages, with the number of messages of others since then.
    pub fn participations(&self) -> BTreeMap<AgentId, Participation> {
        let mut found = BTreeMap::new();
        for (silent_for, message) in (0_u32..).zip(self.recent.iter().rev()) {
            found
                .entry(message.from.clone())
                .or_insert(Participation { silent_for });
        }
        found
    }

    /// The text of the last assignment that was given to an agent.
    pub fn assignment_of(&self, agent: &AgentId) -> Option<&str> {
        let is_given = |message: &&Remembered| {
            is_assignment(message) && matches!(&message.to, Recipient::Agent(to) if to == agent)
        };
        let given = self.recent.iter().rev().find(is_given);
        given.map(|message| message.text.as_str())
    }

    /// The agents that hold a position on what is discussed: whoever said something but news, and
    /// whoever was given work. The last [`NAMED_MAX`] alone, because one message may wake them all.
    pub fn positions(&self) -> BTreeSet<AgentId> {
        let mut found = Vec::new();
        for message in self.recent.iter().rev().filter(|message| !is_news(message)) {
            let assigned = match &message.to {
                Recipient::Agent(to) if is_assignment(message) => Some(to),
                _ => None,
            };
            for agent in [Some(&message.from), assigned].into_iter().flatten() {
                if found.len() < NAMED_MAX && !found.contains(&agent) {
                    found.push(agent);
                }
            }
        }
        found.into_iter().cloned().collect()
    }

    /// The agent with which the sender of a message speaks: its addressee, else the author of the
    /// message that it answers, else the sender of the last message.
    fn other(&self, message: &Remembered) -> Option<AgentId> {
        let answered = || {
            message
                .reply_to
                .as_deref()
                .and_then(|id| self.author_of(id))
        };
        let other = match &message.to {
            Recipient::Agent(to) => Some(to),
            Recipient::All | Recipient::Any => {
                answered().or_else(|| self.recent.back().map(|last| &last.from))
            }
        };
        other
            .filter(|other| **other != message.from && Service::parse(other.as_str()).is_err())
            .cloned()
    }

    /// The author of a message, if the message is remembered.
    pub fn author_of(&self, message_id: &str) -> Option<&AgentId> {
        self.recent
            .iter()
            .find(|message| message.message_id.as_str() == message_id)
            .map(|message| &message.from)
    }
}

/// The agent that joins the case with a message: the coordinator briefs it.
fn briefed(message: &Remembered) -> Option<&AgentId> {
    let is_of_coordinator = message.from == Service::Coordinator.agent_id();
    match &message.to {
        Recipient::Agent(to) if is_of_coordinator && is_briefing(message) => Some(to),
        _ => None,
    }
}

fn is_briefing(message: &Remembered) -> bool {
    message.message_type == MessageType::SessionBriefing.as_str()
}

fn is_assignment(message: &Remembered) -> bool {
    message.message_type == MessageType::TaskAssignment.as_str()
}

fn is_news(message: &Remembered) -> bool {
    is_briefing(message) || message.message_type == MessageType::AgentJoined.as_str()
}

/// A message with the decisions of all agents about it.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedMessage {
    /// The message as it will be remembered.
    pub said: Remembered,
    /// The case that it belongs to.
    pub case_id: Option<CaseId>,
    /// Whether its sender is neither in that case nor may read it.
    pub from_outside: bool,
    /// The whole message.
    pub message: Value,
    /// The decision for each agent.
    pub decisions: Decisions,
    /// Whether a model was used for the decisions.
    pub with_model: bool,
    /// How it is to be answered, where it is a question to the group.
    pub question: Option<QuestionTerms>,
    /// The thread that it belongs to.
    pub thread: String,
    /// How long a reply chain may become; `None` where that is not limited.
    pub bounds: Option<LoopBounds>,
    /// How many messages an agent that wakes is given as context.
    pub context_max: usize,
}

/// One input of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum WakeInput {
    /// A message that may concern other agents.
    Message(Box<DecidedMessage>),
    /// Two agents were found to answer each other without end.
    BreakLoop(Box<LoopBroken>),
}

/// The conversation that a message belongs to: its case, else its thread, else the message itself.
pub fn conversation_of(envelope: &Envelope) -> Token {
    conversation(envelope.case_id.as_ref(), thread_of(envelope))
}

/// The thread that a message belongs to: the one it names, else the message it answers, else the
/// message itself.
pub fn thread_of(envelope: &Envelope) -> &str {
    let named = envelope
        .correlation_id
        .as_deref()
        .or(envelope.reply_to.as_deref());
    named.unwrap_or(envelope.message_id.as_str())
}

/// The conversation of a case, or of a thread outside a case.
pub fn conversation(case: Option<&CaseId>, thread: &str) -> Token {
    case.map_or_else(
        || Token::derived(&format!("thread/{thread}")),
        CaseId::token,
    )
}

impl Machine for WakeMachine {
    type State = WakeState;
    type Event = WakeEvent;
    type Input = WakeInput;

    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(2));

    fn state_bytes_max(state: &WakeState) -> usize {
        forgetting(state.windows.bytes_about() + state.causes.len() * 64)
    }

    fn decide(state: &WakeState, context: &Context, input: &WakeInput) -> Decided<WakeEvent> {
        if state.causes.contains(&context.cause_in::<Self>(state)) {
            return Decided::Ignore(Ignored::Repetition);
        }
        match input {
            WakeInput::Message(weigh) => Decided::Append(WakeEvent::Decided(decided(state, weigh))),
            WakeInput::BreakLoop(broken)
                if state
                    .reply_chains
                    .is_paused(&broken.from, &broken.to, broken.at) =>
            {
                Decided::Ignore(Ignored::AlreadyDone)
            }
            WakeInput::BreakLoop(broken) => {
                Decided::Append(WakeEvent::LoopBroken((**broken).clone()))
            }
        }
    }

    fn is_taken(state: &WakeState, id: &MessageId, sender: &AgentId) -> bool {
        state
            .author_of(id.as_str())
            .is_some_and(|author| author != sender)
    }

    fn apply(state: &mut WakeState, record: StoredEvent<WakeEvent>) {
        state.causes.insert(record.meta.cause, ());
        let (message, broken) = match record.event {
            WakeEvent::Decided(decided) => {
                let windows = state.windows.at_mut(decided.case_id.as_ref());
                if let Some(agent) = briefed(&decided.said) {
                    windows.join(agent, &decided.said);
                    return;
                }
                if !decided.from_outside {
                    let woken = decided.woken.iter().map(|one| &one.agent_id);
                    windows.take(&decided.said, woken);
                }
                let message = (decided.said, decided.from_outside);
                (Some(message), decided.loop_broken)
            }
            WakeEvent::LoopBroken(broken) => (None, Some(broken)),
        };
        if let Some((message, from_outside)) = message {
            if let Some(other) = state.other(&message) {
                state.reply_chains.record(&message.from, &other, message.at);
            }
            if !from_outside {
                state.recent.push_back(message);
            }
        }
        if state.recent.len() > REMEMBERED_MAX {
            state.recent.pop_front();
        }
        debug_assert!(
            state.recent.len() <= REMEMBERED_MAX,
            "the memory of a conversation is bounded"
        );
        if let Some(LoopBroken {
            from, to, until, ..
        }) = broken
        {
            state.reply_chains.pause(&from, &to, until);
        }
    }

    fn effects(record: &StoredEvent<WakeEvent>) -> Vec<Effect> {
        match &record.event {
            WakeEvent::Decided(decided) => woken(decided)
                .chain(decided.loop_broken.iter().flat_map(report_loop))
                .collect(),
            WakeEvent::LoopBroken(broken) => report_loop(broken).collect(),
        }
    }

    fn case_of(record: &StoredEvent<WakeEvent>) -> Option<CaseId> {
        match &record.event {
            WakeEvent::Decided(decided) => decided.case_id.clone(),
            WakeEvent::LoopBroken(broken) => broken.case_id.clone(),
        }
    }
}

/// The decision about a message. It does not wake an agent that has a paused reply chain with the
/// sender.
fn decided(state: &WakeState, input: &DecidedMessage) -> WakeDecided {
    let said = &input.said;
    let Decisions {
        decisions,
        named_beyond,
    } = &input.decisions;
    let loop_broken = broken_by(state, input);
    let is_paused = |agent: &AgentId| {
        input.bounds.is_some() && state.reply_chains.is_paused(&said.from, agent, said.at)
            || loop_broken
                .as_ref()
                .is_some_and(|broken| broken.to == *agent)
    };
    let quiet = |(agent, decision): (&AgentId, &Decision)| {
        let one = weighed((agent, decision));
        let (outcome, reason) = (WakeOutcome::Ignore, Reason::LoopBroken.to_string());
        if one.outcome == WakeOutcome::Wake && is_paused(agent) {
            Weighed {
                outcome,
                reason,
                ..one
            }
        } else {
            one
        }
    };
    let all: Vec<Weighed> = decisions.iter().map(quiet).collect();
    let count = |outcome| {
        u32::try_from(all.iter().filter(|one| one.outcome == outcome).count()).unwrap_or(u32::MAX)
    };
    let (observing, ignoring) = (count(WakeOutcome::Observe), count(WakeOutcome::Ignore));
    let (woken, mut others): (Vec<Weighed>, Vec<Weighed>) = all
        .into_iter()
        .partition(|one| one.outcome == WakeOutcome::Wake);
    others.sort_by_key(|one| one.outcome == WakeOutcome::Ignore);
    others.sort_by(|a, b| b.score.unwrap_or(-1.0).total_cmp(&a.score.unwrap_or(-1.0)));
    others.truncate(OTHERS_MAX);
    let wakes = !woken.is_empty();
    let windows = state.windows.at(input.case_id.as_ref());
    let (context, sees) = context_for(windows, &woken, input.context_max);
    let fits =
        serde_json::to_vec(&input.message).is_ok_and(|bytes| bytes.len() <= REPEATED_BYTES_MAX);
    WakeDecided {
        said: said.clone(),
        case_id: input.case_id.clone(),
        from_outside: input.from_outside,
        observing,
        ignoring,
        named_beyond: u32::try_from(*named_beyond).unwrap_or(u32::MAX),
        with_model: input.with_model,
        message: if wakes && fits {
            input.message.clone()
        } else {
            Value::Null
        },
        context,
        sees,
        woken,
        others,
        question: input.question.clone(),
        loop_broken,
    }
}

/// The loop that is broken because of this message.
fn broken_by(state: &WakeState, input: &DecidedMessage) -> Option<LoopBroken> {
    let (said, bounds) = (&input.said, input.bounds?);
    let other = state.other(said)?;
    let ChainState::Breaks { depth, until } = state
        .reply_chains
        .course(&said.from, &other, said.at, &bounds)
    else {
        return None;
    };
    Some(LoopBroken {
        thread: input.thread.clone(),
        case_id: input.case_id.clone(),
        message_id: said.message_id.clone(),
        from: said.from.clone(),
        to: other,
        depth,
        window_ms: bounds.window_ms,
        at: said.at,
        until,
    })
}

fn weighed((agent_id, decision): (&AgentId, &Decision)) -> Weighed {
    let outcome = match decision.outcome {
        Outcome::Wake => WakeOutcome::Wake,
        Outcome::Observe => WakeOutcome::Observe,
        Outcome::Ignore => WakeOutcome::Ignore,
    };
    let runner_up = decision.runner_up.as_ref();
    Weighed {
        agent_id: agent_id.clone(),
        outcome,
        reason: decision.reason.to_string(),
        score: decision.score,
        runner_up: runner_up.map(|one| one.agent_id.clone()),
        runner_up_score: runner_up.map(|one| one.score),
    }
}

#[cfg(test)]
mod tests;
