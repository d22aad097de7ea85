//! A case that is cancelled takes its debates with it, also those that are opened after it.

use concord_testkit::{Stored, TestInstallation, concord, events, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::json;

use crate::ladder::PATIENCE;
use crate::ladder::stage::Stage;

/// A case without its service, whose analysts differ on a score. Nobody answers, and questions stay open for longer than the test.
async fn without(service: Service) -> Stage {
    let stage = Stage {
        installation: TestInstallation::start_without_adapter().await,
        case: unique("case"),
        finance: unique("finance"),
        strategy: unique("strategy"),
    };
    stage.installation.kill(service, 0).unwrap();
    let terms = json!({ "policy": {
        "rounds_max": 1, "answer_timeout_ms": 600_000, "case_timeout_ms": 1_200_000,
        "finding_timeout_ms": 600_000,
    }});
    stage.open(terms).await;
    let finding = |score: u32| json!({ "summary": "Seen.", "risk_score": score });
    stage.give_findings([finding(20), finding(80)]).await;
    stage.event_of(&stage.case, "findings_closed").await;
    stage
}

fn cancel(stage: &Stage) {
    let server = stage.installation.server_url();
    let who = ["--by", "olga", "--why", "the deal is off"];
    let cancel = ["case", "cancel", &stage.case, "--server", server];
    let done = concord(&[&cancel[..], &who].concat());
    assert!(done.status.success(), "{done:?}");
}

/// Waits until so many debates were opened and all of them are cancelled by whoever has cancelled the case.
async fn all_end(stage: &Stage, debates: usize) {
    wait_for("the debates end with their case", PATIENCE, async || {
        let client = stage.installation.client();
        let opened = events(client, "debate.*.opened").await?;
        let resolved = events(client, "debate.*.resolved").await?;
        let ended = resolved.iter().map(Stored::json).filter(|event| {
            let outcome = &event["data"]["outcome"];
            outcome["status"] == "cancelled" && outcome["ruled_by"]["expert"] == "olga"
        });
        let ended = ended.count();
        let all = (opened.len(), ended) == (debates, debates);
        all.then_some(())
            .ok_or_else(|| format!("{} were opened, {ended} have ended", opened.len()))
    })
    .await;
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_that_are_found_after_the_case_was_cancelled_are_not_debated() {
    let stage = without(Service::ConflictDetector).await;
    cancel(&stage);
    let detector = Service::ConflictDetector;
    stage.installation.restart(detector, 0).await.unwrap();
    all_end(&stage, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn debates_that_were_on_their_way_when_the_case_was_cancelled_end() {
    let stage = without(Service::DebateFacilitator).await;
    stage.event_of(&stage.case, "conflicts_received").await;
    stage.challenge().await;
    stage.event_of(&stage.case, "challenged").await;
    cancel(&stage);
    let facilitator = Service::DebateFacilitator;
    stage.installation.restart(facilitator, 0).await.unwrap();
    all_end(&stage, 2).await;
}
