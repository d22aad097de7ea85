//! The adapter checks the settings of notifications when it starts, and prints them without secrets.

use std::process::Command;

use concord_testkit::binaries;

#[test]
fn bad_settings_end_the_adapter_and_good_ones_are_printed_without_secrets() {
    let adapter = |arguments: &[&str]| {
        let mut command = Command::new(binaries().join("concord-agent-adapter"));
        let output = command
            .args(arguments)
            .env("CONCORD_SERVICE__NOTIFY__EMAIL__PASSWORD", "s3cret")
            .output();
        let output = output.expect("the adapter runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let host = ["--set", "service.notify.email.host=smtp.example.org"];
    let (code, output) = adapter(&[&host[..], &["--check-config"]].concat());
    assert_eq!(code, Some(64));
    assert_eq!(
        output,
        "error: the setting \"service.notify.email.from\" is wrong: say who the mails are from\n"
    );
    let more = [
        "--set",
        "service.notify.email.from=c@example.org",
        "--set",
        "service.notify.email.username=c",
    ];
    assert_eq!(
        adapter(&[&host[..], &more, &["--check-config"]].concat()).0,
        Some(0)
    );
    let (code, output) = adapter(&[&host[..], &more, &["--print-config"]].concat());
    assert!(
        code == Some(0) && output.contains("(hidden)") && !output.contains("s3cret"),
        "{output}"
    );
}
