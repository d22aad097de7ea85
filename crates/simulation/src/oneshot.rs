//! Where something is waited for that the world brings, or does not bring.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Where an answer is waited for.
#[derive(Debug)]
pub(crate) struct Cell<T>(Arc<Mutex<Waiting<T>>>);

#[derive(Debug)]
struct Waiting<T> {
    /// Set once; taken by whoever waits.
    answer: Option<Option<T>>,
    settled: bool,
    waker: Option<Waker>,
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Cell<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting {
            answer: None,
            settled: false,
            waker: None,
        })))
    }
}

impl<T> Cell<T> {
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the waiting, with an answer or without; what comes later is not heard. False when it is that.
    pub(crate) fn settle(&self, answer: Option<T>) -> bool {
        let mut waiting = self.lock();
        if waiting.settled {
            return false;
        }
        waiting.settled = true;
        waiting.answer = Some(answer);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
        true
    }
}

/// The answer, when it comes; none when it does not come in time.
pub(crate) struct Answer<T>(pub(crate) Cell<T>);

impl<T> Future for Answer<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut waiting = self.0.lock();
        match waiting.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                waiting.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
