//! The consumer's side of a hosted agent.

use std::sync::Arc;

use concord_runtime::consume::{Delivery, Done, Handler, Problem};
use concord_runtime::dialect;
use concord_runtime::service::Shell;

use crate::host::Host;

/// A hosted agent's messages.
pub(crate) struct Inbox {
    pub(crate) host: Arc<Host>,
    pub(crate) shell: Shell,
}

impl Handler for Inbox {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
        // What another agent garbled is its own affair, and is in the transcript; the agent is not bothered with it.
        let asked = dialect::envelope(&self.shell, delivery).ok();
        let Some(asked) = asked.filter(|asked| asked.requires_response) else {
            self.shell.count_ignored("no_response_required");
            return Ok(Done::Acknowledge);
        };
        self.host.handle(&asked, delivery).await?;
        Ok(Done::Acknowledge)
    }
}
