//! A hundred and fifty challenges on all levels of the ladder in scaled time, while every process is killed again and again and
//! the broker is away for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_events::dead_letter::header;
use concord_testkit::{
    Message, Random, Stored, TestInstallation, audit, dead_letters, now, settled, wait_for,
};
use serde_json::{Value, json};

use crate::kill::agents::{Agents, publish};
use crate::kill::blows::{Blow, plan, start, strike};
use crate::kill::events::{Event, EventLog, text};
use crate::kill::parties::{self, CASES, CHALLENGES, EXPERTS, FIRST, SPEAKERS};

/// How many events a run has at least: the measure of its progress.
const EVENTS: u64 = 2_000;
/// How many rulings on the first challenges are needed to mediate later ones: both parties need 15 data points.
const RULINGS: usize = 20;
/// The longest time in which nothing may happen.
const QUIET_MAX: Duration = Duration::from_secs(60);
/// The longest time of a run, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(500);

/// A run, with what people must remember of it to do their part.
struct Run {
    installation: TestInstallation,
    jetstream: jetstream::Context,
    events: EventLog,
    begun: Instant,
    /// For each debate with a provisional decision, the case that has recorded it.
    provisional: BTreeMap<String, String>,
    /// Debates that wait for their gate.
    at_gate: BTreeSet<String>,
    /// Debates that take up another debate again.
    again: BTreeSet<String>,
    /// The digests that `ida` was shown of the debates that she lets pass.
    shown: BTreeMap<String, Value>,
    settled: BTreeSet<String>,
    decided: usize,
    rulings: usize,
}

impl Run {
    /// Starts the installation, registers the experts and opens the cases.
    async fn begin() -> Self {
        let begun = Instant::now();
        let installation = start().await;
        for (expert, domain) in EXPERTS {
            let expert = json!({ "agent_id": expert, "domains": [domain] });
            installation.register_expert(&expert).await;
        }
        installation
            .register(parties::REVIEWER, &["reviewer"])
            .await;
        let jetstream = jetstream::new(installation.client().clone());
        let run = Self {
            installation,
            jetstream,
            events: EventLog::default(),
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
            run.store(&parties::opening(case)).await;
        }
        run
    }

    /// Stores a message once, however often the broker is away.
    async fn store(&self, message: &Message) {
        wait_for(message.id(), QUIET_MAX, async || {
            publish(&self.jetstream, message)
                .await
                .map_err(|error| error.to_string())
        })
        .await;
    }

    /// Waits for events that were stored since.
    async fn new_events(&mut self) -> Vec<Event> {
        let status = self.status();
        let client = self.installation.client().clone();
        wait_for("another event", QUIET_MAX, async || {
            let new = self.events.read_on(&client).await?;
            if new.is_empty() {
                Err(status.clone())
            } else {
                Ok(new)
            }
        })
        .await
    }

    /// The progress so far, as a line of text.
    fn status(&self) -> String {
        let count = |name| self.events.count(name);
        format!(
            "{:6.2} s: {} events, {} challenges, {} debates opened, {} resolved, {} settled, {} rulings recorded",
            self.begun.elapsed().as_secs_f64(),
            self.events.last(),
            count("case.challenged"),
            count("debate.opened"),
            count("debate.resolved"),
            self.settled.len(),
            self.rulings
        )
    }

    /// Does what people do because of an event.
    async fn react(&mut self, event: &Event) {
        let data = event.data();
        let id = event.id().to_owned();
        match event.name.as_str() {
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
            // Somebody else has it now, and a ruling of hers would be refused.
            "debate.unassigned" if data["expert"] == "ida" => {
                self.shown.remove(&id);
            }
            "debate.assigned" if data["instead_of"]["expert"] == "ida" => {
                self.shown.remove(&id);
            }
            "debate.fell_back" => {
                if let Some(digest) = self.shown.get(&id) {
                    self.store(&parties::late_ruling(
                        text(&data["case_id"]),
                        "ida",
                        &id,
                        digest,
                    ))
                    .await;
                }
            }
            "case.debate_settled" | "case.decision_changed" => {
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

    /// Sends these challenges.
    async fn challenge(&self, numbers: std::ops::Range<usize>) {
        println!("{}: challenges {numbers:?}", self.status());
        for number in numbers {
            self.store(&parties::challenge(number)).await;
        }
    }

    /// Reviews a provisional decision of a case, when its time has come.
    async fn review(&self, debate: &str) {
        let Some(case) = self.provisional.get(debate) else {
            return;
        };
        if parties::is_reviewed_at_once(debate) || self.at_gate.contains(debate) {
            self.store(&parties::review(case, debate, self.again.contains(debate)))
                .await;
        }
    }

    /// Whether all debates have ended and their cases know it.
    fn is_finished(&self) -> bool {
        let debates = CHALLENGES + self.again.len();
        self.events.count("case.challenged") == CHALLENGES
            && self.events.count("case.gate_reviewed") == self.provisional.len()
            && [
                self.events.count("debate.opened"),
                self.events.count("debate.resolved"),
                self.settled.len(),
            ]
            .iter()
            .all(|count| *count == debates)
    }

    /// Runs under these blows until all debates have ended and all gates are passed.
    async fn drive(&mut self, blows: &[(u64, Blow)]) {
        let mut blows = blows.iter().peekable();
        while !self.is_finished() {
            for event in self.new_events().await {
                self.react(&event).await;
            }
            while let Some((at, blow)) = blows.next_if(|(at, _)| *at <= self.events.last()) {
                println!(
                    "{:6.2} s: event {at}: {blow:?}",
                    self.begun.elapsed().as_secs_f64()
                );
                strike(&self.installation, *blow).await;
            }
            assert!(self.begun.elapsed() < PATIENCE, "{}", self.status());
        }
        println!("{}", self.status());
        assert!(blows.next().is_none(), "not all blows have fallen");
        for case in 0..CASES {
            self.store(&parties::pass(&parties::case_id(case))).await;
        }
        while self.events.count("case.gate_passed") < CASES {
            self.new_events().await;
        }
        settled(self.installation.client(), QUIET_MAX)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        self.events
            .read_on(self.installation.client())
            .await
            .expect("the stream can be read");
        println!("{}: all is done", self.status());
    }

    /// Checks what all debates came to, and that nothing was lost.
    async fn check(&self) {
        let endings = self.events.endings();
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
        self.events.check_levels_rise();
        let most = self.events.most_held();
        println!("most debates at a time: {most:?}");
        assert!(
            EXPERTS.iter().all(|(expert, _)| most.contains_key(*expert)),
            "an expert was given nothing"
        );
        println!(
            "deadlines elapsed, and closed before: {:?}",
            self.events.deadlines(now())
        );
        let aside = self.events.rulings_set_aside();
        println!("rulings set aside: {aside:?}");
        for reason in ["second", "timed_out"] {
            assert!(aside.contains_key(reason), "none was set aside as {reason}");
        }
        self.check_dead_letters().await;
        let report = audit(self.installation.client())
            .await
            .expect("the streams can be read");
        let violations: Vec<_> = report.violations().collect();
        assert!(report.holds(), "{violations:#?}");
        let unexamined = report.invariants.iter().filter(|one| one.examined == 0);
        let unexamined: Vec<_> = unexamined.map(|one| one.name).collect();
        assert_eq!(unexamined, ["signatures"], "nobody signs here: {report:?}");
        assert!(
            self.installation.exited().is_empty(),
            "{:?}",
            self.installation.exited()
        );
    }

    /// No message had to be given up. Only those are refused that come too late: an acknowledgement when the debate has left the
    /// agents, and a ruling when the expert did not act and somebody else was given the debate.
    async fn check_dead_letters(&self) {
        let letters = dead_letters(self.installation.client())
            .await
            .expect("the stream can be read");
        let late = |letter: &&Stored| {
            let message = letter.json();
            let debate = text(&message["correlation_id"]);
            let subject = letter.header(header::SUBJECT);
            if subject.ends_with(".debate-facilitator.ruling") {
                let expert = text(&message["from_agent"]);
                return self.events.was_taken_from(expert, debate, letter.at);
            }
            subject.ends_with(".debate-facilitator.acknowledgement")
                && self.events.had_left_the_agents(debate, letter.at)
        };
        let (late, others): (Vec<_>, Vec<_>) = letters.iter().partition(late);
        let others: Vec<_> = others
            .iter()
            .map(|letter| (letter.header(header::SUBJECT), letter.header(header::ERROR)))
            .collect();
        assert!(others.is_empty(), "{others:#?}");
        println!(
            "acknowledgements and rulings that came too late: {}",
            late.len()
        );
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
    let _agents = Agents::start(&client, &SPEAKERS, parties::answers);
    // Without blows, to see how long a run takes by itself and how many events it has.
    let undisturbed = std::env::var_os("CONCORD_UNDISTURBED").is_some();
    let blows = if undisturbed {
        Vec::new()
    } else {
        plan(&mut random, EVENTS)
    };
    run.drive(&blows).await;
    run.check().await;
}
