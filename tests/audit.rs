//! Evidence that cannot be rewritten unseen: whatever is done to the streams of an installation, `concord check --against`
//! names it. Real brokers on copies of what real services have stored.

mod bundle;
mod settings;
mod stage;
mod tamper;
mod tampering;

use std::time::Duration;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);
