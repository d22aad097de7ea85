//! Why a verb did not do what it was asked: one line, and an exit code.

use std::process::ExitCode;

use concord_runtime::broker;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::event_store;

/// Exit code of faults that were found.
pub(crate) const FOUND: u8 = 1;

/// Why a verb did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    /// None when there is nobody left to tell.
    message: Option<String>,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }

    /// Exit code of input that is empty or malformed.
    pub(crate) const DATA: u8 = 65;

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// It was tried and did not succeed: 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(1, message)
    }

    /// The command line asks for what cannot be, such as a file that is missing: 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(2, message)
    }

    /// The input is empty or malformed: 65.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(Self::DATA, message)
    }

    /// What a service does not do is no fault of a file: 1 in place of 65.
    #[must_use]
    pub(crate) fn of_service(self) -> Self {
        if self.code == Self::DATA {
            Self { code: 1, ..self }
        } else {
            self
        }
    }

    /// No broker: 69.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(69, message)
    }

    /// Whoever read the output has closed it, which ends the work and is no error.
    pub(crate) fn closed() -> Self {
        Self {
            code: 0,
            message: None,
        }
    }

    /// Tells the user; the exit code.
    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            let red = anstyle::AnsiColor::Red.on_default() | anstyle::Effects::BOLD;
            anstream::eprintln!("{red}error:{red:#} {message}");
        }
        ExitCode::from(self.code)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or("the output was closed"))
    }
}

impl From<broker::Error> for Failure {
    fn from(error: broker::Error) -> Self {
        let message = ErrorChain(&error).to_string();
        match error {
            broker::Error::Connect { servers, source } => Self::unavailable(format!(
                "no connection to NATS at {servers} ({source}); start an installation with `concord up`, or name the \
                 broker with --server"
            )),
            broker::Error::TooOld { .. } => Self::unavailable(message),
            broker::Error::Credentials { .. } | broker::Error::Address { .. } => {
                Self::usage(message)
            }
        }
    }
}

impl From<broker::Unavailable> for Failure {
    fn from(error: broker::Unavailable) -> Self {
        event_store::Error::from(error).into()
    }
}

impl From<event_store::Error> for Failure {
    fn from(error: event_store::Error) -> Self {
        let advice = match &error {
            event_store::Error::Unavailable(_) => "; `concord doctor` looks for the cause",
            _ => "",
        };
        Self::failed(format!("{}{advice}", ErrorChain(&error)))
    }
}

impl From<concord_installation::Error> for Failure {
    fn from(error: concord_installation::Error) -> Self {
        use concord_installation::Error;
        let message = ErrorChain(&error).to_string();
        match error {
            Error::NoNatsServer | Error::Connect { .. } => Self::unavailable(message),
            _ => Self::failed(message),
        }
    }
}
