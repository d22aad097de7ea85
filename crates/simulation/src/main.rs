//! `concord-simulate`: runs seeds and says which of them break an invariant.

use std::process::ExitCode;

use clap::Parser;
use concord_simulation::cli::Arguments;

fn main() -> ExitCode {
    // Clap answers wrong input with an explanation and exit code 2.
    Arguments::parse().run()
}
