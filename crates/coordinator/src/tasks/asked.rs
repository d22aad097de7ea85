//! Which messages are of somebody whom a task has asked.

use concord_domain::Versioned;
use concord_domain::aggregates::task::TaskMachine;
use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::step;
use concord_wire::Envelope;

use super::Tasks;
use crate::route::task::{TaskMessage, from_response, named_task};

impl<P: Ports> Tasks<P> {
    /// Whether a message answers a task that this process has in memory, so that it need not be looked for elsewhere.
    pub(crate) async fn is_answered_by(&self, envelope: &Envelope) -> Result<bool, step::Error> {
        let Some((id, asked)) = named_task(envelope) else {
            return Ok(false);
        };
        let task = self.tasks.load_up_to(&id, 0).await?.state;
        Ok(task.has_asked(&envelope.from_agent, asked))
    }

    /// Whether a message that may be about anything is of somebody whom a task has asked.
    pub(super) async fn has_asked(&self, envelope: &Envelope) -> Result<bool, step::Error> {
        let Some((id, asked)) = named_task(envelope) else {
            return Ok(false);
        };
        let has_asked =
            |task: &Versioned<TaskMachine>| task.state.has_asked(&envelope.from_agent, asked);
        // A copy that lags may not have the task yet: that it has not asked is believed of the leader alone.
        Ok(has_asked(&self.tasks.peek(&id).await?) || has_asked(&self.tasks.load(&id).await?))
    }

    /// What a response says to a task that has asked its sender; none where it is about something else.
    pub(super) async fn read_response(
        &self,
        envelope: &Envelope,
    ) -> Result<Option<TaskMessage>, HandleError> {
        let Some(named) = named_task(envelope) else {
            return Ok(None);
        };
        if !self.has_asked(envelope).await? {
            return Ok(None);
        }
        let task = self.tasks.load_up_to(&named.0, 0).await?.state;
        let is_bid = task.has_called(named.1);
        Ok(Some(from_response(envelope, named, is_bid)?))
    }
}
