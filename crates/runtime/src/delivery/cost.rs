//! What a delivery costs beyond its own bytes: what its body expands to, the large payload that it refers to, and what is sent
//! on because of it. The sender's limit counts it, and large payloads have bounded room in the process.

use std::sync::{Arc, OnceLock};

use concord_wire::{Fault, Timestamp};
use tokio::sync::OwnedSemaphorePermit;

use crate::context::large_payloads::LargePayloads;
use crate::delivery::Delivery;

/// What an agent may cause, in bytes.
pub trait Budget: Send + Sync {
    /// Takes this many bytes at this time; refused where nothing is left.
    fn spend(&self, bytes: u64, now: Timestamp) -> Result<(), Fault>;
}

/// Who pays for what a delivery costs, and what it has taken of the process.
#[derive(Default)]
pub struct Cost {
    /// What its sender may still cause; none where that has no limit.
    pub budget: Option<Arc<dyn Budget>>,
    /// The room of its large payload, for as long as it is under way.
    room: OnceLock<OwnedSemaphorePermit>,
}

impl Delivery {
    /// Counts bytes that its sender causes beyond those of the message itself, before they are worked on.
    pub fn spend(&self, bytes: usize) -> Result<(), Fault> {
        match &self.cost.budget {
            Some(budget) if bytes > 0 => {
                let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                budget.spend(bytes, self.stored_at)
            }
            _ => Ok(()),
        }
    }

    /// Waits until there is room for its large payload, and keeps it for as long as the delivery is under way.
    pub(crate) async fn take_room(&self, rooms: &LargePayloads, bytes: u64) {
        if self.cost.room.get().is_none()
            && let Some(permit) = rooms.take(bytes).await
            && self.cost.room.set(permit).is_err()
        {
            tracing::debug!("The delivery has its room already.");
        }
    }
}
