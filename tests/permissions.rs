//! Invariant 9: no agent can publish as another, read another's inbox, write an event, or fire a timer. The users of the real
//! broker here have the permissions that `concord permissions` prints.

use std::time::Duration;

mod accounts;
mod command;
mod credentials;
mod direct_get;
mod forged;
mod forged_work;
mod inbox;
mod names;
mod payloads;
mod people;
mod policies;
mod quotas;
mod replies;
mod roles;
mod speaking;
mod user;
mod wrong_rights;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
