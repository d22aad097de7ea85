//! Three hundred challenges on all levels of the ladder in scaled time, while every process is killed again and again and
//! the broker is away for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_events::dead_letter::header;
use concord_events::topology::StreamKind;
use concord_testkit::{Message, Stored, TestInstallation, audit, now, settled, stored, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::agents::{Agents, publish};
use crate::blows::{Blow, plan, start, strike};
use crate::facts::{AggregateEvent, Fact, text};
use crate::parties::{self, CASES, CHALLENGES, EXPERTS, FIRST, SPEAKERS};
use crate::random::Random;

/// Facts of a run, at least: the measure of how far it has come.
const FACTS: u64 = 4_000;
/// Rulings on the first challenges by which later ones are mediated: both parties need 15 data points.
const RULINGS: usize = 20;
/// How long nothing may happen.
const QUIET_MAX: Duration = Duration::from_secs(60);
/// How long all of it may take, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(500);

/// A run, and what people have to know of it to do their part.
struct Run {
    installation: TestInstallation,
    jetstream: jetstream::Context,
    facts: AggregateEvent,
    begun: Instant,
    /// By debate, the case that has recorded its provisional decision.
    provisional: BTreeMap<String, String>,
    /// Debates that wait for their gate.
    at_gate: BTreeSet<String>,
    /// Debates that take up another.
    again: BTreeSet<String>,
    /// What `ida` was shown of the debates that she lets pass.
    shown: BTreeMap<String, Value>,
    settled: BTreeSet<String>,
    decided: usize,
    rulings: usize,
}

impl Run {
    async fn begin() -> Self {
        let begun = Instant::now();
        let installation = start().await;
        for (expert, domain) in EXPERTS {
            let request =
                json!({ "expert": { "agent_id": expert, "domains": [domain] }, "by": "olga" });
            let answer = installation
                .ask(Service::DebateFacilitator, "register_expert", &request)
                .await;
            assert_eq!(answer.expect("an answer")["fact"], "expert_registered");
        }
        let jetstream = jetstream::new(installation.client().clone());
        let run = Self {
            installation,
            jetstream,
            facts: AggregateEvent::default(),
            begun,
            provisional: BTreeMap::new(),
            at_gate: BTreeSet::new(),
            again: BTreeSet::new(),
            shown: BTreeMap::new(),
            settled: BTreeSet::new(),
            decided: 0,
            rulings: 0,
        };
        for case in 0..CASES {
            run.say(&parties::opening(case)).await;
        }
        run
    }

    /// Stores a message, once, however often the broker is away.
    async fn say(&self, message: &Message) {
        let stored = until(message.id(), QUIET_MAX, async || {
            publish(&self.jetstream, message)
                .await
                .map_err(|error| error.to_string())
        });
        stored.await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// What has happened since.
    async fn news(&mut self) -> Vec<Fact> {
        let status = self.status();
        let client = self.installation.client().clone();
        let facts = until("another fact", QUIET_MAX, async || {
            let new = self.facts.read_on(&client).await?;
            if new.is_empty() {
                Err(status.clone())
            } else {
                Ok(new)
            }
        });
        facts.await.unwrap_or_else(|error| panic!("{error}"))
    }

    fn status(&self) -> String {
        let count = |name| self.facts.count(name);
        format!(
            "{:6.2} s: {} facts, {} challenges, {} debates opened, {} resolved, {} settled, {} rulings recorded",
            self.begun.elapsed().as_secs_f64(),
            self.facts.last(),
            count("case.challenged"),
            count("debate.opened"),
            count("debate.resolved"),
            self.settled.len(),
            self.rulings
        )
    }

    /// Does what people do because of a fact.
    async fn react(&mut self, fact: &Fact) {
        let (data, id) = (fact.data(), fact.id().to_owned());
        match fact.name.as_str() {
            "case.decided" => {
                self.decided += 1;
                if self.decided == CASES {
                    self.challenge(0..FIRST).await;
                }
            }
            "record.observed" if id == "sure" => {
                self.rulings += 1;
                if self.rulings == RULINGS {
                    self.challenge(FIRST..CHALLENGES).await;
                }
            }
            "debate.opened" if data["terms"]["refers_to"].is_string() => {
                self.again.insert(id);
            }
            "debate.assigned" if data["briefed"]["expert"] == "ida" => {
                self.shown.insert(id, data["briefed"]["digest"].clone());
            }
            "debate.fell_back" => {
                if let Some(digest) = self.shown.get(&id) {
                    self.say(&parties::late_ruling(
                        text(&data["case_id"]),
                        "ida",
                        &id,
                        digest,
                    ))
                    .await;
                }
            }
            "case.debate_settled" => {
                let debate = text(&data["outcome"]["conflict_id"]).to_owned();
                if data["outcome"]["status"] == "provisional" {
                    self.provisional.insert(debate.clone(), id);
                    self.review(&debate).await;
                } else {
                    self.settled.insert(debate);
                }
            }
            "debate.awaits_gate" => {
                self.at_gate.insert(id.clone());
                self.review(&id).await;
            }
            _ => {}
        }
    }

    async fn challenge(&self, numbers: std::ops::Range<usize>) {
        println!("{}: challenges {numbers:?}", self.status());
        for number in numbers {
            self.say(&parties::challenge(number)).await;
        }
    }

    /// Reviews what the case has recorded as provisional, when its time has come.
    async fn review(&self, debate: &str) {
        let Some(case) = self.provisional.get(debate) else {
            return;
        };
        if parties::is_reviewed_at_once(debate) || self.at_gate.contains(debate) {
            self.say(&parties::review(case, debate, self.again.contains(debate)))
                .await;
        }
    }

    /// Whether all debates have ended and their cases know it.
    fn is_finished(&self) -> bool {
        let debates = CHALLENGES + self.again.len();
        self.facts.count("case.challenged") == CHALLENGES
            && self.facts.count("case.gate_reviewed") == self.provisional.len()
            && [
                self.facts.count("debate.opened"),
                self.facts.count("debate.resolved"),
                self.settled.len(),
            ]
            .iter()
            .all(|count| *count == debates)
    }

    /// Until all debates have ended and all gates are passed, under these blows.
    async fn drive(&mut self, blows: &[(u64, Blow)]) {
        let mut blows = blows.iter().peekable();
        while !self.is_finished() {
            for fact in self.news().await {
                self.react(&fact).await;
            }
            while let Some((at, blow)) = blows.next_if(|(at, _)| *at <= self.facts.last()) {
                println!(
                    "{:6.2} s: fact {at}: {blow:?}",
                    self.begun.elapsed().as_secs_f64()
                );
                strike(&self.installation, *blow).await;
            }
            assert!(self.begun.elapsed() < PATIENCE, "{}", self.status());
        }
        println!("{}", self.status());
        assert!(blows.next().is_none(), "not all blows have fallen");
        for case in 0..CASES {
            self.say(&parties::pass(&parties::case_id(case))).await;
        }
        while self.facts.count("case.gate_passed") < CASES {
            self.news().await;
        }
        settled(self.installation.client(), QUIET_MAX)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        self.facts
            .read_on(self.installation.client())
            .await
            .expect("the stream can be read");
        println!("{}: all is done", self.status());
    }

    async fn check(&self) {
        let endings = self.facts.endings();
        println!("ended: {endings:?}");
        for status in [
            "accepted",
            "mediation",
            "ruling",
            "confirmed",
            "overridden",
            "redebated",
        ] {
            assert!(endings.contains_key(status), "none ended as {status}");
        }
        self.facts.levels_rise();
        let most = self.facts.most_held();
        println!("most debates at a time: {most:?}");
        assert!(
            EXPERTS.iter().all(|(expert, _)| most.contains_key(*expert)),
            "an expert was given nothing"
        );
        println!(
            "deadlines elapsed, and closed before: {:?}",
            self.facts.deadlines(now())
        );
        let aside = self
            .facts
            .all
            .iter()
            .filter(|fact| fact.name == "debate.ruling_set_aside");
        let reasons: BTreeSet<&str> = aside.map(|fact| text(&fact.data()["reason"])).collect();
        assert_eq!(reasons, ["second", "timed_out"].into());
        self.check_the_dead().await;
        let report = audit(self.installation.client())
            .await
            .expect("the streams can be read");
        let violations: Vec<_> = report.violations().collect();
        assert!(report.holds(), "{violations:#?}");
        assert!(
            report.invariants.iter().all(|checked| checked.examined > 0),
            "{report:?}"
        );
        assert!(
            self.installation.exited().is_empty(),
            "{:?}",
            self.installation.exited()
        );
    }

    /// Nothing had to be given up. What is refused is an acknowledgement that comes when the agents are no longer at it.
    async fn check_the_dead(&self) {
        let letters = stored(self.installation.client(), StreamKind::Dead, ">")
            .await
            .expect("the stream can be read");
        let late = |letter: &&Stored| {
            let debate = letter.json()["correlation_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            letter
                .header(header::SUBJECT)
                .ends_with(".debate-facilitator.acknowledgement")
                && self.facts.had_left_the_agents(&debate, letter.at)
        };
        let (late, others): (Vec<_>, Vec<_>) = letters.iter().partition(late);
        let others: Vec<_> = others
            .iter()
            .map(|letter| (letter.header(header::SUBJECT), letter.header(header::ERROR)))
            .collect();
        assert!(others.is_empty(), "{others:#?}");
        println!("acknowledgements that came too late: {}", late.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_challenge_is_settled_once_on_whatever_level() {
    if std::env::var_os("CONCORD_QUICK").is_some() {
        return println!("left out: CONCORD_QUICK is set");
    }
    let mut random = Random::seeded();
    let mut run = Run::begin().await;
    let client = run.installation.client().clone();
    let _agents = Agents::start(&client, &SPEAKERS, parties::says);
    // To see how long it takes by itself, and how many facts there are.
    let undisturbed = std::env::var_os("CONCORD_UNDISTURBED").is_some();
    let blows = if undisturbed {
        Vec::new()
    } else {
        plan(&mut random, FACTS)
    };
    run.drive(&blows).await;
    run.check().await;
}
