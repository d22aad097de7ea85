//! The tasks as the command line starts them: what they print, and the exit code.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use crate::generate;

/// Writes the generated files under `root`, or says which of them differ.
pub fn generate(root: &Path, check: bool) -> Result<ExitCode, generate::Error> {
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

/// The causes of an error, each after a colon.
pub fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
