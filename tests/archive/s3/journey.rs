//! A case goes to the store and is seen there as before; timers that are killed in between lose nothing.

use std::path::{Path, PathBuf};

use concord_testkit::{
    CommandOutput, TestInstallation, binaries, command, event_data, finish, programs_of, unique,
};
use concord_wire::subject::Service;
use serde_json::json;

use crate::archive::s3_server::{READER, REGION, S3Server, WRITER, write_credentials};
use crate::archive::stage::{concord, decide, installation_with, removed, said, views};

/// Where the cases go.
const PLACE: &str = "s3://cases/eu";

/// A store behind TLS, and how services and people reach it.
struct Stage {
    server: S3Server,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let made = made.expect("a certificate");
        let [certificate, key] = ["ca.pem", "key.pem"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).expect("it is written");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("it is written");
        let [certificate, key] = [&certificate, &key].map(|file| file.to_str().expect("a text"));
        let arguments = ["--certificate", certificate, "--key", key];
        let server = S3Server::start("https", &arguments).await;
        for (name, user) in [
            ("writer", WRITER),
            ("reader", READER),
            ("wrong", [WRITER[0], "wrong"]),
        ] {
            write_credentials(&folder.path().join(name), user, None);
        }
        Self { server, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The settings of the services, each as key and value.
    fn settings(&self, credentials: &str) -> [(&'static str, String); 4] {
        let path = |name: &str| self.path(name).display().to_string();
        [
            ("endpoint", self.server.endpoint.clone()),
            ("region", REGION.to_owned()),
            ("ca", path("ca.pem")),
            ("credentials_file", path(credentials)),
        ]
    }

    async fn installation(&self) -> TestInstallation {
        let settings = self.settings("writer");
        let settings = settings.map(|(key, value)| format!("storage.s3.{key}={value}"));
        installation_with(PLACE, &settings).await
    }

    /// A file of settings for `concord`.
    fn config(&self, credentials: &str) -> String {
        let mut text = format!("[storage]\narchive = {PLACE:?}\n[storage.s3]\n");
        for (key, value) in self.settings(credentials) {
            text.push_str(&format!("{key} = {value:?}\n"));
        }
        let file = self.path(&format!("{credentials}.toml"));
        std::fs::write(&file, text).expect("it is written");
        file.display().to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_goes_to_the_store_and_is_seen_there_as_before() {
    let mut stage = Stage::new().await;
    let installation = stage.installation().await;
    // More failures than two requests are tried: a round fails, though both timers should make one, and the next goes on.
    stage.server.tell(json!({ "fail": 503, "times": 14 })).await;
    let case = unique("case");
    decide(&installation, &case).await;
    let reader = stage.config("reader");
    installation.register("audrey", &["auditor"]).await;
    let by_asking = ["--as", "audrey", "case", "show", &case];
    let before = views(&installation, &case, ["--config", &reader]).await;
    let asked_before = concord(&installation, &by_asking).await;
    removed(&installation, &case).await;
    let failures = stage.server.tell(json!({ "failures": "" })).await;
    assert_eq!(failures["failures"], 0);
    let keys = stage.server.keys().await;
    let begins = ["eu/manifests/00000001-", "eu/segments/00000001-"];
    let fit = keys
        .iter()
        .zip(begins)
        .all(|(key, begin)| key.starts_with(begin));
    assert!(keys.len() == 2 && fit, "{keys:?}");

    assert_eq!(
        views(&installation, &case, ["--config", &reader]).await,
        before
    );
    assert_eq!(concord(&installation, &by_asking).await, asked_before);
    let verify = ["archive", "verify", "--config", &reader];
    let verified = concord(&installation, &verify).await;
    assert_eq!(
        (&verified["cases"], &verified["faults"]),
        (&json!(1), &json!([]))
    );
    let status = concord(&installation, &["archive", "status", "--config", &reader]).await;
    assert_eq!(status["location"], PLACE);
    let listed = concord(&installation, &["archive", "list"]).await;
    assert_eq!(listed[0]["case_id"], case.as_str());
    let checked = concord(&installation, &["check", "--config", &reader]).await;
    assert_eq!(checked["holds"], true, "{checked:#}");
    let to = stage.path("restored").display().to_string();
    let restore = [
        "archive", "restore", &case, "--to", &to, "--config", &reader,
    ];
    concord(&installation, &restore).await;
    let events = std::fs::read_to_string(Path::new(&to).join("events.jsonl"));
    assert!(
        events
            .expect("a file")
            .contains(&format!("event.case.{case}.opened"))
    );

    by_environment(&stage, &installation).await;
    wrong_settings_are_said(&stage, &installation).await;
    let tampered = stage.server.tell(json!({ "tamper": "segments/" })).await;
    let name = tampered["tampered"].as_str().expect("a name");
    let (code, out, _) = said(&installation, &verify).await;
    let name = name.strip_prefix("eu/").expect("the prefix");
    assert!(code == 1 && out.contains(name), "{out}");
    nothing_secret_is_logged(&stage, &installation).await;
}

/// Credentials and endpoint from the environment, the place as an argument.
async fn by_environment(stage: &Stage, installation: &TestInstallation) {
    let mut run = command(programs_of(&["concord-cli"]).join("concord"));
    run.args(["--server", installation.server_url(), "--archive", PLACE])
        .args(["archive", "verify"]);
    for (key, value) in stage.settings("reader") {
        if key != "credentials_file" {
            run.env(
                format!("CONCORD_STORAGE__S3__{}", key.to_uppercase()),
                value,
            );
        }
    }
    run.env_remove("AWS_ACCESS_KEY_ID");
    let told = finish(&mut run).await.refused(2);
    assert!(told.contains("AWS_ACCESS_KEY_ID"), "{told}");
    let [key, secret] = READER;
    run.env("AWS_ACCESS_KEY_ID", key)
        .env("AWS_SECRET_ACCESS_KEY", secret);
    finish(&mut run).await.good();
}

async fn wrong_settings_are_said(stage: &Stage, installation: &TestInstallation) {
    let [reader, wrong] = ["reader", "wrong"].map(|name| stage.config(name));
    for (config, archive, advice) in [
        (&wrong, PLACE, "secret is not that of the key id"),
        (&reader, "s3://nobodys", "create the bucket nobodys"),
        (&reader, "gs://cases", "none of the places there are"),
    ] {
        let arguments = [
            "archive",
            "verify",
            "--config",
            config,
            "--archive",
            archive,
        ];
        let (code, _, complaint) = said(installation, &arguments).await;
        assert!(
            code == 2 && complaint.contains(advice),
            "{code} {complaint}"
        );
    }
}

async fn nothing_secret_is_logged(stage: &Stage, installation: &TestInstallation) {
    let mut shown = vec![installation.log_tails()];
    for (service, replica) in [
        (Service::EscalationTimer, 0),
        (Service::EscalationTimer, 1),
        (Service::Coordinator, 0),
    ] {
        let log = installation.log(service, replica).expect("a log");
        shown.push(std::fs::read_to_string(log).expect("it is read"));
    }
    assert!(shown.iter().any(|log| log.contains("503")), "{shown:#?}");
    let mut print = command(binaries().join("concord-escalation-timer"));
    print.args(["--print-config", "--config", &stage.config("writer")]);
    let CommandOutput { out, .. } = finish(&mut print).await;
    assert!(out.contains("credentials_file"), "{out}");
    shown.push(out);
    for text in &shown {
        for secret in [WRITER[0], WRITER[1], "X-Amz-"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_that_are_killed_between_segment_and_manifest_lose_nothing() {
    let mut stage = Stage::new().await;
    let installation = stage.installation().await;
    stage.server.tell(json!({ "hold": "manifests/" })).await;
    let case = unique("case");
    decide(&installation, &case).await;
    let reader = stage.config("reader");
    let before = views(&installation, &case, ["--config", &reader]).await;
    stage.server.tell(json!({ "await": "held" })).await;
    let timer = Service::EscalationTimer;
    for replica in [0, 1] {
        installation.kill(timer, replica).expect("a process");
    }
    let sealed = event_data(installation.client(), "archive.log.*").await;
    assert_eq!(sealed.expect("the stream is read"), [json!(null); 0]);
    stage.server.tell(json!({ "release": "" })).await;
    let left = stage.server.keys().await;
    assert!(
        !left.is_empty() && left.iter().all(|key| key.contains("/segments/")),
        "{left:?}"
    );
    for replica in [0, 1] {
        installation.launch(timer, replica).expect("it starts");
    }
    removed(&installation, &case).await;
    assert_eq!(
        views(&installation, &case, ["--config", &reader]).await,
        before
    );
    let verify = ["archive", "verify", "--config", &reader];
    let verified = concord(&installation, &verify).await;
    let unsealed = verified["unsealed"].as_array().map(Vec::len);
    assert_eq!(
        (&verified["faults"], unsealed),
        (&json!([]), Some(left.len())),
        "{verified:#}"
    );
}
