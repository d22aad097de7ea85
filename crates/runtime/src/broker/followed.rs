//! How what is stored in a stream is followed by consumers that the client makes anew by itself.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::OrderedConfig;

/// How long a follower waits before it asks anew. Its consumer is on one node of the broker, and five seconds after this time the client
/// asks one that has died, sees that nobody is there, and makes another one. By itself the client waits 30 seconds.
const ASKED_ANEW: Duration = Duration::from_secs(3);

/// What all followers have.
pub fn followed() -> OrderedConfig {
    OrderedConfig {
        max_expires: ASKED_ANEW,
        ..OrderedConfig::default()
    }
}
