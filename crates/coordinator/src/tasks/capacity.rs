//! What an agent's card says of the tasks that wait for it.

use concord_domain::aggregates::worklist::{WAITING_MAX, WorklistInput};
use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_wire::{AgentId, MessageId};

use super::Tasks;

impl<P: Ports> Tasks<P> {
    /// Gives an agent that has registered what waits for it, as far as its card has room for that now.
    pub(super) async fn heard_of_card(
        &self,
        agent: &AgentId,
        event_id: &MessageId,
    ) -> Result<(), HandleError> {
        let capacity = self.capacity_of(agent).await?;
        // One step gives one task, and the last one keeps a smaller capacity.
        for _ in 0..=WAITING_MAX {
            let known = self.worklists.to_read().load(&agent.token()).await?;
            if !known.state.is_changed_by(capacity) {
                break;
            }
            let cause = MessageId::derived(&format!("{event_id}/{}", known.sequence()));
            let (context, input) = (
                self.service.of_event(cause),
                WorklistInput::Restate { capacity },
            );
            self.step_worklist(agent, &context, &input).await?;
        }
        Ok(())
    }
}
