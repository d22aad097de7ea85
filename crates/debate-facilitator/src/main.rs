//! The debate facilitator's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    concord_runtime::service::main::<concord_debate_facilitator::DebateFacilitator>()
}
