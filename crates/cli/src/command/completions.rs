//! `concord completions`: what completes the command in a shell.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::shared::failure::Failure;

/// Arguments of `concord completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord completions bash > ~/.local/share/bash-completion/completions/concord
  concord completions zsh > ~/.zfunc/_concord
  concord completions fish > ~/.config/fish/completions/concord.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    let mut command = super::Arguments::command();
    clap_complete::generate(args.shell, &mut command, "concord", &mut script);
    // Whoever reads only the beginning is no failure.
    let _ = std::io::stdout().write_all(&script);
    Ok(0)
}
