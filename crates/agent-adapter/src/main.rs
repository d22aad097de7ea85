//! The agent adapter's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    concord_runtime::service::main::<concord_agent_adapter::AgentAdapter>()
}
