//! How what is stored in a stream is read by consumers that the client makes anew by itself.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::OrderedConfig;

/// How long a follower waits before it asks anew. Its consumer is on one node of the broker, and five seconds after this time the client
/// asks one that has died, sees that nobody is there, and makes another one. By itself the client waits 30 seconds.
const ASKED_ANEW: Duration = Duration::from_secs(3);

/// How many bytes may be on their way to a reader at once: what the broker sends beyond 64 MiB before it is read costs the connection.
const ON_THE_WAY_BYTES_MAX: usize = 48 << 20;
/// How many messages are asked for at once where they are small.
const BATCH_MAX: usize = 32;

/// What all followers have.
pub fn followed(client: &async_nats::Client) -> OrderedConfig {
    OrderedConfig {
        max_expires: ASKED_ANEW,
        ..bounded(client)
    }
}

/// What all readers have whose consumers the client makes anew, and that read bodies.
///
/// The client asks such a consumer for a number of messages and not of bytes, by itself for 500, and for as many again when half of them has
/// come: each may be as large as the broker takes one.
pub fn bounded(client: &async_nats::Client) -> OrderedConfig {
    OrderedConfig {
        max_batch: batch(client.max_payload()),
        ..OrderedConfig::default()
    }
}

fn batch(largest: usize) -> i64 {
    let messages = ON_THE_WAY_BYTES_MAX / largest.max(1) * 2 / 3;
    i64::try_from(messages.clamp(1, BATCH_MAX)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_is_less_than_costs_the_connection() {
        for (largest, batch_of) in [(1 << 10, 32), (1 << 20, 32), (8 << 20, 4), (64 << 20, 1)] {
            let asked = batch(largest);
            assert_eq!(asked, batch_of, "{largest}");
            let on_the_way = (asked + asked / 2) * i64::try_from(largest).unwrap();
            assert!(on_the_way <= 64 << 20, "{largest}: {on_the_way}");
        }
    }
}
