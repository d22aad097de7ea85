use concord_events::{Aggregate, TaskOutcome};
use concord_wire::payload::{Bid, Role};
use concord_wire::{ErrorCode, MessageType};
use serde_json::{Value, json};

use super::*;
use crate::effect;
use crate::fixtures::*;

mod bidding;
mod handing_on;
mod opening;
mod parts;
mod random;
mod strategies;

/// A task in a story, with whom it fits.
struct Stage {
    story: Story<TaskMachine>,
    clock: u64,
}

const OPENER: &str = "olga";

fn terms(strategy: &str, more: Value) -> OpenTask {
    let mut terms = json!({
        "task_id": "t-1", "strategy": strategy, "task": { "type": "sum", "title": "Add", "input": [1, 2] }, "deadline_ms": 60_000,
    });
    terms
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(terms).unwrap()
}

fn opening(strategy: &str, names: &[&str], more: Value) -> OpenedTask {
    let candidates = names.iter().map(|name| TaskCandidate {
        agent: agent(name),
        score: 1.0,
        full: false,
    });
    OpenedTask {
        opened_by: agent(OPENER),
        request_id: message("m-open"),
        terms: terms(strategy, more),
        candidates: candidates.collect(),
        sender: Authority::default(),
    }
}

impl Stage {
    fn open(strategy: &str, names: &[&str], more: Value) -> Self {
        let mut stage = Self {
            story: Story::of("t-1"),
            clock: 0,
        };
        let asked = opening(strategy, names, more);
        assert_eq!(stage.hear(&TaskInput::Open(Box::new(asked))), "opened");
        stage
    }

    /// An input, a millisecond later.
    fn hear(&mut self, input: &TaskInput) -> String {
        self.clock += 1;
        let id = match self.clock {
            1 => "m-open".to_owned(),
            clock => format!("m-{clock}"),
        };
        self.story.hears(&said(&id, self.clock), input)
    }

    fn place(&mut self, name: &str) -> String {
        let agent = agent(name);
        self.hear(&TaskInput::Place { agent, gone: None })
    }

    fn places(&mut self, names: &[&str]) {
        for name in names {
            assert_eq!(self.place(name), "assigned", "{name}");
        }
    }

    fn say(&mut self, name: &str, word: Word) -> String {
        let by = agent(name);
        let part = self.story.state().parts.get(&by);
        let asked = part.and_then(|part| part.assignment);
        let asked = asked.or(Some(self.story.state().opened_sequence));
        self.hear(&TaskInput::Say(Box::new(Said { by, asked, word })))
    }

    fn result(&mut self, name: &str, result: Value) -> String {
        self.report(name, json!({ "result": result }))
    }

    fn report(&mut self, name: &str, payload: Value) -> String {
        let result = serde_json::from_value(payload).unwrap();
        self.say(name, Word::Result(result))
    }

    fn bid(&mut self, name: &str, price: f64, time_ms: u64) -> String {
        let bid = Bid {
            price,
            time_ms,
            confidence: 0.5,
            capability: 1.0,
            proposal: String::new(),
        };
        self.say(name, Word::Bid(bid, 0.5))
    }

    fn lose(&mut self, name: &str) -> String {
        let (agent, why) = (agent(name), "gone".to_owned());
        self.hear(&TaskInput::Lost { agent, why })
    }

    /// The deadline with this name passes, as it stands.
    fn elapse(&mut self, name: &str) -> String {
        let open = TaskMachine::deadlines(self.story.state());
        let due = open.iter().find(|one| one.name.as_str() == name);
        let due = due.map_or(after(1), |one| one.due);
        let passed = elapsed(Aggregate::Task, &token("t-1"), name, due);
        self.hear(&TaskInput::Elapsed(passed))
    }

    /// Whom the last event has asked.
    fn asked(&self) -> Vec<String> {
        let next = self.story.last().event.next();
        next.map(|next| next.ask.iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    fn outcome(&self) -> Option<TaskOutcome> {
        self.story.state().ended.clone()
    }

    fn completed(&self) -> Value {
        match self.outcome() {
            Some(TaskOutcome::Completed {
                result, partial, ..
            }) => {
                json!({ "result": result, "partial": partial })
            }
            other => panic!("{other:?}"),
        }
    }

    fn failed(&self) -> (ErrorCode, String) {
        match self.outcome() {
            Some(TaskOutcome::Failed { code, reason, .. }) => (code, reason),
            other => panic!("{other:?}"),
        }
    }

    /// The messages of the last event: the type, and to whom.
    fn sent(&self) -> Vec<(MessageType, String)> {
        let messages = effect::messages::<TaskMachine>(self.story.last()).unwrap();
        let to = |one: concord_wire::Envelope| (one.message_type, one.to_agent.to_string());
        messages.into_iter().map(to).collect()
    }
}
