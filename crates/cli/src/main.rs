//! The `concord` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    concord_cli::main()
}
