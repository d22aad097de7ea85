//! The failure of a verb: one line for standard error, and an exit code.

use std::process::ExitCode;

use async_nats::ConnectErrorKind;
use concord_archive::LocationError;
use concord_runtime::broker;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::event_store;

use crate::shared::output;

/// What the exit codes mean, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
   0  done
   1  it failed, or faults were found
   2  the command line is wrong, or a file is missing
  64  a setting is not what it should be
  65  the input is empty or malformed
  69  no broker answers, or it does not let you do this";

/// What is said where a stream of Concord is not there.
pub const NO_STREAMS: &str = "no service has been started on this broker, or --prefix is another";

/// The exit code where a check has found faults.
pub const FOUND: u8 = 1;

/// The failure of a verb: a message and an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    /// None when the reader of the output has closed it.
    message: Option<String>,
    /// Whether a service has refused it for want of rights.
    unauthorized: bool,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
            unauthorized: false,
        }
    }

    /// The exit code of input that is empty or malformed.
    pub const DATA: u8 = 65;

    /// The exit code where no broker or service answers.
    pub const UNAVAILABLE: u8 = 69;

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The work was tried and failed: exit code 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(1, message)
    }

    /// The command line is wrong, or names a file that is missing: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(2, message)
    }

    /// A setting of the file or the environment is not what it should be: exit code 64.
    pub fn settings(message: impl Into<String>) -> Self {
        Self::new(64, message)
    }

    /// The input is empty or malformed: exit code 65.
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(Self::DATA, message)
    }

    /// A service has refused it for want of rights: exit code 1.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self {
            unauthorized: true,
            ..Self::new(1, message)
        }
    }

    /// Whether a service has refused it for want of rights.
    pub fn is_unauthorized(&self) -> bool {
        self.unauthorized
    }

    /// A refusal by a service, where no input file is at fault: exit code 1 in place of 65.
    #[must_use]
    pub fn of_service(self) -> Self {
        if self.code == Self::DATA {
            Self { code: 1, ..self }
        } else {
            self
        }
    }

    /// The same failure with more to say about it.
    #[must_use]
    pub fn and(self, more: impl std::fmt::Display) -> Self {
        let message = self.message.map(|message| format!("{message}; {more}"));
        Self { message, ..self }
    }

    /// No broker or service answers, or the broker does not let the command do this: exit code 69.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Self::UNAVAILABLE, message)
    }

    /// The reader of the output has closed it: the work ends without an error.
    pub fn closed() -> Self {
        Self {
            code: 0,
            message: None,
            unauthorized: false,
        }
    }

    /// Prints the message on standard error; the exit code.
    pub fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            output::complain(&format!(
                "{} {message}",
                output::styled(output::ERROR, "error:")
            ));
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
        if let (broker::Error::Connect { servers, .. }, Some(missing)) =
            (&error, missing_for_tls(&message))
        {
            return Self::unavailable(format!(
                "no connection to NATS at {servers} under TLS: {missing}, or settings that name it with --config"
            ));
        }
        match error {
            broker::Error::Connect { servers, source }
                if source.kind() == ConnectErrorKind::AuthorizationViolation =>
            {
                Self::unavailable(format!(
                    "NATS at {servers} does not let you in; name your credentials with --credentials FILE, or settings that name \
                     them with --config. Those that have expired or are revoked do not count"
                ))
            }
            broker::Error::Connect { servers, source } => Self::unavailable(format!(
                "no connection to NATS at {servers} ({source}); start an installation with `concord up`, or name the \
                 broker with --server"
            )),
            broker::Error::TooOld { .. } => Self::unavailable(message),
            broker::Error::PasswordFile { .. } => Self::settings(message),
            broker::Error::Credentials { .. }
            | broker::Error::TlsFile { .. }
            | broker::Error::TlsPair { .. }
            | broker::Error::Archive(_)
            | broker::Error::Address { .. } => Self::usage(message),
        }
    }
}

/// What whoever connects has not named, where one side does not believe the other's certificate. The libraries below say it in words
/// alone.
fn missing_for_tls(message: &str) -> Option<&'static str> {
    let said = |words: &[&str]| words.iter().any(|one| message.contains(one));
    if said(&["UnknownIssuer"]) {
        return Some(
            "the system does not know the authority of the broker's certificate; name its certificate with --tls-ca FILE",
        );
    }
    let asks = said(&["CertificateRequired", "BadCertificate", "UnknownCA"]);
    asks.then_some(
        "the broker asks for a certificate that it believes; name yours with --tls-certificate FILE and --tls-key FILE",
    )
}

impl From<broker::Unavailable> for Failure {
    fn from(error: broker::Unavailable) -> Self {
        event_store::Error::from(error).into()
    }
}

impl From<event_store::Error> for Failure {
    fn from(error: event_store::Error) -> Self {
        let message = ErrorChain(&error).to_string();
        // The client library has an error of its own for each request, so that only the broker's words are the same.
        let advice = match &error {
            event_store::Error::Unavailable(_) if message.contains("stream not found") => {
                NO_STREAMS
            }
            event_store::Error::Unavailable(_) => "`concord doctor` looks for the cause",
            _ => return Self::failed(message),
        };
        Self::failed(message).and(advice)
    }
}

impl From<concord_archive::Error> for Failure {
    fn from(error: concord_archive::Error) -> Self {
        let message = ErrorChain(&error).to_string();
        match error {
            concord_archive::Error::Tampered { .. } => Self::failed(format!(
                "{message}; put the file back as it was from a copy of the archive; `concord archive verify` names every case that is \
                 damaged, the others can be read one by one"
            )),
            // These say themselves what is to be done.
            concord_archive::Error::Location {
                source: LocationError::S3(error),
                ..
            } => match error.is_passing() {
                true => Self::unavailable(message),
                false => Self::usage(message),
            },
            concord_archive::Error::Location { .. } | concord_archive::Error::Missing { .. } => {
                let then = match message.ends_with('?') {
                    true => " Name",
                    false => "; name",
                };
                Self::usage(format!(
                    "{message}{then} the archive with --archive LOCATION, or see `concord archive verify`"
                ))
            }
        }
    }
}

impl From<concord_credentials::Error> for Failure {
    fn from(error: concord_credentials::Error) -> Self {
        use concord_credentials::Error;
        let message = ErrorChain(&error).to_string();
        match error {
            Error::Damaged { .. } => Self::data(message),
            Error::Locked(_) | Error::Key(_) | Error::Token(_) => Self::failed(message),
            _ => Self::usage(message),
        }
    }
}

impl From<concord_installation::Error> for Failure {
    fn from(error: concord_installation::Error) -> Self {
        use concord_installation::Error;
        let message = ErrorChain(&error).to_string();
        match error {
            Error::NoNatsServer | Error::Connect { .. } => Self::unavailable(message),
            // What a service says of its settings is said of those that it was given here.
            Error::Ended { code: Some(64), .. } => Self::settings(message),
            _ => Self::failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_with_a_question_is_followed_by_a_sentence() {
        let missing = concord_archive::Error::Missing {
            location: "/archive".to_owned(),
            name: "index.json".to_owned(),
        };
        let said = Failure::from(missing).to_string();
        let expected = "of this installation? Name the archive with --archive LOCATION";
        assert!(said.contains(expected), "{said}");
    }
}
