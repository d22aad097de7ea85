//! A track record as an operator sees it.

use std::num::NonZeroUsize;

use concord_domain::Context;
use concord_domain::aggregates::track_record::{Observe, TrackRecordMachine};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Aggregates, Broker, Outcome, broker::provision, service::clock};
use concord_testkit::TestBroker;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{self, Source};
use concord_wire::{AgentId, DebateId, MessageId, Timestamp};
use serde_json::{Value, json};

use crate::command::run;

const DAY_MS: i64 = 86_400_000;

fn observation(days_ago: i64, correct: bool, domain: &str) -> Observation {
    Observation {
        at: Timestamp::from_unix_millis(clock::now().unix_millis() - days_ago * DAY_MS),
        correct,
        domain: domain.to_owned(),
        regime: Some("bull_low_rates".into()),
        context: track_record::Context {
            sector: Some("Software".into()),
            ..track_record::Context::default()
        },
        source: Source::Outcome,
        overridden: false,
    }
}

/// Records what an agent was seen to do, as the debate facilitator does: one step an observation.
async fn fill(broker: &TestBroker, agent: &str, observations: Vec<Observation>) {
    let settings = BrokerSettings {
        servers: broker.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true)
        .await
        .unwrap();
    provision::streams(&broker).await.unwrap();
    let ledger = NatsEventStore::new(broker).await.unwrap();
    let records = Aggregates::<TrackRecordMachine, _>::new(ledger, NonZeroUsize::MIN);
    let agent = AgentId::new(agent).unwrap();
    for (place, observation) in observations.into_iter().enumerate() {
        let id = format!("{agent}-{place}");
        let input = Observe {
            observation,
            debate_id: Some(DebateId::new(format!("d-{id}")).unwrap()),
            case_id: None,
            by: AgentId::new("back_office").unwrap(),
        };
        let context = Context::of_message(clock::now(), MessageId::new(id).unwrap());
        let outcome = records
            .step(&agent.token(), &context, &input, None)
            .await
            .unwrap();
        assert!(matches!(outcome, Outcome::Appended { .. }), "{outcome:?}");
    }
}

fn names(list: &Value, field: &str) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item[field].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_track_record_is_explained_factor_by_factor() {
    let broker = TestBroker::start().await;
    let url = broker.url();
    let record = async |arguments: &[&str]| {
        run(&[&["record", "show"], arguments, &["--server", &url]].concat()).await
    };
    let mut observations: Vec<_> = (0..20)
        .map(|n| observation(n, n % 4 != 0, "valuation"))
        .collect();
    observations.extend([
        observation(900, true, "Credit Risk"),
        observation(0, false, "credit risk"),
    ]);
    fill(&broker, "ann", observations).await;

    let text = record(&["ann"]).await.good();
    for seen in [
        "record ann  22 observations",
        "version  simple",
        "credit risk  ",
        "data points: 15 are needed",
        "valuation  ",
        "15 of 20 observations in the domain were correct: 0.750.",
        "enough to decide a debate by credibility",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let all = record(&["ann", "--json"]).await.json();
    assert_eq!(
        names(&all["domains"], "domain"),
        ["credit risk", "valuation"]
    );
    assert_eq!(
        (&all["agent_id"], &all["observations"], &all["forgotten"]),
        (&json!("ann"), &json!(22), &json!(0))
    );

    let asked = [
        "ann",
        "--domain",
        " Valuation",
        "--version",
        "comprehensive",
        "--regime",
        "bull_low_rates",
    ];
    let asked = [&asked[..], &["--sector", "software", "--horizon", "1y"]].concat();
    let shown = record(&[&asked[..], &["--json"]].concat()).await.json();
    assert_eq!(
        (&shown["version"], &shown["regime"]),
        (&json!("comprehensive"), &json!("bull_low_rates"))
    );
    assert_eq!(
        shown["context"],
        json!({"sector": "software", "horizon": "1y"})
    );
    let credibility = &shown["domains"][0]["credibility"];
    let factors = credibility["factors"].as_array().unwrap();
    assert_eq!(
        names(&credibility["factors"], "name"),
        [
            "base_accuracy",
            "temporal_weight",
            "regime_adjustment",
            "context_match",
            "trend_adjusted",
            "override_penalty"
        ]
    );
    let product: f64 = factors
        .iter()
        .map(|factor| factor["value"].as_f64().unwrap())
        .product();
    assert!(
        (product - credibility["score"].as_f64().unwrap()).abs() < 1e-9,
        "{credibility}"
    );
    assert!(
        factors[2]["explanation"]
            .as_str()
            .unwrap()
            .contains("of the 50 data points needed"),
        "{factors:?}"
    );
    let text = record(&asked).await.good();
    assert!(
        text.contains("asked    regime bull_low_rates, sector software, horizon 1y\n"),
        "{text}"
    );
    let text = record(&["ann", "--sector", "software"]).await.good();
    assert!(
        text.contains("only the comprehensive version takes that into account"),
        "{text}"
    );

    let error = record(&["ben"]).await.refused(1);
    assert!(
        error.contains("nothing is recorded of the agent ben"),
        "{error}"
    );
    let error = record(&["ann", "--domain", "cooking"]).await.refused(1);
    assert!(
        error.contains("\"cooking\"") && error.contains("credit risk, valuation"),
        "{error}"
    );

    let replay = run(&["replay", "--all", "--json", "--server", &url])
        .await
        .json();
    assert_eq!(replay["identical"], true);
    let records = replay["rebuilt"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["aggregate"] == "record")
        .unwrap();
    assert_eq!(
        (&records["aggregates"], &records["facts"]),
        (&json!(1), &json!(22))
    );
}
