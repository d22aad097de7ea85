//! An expert is told of a debate at once, and reminded of it, by both channels.

use concord_testkit::concord;
use serde_json::{Value, json};

use crate::notifications::HOUR;
use crate::notifications::server::header;
use crate::notifications::stage::{Servers, Stage, webhook_url};

/// The parts of an assigned debate that its expert must be told.
struct Assignment {
    debate: String,
    /// Until when the expert may rule.
    due: String,
    digest: Value,
}

impl Assignment {
    async fn of(stage: &Stage) -> Self {
        let assigned = stage.event("debate", "assigned").await;
        let briefed = &assigned["briefed"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Self {
            debate: text(&briefed["brief"]["debate_id"]),
            due: text(&briefed["due"]),
            digest: briefed["digest"].clone(),
        }
    }

    /// The mail is for eve alone, and names the debate, its topic, the time and the commands with which to rule.
    fn check_mail(&self, mail: &Value, expert: &str) {
        assert_eq!(
            (&mail["sender"], &mail["recipients"]),
            (&json!("concord@example.org"), &json!(["eve@example.org"]))
        );
        assert_eq!(header(mail, "bcc"), "", "{mail}");
        let text = mail["text"].as_str().expect("a text");
        for part in [
            "Disputed: Margin of 25 % Bcc: all@example.org\n".to_owned(),
            format!("Until: {}\n", self.due),
            format!(
                "  concord queue next --expert {expert} --debate {}\n",
                self.debate
            ),
            format!(
                "  concord rule {} --position p1 --rationale \"...\" --expert {expert}\n",
                self.debate
            ),
        ] {
            assert!(text.contains(&part), "{part}\n{text}");
        }
    }

    /// Eve's webhook was called three times, with a signature and with what the mails say.
    fn check_calls(&self, calls: &[Value]) {
        let to_eve = |call: &&Value| call["path"] == "/eve?key=t0ken";
        assert_eq!(calls.iter().filter(to_eve).count(), 3, "{calls:#?}");
        let is_signed = |call: &Value| call["signed"] == true && call["type"] == "application/json";
        assert!(calls.iter().all(is_signed), "{calls:#?}");
        let first = &calls[0]["body"]["data"];
        assert_eq!(
            (&first["debate_id"], &first["until"]),
            (&json!(self.debate), &json!(self.due))
        );
        assert_eq!(first["digest"], self.digest);
        assert_eq!(calls[2]["body"]["data"]["percent"], 90);
    }
}

/// Each of the three mails to eve has an id of its own.
fn check_mail_ids(mails: &[Value]) {
    let to_eve = |mail: &&Value| mail["recipients"] == json!(["eve@example.org"]);
    let mut ids: Vec<String> = mails
        .iter()
        .filter(to_eve)
        .map(|mail| header(mail, "message-id"))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{mails:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_is_told_at_once_at_half_and_at_90_percent_of_the_time() {
    let (stage, servers) = Servers::start("204").await;
    stage.register_eve(&webhook_url(servers.webhook_port)).await;
    stage
        .challenge("Margin of 25 %\r\nBcc: all@example.org", 30_000, HOUR)
        .await;
    let assignment = Assignment::of(&stage).await;
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
        let mail = servers.smtp.mail(subject).await;
        assignment.check_mail(&mail, &stage.expert);
        servers.webhook.call(kind, 204).await;
    }
    stage.event("debate", "fell_back").await;
    stage.wait_until_all_are_told().await;
    assignment.check_calls(&servers.webhook.received());
    check_mail_ids(&servers.smtp.received());
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
async fn an_expert_is_told_what_an_operator_does_with_the_time_and_of_the_end() {
    let (stage, servers) = Servers::start("200").await;
    stage.register_eve(&webhook_url(servers.webhook_port)).await;
    stage.challenge("Margin", HOUR, HOUR).await;
    let debate = Assignment::of(&stage).await.debate;
    let order = |verb: &str, more: &[&str]| {
        let order = ["--server", stage.installation.server_url(), "debate", verb];
        let why = ["--by", "olga", "--why", "the filing is late"];
        let output = concord(&[&order[..], &[debate.as_str()], &why, more].concat());
        assert!(output.status.success(), "{output:?}");
    };
    for (verb, more, subject) in [
        ("hold", &[][..], "The time is held: Margin"),
        ("resume", &[], "The time goes on: Margin"),
        ("extend", &["--hours", "2"], "There is more time: Margin"),
        ("cancel", &[], "Taken back from you: Margin"),
    ] {
        order(verb, more);
        let mail = servers.smtp.mail(&format!("[Concord] {subject}")).await;
        let text = mail["text"].as_str().expect("a text");
        assert_eq!(mail["recipients"], json!(["eve@example.org"]));
        let has_time = matches!(verb, "resume" | "extend");
        assert!(
            text.contains("By: olga\nBecause: the filing is late\n")
                && text.contains("Until: ") == has_time,
            "{text}"
        );
    }
    let call = servers.webhook.call("debate.deadlines_moved", 200).await;
    assert_eq!(call["body"]["data"]["control"], json!("hold"));
    servers.webhook.call("debate.unassigned", 200).await;
    stage.holds().await;
}
