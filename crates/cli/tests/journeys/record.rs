//! A track record as an operator sees it.

use concord_domain::Context;
use concord_domain::aggregates::track_record::{Observe, TrackRecordMachine};
use concord_runtime::NatsPorts;
use concord_runtime::event_store::cache::Cache;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_runtime::{Aggregates, Broker, Outcome, broker::provision, service::clock};
use concord_testkit::TestBroker;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{self, Source};
use concord_wire::{AgentId, DebateId, MessageId, Timestamp};
use serde_json::{Value, json};

use crate::command::Session;

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
async fn fill(
    broker: &TestBroker,
    agent: &str,
    observations: Vec<Observation>,
    opener: impl Fn(usize) -> Option<AgentId>,
) {
    let settings = BrokerSettings {
        servers: broker.url(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), true)
        .await
        .unwrap();
    provision::streams(&broker).await.unwrap();
    let ledger = NatsPorts::new(broker).await.unwrap();
    let records = Aggregates::<TrackRecordMachine, _>::new(ledger, &Cache::new(0));
    let agent = AgentId::new(agent).unwrap();
    for (place, observation) in observations.into_iter().enumerate() {
        let id = format!("{agent}-{place}");
        let input = Observe {
            observation,
            debate_id: Some(DebateId::new(format!("d-{id}")).unwrap()),
            case_id: None,
            opened_by: opener(place),
            by: AgentId::new("back_office").unwrap(),
            imported: None,
            tell: None,
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
    let session = Session::new(broker.url());
    let mut observations: Vec<_> = (0..20)
        .map(|n| observation(n, n % 4 != 0, "valuation"))
        .collect();
    observations.extend([
        observation(900, true, "Credit Risk"),
        observation(0, false, "credit risk"),
    ]);
    fill(&broker, "ann", observations, |_| None).await;
    simple(&session).await;
    comprehensive(&session).await;
    months(&session).await;
    let unknown = "nothing is recorded of the agent ben";
    session.refused("record show ben", unknown).await;
    let cooking = "record show ann --domain cooking";
    session.refused(cooking, "\"cooking\"").await;
    session.refused(cooking, "credit risk, valuation").await;

    let replay = session.json("replay --all").await;
    assert_eq!(replay["identical"], true);
    let mut rebuilt = replay["rebuilt"].as_array().unwrap().iter();
    let records = rebuilt.find(|row| row["aggregate"] == "record").unwrap();
    assert_eq!(
        (&records["aggregates"], &records["facts"]),
        (&json!(1), &json!(22))
    );
}

/// The simple version, of all domains.
async fn simple(session: &Session) {
    let text = session.good("record show ann").await;
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
    let all = session.json("record show ann").await;
    assert_eq!(
        names(&all["domains"], "domain"),
        ["credit risk", "valuation"]
    );
    assert_eq!(
        (&all["agent_id"], &all["observations"], &all["forgotten"]),
        (&json!("ann"), &json!(22), &json!(0))
    );
}

/// How often the agent was right in each month: all observations of the domain, each in one month.
async fn months(session: &Session) {
    let shown = session.json("record show ann --domain 'credit risk'").await;
    let months = shown["domains"][0]["months"].as_array().unwrap();
    let seen: Vec<_> = months
        .iter()
        .map(|month| (&month["right"], &month["known"]))
        .collect();
    let (right, wrong) = ((&json!(1), &json!(1)), (&json!(0), &json!(1)));
    assert_eq!(seen, [right, wrong], "{months:?}");
    let this_month: String = clock::now().to_string().chars().take(7).collect();
    assert_eq!(months[1]["month"], json!(this_month));
    let text = session.good("record show ann --domain 'credit risk'").await;
    assert!(
        text.contains("MONTH") && text.contains(&this_month),
        "{text}"
    );
}

/// The comprehensive version, of one domain under circumstances.
async fn comprehensive(session: &Session) {
    let line = "record show ann --domain ' Valuation' --version comprehensive --regime bull_low_rates \
                --sector software --horizon 1y";
    let shown = session.json(line).await;
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
    let values = factors
        .iter()
        .map(|factor| factor["value"].as_f64().unwrap());
    let product: f64 = values.product();
    assert!(
        (product - credibility["score"].as_f64().unwrap()).abs() < 1e-9,
        "{credibility}"
    );
    let explanation = factors[2]["explanation"].as_str().unwrap();
    assert!(
        explanation.contains("of the 50 data points needed"),
        "{factors:?}"
    );
    let text = session.good(line).await;
    let asked = "asked    regime bull_low_rates, sector software, horizon 1y\n";
    assert!(text.contains(asked), "{text}");
    let text = session.good("record show ann --sector software").await;
    let unused = "only the comprehensive and the specialised version take that into account";
    assert!(text.contains(unused), "{text}");
}

/// Sixty observations of olga's cases and 29 of otto's: olga's weigh as much as those of otto, and no more.
#[tokio::test]
async fn a_record_says_what_of_one_openers_cases_is_held_back() {
    let broker = TestBroker::start().await;
    let session = Session::new(broker.url());
    let all: Vec<_> = (0..89).map(|n| observation(0, n < 60, "legal")).collect();
    let opener = |n| AgentId::new(if n < 60 { "olga" } else { "otto" }).ok();
    fill(&broker, "dan", all, opener).await;
    let text = session.good("record show dan").await;
    for seen in [
        "record dan  89 observations",
        "29.0 of 58.0 observations in the domain were correct: 0.500.",
        "31 of 60 points of olga's cases are held back: above 20 points, no opener's cases weigh more than all others \
         together",
        "58.0 data points: enough",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let shown = session.json("record show dan").await;
    let credibility = &shown["domains"][0]["credibility"];
    assert_eq!(
        credibility["held_back"],
        json!({"opened_by": "olga", "points": 60.0, "held": 31.0})
    );
    let score = credibility["score"].as_f64().unwrap();
    assert!((score - 0.5).abs() < 1e-9, "{credibility}");
}

/// A file of records decides nothing less than what was observed here: fifteen rows reach level 2.
#[tokio::test]
async fn records_are_imported_once_and_only_where_all_are_good() {
    let installation = concord_testkit::TestInstallation::start_without_adapter().await;
    let session = Session::new(installation.server_url());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut rows = String::from("agent,domain,metric,outcome,at,source\n");
    let today = clock::now().to_string();
    for n in 0..30 {
        let (outcome, metric) = (if n % 3 == 0 { "wrong" } else { "right" }, n);
        rows.push_str(&format!(
            "ann,valuation,m{metric},{outcome},{today},back-test\n"
        ));
    }
    let bad = file(
        "bad.csv",
        &format!("{rows}ann,valuation,,maybe,{today},back-test\n"),
    );
    let good = file("good.csv", &rows);
    let refused = session.run(&format!("record import {bad} --by olga")).await;
    let why = refused.refused(65);
    assert!(why.contains("line 32: outcome is"), "{why}");
    session
        .refused("record show ann", "nothing is recorded of the agent ann")
        .await;
    let first = session
        .json(&format!("record import {good} --by olga"))
        .await;
    assert_eq!(
        (&first["imported"], &first["known"]),
        (&json!(30), &json!(0))
    );
    let again = format!("record import {bad} --by olga --skip-bad");
    let again = session.json(&again).await;
    assert_eq!(
        (&again["imported"], &again["known"]),
        (&json!(0), &json!(30))
    );
    assert_eq!(again["skipped"][0]["line"], 32);

    let text = session.good("record show ann").await;
    assert!(text.contains("20 of 30 observations"), "{text}");
    let narrower = "record show ann --domain valuation.revenue --version specialised";
    let narrower = session.json(narrower).await;
    let credibility = &narrower["domains"][0]["credibility"];
    let points = credibility["data_points"].as_f64().unwrap();
    assert!((points - 15.0).abs() < 1e-9, "{narrower}");
    session
        .refused(
            "record show ann --domain valuation.revenue",
            "\"valuation.revenue\"",
        )
        .await;
}
