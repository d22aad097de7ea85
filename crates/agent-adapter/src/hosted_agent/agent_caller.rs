//! The port through which a hosted agent is called: a program, a server or a model.

use std::time::Duration;

use bytes::Bytes;
use concord_runtime::Trace;
use concord_wire::Dialect;

use crate::hosted_agent::endpoint::Endpoint;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::pool::Pool;

/// One call of a hosted agent.
pub struct AgentCall<'a> {
    /// The line for a program, or the body for a server.
    pub body: Bytes,
    /// The same each time the call is made again.
    pub idempotency_key: &'a str,
    /// The dialect of `body`.
    pub dialect: Dialect,
    /// The address to which the agent may post its answer later.
    pub callback_url: Option<&'a str>,
    /// The trace context to pass on.
    pub trace: Option<&'a Trace>,
    /// How long the call may take. A program is given its whole time, because one that is interrupted must be started again.
    pub within: Duration,
    /// Whether an answer can be used. A program whose answer cannot is ended.
    pub is_usable: &'a (dyn Fn(&[u8]) -> bool + Sync),
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReply {
    /// The HTTP status, one of success; 200 for a program.
    pub status: u16,
    /// The dialect that the header `Concord-Dialect` names.
    pub dialect: Option<String>,
    /// The body of the answer.
    pub body: Bytes,
}

/// The copies of a program in this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copies {
    /// Copies that wait for work.
    pub idle: usize,
    /// How often a copy was started.
    pub starts: u64,
}

/// Calls one hosted agent. Production calls a program or a server; the simulator plays both.
pub trait AgentCaller: Send + Sync + 'static {
    /// Makes one call. A status that is none of success is a failure.
    fn call(&self, call: AgentCall<'_>)
    -> impl Future<Output = Result<AgentReply, Failure>> + Send;

    /// The copies of the agent's program. None where it is no program.
    fn copies(&self) -> Option<Copies> {
        None
    }
}

/// Calls real programs and servers.
pub(crate) enum OutboundCaller {
    Program(Box<Pool>),
    Server(Box<Endpoint>),
}

impl AgentCaller for OutboundCaller {
    async fn call(&self, call: AgentCall<'_>) -> Result<AgentReply, Failure> {
        match self {
            Self::Program(pool) => pool.call(&call.body, call.is_usable).await,
            Self::Server(endpoint) => endpoint.post(call).await,
        }
    }

    fn copies(&self) -> Option<Copies> {
        match self {
            Self::Program(pool) => Some(pool.copies()),
            Self::Server(_) => None,
        }
    }
}
