//! Everybody who is no service: who opens cases, who takes part in them, and strangers.
//!
//! Each reacts to what it reads by chance: at once, late, never, twice, malformed, under somebody else's id. What one
//! publishes reaches the broker, sooner or later; what it contains is anything a sender could write.

use std::sync::Arc;

use concord_events::topology::StreamKind;
use concord_wire::Timestamp;
use concord_wire::payload::notification::{EventData, MemorySync, Woken};
use concord_wire::subject::{Service, Subject};
use serde_json::{Value, json};

use crate::broker::Publication;
use crate::random::Random;
use crate::world::{Action, World};

mod alerts;
mod answers;
mod challenges;
mod exchange;
mod experts;
mod findings;
mod gates;
mod joining;
mod ladder;
mod opening;
pub(crate) mod operators;
mod outcomes;
mod questions;
mod reruns;
mod shared;
mod signing;
mod strangers;
mod talk;
mod tasks;

use ladder::Ladder;

/// Everybody's name. The last takes part in nothing.
const NAMES: [&str; 6] = ["ada", "ben", "cleo", "dan", "eve", "mallory"];
/// Takes part in no case.
const STRANGER: &str = "mallory";
/// Opens cases.
const OPENER: &str = "olga";
/// Opens cases, and is no operator.
const OTHER_OPENER: &str = "otto";
/// Whoever opens a case: one of them floods.
const OPENERS: [&str; 5] = [OPENER, OPENER, OPENER, OTHER_OPENER, "oona"];

/// Something to publish.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingMessage {
    subject: String,
    id: Option<String>,
    body: Arc<[u8]>,
}

/// What somebody says, before it is written down.
#[derive(Debug, Clone)]
struct Draft {
    from: String,
    to: Service,
    kind: &'static str,
    case: Option<String>,
    id: String,
    payload: Value,
    /// Fields beside the required ones, or in their place.
    more: Value,
}

/// Everybody who is no service.
pub(crate) struct Agents {
    random: Random,
    said: u64,
    /// Ids of cases that somebody wanted to open.
    cases: Vec<String>,
    /// Findings that somebody has given, with their cases.
    findings: Vec<(String, String)>,
    /// What people know who have to do with the ladder; none in a world without it.
    ladder: Option<Ladder>,
    /// Whether tasks are opened.
    tasks: bool,
    /// Who falls silent, from when to when; nobody in most worlds.
    silent: Option<Silent>,
}

/// An agent that is there and answers nothing for a while.
struct Silent {
    agent: &'static str,
    from_ms: u64,
    until_ms: u64,
}

impl Agents {
    pub(crate) fn new(random: Random, ladder: bool, tasks: bool) -> Self {
        Self {
            random,
            said: 0,
            cases: Vec::new(),
            findings: Vec::new(),
            ladder: ladder.then(Ladder::default),
            tasks,
            silent: None,
        }
    }

    /// How many cases somebody wanted to open.
    pub(crate) fn begin(&mut self, world: &mut World) {
        // What climbs takes longer, so that there are fewer cases.
        let busy = self.ladder.is_some() && self.random.chance(0.3);
        if let Some(ladder) = &mut self.ladder {
            ladder.busy = busy;
        }
        let (cases_min, cases_max) = match (self.ladder.is_some(), busy) {
            (true, true) => (4, 6),
            (true, false) => (2, 3),
            (false, _) => (2, 6),
        };
        for number in 1..=self.random.between(cases_min, cases_max) {
            self.open(world, number);
        }
        for _ in 0..self.random.between(0, 8) {
            self.intrude(world);
        }
        self.staff(world);
        self.share(world);
        self.alert(world);
        self.watch(world);
        for _ in 0..self.random.between(0, 6) {
            self.ask_a_peer(world);
        }
        for _ in 0..self.random.between(0, 6) {
            self.talk(world);
        }
        self.begin_tasks(world);
        self.register_authors(world);
        for _ in 0..self.random.between(0, 4) {
            self.let_in(world);
        }
    }

    /// A stored message is read by whom it is addressed to.
    pub(crate) fn hear(&mut self, world: &mut World, sequence: u64) {
        let Some(stored) = world.broker.message(StreamKind::Messages, sequence) else {
            return;
        };
        let Ok(Subject::Message { to, kind, from, .. }) =
            world.subjects().parse(&stored.publication.subject)
        else {
            return;
        };
        let Ok(message) = serde_json::from_slice::<Value>(&stored.publication.body) else {
            return;
        };
        let reader = to.as_str().to_owned();
        if Service::parse(to.as_str()).is_ok() || self.is_silent(world, &reader) {
            return;
        }
        if Service::parse(from.as_str()).is_err() {
            match kind.as_str() {
                "request" => self.requested(world, &reader, &message),
                "peer_request" if self.random.chance(0.8) => {
                    self.answer_and_talk_back(world, &reader, &message)
                }
                _ => {}
            }
            return;
        }
        // Who has crashed, or is slow to acknowledge, reads a message twice and may answer it twice.
        let times = if self.random.chance(0.04) { 2 } else { 1 };
        for _ in 0..times {
            if self.do_again(world, &reader, kind.as_str(), &message) {
                continue;
            }
            if self.tasks && self.on_task(world, &reader, kind.as_str(), &message) {
                continue;
            }
            if self.on_ladder(world, &reader, kind.as_str(), &message) {
                continue;
            }
            if kind.as_str() == "request" && self.synthesise(world, &reader, &message) {
                continue;
            }
            match kind.as_str() {
                "task_assignment" => {
                    self.share_task(world, &reader, &message);
                    self.assigned(world, &reader, &message);
                }
                "question" => self.asked(world, &reader, &message),
                "notification" if text(&message, "/payload/event") == Some(Woken::EVENT) => {
                    self.woken(world, &reader, &message);
                }
                "notification" if text(&message, "/payload/event") == Some(MemorySync::EVENT) => {
                    self.flush(world, &reader, &message);
                }
                "notification" => self.informed(world, &message),
                _ => {}
            }
        }
    }

    /// Most who are asked to write what they know say that they have, some of them late; some go on writing.
    fn flush(&mut self, world: &mut World, reader: &str, message: &Value) {
        if let Some(case) = text(message, "/case_id").filter(|_| self.random.chance(0.5)) {
            let within_ms = due_of(message).millis_since(world.clock());
            self.remember(world, reader.to_owned(), Some(case.to_owned()), within_ms);
        }
        if self.random.chance(0.25) {
            return;
        }
        let in_ms = match self.random.chance(0.5) {
            true => self.random.between(0, 20),
            false => self.around(world, due_of(message)),
        };
        let draft = Draft {
            from: reader.to_owned(),
            to: Service::DebateFacilitator,
            kind: "acknowledgement",
            case: text(message, "/case_id").map(str::to_owned),
            id: self.fresh_id(),
            payload: json!({}),
            more: json!({ "reply_to": text(message, "/message_id") }),
        };
        self.say(world, in_ms, &draft);
    }

    /// An id that nobody has used.
    fn fresh_id(&mut self) -> String {
        self.said += 1;
        format!("m-{}", self.said)
    }

    /// Publishes `draft` after `in_ms`.
    fn say(&mut self, world: &mut World, in_ms: u64, draft: &Draft) {
        let mut envelope = json!({
            "message_id": draft.id, "timestamp": world.clock(), "from_agent": draft.from,
            "to_agent": draft.to.as_str(), "message_type": draft.kind, "payload": draft.payload,
        });
        if let (Some(fields), Some(case)) = (envelope.as_object_mut(), &draft.case) {
            fields.insert("case_id".into(), case.as_str().into());
        }
        if let (Some(fields), Some(more)) = (envelope.as_object_mut(), draft.more.as_object()) {
            fields.extend(more.clone());
        }
        let place = format!(
            "{}.{}.{}.{}",
            draft.case.as_deref().unwrap_or("_"),
            draft.from,
            draft.to.as_str(),
            draft.kind
        );
        self.say_raw(
            world,
            in_ms,
            place,
            Some(draft.id.clone()),
            envelope.to_string().into_bytes(),
        );
    }

    /// Publishes any bytes under the subject of a message.
    fn say_raw(
        &mut self,
        world: &mut World,
        in_ms: u64,
        place: String,
        id: Option<String>,
        body: Vec<u8>,
    ) {
        let all = world.subjects().all("msg");
        let subject = format!("{}{place}", all.trim_end_matches('>'));
        // An answer to a message with a malformed name has a subject that the broker takes from nobody.
        if world.subjects().parse::<Subject>(&subject).is_err() {
            return;
        }
        // Not every client sets the header by which the broker knows a repetition.
        let id = id.filter(|_| self.random.chance(0.6));
        world.plan(
            in_ms,
            Action::Say(OutgoingMessage {
                subject,
                id,
                body: body.into(),
            }),
        );
    }

    /// A time around `due`: mostly just before or after, where most can go wrong.
    fn around(&mut self, world: &World, due: Timestamp) -> u64 {
        let until = due.millis_since(world.clock());
        (until + self.random.between(0, 60)).saturating_sub(30)
    }
}

impl World {
    /// Somebody who is no service publishes something, and tries until the broker has it.
    pub(crate) fn say(&mut self, outgoing: OutgoingMessage) {
        let away = self.away_ms();
        if away > 0 {
            let after = self.delay();
            self.plan(away + after, Action::Say(outgoing));
            return;
        }
        let OutgoingMessage { subject, id, body } = outgoing.clone();
        let kind = self.broker.layout.stream_of(&subject);
        self.publish(
            kind.unwrap_or(StreamKind::Messages),
            Publication {
                subject,
                id,
                body,
                original: None,
            },
        );
        let unanswered = self.faults.lost_answer;
        if self.random.chance(unanswered) {
            self.plan(1_000, Action::Say(outgoing));
        }
    }
}

/// How many tasks an agent works on at a time; none for no limit.
pub(crate) fn capacity_of(agent: &str) -> Option<u64> {
    let mut all = NAMES.iter().zip(tasks::CAPACITIES);
    all.find(|(name, _)| **name == agent)?.1
}

/// When an answer to a message is due, as the message says.
fn due_of(message: &Value) -> Timestamp {
    message
        .get("deadline")
        .and_then(Value::as_str)
        .and_then(|text| Timestamp::parse(text).ok())
        .unwrap_or_default()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}
