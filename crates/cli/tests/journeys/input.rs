//! Wrong input: one clear line, and the exit code that says whose fault it is.

use concord_testkit::TestBroker;
use concord_wire::Timestamp;

use crate::command::{run, run_with};

#[tokio::test]
async fn wrong_credentials_are_code_2() {
    let directory = "no-such-folder";
    for arguments in [
        &["permissions", "--service", "coordinater"][..],
        &["credentials", "issue", directory, "agent:eva"],
        &["credentials", "issue", directory, "eva"],
        &["credentials", "issue", directory, "agent:coordinator"],
        &["credentials", "list", directory, "--expiring", "soon"],
        &["credentials", "revoke", directory, "agent:eva"],
        &["credentials", "show", directory, "agent:eva"],
        &["case", "list", "--tls-ca", "no-such-file.pem"],
        &["case", "list", "--tls-certificate", "Cargo.toml"],
    ] {
        run(arguments).await.refused(2);
    }
}

#[tokio::test]
async fn a_wrong_command_line_is_code_2() {
    for arguments in [
        &["case", "open", "no-such-file.json"][..],
        &["case", "show", "a.b"],
        &["case", "show"],
        &["record", "show", "a.b"],
        &["record", "show", "ann", "--version", "brief"],
        &["record", "show", "ann", "--domain", " "],
        &["person", "register", "e.va", "--role", "arbiter"],
        &["person", "register", "eva"],
        &["person", "register", "eva", "--role", "king"],
        &[
            "person",
            "register",
            "eva",
            "--role",
            "arbiter",
            "--capacity",
            "0",
        ],
        &[
            "person", "register", "eva", "--role", "operator", "--domain", "tax",
        ],
        &["person", "suspend", "eva"],
        &["expert", "register", "eva"],
        &["queue", "next"],
        &["queue", "next", "--expert", "e.va"],
        &["queue", "reassign", "d-1", "--to", "eva", "--why", " "],
        &[
            "rule",
            "d.1",
            "--position",
            "p1",
            "--rationale",
            "so",
            "--expert",
            "eva",
        ],
        &["rule", "d-1", "--rationale", "so", "--expert", "eva"],
        &["challenge", "c-1", "no-such-file.json"],
        &["debate", "show", "d.1"],
        &["debate", "extend", "d-1", "--by", "eva", "--why", "so"],
        &[
            "debate", "extend", "d-1", "--by", "eva", "--why", "so", "--hours", "-1",
        ],
        &["gate", "list", "c.1"],
        &["gate", "review", "c-1", "--gate", "g", "--by", "eva"],
        &["decisions", "show", "c"],
        &["decisions", "export", "--format", "xml"],
        &["case", "cancel", "c-1", "--by", "eva"],
        &["replay"],
        &["replay", "c-1", "--all"],
        &["dead", "retry"],
        &["up", "--replicas", "coordinater=2"],
        &["up", "--adapter-config", "no-such-file.toml", "--port", "0"],
        &["up", "--server", "nats://127.0.0.1:1"],
        &["backup", "no-such-directory", "--keep", "2"],
        &["case", "list", "--prefix", "a.b"],
        &["case", "list", "--credentials", "no-such-file.creds"],
        &["case", "list", "--config", "no-such-file.toml"],
        &["no-such-verb"],
    ] {
        let error = run(arguments).await.refused(2);
        assert!(!error.contains("RUST_BACKTRACE"), "{error}");
    }
}

#[tokio::test]
async fn an_empty_or_malformed_case_is_code_65() {
    for (input, named) in [
        (&b""[..], "is empty"),
        (b" \n", "is empty"),
        (b"{", "is not a case"),
        (b"\xff\xfe", "is not a case"),
        (br#"{"participants": ["a"]}"#, "task"),
        (
            br#"{"participants": ["a b"], "task": {"type": "t"}}"#,
            "/participants/0",
        ),
        (
            br#"{"participants": ["a"], "task": {"type": "t"}, "policy": {"rounds_max": 99}}"#,
            "/policy/rounds_max",
        ),
        (
            br#"{"participants": ["a"], "task": {"type": "t"}, "surprise": 1}"#,
            "surprise",
        ),
    ] {
        let error = run_with(&["case", "open", "-"], input).await.refused(65);
        assert!(
            error.contains(named) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_task_is_said_with_its_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("task.json");
    let path = file.to_str().unwrap();
    for (input, named) in [
        ("{\n  \"strategy\": \"poll\",\n}", "line 3"),
        ("{\"strategy\": 7}", "/strategy"),
        ("", "is empty"),
    ] {
        std::fs::write(&file, input).unwrap();
        let error = run(&["task", "open", path]).await.refused(65);
        assert!(error.contains(named) && error.contains(path), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_setting_is_code_64() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for (settings, named) in [
        (
            "[broker]\nserver = \"nats://127.0.0.1:1\"\n",
            "broker.servers",
        ),
        ("[storage]\nreplicas = \"three\"\n", "storage.replicas"),
        ("[broker\n", "TOML"),
    ] {
        std::fs::write(&file, settings).unwrap();
        let error = run(&["case", "list", "--config", path]).await.refused(64);
        assert!(error.contains(named), "{error}");
    }
}

#[tokio::test]
async fn no_broker_is_code_69_for_every_verb() {
    let nowhere = "nats://127.0.0.1:1";
    for verb in [
        "case list",
        "case show c-1",
        "case watch",
        "case transcript c-1",
        "agents",
        "deadlines",
        "doctor",
    ] {
        let arguments: Vec<&str> = verb.split(' ').chain(["--server", nowhere]).collect();
        let error = run(&arguments).await.refused(69);
        assert!(
            error.contains(nowhere) && error.contains("concord up") && error.lines().count() == 1,
            "{error}"
        );
    }
    let people = [
        "queue",
        "queue next --expert eva",
        "expert list",
        "person list",
        "debate show d-1",
        "gate list c-1",
        "decisions list",
    ];
    for verb in people {
        let arguments: Vec<&str> = verb.split(' ').chain(["--server", nowhere]).collect();
        run(&arguments).await.refused(69);
    }
    for verb in [
        "dead list",
        "dead show 1",
        "dead retry --all",
        "record show ann",
        "replay --all",
        "check",
    ] {
        let arguments: Vec<&str> = verb.split(' ').chain(["--server", nowhere]).collect();
        run(&arguments).await.refused(69);
    }
}

#[tokio::test]
async fn a_broker_without_an_installation_is_said_to_be_one() {
    let broker = TestBroker::start().await;
    let url = broker.url();
    for verb in [
        "case list",
        "case show c-1",
        "record show ann",
        "check",
        "replay --all",
        "dead list",
        "redeliver --since 10m",
        "archive list",
        "backup no-such-folder",
    ] {
        let arguments: Vec<&str> = verb.split(' ').chain(["--server", &url]).collect();
        let error = run(&arguments).await.refused(1);
        let is_told = error.contains("no service has been started on this broker");
        assert!(is_told && error.lines().count() == 1, "{verb}: {error}");
    }
    let asked = run(&["agents", "--server", &url]).await.refused(1);
    assert!(asked.contains("the coordinator does not run"), "{asked}");
    let doctor = run(&["doctor", "--server", &url]).await;
    assert_eq!(doctor.code, 1);
    assert!(
        doctor.out.contains("CONCORD_EVENTS: existence is missing"),
        "{}",
        doctor.out
    );
    assert!(
        doctor.out.contains("coordinator does not answer"),
        "{}",
        doctor.out
    );
    // One cause has few lines: the consumers of a stream that is missing are counted.
    let said = doctor.out.contains("CONCORD_EVENTS is missing, and its ");
    let faults = doctor.out.matches("FAULT").count();
    assert!(said && faults < 25, "{faults} faults: {}", doctor.out);
}

#[tokio::test]
async fn new_credentials_count_as_long_as_those_that_they_replace() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("credentials");
    let directory = directory.to_str().unwrap();
    run(&["credentials", "init", directory]).await.good();
    let lifetime = async |verb, more: &[&str]| {
        let arguments = ["credentials", verb, directory, "agent:eva", "--json"];
        let made = run(&[&arguments[..], more].concat()).await.json();
        let end = made[0]["expires_at"].as_str();
        end.map(|end| Timestamp::parse(end).unwrap().unix_millis())
    };
    let rotate = ["--keep-old"];
    assert_eq!(lifetime("issue", &["--expires", "never"]).await, None);
    assert_eq!(lifetime("rotate", &rotate).await, None);
    let given = [&rotate[..], &["--expires", "2h"]].concat();
    let short = lifetime("rotate", &given).await.unwrap();
    let again = lifetime("rotate", &rotate).await.unwrap();
    assert!((0..600_000).contains(&(again - short)), "{short}, {again}");
}

/// A slip in a name makes no credentials for somebody new.
#[tokio::test]
async fn what_nobody_has_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("credentials");
    let directory = directory.to_str().unwrap();
    run(&["credentials", "init", directory]).await.good();
    let credentials = async |verb, more: &[&str]| {
        run(&[&["credentials", verb, directory][..], more].concat()).await
    };
    credentials("issue", &["agent:eva", "agent:ben"])
        .await
        .good();
    let listed = credentials("list", &["--all"]).await.good();
    let both = ["agent:eva", "agent:evaa", "--keep-old"];
    let error = credentials("rotate", &both).await.refused(2);
    let named = error.contains("agent:evaa has no credentials");
    assert!(
        named && error.contains("concord credentials issue"),
        "{error}"
    );
    assert_eq!(credentials("list", &["--all"]).await.good(), listed);
    credentials("revoke", &["agent:ben", "--offline"])
        .await
        .good();
    let revoked = ["agent:ben", "--keep-old"];
    let error = credentials("rotate", &revoked).await.refused(2);
    assert!(error.contains("agent:ben has no credentials"), "{error}");
}

#[tokio::test]
async fn every_verb_explains_itself_with_an_example() {
    for verb in [
        "up",
        "case open",
        "case list",
        "case show",
        "case watch",
        "case transcript",
        "agents",
        "deadlines",
        "doctor",
        "dead list",
        "dead show",
        "dead retry",
        "record show",
        "case cancel",
        "debate show",
        "debate hold",
        "debate resume",
        "debate extend",
        "debate cancel",
        "person register",
        "person list",
        "person show",
        "person suspend",
        "person resume",
        "expert list",
        "queue",
        "queue next",
        "queue reassign",
        "rule",
        "challenge",
        "gate list",
        "gate show",
        "gate review",
        "decisions list",
        "decisions show",
        "decisions export",
        "replay",
        "check",
    ] {
        let arguments: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = run(&arguments).await.good();
        assert!(
            help.contains(&format!("concord {verb}")) && help.contains("Example"),
            "{help}"
        );
        assert!(help.contains("--json"), "{help}");
    }
}
