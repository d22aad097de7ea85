//! How grave a point is, and what a reader recommends.

use std::fmt;

/// The gravity of a point, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

/// What a reader advises, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recommendation {
    /// Sign as it stands.
    Sign,
    /// Negotiate first.
    Negotiate,
    /// Put it before someone with more authority.
    Escalate,
    /// Do not sign.
    Reject,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Sign => "sign",
            Self::Negotiate => "negotiate",
            Self::Escalate => "escalate",
            Self::Reject => "reject",
        })
    }
}
