//! What each agent may see of a conversation: its context window.
//!
//! An agent sees what was said to all, what was said to it or by it, and what has woken it. What others tell each other it does not
//! see. An agent that has joined the case later sees nothing of what was said before: its window begins with its briefing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use concord_events::{Remembered, WakeDecided, Weighed};
use concord_wire::{AgentId, CaseId, Recipient};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many messages a window has at most.
pub const WINDOW_MAX: usize = 20;
/// How many agents have messages of their own in a conversation's memory: those who spoke, or were spoken to, last.
pub const WINDOWS_MAX: usize = 64;

type Numbered = (u64, Arc<Remembered>);

/// The windows of a conversation. Cases and threads have one space of ids, and whoever opens a case chooses its id: of what is said in a thread
/// nothing is seen in a case with the id of that thread, nor the other way round.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConversationWindows {
    in_case: Windows,
    in_thread: Windows,
}

impl ConversationWindows {
    /// The windows of the case; of the thread where there is none.
    pub fn at(&self, case: Option<&CaseId>) -> &Windows {
        match case {
            Some(_) => &self.in_case,
            None => &self.in_thread,
        }
    }

    pub(super) fn at_mut(&mut self, case: Option<&CaseId>) -> &mut Windows {
        match case {
            Some(_) => &mut self.in_case,
            None => &mut self.in_thread,
        }
    }

    /// About how many bytes they take. A message that several have in their windows counts as often.
    pub fn bytes_about(&self) -> usize {
        self.in_case.bytes_about() + self.in_thread.bytes_about()
    }
}

/// The windows of all agents of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Windows {
    /// How many messages there were.
    number: u64,
    /// The last messages to all.
    to_all: VecDeque<Numbered>,
    /// The last messages to, from, or of concern to one agent.
    own: BTreeMap<AgentId, VecDeque<Numbered>>,
    /// Those who have joined later, with the number of the message at which their window begins.
    joined: BTreeMap<AgentId, u64>,
}

impl Windows {
    /// Takes a message into account, that has woken these agents.
    pub fn take<'a>(&mut self, message: &Remembered, woken: impl Iterator<Item = &'a AgentId>) {
        let numbered = (self.next(), Arc::new(message.clone()));
        match &message.to {
            Recipient::Agent(to) => {
                self.add(&message.from, &numbered);
                self.add(to, &numbered);
                for agent in woken.filter(|agent| **agent != message.from && *agent != to) {
                    self.add(agent, &numbered);
                }
            }
            Recipient::All | Recipient::Any => push(&mut self.to_all, numbered),
        }
    }

    /// Takes the briefing of an agent into account that has joined.
    pub fn join(&mut self, agent: &AgentId, briefing: &Remembered) {
        let number = self.next();
        self.joined.insert(agent.clone(), number);
        self.add(agent, &(number, Arc::new(briefing.clone())));
    }

    fn bytes_about(&self) -> usize {
        let messages = self.own.values().flatten().chain(&self.to_all);
        let sizes = messages.map(|(_, message)| message.text.len() + 256);
        sizes.sum::<usize>() + self.joined.len() * 64
    }

    /// Those who have joined later.
    pub fn joined(&self) -> impl Iterator<Item = &AgentId> {
        self.joined.keys()
    }

    /// The last messages that an agent may see, `max` at most, the oldest first.
    pub fn of(&self, agent: &AgentId, max: usize) -> Vec<Arc<Remembered>> {
        let seen = self.numbered(agent, max);
        seen.into_iter().map(|(_, message)| message).collect()
    }

    /// The same with the number of each message in the conversation.
    pub(super) fn numbered(&self, agent: &AgentId, max: usize) -> Vec<Numbered> {
        let since = self.joined.get(agent).copied().unwrap_or_default();
        let own = self.own.get(agent).into_iter().flatten();
        let mut seen: Vec<Numbered> = own
            .chain(&self.to_all)
            .filter(|(number, _)| *number >= since)
            .cloned()
            .collect();
        seen.sort_unstable_by_key(|(number, _)| *number);
        let beyond = seen.len().saturating_sub(max.min(WINDOW_MAX));
        seen.split_off(beyond)
    }

    fn next(&mut self) -> u64 {
        self.number = self.number.saturating_add(1);
        self.number
    }

    fn add(&mut self, agent: &AgentId, message: &Numbered) {
        push(self.own.entry(agent.clone()).or_default(), message.clone());
        if self.own.len() <= WINDOWS_MAX {
            return;
        }
        let last = |window: &VecDeque<Numbered>| window.back().map(|(number, _)| *number);
        let quietest = self.own.iter().min_by_key(|(_, window)| last(window));
        if let Some(agent) = quietest.map(|(agent, _)| agent.clone()) {
            self.own.remove(&agent);
        }
    }
}

/// How windows are written: each message once, and who has which by its number.
#[derive(Serialize, Deserialize)]
struct Written {
    number: u64,
    messages: Vec<(u64, Remembered)>,
    to_all: Vec<u64>,
    own: BTreeMap<AgentId, Vec<u64>>,
    joined: BTreeMap<AgentId, u64>,
}

impl Serialize for Windows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers = |window: &VecDeque<Numbered>| -> Vec<u64> {
            window.iter().map(|(number, _)| *number).collect()
        };
        let all = self.own.values().flatten().chain(&self.to_all);
        let messages: BTreeMap<u64, &Remembered> =
            all.map(|(number, message)| (*number, &**message)).collect();
        let own = self.own.iter();
        let written = Written {
            number: self.number,
            messages: messages
                .into_iter()
                .map(|(number, message)| (number, message.clone()))
                .collect(),
            to_all: numbers(&self.to_all),
            own: own
                .map(|(agent, window)| (agent.clone(), numbers(window)))
                .collect(),
            joined: self.joined.clone(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Windows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let messages = written.messages.into_iter();
        let messages: BTreeMap<u64, Arc<Remembered>> = messages
            .map(|(number, message)| (number, Arc::new(message)))
            .collect();
        let window = |numbers: Vec<u64>| {
            let each = numbers.into_iter().map(|number| {
                let message = messages.get(&number).map(Arc::clone);
                message.map(|message| (number, message))
            });
            let window: Option<VecDeque<Numbered>> = each.collect();
            window.ok_or_else(|| serde::de::Error::custom("a message is missing"))
        };
        let own = written.own.into_iter();
        Ok(Self {
            number: written.number,
            to_all: window(written.to_all)?,
            own: own
                .map(|(agent, numbers)| Ok((agent, window(numbers)?)))
                .collect::<Result<_, _>>()?,
            joined: written.joined,
        })
    }
}

/// How many messages an event gives as context to all whom it wakes.
pub const CONTEXT_MAX: usize = 40;

/// The context of those whom a message wakes, the oldest first: together, and which of it each of them sees, by place, where that is
/// not all.
pub(super) fn context_for(
    windows: &Windows,
    woken: &[Weighed],
    max: usize,
) -> (Vec<Remembered>, BTreeMap<AgentId, Vec<u8>>) {
    let seen = woken.iter().map(|one| windows.numbered(&one.agent_id, max));
    let seen: Vec<Vec<Numbered>> = seen.collect();
    let mut all: BTreeMap<u64, &Arc<Remembered>> = BTreeMap::new();
    for (number, message) in seen.iter().flatten() {
        all.insert(*number, message);
    }
    while all.len() > CONTEXT_MAX {
        all.pop_first();
    }
    let places: BTreeMap<u64, u8> = all.keys().copied().zip(0..).collect();
    let sees = woken.iter().zip(&seen).filter_map(|(one, seen)| {
        let own = seen.iter().filter_map(|(number, _)| places.get(number));
        let own: Vec<u8> = own.copied().collect();
        (own.len() < places.len()).then(|| (one.agent_id.clone(), own))
    });
    let sees = sees.collect();
    let context = all.into_values().map(|message| (**message).clone());
    (context.collect(), sees)
}

/// The context of one agent whom a message has woken.
pub(super) fn context_of(decided: &WakeDecided, agent: &AgentId) -> Vec<Remembered> {
    let Some(places) = decided.sees.get(agent) else {
        return decided.context.clone();
    };
    let own = places.iter();
    own.filter_map(|place| decided.context.get(usize::from(*place)).cloned())
        .collect()
}

fn push(window: &mut VecDeque<Numbered>, message: Numbered) {
    window.push_back(message);
    if window.len() > WINDOW_MAX {
        window.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::*;

    fn said(id: &str, from: &str, to: &str) -> Remembered {
        Remembered {
            message_id: message(id),
            from: agent(from),
            to: Recipient::new(to).unwrap(),
            message_type: "question".into(),
            at: after(0),
            reply_to: None,
            text: id.into(),
        }
    }

    fn ids(windows: &Windows, of: &str, max: usize) -> Vec<String> {
        let seen = windows.of(&agent(of), max);
        seen.iter().map(|one| one.message_id.to_string()).collect()
    }

    #[test]
    fn an_agent_sees_what_is_for_it_and_from_when_it_joined() {
        let mut windows = Windows::default();
        let quiet = std::iter::empty;
        windows.take(&said("m-1", "ann", "_all"), quiet());
        windows.take(&said("m-2", "ann", "ben"), quiet());
        windows.take(&said("m-3", "ben", "ann"), [agent("cleo")].iter());
        assert_eq!(ids(&windows, "ann", 20), ["m-1", "m-2", "m-3"]);
        assert_eq!(ids(&windows, "cleo", 20), ["m-1", "m-3"], "it was woken");
        assert_eq!(ids(&windows, "dan", 20), ["m-1"]);
        assert_eq!(ids(&windows, "ann", 2), ["m-2", "m-3"], "the last ones");
        windows.join(&agent("eve"), &said("m-4", "coordinator", "eve"));
        windows.take(&said("m-5", "ben", "_any"), quiet());
        assert_eq!(ids(&windows, "eve", 20), ["m-4", "m-5"]);
        assert_eq!(ids(&windows, "dan", 20), ["m-1", "m-5"], "no briefing");
        assert!(windows.joined().eq([&agent("eve")]));
    }

    proptest! {
        #[test]
        fn what_is_kept_is_bounded_and_nobody_sees_what_others_tell_each_other(
            pairs in proptest::collection::vec((0..90_u8, 0..90_u8), 0..300),
            max in 0..40_usize,
        ) {
            let mut windows = Windows::default();
            for (number, (from, to)) in pairs.iter().enumerate() {
                let to = if *to == 0 { "_all".to_owned() } else { format!("a{to}") };
                let one = said(&format!("m-{number}"), &format!("a{from}"), &to);
                windows.take(&one, std::iter::empty());
            }
            prop_assert!(windows.own.len() <= WINDOWS_MAX);
            for name in 0..90 {
                let own = agent(&format!("a{name}"));
                let seen = windows.of(&own, max);
                prop_assert!(seen.len() <= max.min(WINDOW_MAX));
                for one in seen {
                    let is_own = one.from == own || one.to == Recipient::Agent(own.clone());
                    prop_assert!(is_own || one.to == Recipient::All);
                }
            }
        }
    }
}
