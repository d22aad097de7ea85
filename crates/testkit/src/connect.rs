//! Connections of tests, on a machine that may stand still for seconds.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, ConnectOptions, jetstream};

/// More than the client's own five seconds: for so long a machine stands still now and then.
const PATIENCE: Duration = Duration::from_secs(60);

/// A new connection to the broker at this address, or to any of several, separated by commas.
///
/// # Panics
/// When there is none.
pub async fn connect(url: &str) -> Client {
    let addresses: Vec<&str> = url.split(',').collect();
    ConnectOptions::new()
        .connection_timeout(PATIENCE)
        .connect(&addresses[..])
        .await
        .expect("the broker answers")
}

/// JetStream for whoever stores something once and fails where the broker does not say that it has it.
pub fn patient(client: &Client) -> Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(PATIENCE);
    context
}
