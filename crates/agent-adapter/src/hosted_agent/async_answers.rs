//! Answers that come later, or that have come before.

use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::{broker::message_lookup, service::clock};
use concord_wire::subject::Lane;
use concord_wire::{Envelope, ErrorCode, MessageType};

use super::{Host, Stop};
use crate::callback::Wait;
use crate::callback::token::Asked;
use crate::failure::Failure;
use crate::spans::Turn;

impl Host {
    /// Where the answer to a message can be posted later.
    pub(super) fn callback(&self, asked: &Envelope, turn: &Turn) -> Option<String> {
        let address = self.shared.address.as_ref()?;
        let until = address.until(clock::now(), asked.deadline);
        let trace = turn.context().map(|trace| trace.parent.clone());
        Some(address.url(&Asked {
            trace,
            ..Asked::of(asked, &self.agent.agent_id, until)
        }))
    }

    /// Waits for an answer that comes later, through whichever replica.
    pub(super) async fn wait_for(
        &self,
        asked: &Envelope,
        delivery: &Delivery,
        answer: Wait,
    ) -> Result<(), Stop> {
        let Some(address) = &self.shared.address else {
            let why = "it will answer later (status 202), and service.callback.listen is not set";
            return Err(Failure::here(ErrorCode::InternalError, why).into());
        };
        let Ok(_permit) = self.later.try_acquire() else {
            let why = format!(
                "{} answers that come later are waited for already",
                self.agent.queue_max
            );
            return Err(Failure::here(ErrorCode::CapacityExceeded, why).into());
        };
        let now = clock::now();
        let wait = Duration::from_millis(address.until(now, asked.deadline).millis_since(now));
        let heard = tokio::time::timeout(wait, answer.said()).await.is_ok();
        // It may have come while this replica was cut off from the broker.
        if heard || self.has_answered(asked, delivery).await? {
            return Ok(());
        }
        Err(Failure::here(
            ErrorCode::Timeout,
            "the answer that it promised (status 202) did not come",
        )
        .into())
    }

    /// Whether the agent's answer to a message is stored, whoever published it.
    pub(super) async fn has_answered(
        &self,
        asked: &Envelope,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        let broker = &self.shared.shell.broker;
        let answers = |said: &Envelope, _| {
            let is_answer = said.message_type != MessageType::Acknowledgement;
            (is_answer && said.reply_to.as_deref() == Some(asked.message_id.as_str())).then_some(())
        };
        for lane in Lane::ALL {
            let filter =
                broker
                    .subjects()
                    .messages_between(lane, &self.agent.agent_id, &asked.from_agent);
            // Of the other lane only its own sequences are known, and there is little on it between two agents.
            let is_own = delivery.stream == broker.layout.stream_name(StreamKind::of_lane(lane));
            let first = if is_own { delivery.sequence } else { 1 };
            if message_lookup::find(broker, lane, &filter, first, answers)
                .await?
                .is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
