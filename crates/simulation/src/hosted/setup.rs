//! What agent a seed hosts, how it is run, and how its endpoint behaves.

use concord_agent_adapter::HostedAgent;
use concord_domain::resilience::breaker::Rules;
use concord_domain::resilience::call_policy::CallFailure;
use serde_json::json;

use crate::random::Random;

/// The name of the hosted agent.
pub(crate) const AGENT: &str = "ann";

/// How an agent is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A program on standard input and output.
    Program,
    /// A server that is sent messages.
    Server,
    /// A model behind an API.
    Model,
}

/// A hosted agent, as its settings say.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) rules: Rules,
    pub(crate) timeout_ms: u64,
    pub(crate) wait_max_ms: u64,
    pub(crate) tries_max: u32,
    pub(crate) instances: usize,
    pub(crate) queue_max: usize,
    pub(crate) idempotent: bool,
    /// Longest time between two messages.
    pub(crate) gap_ms_max: u64,
}

impl Setup {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let timeout_ms = random.between(400, 3_000);
        let open_ms = random.between(300, 3_000);
        let rules = Rules {
            failures_max: small(random, 1, 4),
            open_ms,
            open_max_ms: open_ms * random.between(1, 8),
            successes_min: small(random, 1, 3),
            // As the adapter has it.
            probe_ms: timeout_ms * 2,
        };
        Self {
            kind: random
                .pick(&[Kind::Program, Kind::Server, Kind::Model])
                .copied()
                .unwrap_or(Kind::Server),
            rules,
            timeout_ms,
            wait_max_ms: random.between(4_000, 20_000),
            tries_max: small(random, 1, 4),
            instances: random.place(3) + 1,
            queue_max: random.place(9),
            idempotent: random.chance(0.5),
            gap_ms_max: random.pick(&[300, 1_000, 3_000]).copied().unwrap_or(1_000),
        }
    }
}

impl Setup {
    /// The agent's settings, as an operator would write them. None if they could not be read.
    pub(crate) fn settings(&self) -> Option<HostedAgent> {
        let mut settings = json!({
            "agent_id": AGENT, "instances": self.instances, "queue_max": self.queue_max,
            "timeout_ms": self.timeout_ms, "wait_max_ms": self.wait_max_ms, "tries_max": self.tries_max,
            "breaker": {
                "failures_max": self.rules.failures_max, "open_ms": self.rules.open_ms,
                "open_max_ms": self.rules.open_max_ms, "successes_min": self.rules.successes_min,
            },
        });
        let (key, runner) = match self.kind {
            Kind::Program => ("command", json!(["agent"])),
            Kind::Server => ("http", json!({ "url": "https://agent.example/" })),
            Kind::Model => (
                "openai",
                json!({ "base_url": "https://models.example/v1", "model": "m" }),
            ),
        };
        settings.as_object_mut()?.insert(key.to_owned(), runner);
        serde_json::from_value(settings).ok()
    }
}

fn small(random: &mut Random, low: u64, high: u64) -> u32 {
    u32::try_from(random.between(low, high)).unwrap_or(1)
}

/// How the endpoint behaves for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers.
    Well,
    /// It answers when nobody waits any more.
    Slow,
    /// It takes what it is sent and says nothing.
    Silent,
    /// It is not there.
    Unreachable,
    /// Nothing comes back from where it should be.
    Unroutable,
    /// It hangs up in the middle.
    Cut,
    /// It answers with this status.
    Status(u16),
    /// It answers something that is no answer at all.
    Garbage,
    /// It answers in words that are not those asked for.
    Rambling,
}

impl Mood {
    /// One that an endpoint of this kind can be in.
    pub(crate) fn draw(random: &mut Random, kind: Kind) -> Self {
        let program = [
            Self::Well,
            Self::Well,
            Self::Slow,
            Self::Silent,
            Self::Unreachable,
            Self::Cut,
            Self::Garbage,
        ];
        let server = [
            Self::Unroutable,
            Self::Status(500),
            Self::Status(503),
            Self::Status(429),
            Self::Status(400),
        ];
        let mut moods = program.to_vec();
        if kind != Kind::Program {
            moods.extend(server);
        }
        if kind == Kind::Model {
            moods.push(Self::Rambling);
        }
        random.pick(&moods).copied().unwrap_or(Self::Well)
    }
}

/// What comes of a call, as who made it sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// An answer.
    Said,
    /// Words that are not those asked for.
    Rambled,
    /// Something that is no answer at all.
    Garbage,
    /// No connection.
    Unreachable,
    /// A connection that broke.
    Cut,
    /// A status that is none of success.
    Status(u16),
    /// No end.
    NoEnd {
        /// Whether there was a connection.
        connected: bool,
    },
}

impl Outcome {
    /// The failure of a call that has no answer. None where there is one, whether it can be used or not.
    pub(crate) fn transport_failure(self, kind: Kind) -> Option<CallFailure> {
        let is_program = kind == Kind::Program;
        Some(match self {
            Self::Said | Self::Rambled | Self::Garbage => return None,
            Self::Unreachable | Self::Cut if is_program => CallFailure::ProgramEnded,
            Self::NoEnd { .. } if is_program => CallFailure::ProgramLate,
            Self::Unreachable => CallFailure::Unreachable,
            Self::Cut => CallFailure::Broken,
            Self::Status(status) => CallFailure::Status(status),
            Self::NoEnd { connected } => CallFailure::Late {
                may_have_arrived: connected,
            },
        })
    }

    /// What the adapter must take it for: an answer, whether it can be used or not, or a failure.
    pub(crate) fn read(self, kind: Kind) -> Result<Self, CallFailure> {
        match self.transport_failure(kind) {
            Some(trouble) => Err(trouble),
            // Only of a model is it known what every answer looks like.
            None if self == Self::Garbage && kind == Kind::Model => Err(CallFailure::Garbage),
            None => Ok(self),
        }
    }
}
