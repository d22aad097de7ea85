//! What was issued to whom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Holder;

/// One key of a user. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// To whom.
    pub holder: Holder,
    /// The public key.
    pub key: String,
    /// When.
    pub issued_at: i64,
    /// From when on it no longer counts; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// Since when it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
}

impl Issued {
    /// Whether a server that knows all of it takes the key at this time.
    pub fn counts(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }

    /// Whether it is of this holder, whatever the roles.
    pub fn is_of(&self, holder: &Holder) -> bool {
        self.holder.key() == holder.key()
    }
}

/// The keys that a server must be told not to take. What has expired it does not take anyway.
pub(crate) fn revocations(all: &[Issued], now: i64) -> BTreeMap<String, i64> {
    let still = all
        .iter()
        .filter(|one| one.expires_at.is_none_or(|at| now < at));
    still
        .filter_map(|one| Some((one.key.clone(), one.revoked_at?)))
        .collect()
}
