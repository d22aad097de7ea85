//! The severities and recommendations of findings.

use std::fmt;

use serde::Deserialize;

/// How severe a point is, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Acceptable.
    Low,
    /// To be watched.
    Medium,
    /// To be changed before signing.
    High,
    /// A reason not to sign.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

/// What a reviewer recommends, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recommendation {
    /// Sign the contract as it stands.
    Sign,
    /// Negotiate before signing.
    Negotiate,
    /// Ask someone with more authority.
    Escalate,
    /// Do not sign.
    Reject,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sign => "sign",
            Self::Negotiate => "negotiate",
            Self::Escalate => "escalate",
            Self::Reject => "reject",
        })
    }
}
