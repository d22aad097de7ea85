//! `cargo xtask <task>`: the tasks of the repository.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::command::{causes, generate};

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

fn main() -> ExitCode {
    let Task::Generate { check, root } = Arguments::parse().task;
    match generate(&root, check) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}{}", causes(&error));
            ExitCode::FAILURE
        }
    }
}
