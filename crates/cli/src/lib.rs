//! The `concord` command: a local installation, cases, and everything that operators and people who rule look at.
//!
//! Each verb is a module of `command`. What they share is in [`shared`], which `concord-lab` uses too.

use std::process::ExitCode;

mod command;
pub mod shared;

/// Reads the command line, runs the verb, and reports a failure on standard error.
pub fn main() -> ExitCode {
    let arguments = command::Arguments::read();
    shared::program::run(command::run(arguments))
}
