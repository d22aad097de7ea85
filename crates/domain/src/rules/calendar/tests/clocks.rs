//! Days on which clocks are put forward or back.

use super::*;

const BERLIN: &str = "Europe/Berlin";

const YORK: &str = "America/New_York";

/// Opening hours in a time zone, a start, hours of open time, and when they have passed.
const CLOCK_CHANGES: [(&str, (&str, &str), &str, u64, &str); 15] = [
    (
        "days, forward",
        ("days", BERLIN),
        "2026-03-28T16:00:00+01:00",
        2,
        "2026-03-29T10:00:00+02:00",
    ),
    (
        "days, back",
        ("days", BERLIN),
        "2026-10-24T16:00:00+02:00",
        2,
        "2026-10-25T10:00:00+01:00",
    ),
    (
        "the night of 2 hours",
        ("nights", BERLIN),
        "2026-03-29T01:00:00+01:00",
        2,
        "2026-03-29T04:00:00+02:00",
    ),
    (
        "and 1 of the next",
        ("nights", BERLIN),
        "2026-03-29T01:00:00+01:00",
        3,
        "2026-03-30T02:00:00+02:00",
    ),
    (
        "the night of 4 hours",
        ("nights", BERLIN),
        "2026-10-25T01:00:00+02:00",
        4,
        "2026-10-25T04:00:00+01:00",
    ),
    (
        "the second time 2:00 is shown",
        ("nights", BERLIN),
        "2026-10-25T01:00:00+02:00",
        2,
        "2026-10-25T02:00:00+01:00",
    ),
    (
        "a day of 23 hours",
        ("always", BERLIN),
        "2026-03-29T00:00:00+01:00",
        23,
        "2026-03-30T00:00:00+02:00",
    ),
    (
        "a day of 25 hours",
        ("always", BERLIN),
        "2026-10-25T00:00:00+02:00",
        25,
        "2026-10-26T00:00:00+01:00",
    ),
    (
        "days, forward",
        ("days", YORK),
        "2026-03-07T16:00:00-05:00",
        2,
        "2026-03-08T10:00:00-04:00",
    ),
    (
        "days, back",
        ("days", YORK),
        "2026-10-31T16:00:00-04:00",
        2,
        "2026-11-01T10:00:00-05:00",
    ),
    (
        "the night of 2 hours",
        ("nights", YORK),
        "2026-03-08T01:00:00-05:00",
        2,
        "2026-03-08T04:00:00-04:00",
    ),
    (
        "the night of 4 hours",
        ("nights", YORK),
        "2026-11-01T01:00:00-04:00",
        4,
        "2026-11-01T04:00:00-05:00",
    ),
    (
        "a day of 23 hours",
        ("always", YORK),
        "2026-03-08T00:00:00-05:00",
        23,
        "2026-03-09T00:00:00-04:00",
    ),
    (
        "a day of 25 hours",
        ("always", YORK),
        "2026-11-01T00:00:00-04:00",
        25,
        "2026-11-02T00:00:00-05:00",
    ),
    (
        "by the rule, in 2049",
        ("days", YORK),
        "2049-03-13T16:00:00-05:00",
        2,
        "2049-03-14T10:00:00-04:00",
    ),
];

#[test]
fn clocks_that_are_put_forward_or_back() {
    // Berlin: forward on 29 March 2026 at 2:00, back on 25 October at 3:00. New York: 8 March and 1
    // November at 2:00.
    for (what, (hours_of, zone), start, hours, expected) in CLOCK_CHANGES {
        let calendar = match hours_of {
            "nights" => daily(zone, "01:00", "04:00"),
            "days" => daily(zone, "09:00", "17:00"),
            _ => daily(zone, "00:00", "24:00"),
        };
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
