//! Why settings are refused.

use concord_runtime::service::settings;

use crate::AnyError;

/// A setting that could not work. The text names the setting and never repeats a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting \"service.{key}\" is wrong: {message}")]
pub struct Error {
    key: String,
    message: String,
    /// Whether it is a file that it names.
    is_of_file: bool,
}

impl Error {
    /// `key` is the path of the setting below `service`, for example `agents[0].http.url`.
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
            is_of_file: false,
        }
    }

    /// The same of a file that the setting names and that cannot be used.
    pub(crate) fn of_file(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            is_of_file: true,
            ..Self::new(key, message)
        }
    }

    /// The error with which a service ends, which tells files from what the settings themselves say.
    pub(crate) fn into_refusal(self) -> AnyError {
        match self.is_of_file {
            true => Box::new(settings::Error::File {
                key: format!("service.{}", self.key),
                message: self.message,
            }),
            false => Box::new(self),
        }
    }
}
