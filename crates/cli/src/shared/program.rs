//! The `main` of a command: it runs one future and turns a failure into one line and an exit code.

use std::process::ExitCode;

use crate::shared::failure::Failure;

/// Runs a verb to its end on a runtime of two threads; the exit code.
pub fn run(verb: impl Future<Output = Result<u8, Failure>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failure::failed(format!("the program could not be set up: {error}")).report();
        }
    };
    match runtime.block_on(verb) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
