//! What agent a seed hosts, how it is run, and how its endpoint behaves.

use concord_domain::resilience::breaker::Rules;
use concord_domain::resilience::call_policy::CallFailure;
use concord_wire::AgentId;
use concord_wire::subject::Service;

use crate::random::Random;

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
    /// Under which name it speaks; any will do.
    pub(crate) agent: AgentId,
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
            agent: Service::AgentAdapter.agent_id(),
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
    /// What the adapter takes it for: an answer, whether it can use it or not, or a failure.
    pub(crate) fn read(self, kind: Kind) -> Result<Self, CallFailure> {
        let program = kind == Kind::Program;
        Err(match self {
            Self::Said | Self::Rambled => return Ok(self),
            // Only of a model is it known what every answer looks like.
            Self::Garbage if kind != Kind::Model => return Ok(self),
            Self::Garbage => CallFailure::Garbage,
            Self::Unreachable | Self::Cut if program => CallFailure::ProgramEnded,
            Self::NoEnd { .. } if program => CallFailure::ProgramLate,
            Self::Unreachable => CallFailure::Unreachable,
            Self::Cut => CallFailure::Broken,
            Self::Status(status) => CallFailure::Status(status),
            Self::NoEnd { connected } => CallFailure::Late {
                may_have_arrived: connected,
            },
        })
    }
}
