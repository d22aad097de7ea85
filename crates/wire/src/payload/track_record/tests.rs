//! Bounds and names of what track records hold.

use serde_json::{Value, json};

use super::*;
use crate::payload::NAME_BYTES_MAX;

fn observation(more: Value) -> Observation {
    let mut observation = json!({"at": "2026-01-01T00:00:00Z", "correct": true, "domain": "valuation", "source": "outcome"});
    let fields = more.as_object().unwrap().clone();
    observation.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(observation).unwrap()
}

#[test]
fn names_are_refused_at_their_place() {
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    for (more, pointer) in [
        (json!({"domain": " "}), "/payload/observation/domain"),
        (json!({"domain": long}), "/payload/observation/domain"),
        (json!({"regime": long}), "/payload/observation/regime"),
        (
            json!({"context": {"sector": "software", "stage": long}}),
            "/payload/observation/context/stage",
        ),
    ] {
        let fault = observation(more).check("/payload/observation").unwrap_err();
        assert_eq!(fault.pointer, pointer);
    }
    let good = "x".repeat(NAME_BYTES_MAX);
    assert_eq!(
        observation(json!({"domain": good, "regime": good, "context": {"size": good}})).check(""),
        Ok(())
    );
}

#[test]
fn what_is_not_known_is_left_out() {
    let written = serde_json::to_value(observation(json!({}))).unwrap();
    let expected = json!({"at": "2026-01-01T00:00:00.000Z", "correct": true, "domain": "valuation",
        "context": {}, "source": "outcome", "overridden": false});
    assert_eq!(written, expected);
    assert_eq!(
        serde_json::to_value(Version::default()).unwrap(),
        json!("simple")
    );
    assert_eq!(
        serde_json::to_value(SettlementReason::GapTooSmall).unwrap(),
        json!("gap_too_small")
    );
    assert_eq!(serde_json::to_value(Side::A).unwrap(), json!("a"));
}

#[test]
fn a_factor_is_named_as_it_is_written() {
    for name in [
        FactorName::BaseAccuracy,
        FactorName::TemporalWeight,
        FactorName::RegimeAdjustment,
        FactorName::ContextMatch,
        FactorName::TrendAdjusted,
        FactorName::OverridePenalty,
    ] {
        assert_eq!(serde_json::to_value(name).unwrap(), json!(name.as_str()));
    }
}
