//! Hosted agents: programs, servers and models that do not speak NATS themselves.
//!
//! [`InboxHandler`] decides which messages an agent is to answer, and [`Host`] answers them: it waits for a permit
//! (`concurrency_limit`), obeys the circuit breaker and the provider's budget (`call_policy`, `budget`) and calls the agent
//! through the port [`AgentCaller`].

mod agent_caller;
mod answer_type;
pub(crate) mod budget;
mod call_policy;
pub(crate) mod callback;
mod concurrency_limit;
mod decode;
mod encode;
mod endpoint;
mod failure;
mod host;
mod http;
mod inbox;
mod openai;
pub(crate) mod passing_on;
mod pool;
mod program;
pub(crate) mod registration;
mod reply_loops;
mod spans;
mod start;
mod task_answer;
mod timing;

pub use agent_caller::{AgentCall, AgentCaller, AgentReply, Copies};
pub use failure::Failure;
pub use host::{Host, HostConfig, Runner};
pub use inbox::InboxHandler;
pub use openai::Model;
pub use reply_loops::ReplyLoops;

pub(crate) use host::Description;
pub(crate) use start::start;
