//! The places of tasks in the quotas of those who open them: given back when a task has ended, or was not opened after all.

use concord_domain::aggregates::task::OpenedTask;
use concord_events::{EventMeta, OpenerEvent, StoredEvent, TaskEvent};
use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_wire::Token;

use super::Tasks;
use super::panels::opens_case;
use crate::openers::task_needs_place;

impl<P: Ports> Tasks<P> {
    /// Gives back the place of a task that was not opened after all, or has ended meanwhile; and that of its case, if it was to have one.
    pub(super) async fn settle(&self, id: &Token, asked: &OpenedTask) -> Result<(), HandleError> {
        let opened_by = &asked.opened_by;
        // As the step has just left it, which came after the place: an end that is still to come is heard, and finds the place.
        let task = self.tasks.load_up_to(id, 1).await?.state;
        if task_needs_place(&task, opened_by) {
            return Ok(());
        }
        self.openers.settle_task(id, opened_by).await?;
        if opens_case(&asked.terms.strategy) {
            self.openers.settle(id, opened_by).await?;
        }
        Ok(())
    }

    /// Gives back a place that was taken too late, by a process that was slow.
    pub(crate) async fn heard_admission(
        &self,
        record: &StoredEvent<OpenerEvent>,
    ) -> Result<(), HandleError> {
        let OpenerEvent::TaskAdmitted(admitted) = &record.event else {
            return Ok(());
        };
        let (id, opener) = (&admitted.task_id, &admitted.opener);
        let task = self.tasks.load_up_to(id, record.sequence + 1).await?.state;
        if task.opened.is_some() && !task_needs_place(&task, opener) {
            let context = self.service.of_event(record.meta.event_id.clone());
            self.openers.release_task(id, opener, &context).await?;
        }
        Ok(())
    }

    /// Gives back the place of a task that has ended with this event.
    pub(super) async fn free_place(
        &self,
        record: &StoredEvent<TaskEvent>,
    ) -> Result<(), HandleError> {
        if record.event.end().is_none() {
            return Ok(());
        }
        let EventMeta { id, event_id, .. } = &record.meta;
        let task = self.tasks.load_up_to(id, record.sequence).await?.state;
        let Some(opened) = &task.opened else {
            return Ok(());
        };
        let context = self.service.of_event(event_id.clone());
        self.openers
            .release_task(id, &opened.opened_by, &context)
            .await
    }
}
