//! Finds senders that wait behind a flood and are unknown: neither registered nor heard by this process.
//!
//! The broker knows the subjects of what it has stored, and with them everyone that has said anything outside of cases, as
//! whoever registers does. It is asked about each of those that this process does not know whether anything of theirs waits.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::stream::Stream;
use concord_wire::AgentId;
use concord_wire::subject::Service;
use futures::TryStreamExt;
use futures::future::try_join_all;
use tokio::time::Instant;

use super::reader::{AnyError, BypassReader, LOOK_INTERVAL};
use crate::broker::raw_message;
use crate::error_chain::ErrorChain;

/// How many subjects are looked through at once.
const SUBJECTS_MAX: usize = 10_000;
/// How many unknown senders are asked about at once.
const ASKED_MAX: usize = 64;
/// A look takes no more than this part of the time, however many subjects there are.
const SHARE: u32 = 20;

/// Unknown senders of which something waits.
#[derive(Debug, Default)]
pub(super) struct UnknownSenders(Mutex<BTreeSet<AgentId>>);

impl UnknownSenders {
    fn all(&self) -> MutexGuard<'_, BTreeSet<AgentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn found(&self) -> Vec<AgentId> {
        self.all().iter().cloned().collect()
    }

    /// Looks who waits for as long as it is polled, beside the reading, which does not wait for it.
    pub(super) async fn watch(&self, reader: &BypassReader, stream: &Stream<()>) -> ! {
        // Where the next look begins, so that all have their turn.
        let mut after = None;
        loop {
            let began = Instant::now();
            if let Err(error) = self.look(reader, stream, &mut after).await {
                tracing::debug!(error = %ErrorChain(&*error), "Unknown senders that wait behind a flood were not looked for.");
            }
            tokio::time::sleep((began.elapsed() * SHARE).max(LOOK_INTERVAL)).await;
        }
    }

    async fn look(
        &self,
        reader: &BypassReader,
        stream: &Stream<()>,
        after: &mut Option<AgentId>,
    ) -> Result<(), AnyError> {
        let unknown = unknown(reader, stream, &self.found()).await?;
        let (before, behind): (Vec<_>, Vec<_>) = unknown
            .into_iter()
            .partition(|sender| after.as_ref().is_some_and(|after| sender <= after));
        let at = reader.bypass.position();
        let asked: Vec<AgentId> = behind.into_iter().chain(before).take(ASKED_MAX).collect();
        *after = asked.last().cloned();
        let waits =
            asked.iter().map(|sender| {
                let filter = reader.only_from(sender);
                async move {
                    raw_message::next(&reader.broker, &reader.consumer.stream, &filter, at).await
                }
            });
        let waits = try_join_all(waits).await?;
        for (sender, _) in asked
            .into_iter()
            .zip(waits)
            .filter(|(_, waits)| waits.is_some())
        {
            tracing::debug!(agent = %sender, consumer = %reader.consumer.name, "An unknown sender waits behind a flood.");
            self.all().insert(sender);
        }
        Ok(())
    }
}

/// The senders of stored messages outside of cases that are not known.
async fn unknown(
    reader: &BypassReader,
    stream: &Stream<()>,
    found: &[AgentId],
) -> Result<BTreeSet<AgentId>, AnyError> {
    let subjects = reader.broker.subjects();
    let senders = reader.admission.limits.senders(reader.limit);
    let quiet: BTreeSet<&AgentId> = senders.quiet.iter().collect();
    let registered: BTreeSet<AgentId> = reader.admission.registered().into_iter().collect();
    let is_known = |sender: &AgentId| {
        quiet.contains(sender)
            || senders.flooding.contains(sender)
            || registered.contains(sender)
            || found.contains(sender)
            || Service::parse(sender.as_str()).is_ok()
    };
    let mut listed = stream
        .info_with_subjects(subjects.outside_cases(&reader.consumer.filter))
        .await?;
    let mut unknown = BTreeSet::new();
    for _ in 0..SUBJECTS_MAX {
        let Some((subject, _)) = listed.try_next().await? else {
            break;
        };
        unknown.extend(
            subjects
                .sender_of(&subject)
                .filter(|sender| !is_known(sender)),
        );
    }
    Ok(unknown)
}
