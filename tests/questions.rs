//! Questions to the group: one answer for whoever asked, in each mode, whoever is killed; and what becomes of answers that do not
//! count. Real broker and services; agents that have only a NATS client; whoever asks has the command.

use std::time::Duration;

mod answers;
mod archived;
mod killed;
mod modes;
mod published;
mod python;
mod rust;
mod stage;
mod unread;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);
