//! The one place where a service reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use concord_wire::Timestamp;

/// The present.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
