//! The consumers of the services, and what of one is otherwise than a service makes it.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, Config as ConsumerConfig, DeliverPolicy, pull};

use crate::broker::{Broker, Operation, Unavailable};

/// The broker delivers without end: a service itself counts, so that the last delivery can still be recorded as dead.
const DELIVER_MAX: i64 = -1;
/// Deliveries under way at once, over all replicas.
pub(crate) const ACK_PENDING_MAX: i64 = 20_000;
/// Who looks may not know `work.ack_wait_ms` of the services, and replicas may have several: a wait differs where it is so many times longer
/// or shorter than theirs, and longer or shorter than anybody would set it.
const ACK_WAIT_TIMES: u32 = 10;
const ACK_WAIT_LONG: Duration = Duration::from_secs(600);
const ACK_WAIT_SHORT: Duration = Duration::from_millis(100);

/// A property of a consumer that is not as a service makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The property.
    pub property: &'static str,
    /// What it is.
    pub found: String,
    /// What it should be.
    pub expected: String,
}

/// What of a consumer is not as a service makes it, but for its subjects.
pub fn changed(found: &ConsumerConfig, ack_wait: Duration) -> Vec<Changed> {
    let wait = found.ack_wait;
    let is_long = wait > ACK_WAIT_LONG && wait > ack_wait.saturating_mul(ACK_WAIT_TIMES);
    let is_short = wait < ACK_WAIT_SHORT && wait < ack_wait / ACK_WAIT_TIMES;
    let expected_wait = if is_long || is_short { ack_wait } else { wait };
    let deliveries = |n: i64| {
        if n <= 0 {
            "unlimited".to_owned()
        } else {
            n.to_string()
        }
    };
    let rows = [
        (
            "max_deliver",
            deliveries(found.max_deliver),
            deliveries(DELIVER_MAX),
        ),
        (
            "max_ack_pending",
            found.max_ack_pending.to_string(),
            ACK_PENDING_MAX.to_string(),
        ),
        (
            ACK_POLICY,
            format!("{:?}", found.ack_policy),
            format!("{:?}", AckPolicy::Explicit),
        ),
        (ACK_WAIT, format!("{wait:?}"), format!("{expected_wait:?}")),
    ];
    let rows = rows.into_iter();
    rows.filter(|(_, found, expected)| found != expected)
        .map(|(property, found, expected)| Changed {
            property,
            found,
            expected,
        })
        .collect()
}

/// The property that follows from a setting.
pub const ACK_WAIT: &str = "ack_wait";
/// The property that the broker never changes.
pub const ACK_POLICY: &str = "ack_policy";

/// A durable pull consumer shared by all replicas of whoever pulls from it.
#[derive(Debug, Clone)]
pub struct PullConsumer {
    /// The stream's name.
    pub stream: String,
    /// The consumer's durable name.
    pub name: String,
    /// Subjects it is given.
    pub filter: String,
    /// How long one delivery may take before it is given to another.
    pub ack_wait: Duration,
    /// Deliveries under way at once in this process, over all consumers of one handler.
    pub in_flight_max: usize,
}

impl PullConsumer {
    /// How many messages are asked for at once.
    pub(crate) fn batch(&self) -> usize {
        (self.in_flight_max * 2).clamp(1, 1_000)
    }

    /// Creates the consumer, or brings an existing one of this name to this definition.
    pub async fn bind(
        &self,
        broker: &Broker,
    ) -> Result<jetstream::consumer::Consumer<pull::Config>, Unavailable> {
        let config = pull::Config {
            durable_name: Some(self.name.clone()),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.ack_wait,
            max_deliver: DELIVER_MAX,
            max_ack_pending: ACK_PENDING_MAX,
            filter_subject: self.filter.clone(),
            ..pull::Config::default()
        };
        let created = broker
            .jetstream
            .create_consumer_on_stream(config, self.stream.as_str())
            .await;
        created.map_err(|error| Operation::CreateConsumer.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_does_not_make_is_seen_and_a_wait_that_somebody_may_have_set_is_not() {
        let second = Duration::from_secs(1);
        let own = ConsumerConfig {
            ack_policy: AckPolicy::Explicit,
            ack_wait: second * 5,
            max_deliver: DELIVER_MAX,
            max_ack_pending: ACK_PENDING_MAX,
            ..ConsumerConfig::default()
        };
        let differs = |change: &dyn Fn(&mut ConsumerConfig), looks: Duration| {
            let mut found = own.clone();
            change(&mut found);
            let changed = changed(&found, looks);
            changed
                .into_iter()
                .map(|one| one.property)
                .collect::<Vec<_>>()
        };
        assert_eq!(differs(&|_| (), second * 5), [""; 0]);
        assert_eq!(
            differs(&|found| found.max_deliver = 1, second * 5),
            ["max_deliver"]
        );
        assert_eq!(
            differs(&|found| found.max_ack_pending = 1, second * 5),
            ["max_ack_pending"]
        );
        assert_eq!(
            differs(&|found| found.ack_policy = AckPolicy::None, second * 5),
            [ACK_POLICY]
        );
        for (wait, looks, expected) in [
            (second * 60_000, second * 5, &[ACK_WAIT][..]),
            (second * 60_000, second * 30_000, &[]),
            (second * 300, second * 5, &[]),
            (second / 1_000, second * 5, &[ACK_WAIT]),
            (second / 1_000, second / 1_000, &[]),
        ] {
            assert_eq!(
                differs(&|found| found.ack_wait = wait, looks),
                expected,
                "{wait:?}"
            );
        }
    }
}
