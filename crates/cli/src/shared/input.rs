//! Files and standard input, and what is wrong with what they hold.

use std::io::Read as _;
use std::path::Path;

use concord_wire::Fault;

use crate::shared::failure::Failure;

/// The name of an input for messages: its path, or "standard input" for `-`.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The contents of a file, or of standard input for `-`. An empty input is refused; `verb` is named in the advice.
pub(crate) fn read_input(path: &Path, verb: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        false => std::fs::read(path).map(|contents| bytes = contents),
    };
    read.map_err(|error| Failure::usage(format!("{} cannot be read: {error}", name(path))))?;
    if bytes.trim_ascii().is_empty() {
        return Err(Failure::data(format!(
            "{} is empty; see `{verb} --help` for an example",
            name(path)
        )));
    }
    Ok(bytes)
}

/// The failure for an input that is malformed: exit code 65. `what` says what it is not, as in "is not a case".
pub(crate) fn malformed(source: &str, what: &str, fault: &Fault) -> Failure {
    let place = match fault.pointer.as_str() {
        "" => String::new(),
        pointer => format!(" at {pointer}"),
    };
    Failure::data(format!(
        "{source} {what}{place}: {} {}",
        fault.message, fault.advice
    ))
}

/// The failure for an argument that the receiving service would refuse: exit code 2, before anything is sent.
pub(crate) fn unusable(fault: &Fault) -> Failure {
    let place = fault.pointer.trim_start_matches("/payload/");
    Failure::usage(format!("{place}: {} {}", fault.message, fault.advice))
}
