//! What a seed has come to.

use serde::Serialize;

mod ladder;

pub use ladder::LadderCounts;

/// The version of the simulated worlds. The same seed gives the same world within one version; a seed of another version
/// means another world. It grows whenever what a seed leads to changes for other reasons than a change of the services:
/// 1 was a world with copies of some handlers, 2 runs the services' own, 3 has people with roles, 4 policies that are stored, 5 people
/// who sign, 6 several openers, 8 boards and commitments, 9 questions to the group, tasks for panels, and analyses, 10 estimates,
/// alerts, agents that join later or fall silent, 11 rules over memory, 12 cases that tell of what matters, 13 analyses that are done
/// again, and a party that is told alone how its debates have ended, 14 replicas that ask each other for steps, 15 deadlines that wait for
/// what was said before them.
pub const WORLD_VERSION: u32 = 15;

/// How much of everything there was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Worlds that were run.
    pub seeds: u64,
    /// Cases that were opened.
    pub cases: u64,
    /// Cases that have a decision.
    pub decided: u64,
    /// Debates that were opened.
    pub debates: u64,
    /// Requests between agents that were answered, or failed.
    pub requests: u64,
    /// Messages that have woken somebody.
    pub wakes: u64,
    /// Loops of two agents that were broken.
    pub loops: u64,
    /// Tasks that have ended; none in a world without them.
    pub tasks: u64,
    /// Tasks that ended with a result.
    pub tasks_done: u64,
    /// Alerts of which everybody was told.
    pub alerts: u64,
    /// Those of them that a rule has raised.
    pub alerts_by_rules: u64,
    /// Times an agent was unavailable because it did not answer; none in a world without tasks.
    pub silences: u64,
    /// Agents that have joined a case later.
    pub joined: u64,
    /// Versions that agents have written into memory.
    pub memories: u64,
    /// Entries of boards that were written.
    pub puts: u64,
    /// Reports of what changed decisions do to analyses.
    pub reports: u64,
    /// Runs that have ended in which analyses were done again.
    pub reruns: u64,
    /// Runs that began because a gate has overridden what stood provisionally.
    pub override_reruns: u64,
    /// Analyses that were done again.
    pub redone: u64,
    /// Events with which commitments have ended.
    pub commitments: u64,
    /// Questions to the group that have ended.
    pub questions: u64,
    /// Questions that ended with an answer.
    pub questions_answered: u64,
    /// Events that were stored.
    pub events: u64,
    /// Messages that were stored.
    pub messages: u64,
    /// Dead letters that were stored.
    pub dead: u64,
    /// Processes that were killed.
    pub crashes: u64,
    /// Deliveries that were made again.
    pub redeliveries: u64,
    /// Requests that never arrived.
    pub lost_requests: u64,
    /// Answers to requests that were done, and never came.
    pub lost_answers: u64,
    /// Messages of services that were published although they were stored before.
    pub repeated: u64,
    /// Steps that one replica has done for another.
    pub asked: u64,
    /// Reads that were answered by a copy that lagged.
    pub stale_reads: u64,
    /// What was stored among events and is none.
    pub foreign: u64,
    /// Appends that another event was ahead of.
    pub races_lost: u64,
    /// Deadlines that the watchdog fired.
    pub watchdog_fires: u64,
    /// Deliveries that were given up.
    pub given_up: u64,
    /// Times the broker was away.
    pub pauses: u64,
    /// Things that should not be.
    pub violations: u64,
    /// What came of disagreements that climbed the ladder.
    pub ladder: LadderCounts,
    /// What came of messages to a hosted agent.
    pub hosted: HostedCounts,
}

/// What came of messages to a hosted agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostedCounts {
    /// Messages to a hosted agent.
    pub asked: u64,
    /// Messages that were answered.
    pub answered: u64,
    /// Messages refused by an open breaker.
    pub refused: u64,
    /// Messages refused because too many waited.
    pub full: u64,
    /// Messages whose time was over before the agent was asked.
    pub late_turn: u64,
    /// Messages that the agent could not answer.
    pub failed: u64,
    /// Requests that the coordinator ended.
    pub by_coordinator: u64,
    /// Answers and errors that were on their way by then.
    pub late: u64,
    /// Answers that came after that, and were kept from who asked.
    pub kept: u64,
    /// Answers and errors that another process had been ahead of.
    pub repeated: u64,
    /// Messages that gave their place to an urgent one.
    pub displaced: u64,
    /// Calls of the endpoint.
    pub calls: u64,
    /// Calls that were made again.
    pub retries: u64,
    /// Times a breaker opened.
    pub opened: u64,
    /// Calls that a half-open breaker let pass.
    pub probes: u64,
    /// Times a breaker closed again.
    pub closed: u64,
}

impl HostedCounts {
    /// Names, values and meanings, in the order of the table.
    pub fn rows(&self) -> [(&'static str, u64, &'static str); 16] {
        [
            ("asked", self.asked, "messages to a hosted agent"),
            ("answered", self.answered, "messages that were answered"),
            (
                "refused",
                self.refused,
                "messages refused by an open breaker",
            ),
            (
                "full",
                self.full,
                "messages refused because too many waited",
            ),
            (
                "late_turn",
                self.late_turn,
                "messages whose time was over before the agent was asked",
            ),
            (
                "failed",
                self.failed,
                "messages that the agent could not answer",
            ),
            (
                "by_coordinator",
                self.by_coordinator,
                "requests that the coordinator ended",
            ),
            (
                "late",
                self.late,
                "answers and errors that were on their way by then",
            ),
            (
                "kept",
                self.kept,
                "answers that came after that and were kept from who asked",
            ),
            (
                "repeated",
                self.repeated,
                "answers and errors that another process had been ahead of",
            ),
            (
                "displaced",
                self.displaced,
                "messages that gave their place to an urgent one",
            ),
            ("calls", self.calls, "calls of the endpoint"),
            ("retries", self.retries, "calls that were made again"),
            ("opened", self.opened, "times a breaker opened"),
            (
                "probes",
                self.probes,
                "calls that a half-open breaker let pass",
            ),
            ("closed", self.closed, "times a breaker closed again"),
        ]
    }

    fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.refused += other.refused;
        self.full += other.full;
        self.late_turn += other.late_turn;
        self.failed += other.failed;
        self.by_coordinator += other.by_coordinator;
        self.late += other.late;
        self.kept += other.kept;
        self.repeated += other.repeated;
        self.displaced += other.displaced;
        self.calls += other.calls;
        self.retries += other.retries;
        self.opened += other.opened;
        self.probes += other.probes;
        self.closed += other.closed;
    }
}

impl Counts {
    /// Names, values and meanings, in the order of the table.
    pub fn rows(&self) -> [(&'static str, u64, &'static str); 35] {
        [
            ("seeds", self.seeds, "worlds that were run"),
            ("cases", self.cases, "cases that were opened"),
            ("decided", self.decided, "cases that have a decision"),
            ("debates", self.debates, "debates that were opened"),
            ("requests", self.requests, "requests of agents that ended"),
            ("wakes", self.wakes, "messages that have woken somebody"),
            ("loops", self.loops, "loops of two agents that were broken"),
            ("alerts", self.alerts, "alerts of which everybody was told"),
            ("alerts_by_rules", self.alerts_by_rules, "of them by rules"),
            ("joined", self.joined, "agents that joined a case later"),
            ("memories", self.memories, "versions written into memory"),
            ("puts", self.puts, "entries of boards that were written"),
            ("reports", self.reports, "reports about analyses"),
            ("reruns", self.reruns, "runs of analyses again"),
            (
                "override_reruns",
                self.override_reruns,
                "of them by overrides",
            ),
            ("redone", self.redone, "analyses that were done again"),
            ("commitments", self.commitments, "ends of commitments"),
            ("questions", self.questions, "questions that ended"),
            ("answers", self.questions_answered, "of them with an answer"),
            ("events", self.events, "events that were stored"),
            ("messages", self.messages, "messages that were stored"),
            ("dead", self.dead, "dead letters that were stored"),
            ("crashes", self.crashes, "processes that were killed"),
            (
                "redeliveries",
                self.redeliveries,
                "deliveries that were made again",
            ),
            (
                "lost_requests",
                self.lost_requests,
                "requests that never arrived",
            ),
            ("lost_answers", self.lost_answers, "answers that never came"),
            ("repeated", self.repeated, "effects published again"),
            ("asked", self.asked, "steps done for another replica"),
            (
                "stale_reads",
                self.stale_reads,
                "reads that were answered by a copy that lagged",
            ),
            ("foreign", self.foreign, "messages among the events"),
            (
                "races_lost",
                self.races_lost,
                "appends that another event was ahead of",
            ),
            (
                "watchdog_fires",
                self.watchdog_fires,
                "deadlines that the watchdog had to fire",
            ),
            (
                "given_up",
                self.given_up,
                "deliveries that failed again and again and are kept under dead",
            ),
            ("pauses", self.pauses, "times the broker was away"),
            ("violations", self.violations, "things that should not be"),
        ]
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Self) {
        // Every field is named, so that none is forgotten.
        macro_rules! sum {
            ($($field:ident),*) => {
                let Self { $($field),*, ladder, hosted } = other;
                $(self.$field += $field;)*
                self.ladder.add(ladder);
                self.hosted.add(hosted);
            };
        }
        sum!(
            seeds,
            cases,
            decided,
            debates,
            requests,
            wakes,
            loops,
            tasks,
            tasks_done,
            alerts,
            alerts_by_rules,
            silences,
            joined,
            memories,
            puts,
            reports,
            reruns,
            override_reruns,
            redone,
            commitments,
            questions,
            questions_answered,
            events,
            messages,
            dead,
            crashes,
            redeliveries,
            lost_requests,
            lost_answers,
            repeated,
            asked,
            stale_reads,
            foreign,
            races_lost,
            watchdog_fires,
            given_up,
            pauses,
            violations
        );
    }
}

/// What one seed has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeedReport {
    /// The version of the world that the seed belongs to; see [`WORLD_VERSION`].
    pub world: u32,
    /// The seed.
    pub seed: u64,
    /// How much of everything there was.
    pub counts: Counts,
    /// Over everything that was stored, in order: the same seed gives the same.
    pub digest: String,
    /// What should not be, each as a sentence with its place.
    pub violations: Vec<String>,
    /// What happened, line by line, where it was asked for.
    #[serde(skip)]
    pub log: Vec<String>,
}
