//! What the facts of the ladder say, read as they come and without the project's own machines: so what is checked here is
//! checked twice.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::topology::StreamKind;
use concord_testkit::{Stored, stored_from};
use concord_wire::Timestamp;
use serde_json::Value;

/// A fact as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    /// When the broker stored it.
    pub(crate) stored_at: Timestamp,
    /// Of which aggregate, as `debate/d-1`.
    pub(crate) of: String,
    /// Which, as `debate.opened`.
    pub(crate) name: String,
    /// All of it.
    pub(crate) body: Value,
}

impl Fact {
    fn of(stored: &Stored) -> Self {
        let tokens: Vec<&str> = stored.subject.split('.').collect();
        let [.., aggregate, id, fact] = tokens[..] else {
            panic!("{} is no subject of a fact", stored.subject)
        };
        let (of, name) = (format!("{aggregate}/{id}"), format!("{aggregate}.{fact}"));
        Self {
            stored_at: stored.at,
            of,
            name,
            body: stored.json(),
        }
    }

    /// The id of its aggregate.
    pub(crate) fn id(&self) -> &str {
        text(&self.body["id"])
    }

    /// What it says.
    pub(crate) fn data(&self) -> &Value {
        &self.body["data"]
    }

    fn at(&self) -> Timestamp {
        instant(&self.body["at"])
    }

    /// The deadlines that are open after it.
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

/// All facts so far.
#[derive(Default)]
pub(crate) struct AggregateEvent {
    /// In the order of the stream.
    pub(crate) all: Vec<Fact>,
    last: u64,
}

impl AggregateEvent {
    /// Reads those that have come since.
    pub(crate) async fn read_on(
        &mut self,
        client: &async_nats::Client,
    ) -> Result<Vec<Fact>, String> {
        let new = stored_from(client, StreamKind::Events, ">", self.last + 1).await?;
        self.last = new.last().map_or(self.last, |stored| stored.sequence);
        let new: Vec<Fact> = new.iter().map(Fact::of).collect();
        self.all.extend(new.iter().cloned());
        Ok(new)
    }

    /// How far the stream has come.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Fact> {
        self.all.iter().filter(move |fact| fact.name == name)
    }

    /// How often there is such a fact.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.named(name).count()
    }

    /// How the debates ended: how many in each way. Each was opened once and has ended once.
    pub(crate) fn endings(&self) -> BTreeMap<String, usize> {
        let opened: BTreeSet<&str> = self.named("debate.opened").map(Fact::id).collect();
        assert_eq!(
            opened.len(),
            self.count("debate.opened"),
            "a debate was opened twice"
        );
        let mut endings = BTreeMap::new();
        let mut resolved = BTreeSet::new();
        for fact in self.named("debate.resolved") {
            assert!(resolved.insert(fact.id()), "{} was resolved twice", fact.of);
            *endings
                .entry(text(&fact.data()["outcome"]["status"]).to_owned())
                .or_default() += 1;
        }
        assert_eq!(
            opened, resolved,
            "what was opened was not what was resolved"
        );
        endings
    }

    /// No debate goes back to a lower level, or enters one twice.
    pub(crate) fn levels_rise(&self) {
        let mut levels: BTreeMap<&str, u64> = BTreeMap::new();
        for fact in &self.all {
            let entered = match fact.name.as_str() {
                "debate.escalated" => fact.data()["to"].as_u64().expect("a level"),
                "debate.fell_back" => 4,
                "debate.awaits_gate" => 5,
                _ => continue,
            };
            let before = levels.insert(&fact.of, entered).unwrap_or(1);
            assert!(
                before < entered,
                "{} goes from level {before} to level {entered}",
                fact.of
            );
        }
        for fact in self.named("debate.resolved") {
            let level = fact.data()["outcome"]["level"]
                .as_u64()
                .expect("it was on the ladder");
            let reached = levels.get(fact.of.as_str()).copied().unwrap_or(1);
            assert!(
                level >= reached,
                "{} had reached level {reached}, and ends on level {level}",
                fact.of
            );
        }
    }

    /// No expert ever has more debates than they can: how many each had at most.
    pub(crate) fn most_held(&self) -> BTreeMap<String, usize> {
        let (mut capacities, mut held, mut most) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for fact in &self.all {
            let data = fact.data();
            let (debate, expert) = (text(&data["debate_id"]), text(&data["expert"]));
            match fact.name.as_str() {
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
                "queue.released" => held
                    .values_mut()
                    .for_each(|held| held.retain(|one| *one != debate)),
                "queue.reassigned" | "queue.expert_left" => {
                    panic!("nobody has asked for that: {fact:?}")
                }
                _ => {}
            }
        }
        held.retain(|_, held| !held.is_empty());
        assert!(held.is_empty(), "these are with experts still: {held:?}");
        most
    }

    /// Every deadline has elapsed once and not before it was due, or was closed or replaced: how many of each.
    pub(crate) fn deadlines(&self, now: Timestamp) -> (usize, usize) {
        let mut elapsed = BTreeSet::new();
        for fact in self
            .all
            .iter()
            .filter(|fact| fact.name.starts_with("deadline."))
        {
            let data = fact.data();
            let (of, due) = (
                format!("{}/{}", text(&data["aggregate"]), text(&data["id"])),
                instant(&data["due"]),
            );
            assert!(fact.at() >= due && fact.stored_at >= due, "early: {fact:?}");
            let name = text(&data["name"]).to_owned();
            assert!(
                elapsed.insert((of, name, due)),
                "it has elapsed twice: {fact:?}"
            );
        }
        let (mut open, mut opened) = (BTreeMap::new(), BTreeSet::new());
        for fact in &self.all {
            let deadlines = fact.deadlines();
            opened.extend(
                deadlines
                    .iter()
                    .map(|(name, due)| (fact.of.clone(), name.clone(), *due)),
            );
            open.insert(&fact.of, deadlines);
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

    /// Whether a debate had left level 1 before that moment.
    pub(crate) fn had_left_the_agents(&self, debate: &str, before: Timestamp) -> bool {
        let left = |fact: &&Fact| fact.name == "debate.escalated" || fact.name == "debate.resolved";
        let mut of_debate = self
            .all
            .iter()
            .filter(|fact| fact.of.strip_prefix("debate/") == Some(debate));
        of_debate
            .find(left)
            .is_some_and(|fact| fact.stored_at <= before)
    }
}
