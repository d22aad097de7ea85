use super::*;

type Plain = Settings<NoSettings>;

fn sources(environment: &[(&str, &str)], flags: &[&str]) -> Sources {
    Sources {
        file: None,
        environment: environment
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
    }
}

#[test]
fn nothing_given_means_the_defaults() {
    let settings: Plain = read(&sources(&[], &[])).unwrap();
    assert_eq!(settings.broker.servers, "nats://127.0.0.1:4222");
    assert_eq!(settings.work.deliveries_max, 20);
}

#[test]
fn what_is_archived_needs_a_place() {
    let given = |flags: &[&str]| {
        let settings: Plain = read(&sources(&[], flags)).unwrap();
        settings.storage.check().map_err(|error| error.to_string())
    };
    assert_eq!(given(&[]), Ok(()));
    let (after, place) = ("storage.archive_after_s=60", "storage.archive=object-store");
    assert_eq!(given(&[after, place]), Ok(()));
    let refused = given(&[after]).unwrap_err();
    assert!(refused.contains("storage.archive is not"), "{refused}");
    let store = "storage.s3.endpoint=http://127.0.0.1:9000";
    assert_eq!(
        given(&[after, "storage.archive=s3://cases/eu", store]),
        Ok(())
    );
    for (place, named) in [
        ("storage.archive=s3://Cases", "s3://BUCKET/PREFIX"),
        ("storage.archive=gs://cases", "a folder, s3://BUCKET/PREFIX"),
        ("storage.archive=s3:/cases", "a folder, s3://BUCKET/PREFIX"),
        ("storage.archive=S3:cases", "a folder, s3://BUCKET/PREFIX"),
        ("storage.archive=objectstore", "begins with /"),
        ("storage.archive=./archive", "begins with /"),
    ] {
        let refused = given(&[after, place]).unwrap_err();
        assert!(refused.contains(named), "{refused}");
    }
    let refused = given(&["storage.archive=s3://cases", "storage.s3.endpoint=minio"]).unwrap_err();
    assert!(refused.contains("storage.s3.endpoint"), "{refused}");
}

#[test]
fn a_case_is_archived_while_its_messages_are_stored() {
    for (after, days, expected) in [
        (6_998_400, 90, true),
        (7_776_000, 90, false),
        (2_592_000, 30, false),
        (1_209_600, 30, true),
        (60, 1, true),
        (86_400, 1, false),
        (2_592_000, 0, true),
        (0, 1, true),
    ] {
        let flags = [
            "storage.archive=object-store".to_owned(),
            format!("storage.archive_after_s={after}"),
            format!("storage.message_days={days}"),
        ];
        let flags = flags.each_ref().map(String::as_str);
        let settings: Plain = read(&sources(&[], &flags)).unwrap();
        let refused = settings
            .storage
            .check()
            .err()
            .map(|error| error.to_string());
        assert_eq!(
            refused.is_none(),
            expected,
            "{after} of {days}: {refused:?}"
        );
        let names = |said: &str| {
            ["storage.archive_after_s", "storage.message_days"]
                .iter()
                .all(|one| said.contains(one))
        };
        assert!(refused.as_deref().is_none_or(names), "{refused:?}");
    }
}

#[test]
fn on_a_command_line_a_folder_is_named_from_where_one_is() {
    let here = std::env::current_dir().unwrap();
    let named = StorageSettings::archive_from_here;
    assert_eq!(named("cases"), here.join("cases").display().to_string());
    for whole in ["", "/cases", "object-store", "s3://cases/eu", "s3:/cases"] {
        assert_eq!(named(whole), whole);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("concord.toml");
    std::fs::write(&file, "[broker\n").unwrap();
    let mut from = sources(&[], &[]);
    from.file = Some(file);
    let error = read::<Plain>(&from).unwrap_err();
    let said = crate::error_chain::ErrorChain(&error).to_string();
    assert_eq!(said.matches("TOML parse error").count(), 1, "{said}");
}

#[test]
fn flags_go_before_the_environment_and_the_environment_before_the_file() {
    let directory = std::env::temp_dir().join(format!("concord-settings-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("concord.toml");
    std::fs::write(
        &file,
        "[work]\nin_flight_max = 1\nack_wait_ms = 1\ndrain_ms = 1\n",
    )
    .unwrap();
    let mut from = sources(
        &[
            ("CONCORD_WORK__ACK_WAIT_MS", "2"),
            ("CONCORD_WORK__DRAIN_MS", "2"),
            ("CONCORD_BLESS", "1"),
        ],
        &["work.drain_ms=3"],
    );
    from.file = Some(file);
    let settings: Plain = read(&from).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(
        (
            settings.work.in_flight_max,
            settings.work.ack_wait_ms,
            settings.work.drain_ms
        ),
        (1, 2, 3)
    );
}

#[test]
fn secrets_are_read_and_not_printed() {
    let settings: Plain = read(&sources(
        &[("CONCORD_BROKER__TOKEN", "t0ken")],
        &["broker.password=s3cret"],
    ))
    .unwrap();
    assert_eq!(
        settings.broker.password.as_ref().map(Secret::reveal),
        Some("s3cret")
    );
    let printed = serde_json::to_string(&settings).unwrap() + &format!("{settings:?}");
    assert!(
        printed.contains("(hidden)") && !printed.contains("s3cret") && !printed.contains("t0ken"),
        "{printed}"
    );
    let error = read::<Plain>(&sources(&[("CONCORD_BROKER__PASSWORD", "0123")], &[]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("broker.password") && !error.contains("123"),
        "{error}"
    );
}

#[test]
fn what_is_printed_is_toml_that_can_be_read_back() {
    let given = [
        "broker.servers=nats://one:4222,nats://two:4222",
        "work.in_flight_max=7",
        "telemetry.log_format=json",
        "broker.password=s3cret",
    ];
    let settings: Plain = read(&sources(&[], &given)).unwrap();
    let printed = to_toml(&settings).unwrap();
    assert!(
        printed.starts_with("# Secrets are not shown.") && !printed.contains("s3cret"),
        "{printed}"
    );
    let file = std::env::temp_dir().join(format!("concord-printed-{}.toml", std::process::id()));
    std::fs::write(&file, &printed).unwrap();
    let mut from = sources(&[("CONCORD_BROKER__PASSWORD", "s3cret")], &[]);
    from.file = Some(file.clone());
    let read_back: Plain = read(&from).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(
        read_back.broker.password.as_ref().map(Secret::reveal),
        Some("s3cret"),
        "a secret is given as before"
    );
    assert_eq!(to_toml(&read_back).unwrap(), printed);
    assert!(!to_toml(&Plain::default()).unwrap().contains("hidden"));
}

#[test]
fn a_password_in_an_address_is_not_printed() {
    let given = ["broker.servers=nats://eva:s3cret@one:4222,eva:s3cret@two"];
    let settings: Plain = read(&sources(&[], &given)).unwrap();
    let printed = to_toml(&settings).unwrap();
    let servers = "servers = \"nats://(hidden)@one:4222,(hidden)@two\"";
    assert!(
        printed.starts_with("# Secrets are not shown.") && printed.contains(servers),
        "{printed}"
    );
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let error = read::<Plain>(&sources(&[], &["work.in_flight=3"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no setting \"work.in_flight\"; did you mean \"work.in_flight_max\"?"
    );
    let error = read::<Plain>(&sources(&[("CONCORD_BROKR__SERVERS", "x")], &[])).unwrap_err();
    assert!(
        error.to_string().contains("did you mean \"broker\"?"),
        "{error}"
    );
}

#[test]
fn a_wrong_value_is_named() {
    for (flag, key) in [
        ("work.in_flight_max=many", "work.in_flight_max"),
        ("storage.prefix=a.b", "storage.prefix"),
    ] {
        let error = read::<Plain>(&sources(&[], &[flag])).unwrap_err();
        assert!(
            matches!(&error, Error::Value { key: found, .. } if found == key),
            "{error}"
        );
    }
    assert!(matches!(
        read::<Plain>(&sources(&[], &["work"])),
        Err(Error::Flag(_))
    ));
}

#[test]
fn settings_of_the_broker_that_need_each_other_are_named() {
    for (flags, expected) in [
        (&["broker.user=eva", "broker.password=x"][..], None),
        (&["broker.user=eva", "broker.password_file=/p"], None),
        (&["broker.tls_certificate=/c", "broker.tls_key=/k"], None),
        (&["broker.user=eva"], Some("broker.user")),
        (&["broker.password_file=/p"], Some("broker.password_file")),
        (
            &[
                "broker.user=eva",
                "broker.password=x",
                "broker.password_file=/p",
            ],
            Some("broker.password_file"),
        ),
        (&["broker.tls_certificate=/c"], Some("broker.tls_key")),
        (&["broker.tls_key=/k"], Some("broker.tls_key")),
    ] {
        let settings: Plain = read(&sources(&[], flags)).unwrap();
        let found = match settings.broker.check() {
            Err(Error::Value { key, .. }) => Some(key),
            _ => None,
        };
        assert_eq!(found.as_deref(), expected, "{flags:?}");
    }
}

#[test]
fn what_can_never_be_right_is_refused() {
    for (flag, expected) in [
        ("storage.replicas=5", None),
        ("storage.replicas=6", Some("storage.replicas")),
        ("storage.message_days=0", None),
        ("storage.message_days=100000", None),
        ("storage.message_days=200000", Some("storage.message_days")),
        ("broker.servers=", Some("broker.servers")),
        ("broker.servers= , ", Some("broker.servers")),
    ] {
        let settings: Plain = read(&sources(&[], &[flag])).unwrap();
        let found = match settings.broker.check().and(settings.storage.check()) {
            Err(Error::Value { key, .. }) => Some(key),
            _ => None,
        };
        assert_eq!(found.as_deref(), expected, "{flag}");
    }
}

#[test]
fn a_word_that_is_none_names_those_there_are() {
    let error = read::<Plain>(&sources(&[], &["telemetry.log_format=yaml"])).unwrap_err();
    let said = error.to_string();
    let named = ["telemetry.log_format", "yaml", "text, json"];
    assert!(named.iter().all(|one| said.contains(one)), "{said}");
}

#[test]
fn no_more_is_under_way_than_a_process_can_count() {
    for (number, expected) in [("1000000", true), ("9223372036854775807", false)] {
        let flag = format!("work.in_flight_max={number}");
        let settings: Plain = read(&sources(&[], &[&flag])).unwrap();
        let refused = settings.work.check().err().map(|error| error.to_string());
        assert_eq!(refused.is_none(), expected, "{refused:?}");
        assert!(refused.is_none_or(|said| said.contains("work.in_flight_max")));
    }
}

#[test]
fn a_variable_with_one_underscore_in_place_of_two_is_named() {
    for (variable, meant) in [
        ("CONCORD_WORK_DRAIN_MS", "CONCORD_WORK__DRAIN_MS"),
        (
            "CONCORD_STORAGE_S3_ENDPOINT",
            "CONCORD_STORAGE__S3__ENDPOINT",
        ),
    ] {
        let error = read::<Plain>(&sources(&[(variable, "5")], &[])).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(variable) && said.contains(meant), "{said}");
    }
    // These belong to the command, to scripts, and to Kubernetes, which names services of its namespace.
    let others = [
        "CONCORD_TLS_CA",
        "CONCORD_ARCHIVE",
        "CONCORD_SERVER",
        "CONCORD_NATS_SERVER",
        "CONCORD_BROKER",
        "CONCORD_BROKER_SERVICE_HOST",
    ];
    for other in others {
        read::<Plain>(&sources(&[(other, "x")], &[])).unwrap();
    }
}
