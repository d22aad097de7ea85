//! An agent that is a server: it is sent the message, and answers at once or later.

use std::time::Duration;

use bytes::Bytes;
use concord_runtime::Trace;
use concord_wire::{Dialect, MessageId};

use crate::hosted_agent::agent_caller::{AgentCall, AgentCaller};
use crate::hosted_agent::call_policy::Call;
use crate::hosted_agent::failure::Failure;

/// The status of a server that answers later.
const ACCEPTED: u16 = 202;
/// The status of a server that has nothing to say.
const NO_CONTENT: u16 = 204;

/// The answer of a server.
#[derive(Debug)]
pub(crate) enum ServerReply {
    /// The body, and the dialect that a header of the answer names.
    Now(Bytes, Option<String>),
    /// The server posts its answer later.
    Later,
}

/// One message that is posted to a server.
pub(crate) struct ServerCall<'a, C> {
    pub(crate) caller: &'a C,
    pub(crate) body: Bytes,
    /// The id of the answer, which is the same whenever the message is sent.
    pub(crate) id: MessageId,
    /// The dialect of `body`.
    pub(crate) dialect: Dialect,
    /// The address to which an answer may be posted later.
    pub(crate) callback_url: Option<&'a str>,
}

impl<C: AgentCaller> Call for ServerCall<'_, C> {
    type Value = ServerReply;

    async fn make(
        &self,
        within: Duration,
        trace: Option<&Trace>,
    ) -> Result<(ServerReply, Option<u64>), Failure> {
        let call = AgentCall {
            body: self.body.clone(),
            idempotency_key: self.id.as_str(),
            dialect: self.dialect,
            callback_url: self.callback_url,
            trace,
            within,
            is_usable: &|_| true,
        };
        let reply = self.caller.call(call).await?;
        let reply = match reply.status {
            ACCEPTED => ServerReply::Later,
            // Read as `{}`: it has nothing to say.
            NO_CONTENT => ServerReply::Now(Bytes::from_static(b"{}"), None),
            _ => ServerReply::Now(reply.body, reply.dialect),
        };
        Ok((reply, None))
    }
}
