//! Whatever is asked of the queue, in whatever order: held against a plain account of the rules.

use std::collections::BTreeMap;

use concord_events::Returned;
use proptest::prelude::*;

use super::*;
use crate::assurance::replay;

const EXPERTS: [&str; 4] = ["eva", "finn", "gil", "hana"];
const DOMAINS: [&str; 3] = ["tax", "law", "audit"];
const OPENERS: [&str; 3] = ["ada", "bob", "cleo"];

#[derive(Debug, Clone)]
enum Step {
    Hears(QueueInput),
    /// Advance, by the last fact: several times at once, or later than others, as replicas do.
    Advance,
}

fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&EXPERTS)
}

fn debate_name() -> impl Strategy<Value = String> {
    (0u32..12).prop_map(|number| format!("d-{number}"))
}

fn some_of(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(of), 0..3)
}

fn enqueueing() -> impl Strategy<Value = QueueInput> {
    let priority = proptest::sample::select(&DebatePriority::ALL);
    let domain = proptest::option::of(proptest::sample::select(&DOMAINS));
    let overflow = proptest::sample::select(&[Overflow::Defer, Overflow::Escalate]);
    (
        debate_name(),
        priority,
        domain,
        some_of(&EXPERTS),
        (
            0u64..4,
            proptest::option::of(proptest::sample::select(&OPENERS)),
            0u32..3,
        ),
        overflow,
        0u32..4,
    )
        .prop_map(
            |(name, priority, domain, excluded, (entered, opener, most), overflow, queue_max)| {
                let excluded = excluded.into_iter().map(agent).collect();
                let entry = Enqueued {
                    domain: domain.map(|d| (*d).to_owned()),
                    excluded,
                    opened_by: opener.map(agent),
                    opener_waiting_max: most,
                    ..entry(&name, priority, entered)
                };
                QueueInput::Enqueue(Box::new(Enqueue {
                    entry,
                    overflow,
                    queue_max,
                }))
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    let registering = (name(), 0u32..4, some_of(&DOMAINS))
        .prop_map(|(name, n, domains)| register(name, n, &domains));
    prop_oneof![
        3 => registering.prop_map(Step::Hears),
        1 => name().prop_map(|name| Step::Hears(leave(name))),
        8 => enqueueing().prop_map(Step::Hears),
        3 => debate_name().prop_map(|name| Step::Hears(release(&name))),
        3 => (debate_name(), name()).prop_map(|(debate, expert)| Step::Hears(give_back(&debate, expert))),
        2 => (debate_name(), name()).prop_map(|(debate, to)| Step::Hears(reassign(&debate, to))),
        6 => Just(Step::Advance),
    ]
}

/// The queue as its facts tell it, written down without regard to speed.
#[derive(Debug, Default, PartialEq)]
struct Account {
    experts: BTreeMap<AgentId, (Expert, u64)>,
    /// Every debate that was ever in the queue, with who has it.
    waiting: BTreeMap<DebateId, Enqueued>,
    assigned: BTreeMap<DebateId, (Enqueued, AgentId)>,
    finished: Vec<DebateId>,
    /// Who has let a debate lie.
    passed_over: BTreeMap<DebateId, Vec<AgentId>>,
    /// When the debates of a priority and an opener had their last turn.
    turns: BTreeMap<(DebatePriority, Option<AgentId>), u64>,
}

impl Account {
    fn held(&self, expert: &AgentId) -> usize {
        self.assigned
            .values()
            .filter(|(_, holder)| holder == expert)
            .count()
    }

    fn has_room(&self, expert: &AgentId) -> bool {
        self.experts
            .get(expert)
            .is_some_and(|(known, _)| self.held(expert) < known.capacity as usize)
    }

    /// The rule of the specification, word by word.
    fn eligible(&self, entry: &Enqueued) -> Vec<&AgentId> {
        let knows = |(expert, _): &(Expert, u64)| {
            entry
                .domain
                .as_ref()
                .is_some_and(|d| expert.domains.contains(d))
        };
        let allowed: Vec<_> = self
            .experts
            .iter()
            .filter(|(id, _)| !entry.excluded.contains(id))
            .collect();
        let special = allowed.iter().any(|(_, expert)| knows(expert));
        allowed
            .into_iter()
            .filter(|(_, expert)| !special || knows(expert))
            .map(|(id, _)| id)
            .collect()
    }

    fn with_room(&self, entry: &Enqueued) -> Vec<&AgentId> {
        self.eligible(entry)
            .into_iter()
            .filter(|expert| self.has_room(expert))
            .collect()
    }

    /// What ought to be assigned next, and to whom.
    fn next(&self) -> Option<(DebateId, AgentId)> {
        let mut waiting: Vec<&Enqueued> = self.waiting.values().collect();
        // The line with the longest wait for its turn; of lines that never had one, that of the first to come.
        let turn = |entry: &Enqueued| {
            self.turns
                .get(&(entry.priority, entry.opened_by.clone()))
                .copied()
                .unwrap_or(0)
        };
        let place = |entry: &Enqueued| (entry.entered_at, entry.debate_id.clone());
        waiting.sort_by_key(|entry| {
            let own = self
                .waiting
                .values()
                .filter(|one| (one.priority, &one.opened_by) == (entry.priority, &entry.opened_by));
            (
                entry.priority,
                turn(entry),
                own.map(place).min(),
                place(entry),
            )
        });
        waiting.into_iter().find_map(|entry| {
            let mut experts = self.with_room(entry);
            let passed = self.passed_over.get(&entry.debate_id);
            let is_other = |expert: &&AgentId| passed.is_none_or(|all| !all.contains(expert));
            if experts.iter().any(is_other) {
                experts.retain(is_other);
            }
            experts.sort_by(|a, b| {
                let load =
                    |id: &AgentId| self.held(id) as f64 / f64::from(self.experts[id].0.capacity);
                let last = |id: &AgentId| self.experts[id].1;
                load(a)
                    .total_cmp(&load(b))
                    .then(last(a).cmp(&last(b)))
                    .then(a.cmp(b))
            });
            Some((entry.debate_id.clone(), (*experts.first()?).clone()))
        })
    }

    fn assign(&mut self, debate: &DebateId, to: &AgentId, sequence: u64) {
        assert!(self.has_room(to), "{to} has no room for {debate}");
        let waiting = self.waiting.remove(debate);
        let entry = waiting
            .or_else(|| self.assigned.remove(debate).map(|(entry, _)| entry))
            .unwrap();
        assert!(!entry.excluded.contains(to), "{to} judges their own case");
        self.assigned.insert(debate.clone(), (entry, to.clone()));
        self.experts.get_mut(to).unwrap().1 = sequence;
    }

    fn take(&mut self, record: &StoredEvent<ReviewQueueEvent>) {
        match &record.event {
            ReviewQueueEvent::ExpertRegistered(registered) => {
                let expert = registered.expert.clone();
                let last = self
                    .experts
                    .get(&expert.agent_id)
                    .map_or(0, |(_, last)| *last);
                self.experts.insert(expert.agent_id.clone(), (expert, last));
            }
            ReviewQueueEvent::ExpertLeft(left) => {
                self.experts.remove(&left.agent_id).unwrap();
                for debate in &left.returned {
                    let (entry, holder) = self.assigned.remove(debate).unwrap();
                    assert_eq!(holder, left.agent_id);
                    self.waiting.insert(debate.clone(), entry);
                }
                assert_eq!(self.held(&left.agent_id), 0);
            }
            ReviewQueueEvent::Enqueued(entry) => self.enters(entry),
            ReviewQueueEvent::Overflowed(overflowed) => {
                self.comes(&overflowed.debate_id);
                assert!(!self.experts.is_empty());
                self.finished.push(overflowed.debate_id.clone());
            }
            ReviewQueueEvent::Assigned(given) => {
                assert_eq!(
                    self.next(),
                    Some((given.debate_id.clone(), given.expert.clone()))
                );
                let entry = &self.waiting[&given.debate_id];
                let line = (entry.priority, entry.opened_by.clone());
                self.turns.insert(line, record.sequence);
                self.assign(&given.debate_id, &given.expert, record.sequence);
            }
            ReviewQueueEvent::Returned(returned) => self.gives_back(returned),
            ReviewQueueEvent::Reassigned(given) => {
                let from = self
                    .assigned
                    .get(&given.debate_id)
                    .map(|(_, holder)| holder.clone());
                assert_eq!(from, given.from);
                self.assign(&given.debate_id, &given.to, record.sequence);
            }
            ReviewQueueEvent::Released(released) => {
                let holder = self
                    .assigned
                    .remove(&released.debate_id)
                    .map(|(_, holder)| holder);
                assert_eq!(holder, released.expert);
                self.waiting.remove(&released.debate_id);
                assert!(!self.finished.contains(&released.debate_id));
                self.finished.push(released.debate_id.clone());
            }
        }
    }

    fn enters(&mut self, entry: &Enqueued) {
        self.comes(&entry.debate_id);
        let room = self.experts.is_empty() || !self.with_room(entry).is_empty();
        assert!(
            room || entry.priority != MINOR,
            "{entry:?} does not wait while experts are full"
        );
        let own = self
            .waiting
            .values()
            .filter(|one| one.opened_by == entry.opened_by);
        let most = entry.opener_waiting_max as usize;
        assert!(
            room || entry.opened_by.is_none() || most == 0 || own.count() < most,
            "{entry:?} is one too many of its opener"
        );
        self.waiting.insert(entry.debate_id.clone(), entry.clone());
    }

    /// Somebody else could take it, who has not let it lie.
    fn gives_back(&mut self, returned: &Returned) {
        let id = &returned.debate_id;
        let (entry, holder) = self.assigned.remove(id).unwrap();
        assert_eq!(holder, returned.expert);
        let passed = self.passed_over.entry(id.clone()).or_default();
        passed.push(holder);
        let passed = passed.clone();
        let mut others = self.with_room(&entry).into_iter();
        assert!(others.any(|other| !passed.contains(other)));
        self.waiting.insert(id.clone(), entry);
    }

    /// A debate comes into the queue once.
    fn comes(&self, debate: &DebateId) {
        let known = self.waiting.contains_key(debate) || self.assigned.contains_key(debate);
        assert!(
            !known && !self.finished.contains(debate),
            "{debate} came before"
        );
    }

    /// The machine's state is what the account says.
    fn is(&self, state: &QueueState) {
        assert_eq!(
            state.experts.keys().collect::<Vec<_>>(),
            self.experts.keys().collect::<Vec<_>>()
        );
        for (id, entry) in &state.experts {
            let held = self
                .assigned
                .iter()
                .filter(|(_, (_, holder))| holder == id)
                .map(|(debate, _)| debate);
            assert!(entry.held.iter().eq(held), "{entry:?}");
        }
        let mut waiting: Vec<_> = state.waiting.in_order().collect();
        waiting.sort();
        assert!(waiting.into_iter().eq(self.waiting.keys()));
        let holders: Vec<_> = state
            .debates
            .iter()
            .map(|(id, d)| (id, d.holder.as_ref().map(|h| &h.expert)))
            .collect();
        let mut expected: Vec<_> = self.waiting.keys().map(|id| (id, None)).collect();
        expected.extend(
            self.assigned
                .iter()
                .map(|(id, (_, holder))| (id, Some(holder))),
        );
        expected.sort();
        assert_eq!(holders, expected);
        assert!(
            self.finished
                .iter()
                .all(|debate| state.finished.contains(debate))
        );
        assert_eq!(state.finished.len(), self.finished.len());
    }
}

/// Plays the steps, each cause twice, and gives back the story with everything that was heard.
fn play(steps: &[Step]) -> QueueStory {
    let mut story = story();
    for (place, step) in steps.iter().enumerate() {
        let (context, input) = match step {
            Step::Hears(input) => (said(&format!("m-{place}"), place as u64), input.clone()),
            Step::Advance => {
                let cause = story
                    .records
                    .last()
                    .map_or_else(|| message("none"), |last| last.meta.event_id.clone());
                (
                    Context::of_event(after(place as u64), cause),
                    QueueInput::Advance,
                )
            }
        };
        let known = story.records.len();
        let heard = story.hears(&context, &input);
        let after = story.records.len();
        let again = story.hears(&context, &input);
        assert_eq!(
            story.records.len(),
            after,
            "{heard}, and once more {again}: {input:?}"
        );
        let repetition = if after > known {
            "ignored: repetition"
        } else {
            heard.as_str()
        };
        assert_eq!(again, repetition);
    }
    story
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_queue_keeps_its_word(steps in proptest::collection::vec(step(), 0..60)) {
        let mut story = play(&steps);
        if !story.records.is_empty() {
            advance(&mut story, &said("the-end", 1_000));
        }
        let (mut account, mut state) = (Account::default(), QueueState::default());
        for record in &story.records {
            prop_assert_eq!(over_capacity(&state, &record.event), None);
            let told = !matches!(record.event, ReviewQueueEvent::Overflowed(_));
            prop_assert_eq!(decide_again(&state, record), Ok(told));
            account.take(record);
            ReviewQueueMachine::apply(&mut state, record.clone());
            account.is(&state);
        }
        prop_assert_eq!(account.next(), None, "nothing is left to assign");
        let (rebuilt, differences) = replay::rebuild::<ReviewQueueMachine>(&story.records);
        prop_assert_eq!(differences, vec![]);
        prop_assert_eq!(&*rebuilt.state, story.state());
        prop_assert_eq!(&state, story.state());
        let mut ids: Vec<_> = story.records.iter().map(|record| &record.meta.event_id).collect();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), story.records.len(), "one cause, one fact");
    }

    #[test]
    fn a_cause_that_led_to_a_fact_never_leads_to_another(steps in proptest::collection::vec(step(), 1..30)) {
        let mut story = play(&steps);
        let used: Vec<_> = story.records.iter().map(|record| (record.meta.cause.clone(), record.meta.event_id.clone())).collect();
        for (cause, event_id) in used {
            let said = event_id == event_id_of(Origin::Message, &cause);
            let context = if said { Context::of_message(after(9), cause) } else { Context::of_event(after(9), cause) };
            for input in [QueueInput::Advance, register("hana", 3, &[]), release("d-1"), enqueue("d-99", USUAL, 1)] {
                let heard = story.hears(&context, &input);
                prop_assert!(heard == "ignored: repetition" || heard == "refused: /message_id", "{heard}");
            }
        }
    }
}
