//! What is wrong with a message, in a form that its sender can act on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ErrorCode;

/// Why a message is refused: the code, the place in the message, what is wrong there, and how to correct it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The wire code.
    pub code: ErrorCode,
    /// JSON pointer (RFC 6901) to the offending place; empty for the whole message.
    pub pointer: String,
    /// What is wrong, as one sentence.
    pub message: String,
    /// How to correct it, as one sentence.
    pub advice: String,
}

impl Fault {
    /// An [`ErrorCode::InvalidRequest`] at `pointer`.
    pub fn invalid(
        pointer: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(ErrorCode::InvalidRequest, pointer, message, advice)
    }

    /// A fault with any code.
    pub fn new(
        code: ErrorCode,
        pointer: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            code,
            pointer: pointer.into(),
            message: message.into(),
            advice: advice.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        write!(f, ": {} {}", self.message, self.advice)
    }
}

impl std::error::Error for Fault {}

/// A noun with its article: `an answer`, `a finding`.
pub fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {noun}")
}

#[cfg(test)]
mod tests {
    use super::with_article;

    #[test]
    fn a_vowel_has_another_article() {
        let written = ["answer", "finding"].map(with_article);
        assert_eq!(written, ["an answer", "a finding"]);
    }
}
