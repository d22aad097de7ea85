//! Cases that are over go to the archive: every view reads them there as before, and no crash loses or doubles any. Real broker
//! and services.

mod afterwards;
mod away;
mod damaged;
mod killed;
mod many;
mod parts;
mod removed;
mod runs;
mod s3;
mod s3_server;
mod stage;
mod strangers;
mod streams;
mod told;
mod views;

use std::time::Duration;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);
