//! Mails and webhooks go by TLS, and a refused login is tried again.

use concord_testkit::wait_for;
use serde_json::json;

use crate::notifications::server::{Server, free_port};
use crate::notifications::stage::{Channels, Stage, webhook_url};
use crate::notifications::{HOUR, PATIENCE};

#[tokio::test(flavor = "multi_thread")]
async fn mails_and_calls_go_by_tls_and_a_refused_login_is_tried_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file is written");
        path
    };
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let certificate = file("cert.pem", &made.cert.pem());
    let key = file("key.pem", &made.signing_key.serialize_pem());
    let password = file("password", "s3cret\n");
    let tls = [
        "--certificate",
        certificate.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let smtp_port = free_port();
    let webhook_port = free_port();
    let webhook = Server::webhook_with(webhook_port, &tls).await;
    let login = |password| [&tls[..], &["--user", "concord", "--password", password]].concat();
    let smtp = Server::smtp(smtp_port, &login("other")).await;
    let tls = Some((certificate.clone(), password));
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        tls,
        // As long as the other server needs to start.
        notify: "tries_max = 1000",
        ..Channels::default()
    })
    .await;
    let address = webhook_url(webhook_port).replace("http:", "https:");
    stage.register_eve(&address).await;
    stage.challenge("Margin", HOUR, HOUR).await;
    assert_eq!(webhook.call("debate.assigned", 204).await["signed"], true);
    wait_for("a try to log in", PATIENCE, async || {
        if stage.counted("email", "failed").await > 0 {
            Ok(())
        } else {
            Err("none".to_owned())
        }
    })
    .await;
    wait_for(
        "the log to say that the login is refused",
        PATIENCE,
        async || {
            let log = stage.log();
            log.contains("535").then_some(()).ok_or(log)
        },
    )
    .await;
    assert!(smtp.received().is_empty(), "{:?}", smtp.received());
    drop(smtp);
    let smtp = Server::smtp(smtp_port, &login("s3cret")).await;
    let mail = smtp.mail("[Concord] A ruling is awaited: Margin").await;
    assert_eq!(
        (&mail["tls"], &mail["authenticated"]),
        (&json!(true), &json!(true))
    );
    stage.wait_until_all_are_told().await;
    assert!(
        !stage.log().contains("s3cret"),
        "the password is in the log"
    );
    stage.holds().await;
}
