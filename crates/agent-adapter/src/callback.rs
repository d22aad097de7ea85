//! Answers that come later: an agent that answers a message with status 202 posts its answer to an address that it was given.
//!
//! The address holds all that is needed to publish the answer, signed, so that any replica can. That an answer is due is known
//! to the replica that asked: it waits for it to be said, whoever publishes it, and says that it did not come when the time is
//! over. When that replica is killed the message is delivered to another, which asks again under the same idempotency key.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_runtime::broker::Heard;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceContext;
use concord_runtime::service::settings::Secret;
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Timestamp, dialect};
use futures::StreamExt;
use tokio::sync::watch;
use url::Url;

use crate::settings::CallbackSettings;
use crate::settings::check::Error;

mod listener;
mod server;
pub(crate) mod token;

pub(crate) use server::serve;
use token::{Asked, Key};

/// Characters of the key.
const SECRET_MIN: usize = 32;

/// Where answers are posted, and what makes the addresses unguessable.
pub(crate) struct Address {
    pub(crate) listen: SocketAddr,
    public_url: String,
    key: Key,
    lifetime_ms: u64,
}

impl Address {
    /// By the settings; none when answers cannot come later.
    pub(crate) fn read(settings: &CallbackSettings) -> Result<Option<Self>, Error> {
        let Some(listen) = &settings.listen else {
            let unused = settings.public_url.is_some()
                || settings.secret.is_some()
                || settings.secret_file.is_some();
            let message = "public_url and secret are of no use without listen";
            return if unused {
                Err(Error::new("callback.listen", message))
            } else {
                Ok(None)
            };
        };
        let form = "write an address and a port, such as 0.0.0.0:8090";
        let listen = listen
            .parse()
            .map_err(|_| Error::new("callback.listen", form))?;
        let missing = || {
            Error::new(
                "callback.public_url",
                "say how agents reach callback.listen",
            )
        };
        let public_url = settings.public_url.as_deref().ok_or_else(missing)?;
        let url = Url::parse(public_url)
            .map_err(|error| Error::new("callback.public_url", error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https")
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(Error::new(
                "callback.public_url",
                "write an address such as https://example.org/callback",
            ));
        }
        let secret = secret(settings)?;
        let key = Key::new(secret.reveal().as_bytes());
        let key = key.filter(|_| secret.reveal().len() >= SECRET_MIN).ok_or_else(|| {
            let form =
                format!("it has fewer than {SECRET_MIN} characters; for example: head -c 32 /dev/urandom | base64");
            Error::new("callback.secret", form)
        })?;
        if settings.lifetime_ms == 0 {
            return Err(Error::new("callback.lifetime_ms", "it must be at least 1"));
        }
        let public_url = public_url.trim_end_matches('/').to_owned();
        Ok(Some(Self {
            listen,
            public_url,
            key,
            lifetime_ms: settings.lifetime_ms,
        }))
    }

    /// Until when an answer to a message can come.
    pub(crate) fn until(&self, now: Timestamp, deadline: Option<Timestamp>) -> Timestamp {
        let most = now.plus_millis(self.lifetime_ms);
        deadline.map_or(most, |deadline| deadline.min(most))
    }

    /// Where the answer is to be posted.
    pub(crate) fn url(&self, asked: &Asked) -> String {
        format!(
            "{}{}{}",
            self.public_url,
            server::PATH,
            self.key.seal(asked)
        )
    }
}

fn secret(settings: &CallbackSettings) -> Result<Secret, Error> {
    match (&settings.secret, &settings.secret_file) {
        (Some(_), Some(_)) => Err(Error::new(
            "callback.secret",
            "leave out secret or secret_file",
        )),
        (Some(secret), None) => Ok(secret.clone()),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Error::new(
                    "callback.secret_file",
                    format!("{} cannot be read: {error}", file.display()),
                )
            })?;
            Ok(Secret::new(text.trim()))
        }
        (None, None) => Err(Error::new(
            "callback.secret",
            "the addresses are signed, and there is no key",
        )),
    }
}

/// Answers that are waited for in this replica.
#[derive(Clone, Default)]
pub(crate) struct Awaited(Arc<Mutex<HashMap<Answer, watch::Sender<bool>>>>);

/// An answer that is awaited: whose, and to which message.
type Answer = (AgentId, String);

/// One wait, until it is dropped.
pub(crate) struct Wait {
    awaited: Awaited,
    key: (AgentId, String),
    said: watch::Receiver<bool>,
}

impl Awaited {
    fn all(&self) -> MutexGuard<'_, HashMap<(AgentId, String), watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for the answer of `agent` to a message.
    pub(crate) fn answer(&self, agent: &AgentId, asked: &str) -> Wait {
        let key = (agent.clone(), asked.to_owned());
        let said = self
            .all()
            .entry(key.clone())
            .or_insert_with(|| watch::channel(false).0)
            .subscribe();
        Wait {
            awaited: self.clone(),
            key,
            said,
        }
    }

    /// What was published is in the dialect of whoever had asked.
    fn heard(&self, shell: &ServiceContext, agent: &AgentId, heard: &Heard) {
        let Some(asked) = reply_to(shell, heard) else {
            return;
        };
        if let Some(waiting) = self.all().get(&(agent.clone(), asked)) {
            waiting.send_replace(true);
        }
    }

    /// Listens to what an agent says, until the service stops.
    pub(crate) async fn listen(self, shell: ServiceContext, agent: AgentId) {
        let filters = Lane::ALL.map(|lane| shell.broker.subjects().messages_from(lane, &agent));
        let mut heard = Vec::new();
        for filter in filters {
            match shell.broker.listen(filter, None).await {
                Ok(stream) => heard.push(stream),
                Err(error) => {
                    tracing::error!(%agent, error = %ErrorChain(&error), "What an agent says later cannot be heard.");
                    return;
                }
            }
        }
        let mut heard = futures::stream::select_all(heard);
        loop {
            tokio::select! {
                next = heard.next() => match next {
                    Some(said) => self.heard(&shell, &agent, &said),
                    None => return,
                },
                () = shell.stop.cancelled() => return,
            }
        }
    }
}

/// What a message is an answer to.
fn reply_to(
    shell: &ServiceContext,
    Heard {
        subject,
        dialect,
        payload,
    }: &Heard,
) -> Option<String> {
    let subject = shell.broker.subjects().parse(subject).ok()?;
    let declared = Dialect::declared(dialect.as_deref()).ok()?;
    dialect::read(payload, declared, &subject).ok()?.0.reply_to
}

impl Wait {
    /// Waits until the answer was said.
    pub(crate) async fn said(mut self) {
        // The sender is kept where this is known, so it cannot have gone.
        let _ = self.said.wait_for(|said| *said).await;
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut all = self.awaited.all();
        // The other waits for the same answer, as when the broker has delivered the message twice.
        if all
            .get(&self.key)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            all.remove(&self.key);
        }
    }
}
