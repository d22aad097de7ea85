//! The open time of a calendar, day by day.

use concord_wire::Timestamp;
use concord_wire::payload::{Calendar, OpeningHours};
use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// A stretch of open time without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

impl Span {
    pub(super) fn millis(self) -> u64 {
        self.until.millis_since(self.from)
    }
}

/// The open time between two instants: stretches that are not empty, in order, one a day at most.
pub(super) struct Spans {
    hours: OpeningHours,
    /// The day to look at next; `None` when there is none within reach.
    day: Option<Date>,
    /// The instant before which nothing is open any more.
    from: Timestamp,
    end: Timestamp,
}

impl Spans {
    /// `None` for a calendar that is not valid.
    pub(super) fn between(calendar: &Calendar, start: Timestamp, end: Timestamp) -> Option<Self> {
        let hours = calendar.read("").ok()?;
        let instant = jiff::Timestamp::from_millisecond(start.unix_millis()).ok();
        // A day ends no later than its clocks show. The day before is included for clocks that were
        // put back then.
        let day = instant.map(|instant| hours.zone.to_datetime(instant).date());
        let day = day.map(|today| today.yesterday().unwrap_or(today));
        Some(Self {
            hours,
            day,
            from: start,
            end,
        })
    }

    /// The open time of a day, whether or not it was returned before.
    fn of(&self, day: Date) -> Option<Span> {
        let from = first_at(&self.hours.zone, day, self.hours.opens)?;
        let until = first_at(&self.hours.zone, day, self.hours.closes)?;
        Some(Span { from, until })
    }
}

impl Iterator for Spans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        loop {
            let day = self.day?;
            self.day = day.tomorrow().ok();
            let Some(open) = self.hours.is_open(day).then(|| self.of(day)).flatten() else {
                // Closed days are walked until the end too, so that the walk ends where no day is
                // open.
                if first_at(&self.hours.zone, day, 0).is_none_or(|midnight| midnight >= self.end) {
                    self.day = None;
                }
                continue;
            };
            if open.from >= self.end {
                self.day = None;
                continue;
            }
            let span = Span {
                from: open.from.max(self.from),
                until: open.until.min(self.end),
            };
            if span.from < span.until {
                self.from = span.until;
                return Some(span);
            }
        }
    }
}

/// The first instant of a day at which its clocks show this many minutes past midnight, or more.
fn first_at(zone: &TimeZone, day: Date, minutes: u16) -> Option<Timestamp> {
    let (hour, minute) = (
        i8::try_from(minutes / 60).ok()?,
        i8::try_from(minutes % 60).ok()?,
    );
    let shown = if hour < 24 {
        day.at(hour, minute, 0, 0)
    } else {
        day.tomorrow().ok()?.at(0, minute, 0, 0)
    };
    let instants = zone.to_ambiguous_timestamp(shown);
    let instant = match instants.offset() {
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
            instants.compatible().ok()?
        }
        AmbiguousOffset::Gap { .. } => {
            // The clocks never show it: the instant at which they are put forward counts.
            let after = instants.compatible().ok()?;
            let forward = zone.following(instants.earlier().ok()?).next();
            forward.map_or(after, |transition| transition.timestamp().min(after))
        }
    };
    Some(Timestamp::from_unix_millis(instant.as_millisecond()))
}
