//! The command `concord` as the tests of this folder run it.

use concord_testkit::{TestInstallation, concord};
use serde_json::Value;

/// The JSON that a verb of the command prints; it must succeed.
pub(crate) fn printed(installation: &TestInstallation, arguments: &[&str]) -> Value {
    let server = installation.server_url();
    let output = concord(&[arguments, &["--json", "--server", server]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}
