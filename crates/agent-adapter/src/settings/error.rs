//! Why settings are refused.

/// A setting that could not work. The text names the setting and never repeats a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting \"service.{key}\" is wrong: {message}")]
pub struct Error {
    key: String,
    message: String,
}

impl Error {
    /// `key` is the path of the setting below `service`, for example `agents[0].http.url`.
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}
