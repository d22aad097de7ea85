//! Properties of any calendar.

use super::*;

/// An instant in 2026, to the second.
fn instant() -> impl Strategy<Value = Timestamp> {
    (0u64..365 * 86_400).prop_map(|seconds| at("2026-01-01T00:00:00Z").plus_millis(seconds * 1_000))
}

/// Whether clocks show an open time, without regard to what they show twice or not at all.
fn is_open(calendar: &Calendar, zone: &TimeZone, instant: Timestamp) -> bool {
    let shown = zone.to_datetime(jiff::Timestamp::from_millisecond(instant.unix_millis()).unwrap());
    let (date, time) = (
        shown.date(),
        format!("{:02}:{:02}", shown.hour(), shown.minute()),
    );
    let is_day = calendar.days.contains(&Weekday::of(date))
        && !calendar.holidays.contains(&date.to_string());
    is_day && calendar.opens <= time && time < calendar.closes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn open_time_until_it_is_due_is_the_duration(
        calendar in any_calendar(), start in instant(), millis in 0u64..3 * DAY,
    ) {
        let calendar = Some(&calendar);
        let end = due(start, millis, calendar);
        prop_assert!(end >= start);
        prop_assert_eq!(open_millis(start, end, calendar), millis);
        if millis > 0 {
            let before = Timestamp::from_unix_millis(end.unix_millis() - 1);
            prop_assert_eq!(open_millis(start, before, calendar), millis - 1, "it is the first such instant");
        }
    }

    #[test]
    fn later_or_longer_is_not_due_earlier(
        calendar in any_calendar(), a in instant(), b in instant(), millis in 0u64..3 * DAY, more in 0u64..DAY,
    ) {
        let (first, second, calendar) = (a.min(b), a.max(b), Some(&calendar));
        prop_assert!(due(first, millis, calendar) <= due(second, millis, calendar));
        prop_assert!(due(first, millis, calendar) <= due(first, millis + more, calendar));
    }

    #[test]
    fn open_time_adds_up(calendar in any_calendar(), a in instant(), b in instant(), c in instant()) {
        let mut at = [a, b, c];
        at.sort();
        let open = |from: usize, to: usize| open_millis(at[from], at[to], Some(&calendar));
        prop_assert_eq!(open(0, 1) + open(1, 2), open(0, 2));
        prop_assert!(open(0, 2) <= at[2].millis_since(at[0]));
    }

    #[test]
    fn shares_are_in_order_and_between(
        calendar in any_calendar(), start in instant(), millis in 0u64..3 * DAY, a in 0.0..=1.0f64, b in 0.0..=1.0f64,
    ) {
        let calendar = Some(&calendar);
        let end = due(start, millis, calendar);
        let (first, second) = (fraction(start, end, a.min(b), calendar), fraction(start, end, a.max(b), calendar));
        prop_assert!(start <= first && first <= second && second <= end);
    }

    #[test]
    fn minute_by_minute_it_is_what_clocks_show(calendar in any_calendar(), start in instant()) {
        // Clocks are put forward or back between midnight and four; what counts then is the other tests' concern.
        let calendar = match calendar.opens.as_str() < "04:00" {
            true => Calendar { opens: "04:00".into(), closes: "24:00".into(), ..calendar },
            false => calendar,
        };
        let start = Timestamp::from_unix_millis(start.unix_millis().div_euclid(MINUTE as i64) * MINUTE as i64);
        let minutes = 3 * 1_440;
        let zone = TimeZoneDatabase::bundled().get(&calendar.time_zone).unwrap();
        let shown = (0..minutes).filter(|n| is_open(&calendar, &zone, start.plus_millis(n * MINUTE))).count() as u64;
        let end = start.plus_millis(minutes * MINUTE);
        prop_assert_eq!(open_millis(start, end, Some(&calendar)), shown * MINUTE);
    }
}
