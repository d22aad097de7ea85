//! Notifications: people are told by email and webhook when a debate waits for them, when its time runs out, of provisional
//! decisions before a gate, and when what they answer for changes (`docs/adr/0018`, `docs/adr/0046`).
//!
//! Each channel reads the events by consumers of its own. So nothing here can hold up a debate, and a notice that one channel
//! fails to deliver is not repeated by the other. A notice is delivered at least once, under an id that is the same each time.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_events::topology::{Channel, ConsumerKind};
use concord_runtime::Ports;
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler, RetryPolicy};
use concord_runtime::service::settings::WorkSettings;
use concord_runtime::service::{Binder, ServiceContext, ServiceRunner};
use lru::LruCache;
use tokio::sync::Semaphore;

use crate::context::AdapterContext;
use crate::metrics::{AdapterMetrics, NoticeLabels};
use crate::settings::{EmailConfig, NotifySettings, WebhookConfig};

mod completion;
mod concerned;
mod email;
mod notice;
mod resend;
mod text;
mod webhook;

use concerned::Concerned;
use notice::Notice;

/// Recipients whose results are remembered.
const RESULTS_MAX: usize = 8_192;

/// Why a recipient was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It may work at another time.
    #[error("{0}")]
    Passing(String),
    /// It will never work.
    #[error("{0}")]
    Lasting(String),
}

/// Begins to notify people. The consumers of a channel are bound while the channel is off, too, so that people are not told
/// later of what happened in the meantime.
pub(crate) fn start(
    runner: &ServiceRunner,
    adapter: &AdapterContext<concord_runtime::NatsPorts>,
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
        notifiers.push(Arc::new(Notifier::new(adapter, channel, sender, settings)));
    }
    let mut binder = runner.clone();
    bind(&notifiers, &mut binder);
    let completions = completion::CompletionHandler::new(&adapter.metrics, webhook, settings);
    binder.handle(ConsumerKind::Completions, completions);
    runner.answer("notify", resend::verb(runner, notifiers));
}

fn bind<P: Ports>(notifiers: &[Arc<Notifier<P>>], binder: &mut impl Binder) {
    for notifier in notifiers {
        let kind = ConsumerKind::Notices(notifier.channel);
        binder.handle(kind, NoticeHandler(Arc::clone(notifier)));
    }
}

/// How long a notice that fails is tried again.
fn retry_policy(settings: &NotifySettings) -> RetryPolicy {
    let first = Duration::from_millis(settings.wait_first_ms);
    let max = Duration::from_millis(settings.wait_max_ms);
    RetryPolicy::spread(settings.tries_max, first, max)
}

/// The way in which a channel sends.
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

/// The failures of the notices of one event, as `recipient: reason`.
#[derive(Default)]
struct Failures {
    passing: Vec<String>,
    lasting: Vec<String>,
}

/// One channel.
struct Notifier<P> {
    context: ServiceContext<P>,
    metrics: AdapterMetrics,
    channel: Channel,
    /// None where the channel is off.
    sender: Option<Sender>,
    prefix: String,
    settings: NotifySettings,
    /// Bounds the tries under way at once.
    tries: Semaphore,
    /// The results by notice and recipient, so that the failure of one recipient does not repeat the notice of
    /// another. The results of another process, or of an earlier life of this one, are not known here: then a notice is
    /// repeated, under the same id.
    results: Mutex<LruCache<ResultKey, Result<(), Failure>>>,
    concerned: Concerned<P>,
}

/// The notice by its id, and the recipient.
type ResultKey = (String, String);

impl<P: Ports> Notifier<P> {
    fn new(
        adapter: &AdapterContext<P>,
        channel: Channel,
        sender: Option<Sender>,
        settings: &NotifySettings,
    ) -> Self {
        let results = LruCache::new(NonZeroUsize::new(RESULTS_MAX).unwrap_or(NonZeroUsize::MIN));
        Self {
            prefix: adapter.service.ports.subjects().prefix().to_owned(),
            context: adapter.service.clone(),
            metrics: adapter.metrics.clone(),
            channel,
            sender,
            settings: settings.clone(),
            tries: Semaphore::new(settings.concurrency),
            results: Mutex::new(results),
            concerned: Concerned::new(&adapter.service),
        }
    }
}

impl<P> Notifier<P> {
    fn count(&self, result: &'static str) {
        let labels = NoticeLabels {
            channel: self.channel.as_str(),
            result,
        };
        self.metrics.notifications.get_or_create(&labels).inc();
    }

    fn results(&self) -> MutexGuard<'_, LruCache<ResultKey, Result<(), Failure>>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, notice: &Notice, recipient: &str) -> ResultKey {
        let id = notice.id(&self.prefix, self.channel.as_str());
        (id, recipient.to_owned())
    }

    fn result(&self, notice: &Notice, recipient: &str) -> Option<Result<(), Failure>> {
        let key = self.key(notice, recipient);
        self.results().get(&key).cloned()
    }

    /// Skips a notice that is of no use any more. If a recipient was tried in vain before, the notice becomes a dead letter.
    fn skip(&self, notice: &Notice, recipients: &[String], why: &str) -> Result<(), HandleError> {
        let failed = |recipient: &String| {
            let failure = self.result(notice, recipient)?.err()?;
            Some(format!("{}: {failure}", shown(self.channel, recipient)))
        };
        let failures: Vec<String> = recipients.iter().filter_map(failed).collect();
        if !failures.is_empty() {
            self.count("undeliverable");
            let why = format!("{why}; before, {}", failures.join("; "));
            return Err(HandleError::DeadLetter(why));
        }
        self.count("stale");
        let channel = self.channel.as_str();
        let kind = notice.kind();
        let about = notice.about();
        tracing::info!(channel, kind, about, why, "Skipped a notice.");
        Ok(())
    }

    /// Tells all recipients who have not been told.
    async fn tell_all(
        &self,
        sender: &Sender,
        notice: &Notice,
        recipients: &[String],
        failures: &mut Failures,
    ) {
        for recipient in recipients {
            let result = match self.result(notice, recipient) {
                Some(result @ (Ok(()) | Err(Failure::Lasting(_)))) => result,
                Some(Err(Failure::Passing(_))) | None => self.tell(sender, notice, recipient).await,
            };
            let key = self.key(notice, recipient);
            self.results().put(key, result.clone());
            let shown = shown(self.channel, recipient);
            match result {
                Ok(()) => {}
                Err(Failure::Passing(why)) => failures.passing.push(format!("{shown}: {why}")),
                Err(Failure::Lasting(why)) => failures.lasting.push(format!("{shown}: {why}")),
            }
        }
    }

    /// Delivers a notice to those of its recipients who do not have it yet.
    async fn deliver(
        &self,
        sender: &Sender,
        notice: &Notice,
        failures: &mut Failures,
    ) -> Result<(), HandleError>
    where
        P: Ports,
    {
        let recipients = sender.recipients(notice);
        if recipients.is_empty() {
            self.count("nobody");
            return Ok(());
        }
        let now = self.context.ports.now();
        if let Some(why) = notice.stale(now, self.settings.age_max_ms) {
            return self.skip(notice, &recipients, why);
        }
        self.tell_all(sender, notice, &recipients, failures).await;
        Ok(())
    }

    /// Tries once to tell one recipient.
    async fn tell(&self, sender: &Sender, notice: &Notice, recipient: &str) -> Result<(), Failure> {
        let limit_ms = self.settings.timeout_ms;
        let result = {
            // The notifier owns its semaphore and never closes it.
            let _permit = self.tries.acquire().await.ok();
            let sending = sender.send(notice, recipient, &self.prefix);
            tokio::time::timeout(Duration::from_millis(limit_ms), sending)
                .await
                .unwrap_or_else(|_| {
                    let why = format!("no end within {limit_ms} ms");
                    Err(Failure::Passing(why))
                })
        };
        let channel = self.channel.as_str();
        let to = shown(self.channel, recipient);
        let kind = notice.kind();
        let about = notice.about();
        match &result {
            Ok(()) => {
                self.count("delivered");
                tracing::info!(channel, %to, kind, about, "Notified.");
            }
            Err(Failure::Passing(why)) => {
                self.count("failed");
                tracing::warn!(channel, %to, kind, about, why, "Not notified; to be tried again.");
            }
            Err(Failure::Lasting(why)) => {
                self.count("undeliverable");
                tracing::error!(channel, %to, kind, about, why, "Not notified, and not to be tried again.");
            }
        }
        result
    }
}

/// A recipient as logs and dead letters show it. Of an address that is called only the host is shown, because the rest may be
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

/// Handles the events of debates for one channel.
struct NoticeHandler<P>(Arc<Notifier<P>>);

impl<P: Ports> Handler for NoticeHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let notifier = &*self.0;
        let Some(sender) = &notifier.sender else {
            notifier.count("off");
            return Ok(Ack::Acknowledge);
        };
        let (aggregate, _) = handlers::aggregate_of(&notifier.context, delivery)?;
        let (bytes, sequence) = (&delivery.payload, delivery.sequence);
        let notices = notifier.concerned.notices(aggregate, bytes, sequence);
        let notices = notices.await?;
        if notices.is_empty() {
            notifier.count("nobody");
        }
        let mut failures = Failures::default();
        for notice in &notices {
            notifier.deliver(sender, notice, &mut failures).await?;
        }
        if !failures.passing.is_empty() {
            return Err(HandleError::retry(failures.passing.join("; ")));
        }
        if !failures.lasting.is_empty() {
            return Err(HandleError::DeadLetter(failures.lasting.join("; ")));
        }
        Ok(Ack::Acknowledge)
    }

    fn patience(&self, _: &WorkSettings) -> RetryPolicy {
        retry_policy(&self.0.settings)
    }

    fn exhausted(&self) {
        self.0.count("undeliverable");
    }
}
