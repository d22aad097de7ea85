//! Notifications: people are told by email and webhook when a debate waits for them, when its time runs out, and of
//! provisional decisions before a gate (`docs/adr/0018`).
//!
//! Each channel reads the facts by consumers of its own, so that nothing here can hold up the ladder, and what one channel
//! fails to deliver is not repeated by the other. A notice is delivered at least once, under an id that is the same each
//! time.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_events::StoredEvent;
use concord_events::topology::{Channel, ConsumerKind};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler, RetryPolicy};
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::clock;
use concord_runtime::service::metrics::NoticeLabels;
use concord_runtime::service::settings::WorkSettings;
use lru::LruCache;
use tokio::sync::Semaphore;

mod completion;
mod email;
mod notice;
mod resend;
mod text;
mod webhook;

use crate::settings::{EmailConfig, NotifySettings, WebhookConfig};
use notice::Notice;

/// Recipients of whom is remembered what became of their notice.
const KNOWN_MAX: usize = 8_192;

/// Why somebody was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It may work at another time.
    #[error("{0}")]
    Passing(String),
    /// It will never work.
    #[error("{0}")]
    Lasting(String),
}

/// Begins to tell people. The consumers are there when a channel is off, too: what happened while it was off is then
/// nothing that they are told when it is on.
pub(crate) fn start(
    shell: &ServiceRunner,
    settings: &NotifySettings,
    email: Option<EmailConfig>,
    webhook: Option<WebhookConfig>,
) {
    let webhook = webhook.map(|config| Arc::new(webhook::Caller::new(config)));
    let mut email = email.map(email::Mailer::new);
    let mut notifiers = Vec::new();
    for channel in Channel::ALL {
        let sender = match channel {
            Channel::Email => email.take().map(|mailer| Sender::Email(Box::new(mailer))),
            Channel::Webhook => webhook.clone().map(Sender::Webhook),
        };
        let notifier = Arc::new(Notifier::new(shell, channel, sender, settings));
        shell.consume(ConsumerKind::Notices(channel), Feed(Arc::clone(&notifier)));
        notifiers.push(notifier);
    }
    let completions = completion::Completions::new(shell, webhook, settings);
    shell.consume(ConsumerKind::Completions, completions);
    shell.answer("notify", resend::verb(shell, notifiers));
}

/// How long a notice that fails is tried again.
fn patience(settings: &NotifySettings) -> RetryPolicy {
    let first = Duration::from_millis(settings.wait_first_ms);
    let max = Duration::from_millis(settings.wait_max_ms);
    RetryPolicy::spread(settings.tries_max, first, max)
}

/// How a channel sends.
enum Sender {
    Email(Box<email::Mailer>),
    Webhook(Arc<webhook::Caller>),
}

impl Sender {
    fn recipients(&self, notice: &Notice) -> Vec<String> {
        match self {
            Self::Email(mailer) => mailer.recipients(notice),
            Self::Webhook(caller) => caller.recipients(notice),
        }
    }

    async fn send(&self, notice: &Notice, to: &str, prefix: &str) -> Result<(), Failure> {
        match self {
            Self::Email(mailer) => mailer.send(notice, to, prefix).await,
            Self::Webhook(caller) => caller.send(notice, to, prefix).await,
        }
    }
}

/// One channel at work.
struct Notifier {
    shell: ServiceRunner,
    channel: Channel,
    sender: Option<Sender>,
    prefix: String,
    settings: NotifySettings,
    tries: Semaphore,
    /// What became of recipients, so that the failure of one does not repeat the notice of another. What another process
    /// or an earlier life of this one did is not known here: then a notice is repeated, under the same id.
    known: Mutex<LruCache<(u64, String), Result<(), Failure>>>,
}

impl Notifier {
    fn new(
        shell: &ServiceRunner,
        channel: Channel,
        sender: Option<Sender>,
        settings: &NotifySettings,
    ) -> Self {
        let known = LruCache::new(NonZeroUsize::new(KNOWN_MAX).unwrap_or(NonZeroUsize::MIN));
        Self {
            shell: shell.clone(),
            channel,
            sender,
            prefix: shell.broker.layout.subjects.prefix().to_owned(),
            settings: settings.clone(),
            tries: Semaphore::new(settings.concurrency),
            known: Mutex::new(known),
        }
    }

    fn count(&self, result: &'static str) {
        let labels = NoticeLabels {
            channel: self.channel.as_str(),
            result,
        };
        self.shell
            .metrics
            .notifications
            .get_or_create(&labels)
            .inc();
    }

    fn known(&self, notice: &Notice, recipient: &str) -> Option<Result<(), Failure>> {
        let key = (notice.sequence, recipient.to_owned());
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned()
    }

    /// What is to be done with a notice that is of no use any more: whoever tried in vain to tell somebody says so.
    fn skip(&self, notice: &Notice, recipients: &[String], why: &str) -> Result<Ack, HandleError> {
        let failed = |recipient: &String| {
            let failure = self.known(notice, recipient)?.err()?;
            Some(format!("{}: {failure}", shown(self.channel, recipient)))
        };
        let failures: Vec<String> = recipients.iter().filter_map(failed).collect();
        if !failures.is_empty() {
            return Err(HandleError::DeadLetter(format!(
                "{why}; before, {}",
                failures.join("; ")
            )));
        }
        self.count("stale");
        let (channel, kind, debate) = (self.channel.as_str(), notice.kind(), &notice.debate_id);
        tracing::info!(channel, kind, %debate, why, "Skipped a notice.");
        Ok(Ack::Acknowledge)
    }

    /// Tells all recipients who have not been told: the failures that may pass, and those that last.
    async fn tell(
        &self,
        sender: &Sender,
        notice: &Notice,
        to: &[String],
    ) -> (Vec<String>, Vec<String>) {
        let (mut passing, mut lasting) = (Vec::new(), Vec::new());
        for recipient in to {
            let key = (notice.sequence, recipient.clone());
            let told = match self.known(notice, recipient) {
                Some(told @ (Ok(()) | Err(Failure::Lasting(_)))) => told,
                Some(Err(Failure::Passing(_))) | None => {
                    self.tell_one(sender, notice, recipient).await
                }
            };
            self.known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .put(key, told.clone());
            let shown = shown(self.channel, recipient);
            match told {
                Ok(()) => {}
                Err(Failure::Passing(why)) => passing.push(format!("{shown}: {why}")),
                Err(Failure::Lasting(why)) => lasting.push(format!("{shown}: {why}")),
            }
        }
        (passing, lasting)
    }

    async fn tell_one(
        &self,
        sender: &Sender,
        notice: &Notice,
        recipient: &str,
    ) -> Result<(), Failure> {
        let limit = Duration::from_millis(self.settings.timeout_ms);
        let told = {
            // The notifier owns its semaphore and never closes it.
            let _permit = self.tries.acquire().await.ok();
            let late = || {
                Err(Failure::Passing(format!(
                    "no end within {} ms",
                    self.settings.timeout_ms
                )))
            };
            tokio::time::timeout(limit, sender.send(notice, recipient, &self.prefix))
                .await
                .unwrap_or_else(|_| late())
        };
        let (channel, to, kind, debate) = (
            self.channel.as_str(),
            shown(self.channel, recipient),
            notice.kind(),
            &notice.debate_id,
        );
        match &told {
            Ok(()) => {
                self.count("delivered");
                tracing::info!(channel, %to, kind, %debate, "Notified.");
            }
            Err(Failure::Passing(why)) => {
                self.count("failed");
                tracing::warn!(channel, %to, kind, %debate, why, "Not notified; to be tried again.");
            }
            Err(Failure::Lasting(why)) => {
                self.count("undeliverable");
                tracing::error!(channel, %to, kind, %debate, why, "Not notified, and not to be tried again.");
            }
        }
        told
    }
}

/// A recipient as logs and dead letters show it: of an address that is called the host alone, for the rest of it may be
/// a secret.
fn shown(channel: Channel, recipient: &str) -> String {
    match channel {
        Channel::Email => recipient.to_owned(),
        Channel::Webhook => {
            let url = url::Url::parse(recipient).ok();
            url.and_then(|url| url.host_str().map(str::to_owned))
                .unwrap_or_else(|| "(no address)".into())
        }
    }
}

/// The consumers' side of a channel.
struct Feed(Arc<Notifier>);

impl Handler for Feed {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let notifier = &*self.0;
        let Some(sender) = &notifier.sender else {
            notifier.count("off");
            return Ok(Ack::Acknowledge);
        };
        let Some(notice) = Notice::of(StoredEvent::decode(&delivery.payload, delivery.sequence)?)
        else {
            notifier.count("nobody");
            return Ok(Ack::Acknowledge);
        };
        let recipients = sender.recipients(&notice);
        if recipients.is_empty() {
            notifier.count("nobody");
            return Ok(Ack::Acknowledge);
        }
        if let Some(why) = notice.stale(clock::now(), notifier.settings.age_max_ms) {
            return notifier.skip(&notice, &recipients, why);
        }
        let (passing, lasting) = notifier.tell(sender, &notice, &recipients).await;
        if !passing.is_empty() {
            return Err(HandleError::retry(passing.join("; ")));
        }
        if !lasting.is_empty() {
            return Err(HandleError::DeadLetter(lasting.join("; ")));
        }
        Ok(Ack::Acknowledge)
    }

    fn patience(&self, _: &WorkSettings) -> RetryPolicy {
        patience(&self.0.settings)
    }
}
