//! People are notified: a real nats-server, real services, a real SMTP server and a real receiver of webhooks.

use std::process::Command;
use std::time::Duration;

use concord_testkit::{binaries, concord, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};

mod callback;
mod server;
mod stage;

use server::{Server, free_port, header};
use stage::{Channels, Stage};

const PATIENCE: Duration = Duration::from_secs(90);
/// Longer than any test.
const HOUR: u64 = 3_600_000;

const EMAIL_ASSIGNED: &str = "agent-adapter-email-debate-assigned";
const WEBHOOK_ASSIGNED: &str = "agent-adapter-webhook-debate-assigned";

fn hook(port: u16) -> String {
    format!("http://127.0.0.1:{port}/eve?key=t0ken")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_is_told_at_once_at_half_and_at_90_percent_of_the_time() {
    let (smtp_port, webhook_port) = (free_port(), free_port());
    let smtp = Server::smtp(smtp_port, &[]).await;
    let webhook = Server::webhook(webhook_port, "204").await;
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        ..Channels::default()
    })
    .await;
    stage
        .register(json!({ "email": "eve@example.org", "webhook": hook(webhook_port) }))
        .await;
    stage
        .challenge("Margin of 25 %\r\nBcc: all@example.org", 30_000, HOUR)
        .await;
    let assigned = stage.fact("debate", "assigned").await;
    let debate = assigned["briefed"]["brief"]["debate_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let due = assigned["briefed"]["due"]
        .as_str()
        .expect("a time")
        .to_owned();
    for (subject, kind) in [
        (
            "[Concord] A ruling is awaited: Margin of 25 %",
            "debate.assigned",
        ),
        (
            "[Concord] 50 % of the time is over: Margin of 25 %",
            "debate.reminded",
        ),
        (
            "[Concord] 90 % of the time is over: Margin of 25 %",
            "debate.reminded",
        ),
    ] {
        let mail = smtp.mail(subject).await;
        assert_eq!(
            (&mail["sender"], &mail["recipients"]),
            (&json!("concord@example.org"), &json!(["eve@example.org"]))
        );
        assert_eq!(header(&mail, "bcc"), "", "{mail}");
        let text = mail["text"].as_str().expect("a text");
        for part in [
            "Disputed: Margin of 25 % Bcc: all@example.org\n".to_owned(),
            format!("Until: {due}\n"),
            format!("  concord queue next --expert {}\n", stage.expert),
            format!(
                "  concord rule {debate} --position p1 --rationale \"...\" --expert {}\n",
                stage.expert
            ),
        ] {
            assert!(text.contains(&part), "{part}\n{text}");
        }
        webhook.call(kind, 204).await;
    }
    stage.fact("debate", "fell_back").await;
    stage.told().await;
    let (mails, calls) = (smtp.given(), webhook.given());
    let to_eve = |call: &&Value| call["path"] == "/eve?key=t0ken";
    assert_eq!(calls.iter().filter(to_eve).count(), 3, "{calls:#?}");
    assert!(
        calls
            .iter()
            .all(|call| call["signed"] == true && call["type"] == "application/json"),
        "{calls:#?}"
    );
    let of_assigned = &calls[0]["body"]["data"];
    assert_eq!(
        (&of_assigned["debate_id"], &of_assigned["until"]),
        (&json!(debate), &json!(due))
    );
    assert_eq!(of_assigned["digest"], assigned["briefed"]["digest"]);
    assert_eq!(calls[2]["body"]["data"]["percent"], 90);
    let eves = mails
        .iter()
        .filter(|mail| mail["recipients"] == json!(["eve@example.org"]));
    let mut ids: Vec<String> = eves.map(|mail| header(mail, "message-id")).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{mails:#?}");
    assert_eq!(
        stage.counted("email", "delivered").await + stage.counted("webhook", "delivered").await,
        3 + 2 + 3 + 1
    );
    assert!(
        !stage.log().contains("t0ken"),
        "what may be a secret of an address is in the log"
    );
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_is_told_of_what_stands_provisionally_and_when_it_is_awaited() {
    let (smtp_port, webhook_port) = (free_port(), free_port());
    let smtp = Server::smtp(smtp_port, &[]).await;
    let webhook = Server::webhook(webhook_port, "200").await;
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        ..Channels::default()
    })
    .await;
    // There is no expert: the time passes, and nobody is told of that.
    stage.challenge("Margin", 100, 10_000).await;
    let before = smtp
        .mail("[Concord] Provisional before the gate valuation: Margin")
        .await;
    let text = before["text"].as_str().expect("a text");
    assert!(
        text.contains("Provisionally: Margin (25)")
            && text.contains(&format!("concord gate show {}", stage.case)),
        "{text}"
    );
    smtp.mail("[Concord] The gate valuation must review: Margin")
        .await;
    for (kind, beginning) in [
        ("debate.fell_back", "[Concord] Prov"),
        ("debate.awaits_gate", "[Concord] The gate"),
    ] {
        let call = webhook.call(kind, 200).await;
        assert_eq!(
            (&call["path"], &call["body"]["data"]["gate"]),
            (&json!("/gates"), &json!("valuation"))
        );
        for mailbox in ["board@example.org", "gail@example.org"] {
            let is_it = |mail: &Value| {
                mail["recipients"] == json!([mailbox])
                    && header(mail, "subject").starts_with(beginning)
            };
            smtp.said(mailbox, is_it).await;
        }
    }
    stage.told().await;
    assert_eq!((smtp.given().len(), webhook.given().len()), (4, 2));
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_tried_until_it_is_up_and_the_other_channel_waits_for_nothing() {
    let (smtp_port, webhook_port) = (free_port(), free_port());
    let webhook = Server::webhook(webhook_port, "500,429,204").await;
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        ..Channels::default()
    })
    .await;
    stage
        .register(json!({ "email": "eve@example.org", "webhook": hook(webhook_port) }))
        .await;
    stage.challenge("Margin", HOUR, HOUR).await;
    // The webhook arrives while no mail can be sent, after two answers that pass, under one id.
    let ids: Vec<Value> = [
        webhook.call("debate.assigned", 500).await,
        webhook.call("debate.assigned", 429).await,
        webhook.call("debate.assigned", 204).await,
    ]
    .map(|call| call["id"].clone())
    .into();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
    until("two tries to send a mail", PATIENCE, async || {
        let failed = stage.counted("email", "failed").await;
        if failed >= 2 {
            Ok(())
        } else {
            Err(format!("{failed} tries"))
        }
    })
    .await
    .unwrap_or_else(|error| panic!("{error}"));
    // Up, but busy once; then it takes the mail.
    let smtp = Server::smtp(smtp_port, &["--busy", "1"]).await;
    smtp.said("busy", |line| line["busy"] == json!(["eve@example.org"]))
        .await;
    smtp.mail("[Concord] A ruling is awaited: Margin").await;
    stage.told().await;
    assert_eq!(
        (smtp.given().len(), webhook.given().len()),
        (2, 3),
        "one mail, and no call because of it"
    );
    assert_eq!(
        (
            stage.counted("email", "delivered").await,
            stage.counted("webhook", "delivered").await
        ),
        (1, 1)
    );
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_good_is_kept_and_can_be_sent_again_and_the_ladder_goes_on() {
    let (smtp_port, webhook_port) = (free_port(), free_port());
    let smtp = Server::smtp(smtp_port, &["--refuse", "eve@example.org"]).await;
    let channels = Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        ..Channels::default()
    };
    let stage = Stage::start(&channels).await;
    // A stranger's address inside the network that the installation does not list.
    stage
        .register(json!({ "email": "eve@example.org", "webhook": "http://169.254.169.254/latest/meta-data?t0ken" }))
        .await;
    stage.challenge("Margin", 10_000, HOUR).await;
    let letter = stage.dead("undeliverable", EMAIL_ASSIGNED).await;
    let error = letter.header("Concord-Dead-Error");
    assert!(
        error.contains("eve@example.org") && error.contains("550"),
        "{error}"
    );
    let other = stage.dead("undeliverable", WEBHOOK_ASSIGNED).await;
    let error = other.header("Concord-Dead-Error");
    assert!(
        error.contains("169.254.169.254")
            && error.contains("webhook.hosts")
            && !error.contains("t0ken"),
        "{error}"
    );
    assert_eq!(
        stage.counted("email", "failed").await,
        0,
        "what lasts is not tried again"
    );
    stage.fact("debate", "fell_back").await;
    stage.fact("case", "debate_settled").await;
    // The mailbox is made, and an operator has the mail sent again; the other letter cannot be mended so.
    drop(smtp);
    let smtp = Server::smtp(smtp_port, &[]).await;
    let (good, said) = command(&stage, &["dead", "retry", &letter.sequence.to_string()]);
    assert!(good, "{said}");
    smtp.mail("[Concord] A ruling is awaited: Margin").await;
    let (good, said) = command(&stage, &["dead", "retry", &other.sequence.to_string()]);
    assert!(!good && said.contains("webhook.hosts"), "{said}");
    let (_, said) = command(&stage, &["dead", "list", "--json"]);
    let open: Vec<Value> = serde_json::from_str(&said).expect("the list is JSON");
    let is_open = |sequence: u64| open.iter().any(|letter| letter["sequence"] == sequence);
    assert_eq!(
        (is_open(letter.sequence), is_open(other.sequence)),
        (false, true),
        "{said}"
    );
    let (_, said) = command(&stage, &["doctor"]);
    assert!(!said.contains("missing"), "{said}");
    stage.holds().await;
}

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
    let (code, said) = adapter(&[&host[..], &["--check-config"]].concat());
    assert_eq!(code, Some(64));
    assert_eq!(
        said,
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
    let (code, said) = adapter(&[&host[..], &more, &["--print-config"]].concat());
    assert!(
        code == Some(0) && said.contains("(hidden)") && !said.contains("s3cret"),
        "{said}"
    );
}

/// Runs the command: whether it is content, and what it says.
fn command(stage: &Stage, arguments: &[&str]) -> (bool, String) {
    let output = concord(&[&["--server", stage.installation.server_url()], arguments].concat());
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn off_by_default_and_what_happened_while_nobody_looked_is_not_told_late() {
    let stage = Stage::start(&Channels::default()).await;
    stage
        .register(json!({ "email": "eve@example.org", "webhook": "http://127.0.0.1:9/" }))
        .await;
    stage.challenge("Margin", 500, 500).await;
    stage.fact("debate", "awaits_gate").await;
    stage.told().await;
    assert!(stage.counted("email", "off").await >= 4 && stage.counted("webhook", "off").await >= 4);
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_when_the_adapter_comes_back_is_skipped() {
    let smtp_port = free_port();
    let smtp = Server::smtp(smtp_port, &[]).await;
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        ..Channels::default()
    })
    .await;
    stage.register(json!({ "email": "eve@example.org" })).await;
    stage
        .installation
        .kill(Service::AgentAdapter, 0)
        .expect("it is killed");
    stage.challenge("Margin", 500, 500).await;
    stage.fact("debate", "awaits_gate").await;
    stage
        .installation
        .restart(Service::AgentAdapter, 0)
        .await
        .expect("it starts again");
    smtp.mail("[Concord] The gate valuation must review: Margin")
        .await;
    stage.told().await;
    let mails = smtp.given();
    assert_eq!(
        mails.len(),
        2,
        "the gate's two mailboxes, and neither a ruling nor a window that is over: {mails:#?}"
    );
    // Of two reminders so close to each other the first may be left out.
    assert!(
        stage.counted("email", "stale").await >= 3,
        "assigned, reminded, fell back"
    );
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_and_calls_go_by_tls_and_a_refused_login_is_tried_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file is written");
        path
    };
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let (certificate, key) = (
        file("cert.pem", &made.cert.pem()),
        file("key.pem", &made.signing_key.serialize_pem()),
    );
    let password = file("password", "s3cret\n");
    let tls = [
        "--certificate",
        certificate.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let (smtp_port, webhook_port) = (free_port(), free_port());
    let webhook = Server::webhook_with(webhook_port, &tls).await;
    let login = |password| [&tls[..], &["--user", "concord", "--password", password]].concat();
    let smtp = Server::smtp(smtp_port, &login("other")).await;
    let tls = Some((certificate.clone(), password));
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        tls,
        ..Channels::default()
    })
    .await;
    let address = hook(webhook_port).replace("http:", "https:");
    stage
        .register(json!({ "email": "eve@example.org", "webhook": address }))
        .await;
    stage.challenge("Margin", HOUR, HOUR).await;
    assert_eq!(webhook.call("debate.assigned", 204).await["signed"], true);
    until("a try to log in", PATIENCE, async || {
        if stage.counted("email", "failed").await > 0 {
            Ok(())
        } else {
            Err("none".to_owned())
        }
    })
    .await
    .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        stage.log().contains("535"),
        "the log says that the login is refused"
    );
    assert!(smtp.given().is_empty(), "{:?}", smtp.given());
    drop(smtp);
    let smtp = Server::smtp(smtp_port, &login("s3cret")).await;
    let mail = smtp.mail("[Concord] A ruling is awaited: Margin").await;
    assert_eq!(
        (&mail["tls"], &mail["authenticated"]),
        (&json!(true), &json!(true))
    );
    stage.told().await;
    assert!(
        !stage.log().contains("s3cret"),
        "the password is in the log"
    );
    stage.holds().await;
}
