//! The stored events of the ladder, read as they come and checked without the project's own state machines: so the same rules
//! are checked by two programs.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::topology::StreamKind;
use concord_testkit::{Stored, stored_from};
use concord_wire::Timestamp;
use serde_json::Value;

/// A stored event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// When the broker stored it.
    pub(crate) stored_at: Timestamp,
    /// Its aggregate and the id, as `debate/d-1`.
    pub(crate) of: String,
    /// Its aggregate and its name, as `debate.opened`.
    pub(crate) name: String,
    /// The whole body.
    pub(crate) body: Value,
}

impl Event {
    fn of(stored: &Stored) -> Self {
        let tokens: Vec<&str> = stored.subject.split('.').collect();
        let [.., aggregate, id, event] = tokens[..] else {
            panic!("{} is no subject of an event", stored.subject)
        };
        Self {
            stored_at: stored.at,
            of: format!("{aggregate}/{id}"),
            name: format!("{aggregate}.{event}"),
            body: stored.json(),
        }
    }

    /// The id of its aggregate.
    pub(crate) fn id(&self) -> &str {
        text(&self.body["id"])
    }

    /// Its contents.
    pub(crate) fn data(&self) -> &Value {
        &self.body["data"]
    }

    /// When it happened.
    fn at(&self) -> Timestamp {
        instant(&self.body["at"])
    }

    /// The deadlines that are open after it: when each is due, by name.
    fn deadlines(&self) -> BTreeMap<String, Timestamp> {
        let open = self.body["deadlines"].as_array().into_iter().flatten();
        open.map(|deadline| {
            (
                text(&deadline["name"]).to_owned(),
                instant(&deadline["due"]),
            )
        })
        .collect()
    }
}

/// A text, or nothing where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn instant(value: &Value) -> Timestamp {
    Timestamp::parse(text(value)).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// All events that were read so far.
#[derive(Default)]
pub(crate) struct EventLog {
    /// In the order of the stream.
    pub(crate) all: Vec<Event>,
    last: u64,
}

impl EventLog {
    /// Reads the events that were stored since: these events.
    pub(crate) async fn read_on(
        &mut self,
        client: &async_nats::Client,
    ) -> Result<Vec<Event>, String> {
        let new = stored_from(client, StreamKind::Events, ">", self.last + 1).await?;
        self.last = new.last().map_or(self.last, |stored| stored.sequence);
        let new: Vec<Event> = new.iter().map(Event::of).collect();
        self.all.extend(new.iter().cloned());
        Ok(new)
    }

    /// The position of the last event in the stream.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Event> {
        self.all.iter().filter(move |event| event.name == name)
    }

    /// How many events have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.named(name).count()
    }

    /// Checks that each debate was opened once and has ended once: how many have ended with each status.
    pub(crate) fn endings(&self) -> BTreeMap<String, usize> {
        let opened: BTreeSet<&str> = self.named("debate.opened").map(Event::id).collect();
        assert_eq!(
            opened.len(),
            self.count("debate.opened"),
            "a debate was opened twice"
        );
        let mut endings = BTreeMap::new();
        let mut resolved = BTreeSet::new();
        for event in self.named("debate.resolved") {
            assert!(
                resolved.insert(event.id()),
                "{} was resolved twice",
                event.of
            );
            *endings
                .entry(text(&event.data()["outcome"]["status"]).to_owned())
                .or_default() += 1;
        }
        assert_eq!(
            opened, resolved,
            "what was opened was not what was resolved"
        );
        endings
    }

    /// Checks that no debate goes back to a lower level or enters one twice.
    pub(crate) fn check_levels_rise(&self) {
        let mut levels: BTreeMap<&str, u64> = BTreeMap::new();
        for event in &self.all {
            let entered = match event.name.as_str() {
                "debate.escalated" => event.data()["to"].as_u64().expect("a level"),
                "debate.fell_back" => 4,
                "debate.awaits_gate" => 5,
                _ => continue,
            };
            let before = levels.insert(&event.of, entered).unwrap_or(1);
            assert!(
                before < entered,
                "{} goes from level {before} to level {entered}",
                event.of
            );
        }
        for event in self.named("debate.resolved") {
            let level = event.data()["outcome"]["level"]
                .as_u64()
                .expect("it was on the ladder");
            let reached = levels.get(event.of.as_str()).copied().unwrap_or(1);
            assert!(
                level >= reached,
                "{} had reached level {reached}, and ends on level {level}",
                event.of
            );
        }
    }

    /// Checks that no expert ever has more debates than their capacity: how many each had at most.
    pub(crate) fn most_held(&self) -> BTreeMap<String, usize> {
        let mut capacities = BTreeMap::new();
        let mut held = BTreeMap::new();
        let mut most = BTreeMap::new();
        for event in &self.all {
            let data = event.data();
            let debate = text(&data["debate_id"]);
            let expert = text(&data["expert"]);
            match event.name.as_str() {
                "queue.expert_registered" => {
                    let capacity = data["expert"]["capacity"].as_u64().expect("a capacity");
                    capacities.insert(
                        text(&data["expert"]["agent_id"]),
                        usize::try_from(capacity).expect("a number"),
                    );
                }
                "queue.assigned" => {
                    let now: &mut BTreeSet<&str> = held.entry(expert).or_default();
                    assert!(now.insert(debate), "{expert} is given {debate} twice");
                    assert!(now.len() <= capacities[expert], "{expert} has {now:?}");
                    let most = most.entry(expert.to_owned()).or_default();
                    *most = now.len().max(*most);
                }
                "queue.released" | "queue.returned" => held
                    .values_mut()
                    .for_each(|held| held.retain(|one| *one != debate)),
                "queue.reassigned" | "queue.expert_left" => {
                    panic!("nobody has asked for that: {event:?}")
                }
                _ => {}
            }
        }
        held.retain(|_, held| !held.is_empty());
        assert!(held.is_empty(), "these are with experts still: {held:?}");
        most
    }

    /// Checks that a ruling is set aside as on an old brief only after evidence that came while an expert had the debate, with the
    /// brief of then: how many rulings were set aside, by reason.
    pub(crate) fn rulings_set_aside(&self) -> BTreeMap<String, usize> {
        let mut briefs: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut aside = BTreeMap::new();
        for event in &self.all {
            let data = event.data();
            match event.name.as_str() {
                "debate.evidence_given" if data["brief"].is_object() => {
                    briefs.insert(&event.of, &data["brief"]["digest"]);
                }
                "debate.ruling_set_aside" => {
                    let reason = text(&data["reason"]);
                    *aside.entry(reason.to_owned()).or_default() += 1;
                    let of_then = briefs.get(event.of.as_str()).copied();
                    match reason {
                        "second" | "timed_out" => {}
                        "changed" => {
                            assert_eq!(of_then, Some(&data["brief"]["digest"]), "{event:?}");
                        }
                        _ => panic!("no ruling here is set aside for that: {event:?}"),
                    }
                }
                _ => {}
            }
        }
        aside
    }

    /// Checks that every deadline has elapsed once and not before it was due, or was closed or replaced: how many have
    /// elapsed, and how many were closed or replaced.
    pub(crate) fn deadlines(&self, now: Timestamp) -> (usize, usize) {
        let elapsed = self.elapsed_deadlines();
        let mut open = BTreeMap::new();
        let mut opened = BTreeSet::new();
        for event in &self.all {
            let deadlines = event.deadlines();
            let named = deadlines.iter();
            opened.extend(named.map(|(name, due)| (event.of.clone(), name.clone(), *due)));
            open.insert(&event.of, deadlines);
        }
        let unknown: Vec<_> = elapsed.difference(&opened).collect();
        assert!(
            unknown.is_empty(),
            "these have elapsed and were never open: {unknown:?}"
        );
        for (of, deadlines) in open {
            let missed: Vec<_> = deadlines.iter().filter(|(_, due)| **due < now).collect();
            assert!(missed.is_empty(), "{of} waits for what is past: {missed:?}");
        }
        (elapsed.len(), opened.len() - elapsed.len())
    }

    /// The deadlines that have elapsed, each once and not before it was due: aggregate, name and when it was due.
    fn elapsed_deadlines(&self) -> BTreeSet<(String, String, Timestamp)> {
        let mut elapsed = BTreeSet::new();
        let is_deadline = |event: &&Event| event.name.starts_with("deadline.");
        for event in self.all.iter().filter(is_deadline) {
            let data = event.data();
            let of = format!("{}/{}", text(&data["aggregate"]), text(&data["id"]));
            let due = instant(&data["due"]);
            assert!(
                event.at() >= due && event.stored_at >= due,
                "early: {event:?}"
            );
            let name = text(&data["name"]).to_owned();
            assert!(
                elapsed.insert((of, name, due)),
                "it has elapsed twice: {event:?}"
            );
        }
        elapsed
    }

    /// The events of a debate that were stored before that moment.
    fn of_debate(&self, debate: &str, before: Timestamp) -> impl Iterator<Item = &Event> {
        self.all.iter().filter(move |event| {
            event.of.strip_prefix("debate/") == Some(debate) && event.stored_at <= before
        })
    }

    /// Whether a debate had left level 1 before that moment.
    pub(crate) fn had_left_the_agents(&self, debate: &str, before: Timestamp) -> bool {
        self.of_debate(debate, before)
            .any(|event| event.name == "debate.escalated" || event.name == "debate.resolved")
    }

    /// Whether an expert had lost a debate before that moment.
    pub(crate) fn was_taken_from(&self, expert: &str, debate: &str, before: Timestamp) -> bool {
        self.of_debate(debate, before).any(|event| {
            let data = event.data();
            let lost = match event.name.as_str() {
                "debate.unassigned" => &data["expert"],
                "debate.assigned" => &data["instead_of"]["expert"],
                _ => return false,
            };
            lost == expert
        })
    }
}
