use concord_wire::payload::Weekday;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use proptest::prelude::*;

use super::*;

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

#[test]
fn with_a_calendar_open_time_counts() {
    // Berlin is an hour ahead of UTC in winter. The 18th of December is a Friday, the 25th and the 1st are closed.
    for (what, start, hours, expected) in [
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
    ] {
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
fn clocks_that_are_put_forward_or_back() {
    // Berlin: forward on 29 March 2026 at 2:00, back on 25 October at 3:00. New York: 8 March and 1 November at 2:00.
    let nights = |zone| daily(zone, "01:00", "04:00");
    let days = |zone| daily(zone, "09:00", "17:00");
    let always = |zone| daily(zone, "00:00", "24:00");
    let (berlin, york) = ("Europe/Berlin", "America/New_York");
    for (what, calendar, start, hours, expected) in [
        (
            "days, forward",
            days(berlin),
            "2026-03-28T16:00:00+01:00",
            2,
            "2026-03-29T10:00:00+02:00",
        ),
        (
            "days, back",
            days(berlin),
            "2026-10-24T16:00:00+02:00",
            2,
            "2026-10-25T10:00:00+01:00",
        ),
        (
            "the night of 2 hours",
            nights(berlin),
            "2026-03-29T01:00:00+01:00",
            2,
            "2026-03-29T04:00:00+02:00",
        ),
        (
            "and 1 of the next",
            nights(berlin),
            "2026-03-29T01:00:00+01:00",
            3,
            "2026-03-30T02:00:00+02:00",
        ),
        (
            "the night of 4 hours",
            nights(berlin),
            "2026-10-25T01:00:00+02:00",
            4,
            "2026-10-25T04:00:00+01:00",
        ),
        (
            "the second time 2:00 is shown",
            nights(berlin),
            "2026-10-25T01:00:00+02:00",
            2,
            "2026-10-25T02:00:00+01:00",
        ),
        (
            "a day of 23 hours",
            always(berlin),
            "2026-03-29T00:00:00+01:00",
            23,
            "2026-03-30T00:00:00+02:00",
        ),
        (
            "a day of 25 hours",
            always(berlin),
            "2026-10-25T00:00:00+02:00",
            25,
            "2026-10-26T00:00:00+01:00",
        ),
        (
            "days, forward",
            days(york),
            "2026-03-07T16:00:00-05:00",
            2,
            "2026-03-08T10:00:00-04:00",
        ),
        (
            "days, back",
            days(york),
            "2026-10-31T16:00:00-04:00",
            2,
            "2026-11-01T10:00:00-05:00",
        ),
        (
            "the night of 2 hours",
            nights(york),
            "2026-03-08T01:00:00-05:00",
            2,
            "2026-03-08T04:00:00-04:00",
        ),
        (
            "the night of 4 hours",
            nights(york),
            "2026-11-01T01:00:00-04:00",
            4,
            "2026-11-01T04:00:00-05:00",
        ),
        (
            "a day of 23 hours",
            always(york),
            "2026-03-08T00:00:00-05:00",
            23,
            "2026-03-09T00:00:00-04:00",
        ),
        (
            "a day of 25 hours",
            always(york),
            "2026-11-01T00:00:00-04:00",
            25,
            "2026-11-02T00:00:00-05:00",
        ),
        (
            "by the rule, in 2049",
            days(york),
            "2049-03-13T16:00:00-05:00",
            2,
            "2049-03-14T10:00:00-04:00",
        ),
    ] {
        let zone = &calendar.time_zone;
        assert_eq!(
            due(at(start), hours * HOUR, Some(&calendar)),
            at(expected),
            "{what}, {zone}"
        );
    }
}

#[test]
fn times_that_clocks_leave_out_or_show_twice() {
    for (what, calendar, start, minutes, expected) in [
        // 2:00 to 3:00 is left out.
        (
            "opens in the hour",
            daily("Europe/Berlin", "02:30", "04:00"),
            "03-29T00:00:00+01:00",
            60,
            "03-29T04:00:00+02:00",
        ),
        (
            "closes in it",
            daily("Europe/Berlin", "01:00", "02:30"),
            "03-29T00:00:00+01:00",
            60,
            "03-29T03:00:00+02:00",
        ),
        (
            "is it",
            daily("Europe/Berlin", "02:10", "02:50"),
            "03-29T00:00:00+01:00",
            1,
            "03-30T02:11:00+02:00",
        ),
        // 2:00 to 3:00 is shown twice.
        (
            "opens in it",
            daily("Europe/Berlin", "02:30", "04:00"),
            "10-25T00:00:00+02:00",
            60,
            "10-25T02:30:00+01:00",
        ),
        (
            "closes in it",
            daily("Europe/Berlin", "01:00", "02:30"),
            "10-25T00:00:00+02:00",
            91,
            "10-26T01:01:00+01:00",
        ),
        // Midnight is left out in Beirut.
        (
            "no midnight",
            daily("Asia/Beirut", "00:00", "24:00"),
            "03-29T00:00:00+02:00",
            60,
            "03-29T02:00:00+03:00",
        ),
    ] {
        let (start, expected) = (
            at(&format!("2026-{start}")),
            at(&format!("2026-{expected}")),
        );
        assert_eq!(
            due(start, minutes * MINUTE, Some(&calendar)),
            expected,
            "{what}"
        );
    }
    // Samoa had no 30th of December 2011.
    let samoa = daily("Pacific/Apia", "09:00", "17:00");
    assert_eq!(
        due(at("2011-12-29T16:00:00-10:00"), 2 * HOUR, Some(&samoa)),
        at("2011-12-31T10:00:00+14:00")
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
