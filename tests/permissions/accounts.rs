//! Each agent in an account of its own, as `concord permissions --accounts` prints them: what it says is acknowledged to itself
//! alone, whatever reply subject it names.

use concord_events::non_event::is_acknowledgement;
use concord_testkit::{Agent, concord, round_trip};
use concord_wire::CaseId;

use super::*;

/// The configuration that the command prints, with the passwords that it leaves to the operator.
fn accounts(agents: &[&AgentId]) -> String {
    let agents: Vec<&str> = agents.iter().map(|agent| agent.as_str()).collect();
    let output = concord(&[&["permissions", "--accounts"], &agents[..]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let users = agents.into_iter().chain(["concord"]);
    let passwords = users.map(|user| format!("PASSWORD_{} = \"x\"\n", user.replace('-', "_")));
    let passwords: String = passwords.collect();
    format!(
        "{passwords}{}no_auth_user: concord\n",
        String::from_utf8_lossy(&output.stdout)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_in_accounts_of_their_own_take_part_and_have_nothing_stored_elsewhere() {
    let [eva, mallory] = ["eva", "mallory"].map(|name| AgentId::new(unique(name)).expect("an id"));
    let config = accounts(&[&eva, &mallory]);
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan
    })
    .await;
    let case = unique("case");
    let (hers, mut refused_to_her) = connect(&installation, &eva, "_INBOX").await;
    let (his, mut refused) = connect(&installation, &mallory, "_INBOX").await;
    let mut beats = installation
        .client()
        .subscribe("concord.v1.beat.*")
        .await
        .expect("a subscription");
    round_trip(installation.client()).await;
    hers.publish(format!("concord.v1.beat.{eva}"), "{}".into())
        .await
        .expect("sent");
    let beat = tokio::time::timeout(PATIENCE, beats.next())
        .await
        .expect("her heart is heard")
        .expect("a message");
    assert_eq!(beat.subject.as_str(), format!("concord.v1.beat.{eva}"));

    // Agents hear each other, and what is for everyone, once; and nobody hears what is for somebody else.
    let mut heard = hers
        .subscribe(format!("concord.v1.msg.*.*.{eva}.*"))
        .await
        .expect("a subscription");
    let mut by_all = hers
        .subscribe("concord.v1.msg.*.*._all.*")
        .await
        .expect("a subscription");
    listens(&hers, &eva).await;
    let said = |to: &str| {
        Message::new(
            &case,
            mallory.as_str(),
            to,
            "info_update",
            json!({ "summary": to }),
        )
    };
    for to in [eva.as_str(), "_all", eva.as_str(), "_all"] {
        said(to).publish(&his).await;
    }
    for heard in [&mut heard, &mut by_all] {
        let mut ids = Vec::new();
        for _ in 0..2 {
            let message = tokio::time::timeout(PATIENCE, heard.next())
                .await
                .expect("it is heard")
                .expect("a message");
            let message: Value = serde_json::from_slice(&message.payload).expect("JSON");
            ids.push(message["message_id"].clone());
        }
        assert_ne!(ids[0], ids[1], "each is heard once");
    }

    // Nobody speaks for another, hears what is not for it, or writes a fact; the broker says so.
    let as_her = Message::finding(&case, eva.as_str(), json!({ "summary": "As her." }), 0.8);
    for subject in [
        as_her.subject(),
        format!("concord.v1.event.case.{case}.decided"),
        "$JS.API.INFO".to_owned(),
    ] {
        his.publish(subject.clone(), as_her.bytes().into())
            .await
            .expect("sent");
        is_refused(&mut refused, &subject).await;
    }
    for subject in [
        format!("concord.v1.msg.*.*.{eva}.*"),
        "concord.v1.event.>".to_owned(),
        ">".to_owned(),
    ] {
        let _never = his.subscribe(subject.clone()).await.expect("asked for");
        is_refused(&mut refused, &subject).await;
    }

    // Whatever he names for the reply, before the case is there and while it goes on.
    let attack = async || {
        let own = format!("concord.v1.msg.{case}.{mallory}.{mallory}.note");
        for reply in [
            format!("concord.v1.event.case.{case}.opened"),
            format!("concord.v1.event.case.{case}.decided"),
            format!("concord.v1.event.detection.{case}.completed"),
            format!("concord.v1.msg.{case}.{eva}.coordinator.finding"),
            format!("concord.v1.msg.{case}.coordinator.{eva}.question"),
            format!("concord.v1.timer.armed.case.{case}.findings"),
            format!("concord.v1.timer.due.case.{case}.findings"),
            "concord.v1.dead.coordinator.refused".to_owned(),
        ] {
            his.publish_with_reply(own.clone(), reply, "{}".into())
                .await
                .expect("sent");
        }
        // What comes after it is acknowledged, to him: so the broker has answered what was before it.
        let jetstream = async_nats::jetstream::new(his.clone());
        let stored = jetstream
            .publish(own, "{}".into())
            .await
            .expect("sent")
            .await
            .expect("stored");
        assert_eq!(stored.stream, "CONCORD_MESSAGES");
    };
    attack().await;
    let finding = |score: u32| json!({ "summary": "Seen.", "risk_score": score, "severity": "high", "recommendation": "negotiate" });
    let _eva = Agent::steadfast(&hers, eva.as_str(), finding(20), 0.9).await;
    let _mallory = Agent::agreeable(&his, mallory.as_str(), finding(90), 0.6).await;
    let opening = json!({
        "case_id": case, "participants": [eva, mallory], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    attack().await;
    let decided = installation
        .decision(&CaseId::new(case.as_str()).expect("an id"), PATIENCE)
        .await;
    let decision = &decided["decision"];
    assert_eq!(
        (&decision["reason"], &decision["outcome"]["risk_score"]),
        (&json!("settled"), &json!(20.0)),
        "{decision}"
    );
    attack().await;
    installation.holds(PATIENCE).await;
    for kind in [
        StreamKind::Events,
        StreamKind::Messages,
        StreamKind::Timers,
        StreamKind::Dead,
    ] {
        let all = stored(installation.client(), kind, ">")
            .await
            .expect("the stream can be read");
        let foreign: Vec<&Stored> = all
            .iter()
            .filter(|stored| is_acknowledgement(&stored.payload))
            .collect();
        assert!(foreign.is_empty(), "{foreign:#?}");
    }
    assert!(
        refused_to_her.try_recv().is_err(),
        "nothing of hers was refused"
    );
    assert!(
        refused.try_recv().is_err(),
        "what he may say was not refused"
    );
}
