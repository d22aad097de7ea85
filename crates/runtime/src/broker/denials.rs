//! What the broker does not let a connection do. It says so beside the answers: whoever waits for one is told nothing.

use std::sync::Arc;

use async_nats::ServerError;
use tokio::sync::watch;

/// What the broker has not let a connection do. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Denials(Arc<watch::Sender<Option<String>>>);

impl Denials {
    /// Takes into account what the broker has said; the first denial is kept.
    pub(super) fn take(&self, error: &ServerError) {
        let ServerError::Other(said) = error else {
            return;
        };
        if said.to_lowercase().starts_with("permissions violation") {
            self.0.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert_with(|| said.clone());
                is_first
            });
        }
    }

    /// Waits until the broker has not let the connection do something; its words, which name the subject.
    pub async fn first(&self) -> String {
        let mut said = self.0.subscribe();
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
        assert!(denials.0.borrow().is_none());
        for subject in ["a", "b"] {
            denials.take(&said(&format!(
                "Permissions Violation for Publish to \"{subject}\""
            )));
        }
        let first = denials.clone().first().await;
        assert_eq!(first, "Permissions Violation for Publish to \"a\"");
    }
}
