//! Working hours: when people can be expected to answer.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shortened;
use crate::fault::Fault;

/// Most holidays of a calendar.
const HOLIDAYS_MAX: usize = 366;
/// Longest name of a time zone; the longest there is has half of that.
const ZONE_BYTES_MAX: usize = 64;
/// Minutes of a day of the calendar.
const MINUTES_A_DAY: u16 = 1_440;

/// A day of the week.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // Their names say it.
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Weekday {
    /// All of them, from Monday on.
    pub const ALL: [Self; 7] = [
        Self::Monday,
        Self::Tuesday,
        Self::Wednesday,
        Self::Thursday,
        Self::Friday,
        Self::Saturday,
        Self::Sunday,
    ];

    /// The day of the week of a day.
    pub fn of(date: Date) -> Self {
        match date.weekday() {
            jiff::civil::Weekday::Monday => Self::Monday,
            jiff::civil::Weekday::Tuesday => Self::Tuesday,
            jiff::civil::Weekday::Wednesday => Self::Wednesday,
            jiff::civil::Weekday::Thursday => Self::Thursday,
            jiff::civil::Weekday::Friday => Self::Friday,
            jiff::civil::Weekday::Saturday => Self::Saturday,
            jiff::civil::Weekday::Sunday => Self::Sunday,
        }
    }
}

/// The hours in which people's deadlines run: the same on every open day, by the clocks of one time zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calendar {
    /// The name of a time zone in the IANA database, for example `Europe/Berlin`.
    pub time_zone: String,
    /// Open days.
    pub days: Vec<Weekday>,
    /// When an open day begins, `HH:MM` from 00:00.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub opens: String,
    /// When an open day ends, `HH:MM` to 24:00.
    #[schemars(regex(pattern = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"))]
    pub closes: String,
    /// Days that are closed whatever their day of the week, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holidays: Vec<String>,
}

/// A calendar that has been read and makes sense.
#[derive(Debug, Clone)]
pub struct OpeningHours {
    /// By whose clocks.
    pub zone: TimeZone,
    /// Open days; at least one.
    pub days: BTreeSet<Weekday>,
    /// Minutes from midnight, by the clock, at which a day opens.
    pub opens: u16,
    /// Minutes from midnight, by the clock, at which it closes: later than it opens, 1,440 at most.
    pub closes: u16,
    /// Closed days.
    pub holidays: BTreeSet<Date>,
}

impl Calendar {
    /// Refuses an unknown time zone, times and days that are none, and a calendar that is never open; `pointer` is where
    /// the calendar stands, for the fault.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        self.read(pointer).map(|_| ())
    }

    /// Reads the calendar; refuses what [`Self::check`] refuses.
    ///
    /// The database of time zones is the one that was built in, so that every process of a build reads the same.
    pub fn read(&self, pointer: &str) -> Result<OpeningHours, Fault> {
        let zone = zone(&format!("{pointer}/time_zone"), &self.time_zone)?;
        let days: BTreeSet<Weekday> = self.days.iter().copied().collect();
        if days.is_empty() || self.days.len() > days.len() {
            let what = if days.is_empty() {
                "No day is open."
            } else {
                "A day is named twice."
            };
            let advice = "Name each open day once, as in [\"monday\", \"friday\"].";
            return Err(Fault::invalid(format!("{pointer}/days"), what, advice));
        }
        let opens = minutes(&format!("{pointer}/opens"), &self.opens, MINUTES_A_DAY - 1)?;
        let closes = minutes(&format!("{pointer}/closes"), &self.closes, MINUTES_A_DAY)?;
        if closes <= opens {
            return Err(Fault::invalid(
                format!("{pointer}/closes"),
                format!(
                    "A day that opens at {} cannot close at {}.",
                    self.opens, self.closes
                ),
                "Close later on the same day, at 24:00 at the latest.",
            ));
        }
        Ok(OpeningHours {
            zone,
            days,
            opens,
            closes,
            holidays: self.read_holidays(&format!("{pointer}/holidays"))?,
        })
    }

    fn read_holidays(&self, pointer: &str) -> Result<BTreeSet<Date>, Fault> {
        if self.holidays.len() > HOLIDAYS_MAX {
            return Err(Fault::invalid(
                pointer,
                format!("There are {} holidays.", self.holidays.len()),
                format!("Name at most {HOLIDAYS_MAX}; leave out those that have passed."),
            ));
        }
        let days = self.holidays.iter().enumerate();
        days.map(|(place, text)| {
            date(text).ok_or_else(|| no_day(&format!("{pointer}/{place}"), text))
        })
        .collect()
    }
}

impl OpeningHours {
    /// Whether a day is one of work.
    pub fn is_open(&self, day: Date) -> bool {
        self.days.contains(&Weekday::of(day)) && !self.holidays.contains(&day)
    }
}

fn zone(pointer: &str, name: &str) -> Result<TimeZone, Fault> {
    let known = (name.len() <= ZONE_BYTES_MAX)
        .then(|| TimeZoneDatabase::bundled().get(name).ok())
        .flatten();
    known.filter(|zone| !zone.is_unknown()).ok_or_else(|| {
        Fault::invalid(
            pointer,
            format!("There is no time zone {:?}.", shortened(name)),
            "Give the name of the IANA database, such as Europe/Berlin, America/New_York or UTC.",
        )
    })
}

/// Reads `HH:MM`, two digits each.
fn minutes(pointer: &str, text: &str, max: u16) -> Result<u16, Fault> {
    let read = text.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
        (minutes < 60).then_some(hours * 60 + minutes)
    });
    read.filter(|minutes| *minutes <= max).ok_or_else(|| {
        Fault::invalid(
            pointer,
            format!("{:?} is no time of a day.", shortened(text)),
            "Write hours and minutes in two digits each, as in 09:00 or 17:30.",
        )
    })
}

/// Reads `YYYY-MM-DD`.
fn date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (
        digits(parts.next()?, 4)?,
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
    );
    let small = |number: u16| i8::try_from(number).ok();
    if parts.next().is_some() || year == 0 {
        return None;
    }
    Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()
}

fn digits(text: &str, count: usize) -> Option<u16> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn no_day(pointer: &str, text: &str) -> Fault {
    let what = format!("{:?} is no day.", shortened(text));
    Fault::invalid(
        pointer,
        what,
        "Write year, month and day, as in 2026-12-25.",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn calendar(fields: Value) -> Calendar {
        let mut whole = json!({
            "time_zone": "Europe/Berlin", "days": ["monday", "friday"], "opens": "09:00", "closes": "17:30",
            "holidays": ["2026-12-25"],
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_calendar_is_read_as_it_is_meant() {
        let hours = calendar(json!({})).read("").unwrap();
        assert_eq!((hours.opens, hours.closes), (540, 1_050));
        let open = |day: &str| hours.is_open(date(day).unwrap());
        assert!(
            open("2026-12-21") && open("2026-12-18"),
            "Monday and Friday"
        );
        assert!(
            !open("2026-12-22") && !open("2026-12-25"),
            "a Tuesday, and a Friday that is a holiday"
        );
        for fields in [
            json!({ "time_zone": "UTC" }),
            json!({ "time_zone": "america/new_york" }),
            json!({ "opens": "00:00", "closes": "24:00" }),
            json!({ "opens": "23:58", "closes": "23:59", "holidays": [] }),
            json!({ "holidays": vec!["2028-02-29"; 366] }),
        ] {
            assert_eq!(calendar(fields.clone()).check(""), Ok(()), "{fields}");
        }
        let monday = date("2026-11-23").unwrap();
        let week = std::iter::successors(Some(monday), |day| day.tomorrow().ok())
            .take(7)
            .map(Weekday::of);
        assert_eq!(week.collect::<Vec<_>>(), Weekday::ALL);
    }

    #[test]
    fn nonsense_is_refused_at_its_place() {
        let opens = |text: &str| (json!({ "opens": text }), "/p/opens");
        let closes = |text: &str| (json!({ "closes": text }), "/p/closes");
        let holiday = |text: &str| (json!({ "holidays": ["2026-01-01", text] }), "/p/holidays/1");
        for (fields, pointer) in [
            (json!({ "time_zone": "Europe/Berlim" }), "/p/time_zone"),
            (json!({ "time_zone": "" }), "/p/time_zone"),
            (json!({ "time_zone": "Etc/Unknown" }), "/p/time_zone"),
            (json!({ "time_zone": "+01:00" }), "/p/time_zone"),
            (json!({ "time_zone": "../../etc/passwd" }), "/p/time_zone"),
            (json!({ "time_zone": "x".repeat(70_000) }), "/p/time_zone"),
            (json!({ "days": [] }), "/p/days"),
            (json!({ "days": ["monday", "monday"] }), "/p/days"),
            opens("9:00"),
            opens("24:00"),
            opens("09:60"),
            opens("09:00:00"),
            opens("+9:00"),
            opens("nine"),
            closes("24:01"),
            closes("99:99"),
            closes("09:00"),
            closes("08:59"),
            closes("1７:00"),
            holiday("2026-02-29"),
            holiday("2026-13-01"),
            holiday("26-01-01"),
            holiday("0000-01-01"),
            holiday("2026-01-01-01"),
            holiday("Christmas"),
            (
                json!({ "holidays": vec!["2026-01-01"; 367] }),
                "/p/holidays",
            ),
        ] {
            let fault = calendar(fields.clone()).check("/p").unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fields}");
            assert!(
                fault.message.len() < 200 && !fault.advice.is_empty(),
                "{fault}"
            );
        }
        let misspelt = json!({ "time_zone": "UTC", "days": ["monday"], "opens": "09:00", "closes": "10:00", "holiday": [] });
        assert!(serde_json::from_value::<Calendar>(misspelt).is_err());
    }
}
