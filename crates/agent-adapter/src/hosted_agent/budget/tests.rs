//! Budgets on a real broker.

use concord_runtime::broker::provision;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_testkit::TestBroker;

use super::*;

async fn replica(server: &TestBroker, budget: BudgetSettings) -> Arc<Budget> {
    let settings = BrokerSettings {
        servers: server.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true)
        .await
        .unwrap();
    provision::streams(&broker).await.unwrap();
    Arc::new(Budget::new(
        &broker,
        AdapterMetrics::default(),
        &Token::new("free").unwrap(),
        budget,
    ))
}

fn soon(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test]
async fn two_replicas_that_ask_at_once_are_granted_no_more_than_the_limit() {
    let server = TestBroker::start().await;
    let limits = BudgetSettings {
        requests_per_minute: Some(40),
        tokens_per_minute: None,
    };
    let replicas = [
        replica(&server, limits).await,
        replica(&server, limits).await,
    ];
    // Who wins the races that follow is a matter of luck; both have a part in the same minute.
    for budget in &replicas {
        budget.take(10, soon(5_000)).await.unwrap();
    }
    let mut tasks = Vec::new();
    for place in 0..100 {
        let budget = Arc::clone(&replicas[place % 2]);
        tasks.push(tokio::spawn(async move {
            (place % 2, budget.take(10, soon(20_000)).await)
        }));
    }
    let mut granted = [1, 1];
    for task in tasks {
        match task.await.unwrap() {
            (replica, Ok(_)) => granted[replica] += 1,
            (_, Err(failure)) => assert_eq!(
                failure.verdict.code,
                ErrorCode::CapacityExceeded,
                "{failure:?}"
            ),
        }
    }
    assert_eq!(granted[0] + granted[1], 40, "{granted:?}");
}

/// An agent can have the broker store an acknowledgement there.
#[tokio::test]
async fn what_stands_for_a_budget_and_is_none_is_replaced() {
    let server = TestBroker::start().await;
    let limits = BudgetSettings {
        requests_per_minute: Some(40),
        tokens_per_minute: None,
    };
    let budget = replica(&server, limits).await;
    for foreign in [br#"{"stream":"CONCORD_MESSAGES","seq":7}"#.as_slice(), b""] {
        let held = budget.register.read().await.unwrap();
        let replaced = budget.register.replace(held.as_ref(), foreign.into());
        assert!(replaced.await.unwrap());
        budget.lease().give_up();
        budget.take(1, soon(5_000)).await.unwrap();
    }
}

#[tokio::test]
async fn a_budget_of_tokens_alone_lets_as_many_calls_through_as_there_are_tokens_for() {
    let server = TestBroker::start().await;
    let limits = BudgetSettings {
        requests_per_minute: None,
        tokens_per_minute: Some(600_000),
    };
    let budget = replica(&server, limits).await;
    for call in 0..200 {
        let taken = budget.take(100, soon(5_000)).await;
        taken
            .unwrap_or_else(|failure| panic!("call {call} that there are tokens for: {failure:?}"));
    }
}

#[tokio::test]
async fn without_the_broker_nothing_is_granted() {
    let server = TestBroker::start().await;
    let budget = replica(
        &server,
        BudgetSettings {
            requests_per_minute: Some(40),
            tokens_per_minute: None,
        },
    )
    .await;
    budget.take(1, soon(5_000)).await.unwrap();
    server.server().kill();
    let failure = budget.take(1, soon(1_000)).await.unwrap_err();
    assert!(failure.why.contains("free"), "{failure:?}");
    assert!(
        matches!(
            failure.verdict.code,
            ErrorCode::AgentUnavailable | ErrorCode::CapacityExceeded
        ),
        "{failure:?}"
    );
    let begun = Instant::now();
    assert!(budget.take(1, soon(200)).await.is_err());
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn what_was_not_used_is_given_back_and_what_was_used_too_much_is_owed() {
    let server = TestBroker::start().await;
    let limits = BudgetSettings {
        requests_per_minute: Some(1_000),
        tokens_per_minute: Some(6_000),
    };
    let budget = replica(&server, limits).await;
    let charge = budget.take(1_000, soon(5_000)).await.unwrap();
    budget.settle(charge, 100);
    // From the same lease: 900 were given back, unless two seconds have gone by since.
    let fresh = budget.lease().left.tokens >= 900;
    assert!(fresh, "{}", budget.lease().left.tokens);
    let charge = budget.take(100, soon(5_000)).await.unwrap();
    budget.settle(charge, 3_000);
    let left = budget.lease().left.tokens;
    let owed = budget.lease().owed;
    assert_eq!((left, owed > 1_900), (0, true), "{left} {owed}");
    // The next lease is for what is owed, too; then not much is left of the minute.
    budget.take(100, soon(5_000)).await.unwrap();
    assert_eq!(budget.lease().owed, 0);
    let failure = budget.take(5_000, soon(3_000)).await.unwrap_err();
    assert_eq!(failure.verdict.code, ErrorCode::CapacityExceeded);
    // More than a minute has.
    assert!(
        budget
            .take(6_001, soon(3_000))
            .await
            .unwrap_err()
            .why
            .contains("in a minute")
    );
}

#[tokio::test]
async fn what_one_replica_has_not_used_another_may() {
    let server = TestBroker::start().await;
    let limits = BudgetSettings {
        requests_per_minute: None,
        tokens_per_minute: Some(6_000),
    };
    let [one, other] = [
        replica(&server, limits).await,
        replica(&server, limits).await,
    ];
    let charge = one.take(1_000, soon(5_000)).await.unwrap();
    one.settle(charge, 100);
    // It does not suffice for this, and is given back with the next lease.
    one.take(1_500, soon(5_000)).await.unwrap();
    other.take(4_400, soon(5_000)).await.unwrap();
    let failure = other.take(1, soon(3_000)).await.unwrap_err();
    assert_eq!(
        failure.verdict.code,
        ErrorCode::CapacityExceeded,
        "{failure:?}"
    );
}
