//! People are notified by email and webhook: a real nats-server, real services, a real SMTP server and a real receiver of
//! webhooks.

use std::time::Duration;

mod callback;
mod changes;
mod failures;
mod gate;
mod reminders;
mod server;
mod settings;
mod skipped;
mod stage;
mod tls;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);
/// Milliseconds that are longer than any test.
const HOUR: u64 = 3_600_000;
