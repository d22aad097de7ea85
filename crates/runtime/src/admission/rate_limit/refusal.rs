//! Telling senders that they are over their limit: each message by itself, or many together in one notice a second.

use std::time::Duration;

use concord_wire::AgentId;
use concord_wire::payload::ErrorReport;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Excess, Gathered, RateLimit, RateLimits};
use crate::admission::Turn;
use crate::context::ServiceContext;
use crate::delivery::{Delivery, reject};
use crate::event_store::Error;
use crate::ports::Ports;

/// How often it is tried to tell of refusals that are acknowledged already.
const TRIES_MAX: usize = 20;
/// How long refusals that are not answered each are gathered into one notice.
pub(crate) const GATHERED: Duration = Duration::from_secs(1);

impl RateLimit {
    /// Tells the sender of a delivery what it has to be told, in place of handling the delivery.
    pub(crate) async fn refuse<P: Ports>(
        self,
        (context, limits, stop): (&ServiceContext<P>, &RateLimits, &CancellationToken),
        excess: Excess,
        delivery: &Delivery,
        turn: Turn,
    ) -> Result<(), Error> {
        let Some(sender) = context.ports.subjects().sender_of(&delivery.subject) else {
            return Ok(());
        };
        match excess {
            Excess::Skip => Ok(()),
            Excess::Answer => {
                let report = limits.report(self.kind, &sender);
                reject::tell(context, delivery, report).await
            }
            Excess::TellTogether => {
                // Nothing is worked on meanwhile.
                drop(turn);
                self.tell_together((context, limits, stop), delivery, &sender)
                    .await
            }
        }
    }

    /// Waits while refusals are gathered, and tells of all of them. All but the first are acknowledged already, so what
    /// cannot be told now is told later, together with what has come meanwhile.
    async fn tell_together<P: Ports>(
        self,
        (context, limits, stop): (&ServiceContext<P>, &RateLimits, &CancellationToken),
        delivery: &Delivery,
        sender: &AgentId,
    ) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let stopped = tokio::time::timeout(GATHERED, stop.cancelled()).await;
            let gathered = limits.take_gathered(self.kind, sender, delivery.sequence);
            tries += 1;
            match notify(
                context,
                limits.report(self.kind, sender),
                delivery,
                sender,
                gathered,
            )
            .await
            {
                Err(_) if tries < TRIES_MAX && stopped.is_err() => {
                    limits.gather_again(self.kind, sender, gathered);
                }
                told => return told,
            }
        }
    }
}

/// Tells a sender how many of its messages were refused that were not answered each.
async fn notify<P: Ports>(
    context: &ServiceContext<P>,
    mut report: ErrorReport,
    delivery: &Delivery,
    sender: &AgentId,
    gathered: Gathered,
) -> Result<(), Error> {
    let Gathered { count, last } = gathered;
    tracing::warn!(agent = %sender, consumer = %delivery.consumer, count, "An agent sends more than it may.");
    let what = &report.error_message;
    report.error_message =
        format!("{what} {count} of your messages were refused together, this one first.");
    report.details.insert("refused".into(), json!(count));
    report.details.insert("last_sequence".into(), json!(last));
    reject::tell(context, delivery, report).await
}
