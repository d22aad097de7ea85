//! The contract net: bids, the award, and the next best.

use super::*;

fn net(more: Value) -> Stage {
    Stage::open("contract_net", &["ann", "ben", "cyd", "dan"], more)
}

#[test]
fn the_best_bid_is_awarded_and_the_next_best_when_the_winner_fails() {
    let mut stage = net(json!({ "bids_ms": 5_000 }));
    let called = stage.sent();
    let calls = called
        .iter()
        .filter(|(kind, _)| *kind == MessageType::CallForProposals);
    assert_eq!((calls.count(), stage.asked().len()), (4, 0));
    assert_eq!(stage.bid("ann", 10.0, 100), "bid");
    assert_eq!(stage.bid("ben", 5.0, 100), "bid");
    assert_eq!(stage.bid("cyd", 20.0, 100), "bid");
    assert_eq!(
        stage.bid("ben", 1.0, 100),
        "refused: /reply_to",
        "a second bid"
    );
    assert_eq!(
        stage.bid("eve", 1.0, 1),
        "refused: /reply_to",
        "she was not called"
    );
    assert_eq!(stage.bid("dan", -1.0, 1), "refused: /payload/price");
    assert_eq!(stage.bid("dan", f64::NAN, 1), "refused: /payload/price");
    assert_eq!(stage.outcome(), None);
    assert_eq!(stage.say("dan", Word::Refuse("no time".into())), "declined");
    // Everybody has answered, so nobody waits for the deadline.
    assert_eq!(stage.asked(), ["ben"]);
    let told: Vec<String> = stage.sent().into_iter().map(|(_, to)| to).collect();
    assert_eq!(told, ["ann", "cyd"], "they are in reserve");
    stage.places(&["ben"]);
    assert_eq!(stage.sent(), [(MessageType::Award, "ben".to_owned())]);
    assert_eq!(
        stage.result("ann", json!(1)),
        "refused: /reply_to",
        "ann was not awarded it"
    );
    assert_eq!(
        stage.report("ben", json!({ "status": "failure" })),
        "reported"
    );
    assert_eq!(stage.asked(), ["ann"]);
    assert!(stage.sent().is_empty(), "the others were told before");
    stage.places(&["ann"]);
    assert_eq!(stage.lose("ann"), "lost");
    assert_eq!(stage.asked(), ["cyd"]);
    stage.places(&["cyd"]);
    stage.result("cyd", json!(3));
    assert_eq!(stage.completed(), json!({ "result": 3, "partial": false }));
}

#[test]
fn a_short_task_leaves_time_for_whoever_is_awarded_it() {
    let stage = net(json!({ "deadline_ms": 8_000 }));
    let TaskEvent::Opened(opened) = &stage.story.records[0].event else {
        panic!()
    };
    let left = opened.bids_due.map(|due| opened.due.millis_since(due));
    assert_eq!(left, Some(4_000));
}

#[test]
fn bids_count_until_they_are_due_and_without_any_the_task_fails() {
    let mut stage = net(json!({ "bids_ms": 5_000 }));
    stage.bid("ann", 10.0, 100);
    assert_eq!(stage.elapse(BIDS), "elapsed");
    assert_eq!(stage.asked(), ["ann"]);
    assert_eq!(stage.bid("ben", 1.0, 1), "refused: /reply_to");
    let mut stage = net(json!({ "bids_ms": 5_000 }));
    stage.clock = 5_001;
    assert_eq!(
        stage.bid("ben", 1.0, 1),
        "refused: /reply_to",
        "the deadline is on its way"
    );
    assert_eq!(stage.elapse(BIDS), "elapsed");
    assert_eq!(
        stage.failed(),
        (ErrorCode::AgentUnavailable, "no_bids".into())
    );
}

#[test]
fn the_weights_say_what_is_best_and_of_equals_the_first_wins() {
    for (weights, bids, expected) in [
        (json!({}), [(1.0, 9), (9.0, 1)], "ann"),
        (json!({ "time": 3.0 }), [(1.0, 9), (9.0, 1)], "ben"),
        (
            json!({ "price": 0.0, "time": 0.0 }),
            [(5.0, 5), (1.0, 1)],
            "ann",
        ),
        (json!({}), [(0.0, 0), (0.0, 0)], "ann"),
    ] {
        let more = json!({ "weights": weights });
        let mut stage = Stage::open("contract_net", &["ann", "ben"], more);
        stage.bid("ann", bids[0].0, bids[0].1);
        stage.bid("ben", bids[1].0, bids[1].1);
        assert_eq!(stage.asked(), [expected], "{weights}");
    }
}

#[test]
fn of_equal_bids_the_more_reliable_bidder_wins() {
    let mut stage = Stage::open("contract_net", &["ann", "ben"], json!({}));
    let bid = Bid {
        price: 1.0,
        time_ms: 1,
        confidence: 1.0,
        capability: 1.0,
        proposal: String::new(),
    };
    stage.say("ann", Word::Bid(bid.clone(), 0.4));
    stage.say("ben", Word::Bid(bid, 0.6));
    assert_eq!(stage.asked(), ["ben"]);
}
