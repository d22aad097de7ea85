//! One case is one trace, over all services and agents; and a collector that fails does not affect the cases.

use std::time::Duration;

mod case;
mod collector;
mod failing;
mod hosted;
mod secure;
mod signals;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
