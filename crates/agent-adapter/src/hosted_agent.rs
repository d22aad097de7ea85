//! Hosted agents: programs, servers and models that do not speak NATS themselves.

pub(crate) mod answer_type;
pub(crate) mod budget;
pub(crate) mod call_policy;
pub(crate) mod callback;
pub(crate) mod concurrency_limit;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod endpoint;
pub(crate) mod failure;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod inbox;
pub(crate) mod jitter;
pub(crate) mod openai;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod registration;
pub(crate) mod reply_loops;
pub(crate) mod spans;
