//! Working hours: when a duration of open time has passed in a calendar.
//!
//! A day is open from the first instant at which the clocks of its time zone show the time at which it opens, or a later
//! one of that day, to the first instant at which they show the time at which it closes. So an hour that clocks leave out
//! is not counted, one that they repeat is counted where it lies within opening hours, and no time is counted twice.
//!
//! Time zones come from the database that is built in, so every process of a build computes the same, whatever is
//! installed on its machine. Results are stored in events and not computed again.

use concord_wire::Timestamp;
use concord_wire::payload::Calendar;

mod spans;

use spans::Spans;

/// The furthest from its start that an instant is looked for, in years of at most 366 days.
const YEARS_MAX: u64 = 50;
/// A mean year of the Gregorian calendar, in milliseconds.
const YEAR_MS: u64 = 31_556_952_000;

/// The first instant at which `duration_ms` of open time have passed since `start`; without a calendar, of any time.
///
/// Nothing has passed at `start`, open or not. An instant more than 50 years away becomes the one 50 years away. A
/// calendar that [`Calendar::check`] refuses counts for none.
pub fn due(start: Timestamp, duration_ms: u64, calendar: Option<&Calendar>) -> Timestamp {
    let end = horizon(start);
    let Some(spans) = calendar.and_then(|calendar| Spans::between(calendar, start, end)) else {
        return start.plus_millis(duration_ms);
    };
    if duration_ms == 0 {
        return start;
    }
    let mut left = duration_ms;
    for span in spans {
        if span.millis() >= left {
            return span.from.plus_millis(left);
        }
        left -= span.millis();
    }
    end
}

/// How much open time there is from `start` to `end`, in milliseconds; without a calendar, how much time. At most 50 years
/// are looked at.
pub fn open_millis(start: Timestamp, end: Timestamp, calendar: Option<&Calendar>) -> u64 {
    let spans =
        calendar.and_then(|calendar| Spans::between(calendar, start, end.min(horizon(start))));
    spans.map_or_else(
        || end.millis_since(start),
        |spans| spans.map(|span| span.millis()).sum(),
    )
}

/// The instant at which a `share` (0 to 1) of the open time between `start` and `due` has passed,
/// for reminders; never after `due`. Where there is no open time between them, it is that share of
/// all time.
pub fn fraction(
    start: Timestamp,
    due: Timestamp,
    share: f64,
    calendar: Option<&Calendar>,
) -> Timestamp {
    let open = open_millis(start, due, calendar);
    let (whole, calendar) = if open > 0 {
        (open, calendar)
    } else {
        (due.millis_since(start), None)
    };
    // A double represents the milliseconds of fifty years exactly. A share that is not a number
    // becomes 0.
    let part = (whole as f64 * share.clamp(0.0, 1.0)) as u64;
    self::due(start, part, calendar).min(due.max(start))
}

fn horizon(start: Timestamp) -> Timestamp {
    start.plus_millis(YEARS_MAX * YEAR_MS)
}

#[cfg(test)]
mod tests;
