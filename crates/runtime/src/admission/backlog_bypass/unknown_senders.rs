//! Who waits behind a flood and is known to nobody: neither registered nor heard by this process.
//!
//! The broker knows the subjects of what it has stored, and with them who has said anything outside of cases, as whoever
//! registers does. Of those whom this process does not know it is asked whether anything of theirs waits.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::stream::Stream;
use concord_wire::AgentId;
use concord_wire::subject::Service;
use futures::TryStreamExt;
use futures::future::try_join_all;
use tokio::time::Instant;

use super::{AnyError, LOOK_INTERVAL, Past};
use crate::broker::raw_message;
use crate::delivery::{ErrorChain, Handler};

/// Subjects that are looked through at once.
const SUBJECTS_MAX: usize = 10_000;
/// Strangers of whom is asked at once whether anything of theirs waits.
const ASKED_MAX: usize = 64;
/// A look takes no more than this part of the time, however many subjects there are.
const SHARE: u32 = 20;

/// Strangers of whom something waits.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<BTreeSet<AgentId>>);

impl Strangers {
    fn all(&self) -> MutexGuard<'_, BTreeSet<AgentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn found(&self) -> Vec<AgentId> {
        self.all().iter().cloned().collect()
    }

    /// Looks who waits for as long as it is polled, beside the reading, which does not wait for it.
    pub(super) async fn watch<H: Handler>(&self, past: &Past<H>, stream: &Stream<()>) -> ! {
        // Where the next look begins, so that all have their turn.
        let mut after = None;
        loop {
            let began = Instant::now();
            if let Err(error) = self.look(past, stream, &mut after).await {
                tracing::debug!(error = %ErrorChain(&*error), "Strangers that wait behind a flood were not looked for.");
            }
            tokio::time::sleep((began.elapsed() * SHARE).max(LOOK_INTERVAL)).await;
        }
    }

    async fn look<H: Handler>(
        &self,
        past: &Past<H>,
        stream: &Stream<()>,
        after: &mut Option<AgentId>,
    ) -> Result<(), AnyError> {
        let unknown = unknown(past, stream, &self.found()).await?;
        let (before, behind): (Vec<_>, Vec<_>) = unknown
            .into_iter()
            .partition(|stranger| after.as_ref().is_some_and(|after| stranger <= after));
        let at = past.bypass.at.load(Ordering::Relaxed).max(1);
        let asked: Vec<AgentId> = behind.into_iter().chain(before).take(ASKED_MAX).collect();
        *after = asked.last().cloned();
        let waits = asked.iter().map(|stranger| {
            let filter = past.only_from(stranger);
            async move {
                raw_message::next(&past.shell.broker, &past.consumer.stream, &filter, at).await
            }
        });
        let waits = try_join_all(waits).await?;
        for (stranger, _) in asked
            .into_iter()
            .zip(waits)
            .filter(|(_, waits)| waits.is_some())
        {
            tracing::debug!(agent = %stranger, consumer = %past.consumer.name, "A stranger waits behind a flood.");
            self.all().insert(stranger);
        }
        Ok(())
    }
}

/// Who has said something outside of cases, as far as it is stored, and is not known.
async fn unknown<H: Handler>(
    past: &Past<H>,
    stream: &Stream<()>,
    found: &[AgentId],
) -> Result<BTreeSet<AgentId>, AnyError> {
    let subjects = past.shell.broker.subjects();
    let known = past.shell.limits.known(past.limit);
    let quiet: BTreeSet<&AgentId> = known.quiet.iter().collect();
    let registered: BTreeSet<AgentId> = past.shell.registered().into_iter().collect();
    let is_known = |sender: &AgentId| {
        quiet.contains(sender)
            || known.flooding.contains(sender)
            || registered.contains(sender)
            || found.contains(sender)
            || Service::parse(sender.as_str()).is_ok()
    };
    let mut listed = stream
        .info_with_subjects(subjects.outside_cases(&past.consumer.filter))
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
