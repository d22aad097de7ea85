//! Points in time: milliseconds since the Unix epoch inside, written as RFC 3339 in UTC and read as ISO 8601.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{OffsetDateTime, PrimitiveDateTime};

/// A point in time with millisecond resolution. The machines get it as an argument; nothing here reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// The first and last instant that RFC 3339 can write with a four-digit year.
const MILLIS_RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

impl Timestamp {
    /// From milliseconds since the Unix epoch, held inside the years 1 to 9999.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self(millis.clamp(*MILLIS_RANGE.start(), *MILLIS_RANGE.end()))
    }

    /// Milliseconds since the Unix epoch.
    pub fn unix_millis(self) -> i64 {
        self.0
    }

    /// This instant plus `millis`.
    pub fn plus_millis(self, millis: u64) -> Self {
        Self::from_unix_millis(self.0.saturating_add_unsigned(millis))
    }

    /// Milliseconds from `earlier` to this instant; zero when `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Parses RFC 3339 with any offset, or else ISO 8601 with date and time; a missing offset is UTC.
    pub fn parse(text: &str) -> Result<Self, time::error::Parse> {
        let instant = OffsetDateTime::parse(text, &Rfc3339)
            .or_else(|error| iso_8601(text).map_err(|_| error))?;
        let millis = instant.unix_timestamp_nanos().div_euclid(1_000_000);
        Ok(Self::from_unix_millis(
            i64::try_from(millis).unwrap_or(i64::MAX),
        ))
    }
}

fn iso_8601(text: &str) -> Result<OffsetDateTime, time::error::Parse> {
    OffsetDateTime::parse(text, &Iso8601::DEFAULT).or_else(|_| {
        PrimitiveDateTime::parse(text, &Iso8601::DEFAULT).map(PrimitiveDateTime::assume_utc)
    })
}

/// A time as it is written; its length is fixed, because the year has four digits.
struct Text([u8; 24]);

impl Text {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl From<Timestamp> for Text {
    /// Digit by digit: several are written for every event, and `write!` takes ten times as long.
    fn from(Timestamp(millis): Timestamp) -> Self {
        let at = OffsetDateTime::from_unix_timestamp(millis.div_euclid(1_000))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let year = at.year().unsigned_abs();
        let millis = u32::try_from(millis.rem_euclid(1_000)).unwrap_or(0);
        let two = [
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
        ]
        .map(u32::from);
        let two_digits = [5, 8, 11, 14, 17]
            .into_iter()
            .zip(two)
            .map(|(start, value)| (start, 2, value));
        for (start, digits, mut value) in [(0, 4, year), (20, 3, millis)]
            .into_iter()
            .chain(two_digits)
        {
            for digit in text.iter_mut().skip(start).take(digits).rev() {
                *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
                value /= 10;
            }
        }
        Self(text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Text::from(*self).as_str())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Text::from(*self).as_str())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| {
            serde::de::Error::custom(format!(
                "is not an ISO 8601 time such as 2026-11-21T20:15:00.000Z: {error}"
            ))
        })
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn offsets_become_utc_and_digits_past_the_millisecond_are_cut() {
        let parsed = Timestamp::parse("2026-11-21T21:15:00.1239+01:00").unwrap();
        assert_eq!(parsed.to_string(), "2026-11-21T20:15:00.123Z");
        assert!(Timestamp::parse("yesterday").is_err());
    }

    #[test]
    fn iso_8601_is_read_and_a_missing_offset_is_utc() {
        for (written, read) in [
            ("2026-11-27T20:41:16", "2026-11-27T20:41:16.000Z"),
            ("2026-11-27T20:41:16.123456", "2026-11-27T20:41:16.123Z"),
            ("2026-11-27T21:41:16+0100", "2026-11-27T20:41:16.000Z"),
            ("2026-11-27T21:41:16.5+01", "2026-11-27T20:41:16.500Z"),
            ("20261127T204116Z", "2026-11-27T20:41:16.000Z"),
            ("20261127T204116", "2026-11-27T20:41:16.000Z"),
            ("2026-11-27T20:41Z", "2026-11-27T20:41:00.000Z"),
            ("2026-W48-5T20:41:16Z", "2026-11-27T20:41:16.000Z"),
        ] {
            let at = Timestamp::parse(written).map(|at| at.to_string());
            assert_eq!(at.ok().as_deref(), Some(read), "{written}");
        }
        for wrong in [
            "2026-11-27",
            "20:41:16",
            "2026-13-01T00:00:00",
            "2026-11-27T20:41:16+99:00",
            "2026-11-27T20:41:16 CET",
            "",
        ] {
            assert!(Timestamp::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(millis in MILLIS_RANGE) {
            let instant = Timestamp::from_unix_millis(millis);
            prop_assert_eq!(Timestamp::parse(&instant.to_string()).unwrap(), instant);
        }
    }
}
