//! The conflict detector's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    concord_runtime::service::main::<concord_conflict_detector::ConflictDetector>()
}
