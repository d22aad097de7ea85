//! What is restricted in a service that can do its work, for its readiness.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The restrictions of a service, by what is restricted: a consumer, or another word.
#[derive(Debug, Default)]
pub(crate) struct Restrictions(Mutex<BTreeMap<String, String>>);

impl Restrictions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what is restricted of `subject`; none where nothing is any more.
    pub(crate) fn set(&self, subject: &str, restriction: Option<String>) {
        let mut all = self.all();
        match restriction {
            Some(restriction) => all.insert(subject.to_owned(), restriction),
            None => all.remove(subject),
        };
    }

    /// Whether anything of `subject` is restricted.
    pub(crate) fn concern(&self, subject: &str) -> bool {
        self.all().contains_key(subject)
    }

    /// What is restricted of `subject`, as people read it; none where nothing is.
    pub(crate) fn of(&self, subject: &str) -> Option<String> {
        self.all().get(subject).cloned()
    }

    /// All restrictions, as people read them.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.all().values().cloned().collect()
    }
}
