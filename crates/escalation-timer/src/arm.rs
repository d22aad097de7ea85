//! Making the broker's scheduler agree with each fact's account of its deadlines.

use concord_domain::deadline::{TimerAction, timer_actions};
use concord_protocol::event::RecordMeta;
use concord_runtime::consume::{Delivery, Done, Handler, Problem};
use concord_runtime::feed;

use crate::schedule::Schedule;

/// Arms and cancels what each fact opens and closes.
pub(crate) struct Arm {
    pub(crate) schedule: Schedule,
}

impl Handler for Arm {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
        let (aggregate, id) = feed::aggregate_of(self.schedule.shell(), delivery)?;
        let meta = RecordMeta::decode(&delivery.payload)?;
        for action in timer_actions(&meta) {
            match action {
                TimerAction::Arm(deadline) => self.schedule.arm(aggregate, &id, &deadline).await?,
                TimerAction::Cancel(name) => self.schedule.cancel(aggregate, &id, &name).await?,
            }
        }
        Ok(Done::Acknowledge)
    }
}
