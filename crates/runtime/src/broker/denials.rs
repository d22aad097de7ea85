//! What the broker does not let a connection do. It says so beside the answers: whoever waits for one is told nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::ServerError;
use tokio::sync::watch;

/// So many subjects are kept to which nothing may be published: those of cases have no end.
const SUBJECTS_MAX: usize = 1_024;

/// What the broker has not let a connection do. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Denials(Arc<Said>);

#[derive(Debug, Default)]
struct Said {
    first: watch::Sender<Option<String>>,
    /// The broker's words by the subject to which this connection may not publish.
    publishing: Mutex<BTreeMap<String, String>>,
}

impl Denials {
    /// Takes into account what the broker has said; the first denial is kept.
    pub(super) fn take(&self, error: &ServerError) {
        let ServerError::Other(said) = error else {
            return;
        };
        if said.to_lowercase().starts_with("permissions violation") {
            self.remember(said);
            self.0.first.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert_with(|| said.clone());
                is_first
            });
        }
    }

    fn publishing(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        let publishing = self.0.publishing.lock();
        publishing.unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, said: &str) {
        let subject = said.split_once("Publish to \"");
        let Some((subject, _)) = subject.and_then(|(_, rest)| rest.split_once('"')) else {
            return;
        };
        let mut publishing = self.publishing();
        if publishing.len() >= SUBJECTS_MAX {
            publishing.pop_first();
        }
        publishing.insert(subject.to_owned(), said.to_owned());
    }

    /// A new connection may be that of somebody with other rights.
    pub(super) fn forget(&self) {
        let mut publishing = self.publishing();
        publishing.clear();
    }

    /// What the broker has said about publishing to such a subject, where it does not let this connection do it.
    pub(crate) fn of_publishing(&self, is_it: impl Fn(&str) -> bool) -> Option<String> {
        let publishing = self.publishing();
        let denied = publishing.iter().find(|(subject, _)| is_it(subject));
        denied.map(|(_, said)| said.clone())
    }

    /// Waits until the broker has not let the connection do something; its words, which name the subject.
    pub async fn first(&self) -> String {
        let mut said = self.0.first.subscribe();
        let first = said.wait_for(Option::is_some).await;
        match first.ok().and_then(|first| first.clone()) {
            Some(first) => first,
            // Nothing is sent any more.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_denial_is_kept_and_other_errors_are_none() {
        let denials = Denials::default();
        let said = |text: &str| ServerError::Other(text.to_owned());
        denials.take(&said("maximum payload exceeded"));
        denials.take(&ServerError::AuthorizationViolation);
        assert!(denials.0.first.borrow().is_none());
        for subject in ["a", "b"] {
            denials.take(&said(&format!(
                "Permissions Violation for Publish to \"{subject}\""
            )));
        }
        let first = denials.clone().first().await;
        assert_eq!(first, "Permissions Violation for Publish to \"a\"");
    }

    #[test]
    fn to_what_nothing_may_be_published_is_known_until_the_next_connection() {
        let denials = Denials::default();
        for said in [
            "Permissions Violation for Publish to \"a.b\"",
            "Permissions Violation for Subscription to \"c\"",
        ] {
            denials.take(&ServerError::Other(said.to_owned()));
        }
        let of = |asked: &str| denials.of_publishing(|subject| subject == asked);
        assert!(of("a.b").is_some_and(|said| said.ends_with("Publish to \"a.b\"")));
        assert_eq!(of("c"), None);
        denials.forget();
        assert_eq!(of("a.b"), None);
    }
}
