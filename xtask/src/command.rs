//! The command line of `cargo xtask`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use concord_runtime::error_chain::ErrorChain;

use crate::generate;

/// Tasks of the Concord repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write every generated file: proto-schemas/*.schema.json, proto-schemas/asyncapi.yaml, docs/subjects.md, docs/errors.md
    /// and docs/configuration.md. The types of the Python client are made from the schemas by clients/python/generate.py;
    /// scripts/generate does both.
    Generate {
        /// Write nothing; list what differs, and exit with 1 if anything does.
        #[arg(long)]
        check: bool,
        /// The folder of the repository.
        #[arg(long, value_name = "FOLDER", default_value_os_t = repository())]
        root: PathBuf,
    },
}

/// The repository that this program was built from.
fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Runs the task that the command line of this process names.
pub fn run() -> ExitCode {
    let Task::Generate { check, root } = Arguments::parse().task;
    match generate(&root, check) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", ErrorChain(&error));
            ExitCode::FAILURE
        }
    }
}

fn generate(root: &Path, check: bool) -> Result<ExitCode, generate::Error> {
    let files = generate::files();
    if !check {
        for changed in generate::write(root, &files)? {
            println!("{}", changed.path);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let differences = generate::differences(root, &files)?;
    for difference in &differences {
        println!("{difference}");
    }
    if differences.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "error: {} of {} generated files are out of date; run scripts/generate and commit what it writes",
        differences.len(),
        files.len()
    );
    Ok(ExitCode::FAILURE)
}
