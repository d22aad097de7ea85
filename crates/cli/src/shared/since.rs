//! Times and spans as they are written on the command line.

use std::time::Duration;

use concord_wire::Timestamp;

/// The time from which on messages count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Since {
    /// This long before now.
    Ago(Duration),
    /// From this time on.
    At(Timestamp),
}

impl Since {
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => {
                let millis = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_unix_millis(now.unix_millis().saturating_sub(millis))
            }
        }
    }
}

pub(crate) fn parse(text: &str) -> Result<Since, String> {
    if let Ok(ago) = span(text) {
        return Ok(Since::Ago(ago));
    }
    let wrong = |_| {
        "write a time such as 2026-11-21T20:00:00Z, or how long ago: 90s, 30m, 24h, 7d".to_owned()
    };
    Timestamp::parse(text).map(Since::At).map_err(wrong)
}

pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and s, m, h or d: 90s, 30m, 24h, 7d".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text
        .strip_suffix(unit)
        .and_then(|number| number.parse().ok())
        .ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(seconds)
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_are_read_and_all_else_is_refused() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1_800),
            ("24h", 86_400),
            ("7d", 604_800),
        ] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)));
            assert_eq!(parse(text), Ok(Since::Ago(Duration::from_secs(seconds))));
        }
        for wrong in [
            "",
            "h",
            "24",
            "0h",
            "-1h",
            "1.5h",
            "24x",
            "24ä",
            "18446744073709551615d",
        ] {
            assert!(span(wrong).is_err() && parse(wrong).is_err(), "{wrong}");
        }
        let at = Timestamp::parse("2026-11-21T20:00:00Z").unwrap();
        assert_eq!(parse("2026-11-21T21:00:00+01:00"), Ok(Since::At(at)));
        assert_eq!(
            Since::Ago(Duration::from_secs(60)).at(at).to_string(),
            "2026-11-21T19:59:00.000Z"
        );
        assert_eq!(
            Since::Ago(Duration::MAX).at(at),
            Timestamp::from_unix_millis(i64::MIN)
        );
    }
}
