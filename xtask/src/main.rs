//! `cargo xtask <task>`: the tasks of the repository.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::command::run()
}
