//! Waiting for a named condition.

use std::fmt;
use std::time::{Duration, Instant};

/// The shortest and the longest time between two looks at a condition.
///
/// In between it is a tenth of what was waited so far: a look may read a whole stream, and what it takes from the processors is missed by
/// what is waited for.
const LOOK_INTERVALS: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(200));

/// A condition that did not come about in time.
#[derive(Debug, Clone)]
pub struct Missing {
    what: String,
    waited: Duration,
    status: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "waited {:.1} s in vain for {}; last seen: {}",
            self.waited.as_secs_f64(),
            self.what,
            self.status
        )
    }
}

impl std::error::Error for Missing {}

/// Looks again and again until `look` gives a value; `what` names what is awaited and `look`'s error what is still
/// missing.
///
/// A look that does not return counts as a look that found nothing.
pub async fn until<T, F>(
    what: impl fmt::Display,
    within: Duration,
    mut look: F,
) -> Result<T, Missing>
where
    F: AsyncFnMut() -> Result<T, String>,
{
    let begun = Instant::now();
    let mut status = "nothing yet".to_owned();
    loop {
        match tokio::time::timeout(within.saturating_sub(begun.elapsed()), look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(missing)) => status = missing,
            Err(_) => {}
        }
        if begun.elapsed() >= within {
            return Err(Missing {
                what: what.to_string(),
                waited: begun.elapsed(),
                status,
            });
        }
        let (shortest, longest) = LOOK_INTERVALS;
        tokio::time::sleep((begun.elapsed() / 10).clamp(shortest, longest)).await;
    }
}

/// Waits as [`until`] does, and fails the test when the condition does not come about in time.
///
/// # Panics
/// When the condition does not come about in time.
pub async fn wait_for<T, F>(what: impl fmt::Display, within: Duration, look: F) -> T
where
    F: AsyncFnMut() -> Result<T, String>,
{
    until(what, within, look)
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}
