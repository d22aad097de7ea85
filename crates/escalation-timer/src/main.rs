//! The escalation timer's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    concord_runtime::service::main::<concord_escalation_timer::EscalationTimer>()
}
