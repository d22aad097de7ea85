use concord_wire::payload::Weekday;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use proptest::prelude::*;

use super::*;

mod clocks;
mod random;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Monday to Friday, nine to half past five, in Berlin; Christmas is closed.
fn office() -> Calendar {
    calendar(
        "Europe/Berlin",
        "09:00",
        "17:30",
        &Weekday::ALL[..5],
        &["2026-12-25", "2027-01-01"],
    )
}

fn calendar(
    zone: &str,
    opens: &str,
    closes: &str,
    days: &[Weekday],
    holidays: &[&str],
) -> Calendar {
    let holidays = holidays.iter().map(|day| (*day).to_owned()).collect();
    let calendar = Calendar {
        time_zone: zone.into(),
        days: days.to_vec(),
        opens: opens.into(),
        closes: closes.into(),
        holidays,
    };
    assert_eq!(calendar.check(""), Ok(()));
    calendar
}

/// Every day, from and to these times of the day.
fn daily(zone: &str, opens: &str, closes: &str) -> Calendar {
    calendar(zone, opens, closes, &Weekday::ALL, &[])
}

#[test]
fn without_a_calendar_all_time_counts() {
    let start = at("2026-12-24T23:00:00Z");
    assert_eq!(due(start, 6 * HOUR, None), at("2026-12-25T05:00:00Z"));
    assert_eq!(due(start, u64::MAX, None), at("9999-12-31T23:59:59.999Z"));
    assert_eq!(
        fraction(start, at("2026-12-25T05:00:00Z"), 0.5, None),
        at("2026-12-25T02:00:00Z")
    );
    assert_eq!(open_millis(start, start.plus_millis(7), None), 7);
}

/// A start, hours of open time at the office, and when they have passed.
const OPEN_TIME: [(&str, &str, f64, &str); 13] = [
    (
        "within a day",
        "2026-12-14T09:00:00+01:00",
        6.0,
        "2026-12-14T15:00:00+01:00",
    ),
    (
        "over the night",
        "2026-12-14T15:00:00+01:00",
        6.0,
        "2026-12-15T12:30:00+01:00",
    ),
    (
        "over the weekend",
        "2026-12-18T15:00:00+01:00",
        6.0,
        "2026-12-21T12:30:00+01:00",
    ),
    (
        "over Christmas",
        "2026-12-24T15:00:00+01:00",
        6.0,
        "2026-12-28T12:30:00+01:00",
    ),
    (
        "over Christmas and New Year",
        "2026-12-24T17:30:00+01:00",
        8.5 * 4.0 + 1.0,
        "2027-01-04T10:00:00+01:00",
    ),
    (
        "from before opening",
        "2026-12-14T03:00:00+01:00",
        1.0,
        "2026-12-14T10:00:00+01:00",
    ),
    (
        "from after closing",
        "2026-12-14T17:31:00+01:00",
        1.0,
        "2026-12-15T10:00:00+01:00",
    ),
    (
        "from a Sunday",
        "2026-12-20T12:00:00+01:00",
        1.0,
        "2026-12-21T10:00:00+01:00",
    ),
    (
        "from a holiday",
        "2026-12-25T12:00:00+01:00",
        1.0,
        "2026-12-28T10:00:00+01:00",
    ),
    (
        "from closing",
        "2026-12-14T17:30:00+01:00",
        1.0,
        "2026-12-15T10:00:00+01:00",
    ),
    (
        "to closing, not to the next opening",
        "2026-12-14T09:00:00+01:00",
        8.5,
        "2026-12-14T17:30:00+01:00",
    ),
    (
        "a week",
        "2026-12-07T09:00:00+01:00",
        42.5,
        "2026-12-11T17:30:00+01:00",
    ),
    (
        "nothing, while closed",
        "2026-12-20T12:00:00+01:00",
        0.0,
        "2026-12-20T12:00:00+01:00",
    ),
];

#[test]
fn with_a_calendar_open_time_counts() {
    // Berlin is an hour ahead of UTC in winter. The 18th of December is a Friday, the 25th and the
    // 1st are closed.
    for (what, start, hours, expected) in OPEN_TIME {
        let millis = (hours * HOUR as f64) as u64;
        assert_eq!(
            due(at(start), millis, Some(&office())),
            at(expected),
            "{what}"
        );
        assert_eq!(
            open_millis(at(start), at(expected), Some(&office())),
            millis,
            "{what}"
        );
    }
    let opening = at("2026-12-14T09:00:00+01:00");
    assert_eq!(
        due(opening.plus_millis(0), 1, Some(&office())),
        opening.plus_millis(1),
        "a millisecond"
    );
}

#[test]
fn a_reminder_counts_open_time_too() {
    let start = at("2026-12-18T15:00:00+01:00");
    let end = due(start, 6 * HOUR, Some(&office()));
    for (share, expected) in [
        (0.0, "2026-12-18T15:00:00+01:00"),
        (0.25, "2026-12-18T16:30:00+01:00"),
        (0.5, "2026-12-21T09:30:00+01:00"),
        (0.9, "2026-12-21T11:54:00+01:00"),
        (1.0, "2026-12-21T12:30:00+01:00"),
        (7.0, "2026-12-21T12:30:00+01:00"),
        (-1.0, "2026-12-18T15:00:00+01:00"),
        (f64::NAN, "2026-12-18T15:00:00+01:00"),
    ] {
        assert_eq!(
            fraction(start, end, share, Some(&office())),
            at(expected),
            "{share}"
        );
    }
    // An operator may have set an instant between which and the start nobody works.
    let (night, later) = (
        at("2026-12-18T20:00:00+01:00"),
        at("2026-12-18T22:00:00+01:00"),
    );
    assert_eq!(
        fraction(night, later, 0.5, Some(&office())),
        at("2026-12-18T21:00:00+01:00")
    );
    assert_eq!(
        fraction(later, night, 0.5, Some(&office())),
        later,
        "due before it begins: at once"
    );
}

#[test]
fn work_is_bounded_and_what_makes_no_sense_counts_for_nothing() {
    let start = at("2026-12-18T15:00:00+01:00");
    let end = at("2076-12-17T20:00:00+01:00");
    assert_eq!(
        due(start, u64::MAX, Some(&office())).millis_since(end),
        0,
        "{}",
        due(start, u64::MAX, Some(&office()))
    );
    let years = due(start, u64::MAX, Some(&office())).millis_since(start) as f64 / YEAR_MS as f64;
    assert!((years - 50.0).abs() < 0.01, "{years}");
    assert_eq!(
        due(at("9999-12-31T20:00:00Z"), HOUR, Some(&office())),
        at("9999-12-31T23:59:59.999Z")
    );
    assert!(due(at("0001-01-01T00:00:00Z"), HOUR, Some(&office())) < at("0001-01-03T00:00:00Z"));
    let (first, last) = (at("0001-01-01T00:00:00Z"), at("9999-12-31T00:00:00Z"));
    let fifty = open_millis(
        first,
        first.plus_millis(YEARS_MAX * YEAR_MS),
        Some(&office()),
    );
    assert_eq!(open_millis(first, last, Some(&office())), fifty);
    let nowhere = Calendar {
        time_zone: "Europe/Berlim".into(),
        ..office()
    };
    assert_eq!(due(start, HOUR, Some(&nowhere)), start.plus_millis(HOUR));
    assert_eq!(
        fraction(start, start.plus_millis(HOUR), 0.5, Some(&nowhere)),
        start.plus_millis(HOUR / 2)
    );
}

// === Properties ===

fn any_calendar() -> impl Strategy<Value = Calendar> {
    const ZONES: [&str; 6] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Asia/Beirut",
    ];
    let days = proptest::collection::btree_set(proptest::sample::select(&Weekday::ALL), 1..8);
    let holidays = proptest::collection::btree_set(1u32..29, 0..20);
    (
        proptest::sample::select(&ZONES),
        0u32..=1_380,
        60u32..=1_440,
        days,
        holidays,
    )
        .prop_map(|(zone, opens, length, days, holidays)| {
            let closes = (opens + length).min(1_440);
            let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
            Calendar {
                time_zone: zone.into(),
                days: days.into_iter().collect(),
                opens: time(opens),
                closes: time(closes),
                holidays: holidays
                    .into_iter()
                    .map(|day| format!("2026-03-{day:02}"))
                    .collect(),
            }
        })
}
