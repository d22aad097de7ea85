//! Holding what is written into memory while a debate takes its snapshot.
//!
//! When a debate begins, its parties are asked to write what they know (`memory_sync`). The library lets the agent's own handler write
//! first, waits until everything is kept, acknowledges, and holds further writes until the snapshot is taken (`memory_synced`) or
//! the time is over, whoever has failed.

use std::collections::BTreeMap;
use std::time::Duration;

use concord_wire::payload::notification::{EventData, MemorySync, MemorySynced};
use concord_wire::payload::{Acknowledgement, Notification};
use concord_wire::subject::Service;
use concord_wire::{DebateId, MessageType};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::agent::now;
use crate::{Agent, Message};

/// The longest that a write is held for one debate, whatever a message says.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// What is being written, and for which debates writes are held, until when.
#[derive(Debug, Clone, Default)]
struct Gate {
    writing: usize,
    held: BTreeMap<DebateId, Instant>,
}

impl Gate {
    /// When the last hold is over; none where nothing is held.
    fn held_until(&self) -> Option<Instant> {
        let now = Instant::now();
        self.held
            .values()
            .copied()
            .filter(|until| *until > now)
            .max()
    }
}

/// The writes of one agent.
#[derive(Debug)]
pub(crate) struct MemoryHold {
    gate: watch::Sender<Gate>,
}

impl Default for MemoryHold {
    fn default() -> Self {
        Self {
            gate: watch::Sender::new(Gate::default()),
        }
    }
}

/// A write that is under way.
pub(crate) struct Writing<'a>(&'a MemoryHold);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0
            .gate
            .send_modify(|gate| gate.writing = gate.writing.saturating_sub(1));
    }
}

impl MemoryHold {
    /// Waits until nothing is held.
    pub(crate) async fn write(&self) -> Writing<'_> {
        let mut changes = self.gate.subscribe();
        loop {
            let mut held = None;
            self.gate.send_if_modified(|gate| {
                held = gate.held_until();
                if held.is_none() {
                    gate.writing += 1;
                    gate.held.clear();
                }
                held.is_none()
            });
            let Some(until) = held else {
                return Writing(self);
            };
            // Either the snapshot is there, or the time is over.
            let _ = tokio::time::timeout_at(until, changes.changed()).await;
        }
    }

    fn hold(&self, debate: DebateId, until: Instant) {
        self.gate.send_modify(|gate| {
            gate.held.insert(debate, until);
        });
    }

    fn release(&self, debate: &DebateId) {
        self.gate.send_modify(|gate| {
            gate.held.remove(debate);
        });
    }

    /// Waits until nothing is being written, or the time is over; whether nothing is.
    async fn is_flushed(&self, until: Instant) -> bool {
        let mut changes = self.gate.subscribe();
        let flushed = changes.wait_for(|gate| gate.writing == 0);
        let waited = tokio::time::timeout_at(until, flushed).await;
        matches!(waited, Ok(Ok(_)))
    }
}

/// The data of a notification of the debate facilitator.
fn told<T: EventData + DeserializeOwned>(message: &Message) -> Option<T> {
    let is_told = message.message_type == MessageType::Notification
        && message.from_agent == Service::DebateFacilitator.agent_id();
    let told: Notification = is_told.then(|| message.payload().ok()).flatten()?;
    let is_it = told.event == T::EVENT;
    is_it
        .then(|| serde_json::from_value(told.data).ok())
        .flatten()
}

impl Agent {
    /// Does what a message says about the snapshot of a debate that begins.
    pub(crate) fn hold_memory(&self, message: &Message) {
        if let Some(synced) = told::<MemorySynced>(message) {
            self.inner.memory.release(&synced.debate_id);
        } else if let Some(sync) = told::<MemorySync>(message) {
            let (agent, asked) = (self.clone(), message.clone());
            self.inner.working.spawn(async move {
                let cut_off = &agent.inner.closing.cut_off;
                let flushing = agent.flush_memory(&asked, sync);
                if cut_off.run_until_cancelled(flushing).await.is_none() {
                    tracing::warn!("A `memory_sync` was cut off, because the agent closes.");
                }
            });
        }
    }

    async fn flush_memory(&self, asked: &Message, sync: MemorySync) {
        let left = Duration::from_millis(sync.until.millis_since(now()));
        let until = Instant::now() + left.min(HOLD_MAX);
        if let Some(handler) = self.inner.handlers.memory_sync.clone() {
            let written = self.in_handler(handler(self.clone(), asked.clone()));
            if let Ok(Err(error)) = tokio::time::timeout_at(until, written).await {
                tracing::warn!(%error, "Not everything was written before the snapshot.");
            }
        }
        self.inner.memory.hold(sync.debate_id, until);
        if !self.inner.memory.is_flushed(until).await {
            return;
        }
        let acknowledged = Acknowledgement::default();
        let said = self.reply(asked, MessageType::Acknowledgement, &acknowledged);
        if let Err(error) = said.await {
            tracing::warn!(%error, "The snapshot was not acknowledged.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debate(id: &str) -> DebateId {
        DebateId::new(id).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[tokio::test]
    async fn a_write_waits_until_every_snapshot_is_taken_that_holds_it() {
        let hold = MemoryHold::default();
        let late = Instant::now() + HOLD_MAX;
        hold.hold(debate("d-1"), late);
        hold.hold(debate("d-2"), late);
        let held =
            async |within: Instant| tokio::time::timeout_at(within, hold.write()).await.is_err();
        assert!(held(soon()).await);
        hold.release(&debate("d-1"));
        assert!(held(soon()).await);
        hold.release(&debate("d-2"));
        assert!(!held(late).await);
    }

    #[tokio::test]
    async fn a_hold_whose_holder_is_dead_is_over_in_time() {
        let hold = MemoryHold::default();
        hold.hold(debate("d-1"), soon());
        let waited = tokio::time::timeout(HOLD_MAX, hold.write()).await;
        assert!(waited.is_ok(), "nobody has released it");
    }

    #[tokio::test]
    async fn what_is_under_way_is_waited_for() {
        let hold = MemoryHold::default();
        let writing = hold.write().await;
        assert!(!hold.is_flushed(soon()).await);
        drop(writing);
        assert!(hold.is_flushed(soon()).await);
    }
}
