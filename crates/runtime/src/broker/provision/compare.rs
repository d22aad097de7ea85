//! A stream's definition as the broker reads it, and what of a stream is otherwise.

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use concord_events::topology::StreamDefinition;

use super::{Deviation, MESSAGE_DAYS, REPLICAS};
use crate::broker::Unavailable;

const PREFIX: &str = "storage.prefix";

pub(super) fn config(definition: &StreamDefinition) -> Config {
    Config {
        name: definition.name.clone(),
        description: Some(definition.kind.doc().to_owned()),
        subjects: definition.subjects.clone(),
        retention: RetentionPolicy::Limits,
        // What has no room is refused, and its sender hears of it; nothing that was acknowledged is thrown away for it.
        discard: match definition.bytes_max {
            Some(_) => DiscardPolicy::New,
            None => DiscardPolicy::Old,
        },
        max_bytes: bytes_of(definition),
        storage: StorageType::File,
        num_replicas: definition.replicas,
        max_age: definition.max_age.unwrap_or_default(),
        max_messages_per_subject: definition.max_messages_per_subject.unwrap_or(-1),
        duplicate_window: definition.duplicate_window,
        allow_direct: true,
        allow_message_schedules: definition.schedules,
        allow_message_ttl: definition.schedules,
        ..Config::default()
    }
}

/// A stream of this name is that of another installation: names of streams are in capitals, and prefixes are not.
#[derive(Debug, thiserror::Error)]
#[error(
    "{stream} is that of the installation with the prefix {prefix:?}, which differs from the setting storage.prefix ({own:?}) in capitals alone: \
     choose another storage.prefix"
)]
pub(crate) struct Claimed {
    stream: String,
    prefix: String,
    own: String,
}

/// Whether it is this that an operation of the broker has failed for, which no time mends.
pub(crate) fn is_claimed(error: &Unavailable) -> bool {
    error.source.is::<Claimed>()
}

/// The installation that has a stream which another one's prefix leads to, too.
pub(super) fn claimed(definition: &StreamDefinition, found: &Config) -> Option<Claimed> {
    let prefix = |subject: &String| subject.split('.').next().unwrap_or_default().to_owned();
    let own = definition.subjects.iter().map(prefix).next()?;
    let mut others = found.subjects.iter().map(prefix);
    let other = others.find(|other| *other != own && other.eq_ignore_ascii_case(&own))?;
    Some(Claimed {
        stream: definition.name.clone(),
        prefix: other,
        own,
    })
}

fn bytes_of(definition: &StreamDefinition) -> i64 {
    let bytes = definition.bytes_max.map(i64::try_from);
    bytes.map_or(-1, |bytes| bytes.unwrap_or(i64::MAX))
}

/// A property of a stream, as it is and as it should be.
pub(super) fn row<T: std::fmt::Debug>(
    property: &'static str,
    found: T,
    expected: T,
) -> (&'static str, String, String) {
    (property, format!("{found:?}"), format!("{expected:?}"))
}

/// A stream as it should be, where this one is there. A limit of bytes that an operator has set on the stream itself is theirs.
pub(in crate::broker) fn expected(definition: &StreamDefinition, found: &Config) -> Config {
    let mut expected = config(definition);
    if definition.bytes_max.is_none() {
        expected.max_bytes = found.max_bytes;
        expected.discard = match found.max_bytes {
            // Nothing that was acknowledged is thrown away for what is new. A stream with schedules the broker lets refuse nothing.
            1.. if !definition.schedules => DiscardPolicy::New,
            _ => found.discard,
        };
    }
    expected
}

pub(in crate::broker) fn compare(definition: &StreamDefinition, found: &Config) -> Vec<Deviation> {
    let expected = expected(definition, found);
    let unlimited = |n: i64| if n <= 0 { -1 } else { n };
    let rows = [
        row("subjects", &found.subjects, &expected.subjects),
        row("retention", found.retention, expected.retention),
        row("replicas", found.num_replicas, expected.num_replicas),
        row("max_age", found.max_age, expected.max_age),
        row(
            "max_messages_per_subject",
            unlimited(found.max_messages_per_subject),
            unlimited(expected.max_messages_per_subject),
        ),
        row(
            "max_bytes",
            unlimited(found.max_bytes),
            unlimited(expected.max_bytes),
        ),
        row("discard", found.discard, expected.discard),
        row("no_ack", found.no_ack, expected.no_ack),
        row(
            "max_messages",
            unlimited(found.max_messages),
            unlimited(expected.max_messages),
        ),
        row(
            "max_message_size",
            unlimited(found.max_message_size.into()),
            unlimited(expected.max_message_size.into()),
        ),
        row(
            "duplicate_window",
            found.duplicate_window,
            expected.duplicate_window,
        ),
        row("allow_direct", found.allow_direct, expected.allow_direct),
        row(
            "allow_msg_schedules",
            found.allow_message_schedules,
            expected.allow_message_schedules,
        ),
    ];
    differing(&definition.name, rows, |property| match property {
        "replicas" => Some(REPLICAS),
        "max_age" => definition.max_age.map(|_| MESSAGE_DAYS),
        "max_bytes" | "discard" => definition.bytes_max.map(|_| "storage.bytes_max"),
        "subjects" => claimed(definition, found).map(|_| PREFIX),
        _ => None,
    })
}

/// The properties of a stream that are not as they should be, each with its setting.
pub(super) fn differing(
    stream: &str,
    rows: impl IntoIterator<Item = (&'static str, String, String)>,
    setting: impl Fn(&str) -> Option<&'static str>,
) -> Vec<Deviation> {
    let rows = rows.into_iter();
    rows.filter(|(_, found, expected)| found != expected)
        .map(|(property, found, expected)| Deviation {
            stream: stream.to_owned(),
            property,
            found,
            expected,
            setting: setting(property),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use concord_events::topology::{Layout, StorageChoices, StreamKind};
    use concord_wire::Token;

    use super::*;

    fn layout(prefix: &str, bytes_max: Option<u64>) -> Layout {
        let choices = StorageChoices {
            bytes_max,
            ..StorageChoices::default()
        };
        Layout::new(&Token::new(prefix).unwrap(), choices)
    }

    fn differs(
        definition: &StreamDefinition,
        change: impl Fn(&mut Config),
    ) -> BTreeSet<&'static str> {
        let mut found = config(definition);
        change(&mut found);
        let deviations = compare(definition, &found);
        // What is brought to what is expected differs in nothing.
        assert_eq!(compare(definition, &expected(definition, &found)), []);
        deviations.into_iter().map(|one| one.property).collect()
    }

    #[test]
    fn a_limit_that_throws_events_away_is_a_deviation() {
        let layout = layout("concord", None);
        let events = layout.stream(StreamKind::Events);
        let limit = |bytes, discard| {
            move |found: &mut Config| (found.max_bytes, found.discard) = (bytes, discard)
        };
        assert!(differs(&events, |_| ()).is_empty());
        assert!(differs(&events, |found| found.max_messages = 10).contains("max_messages"));
        assert!(differs(&events, |found| found.max_message_size = 10).contains("max_message_size"));
        let old = limit(1_000_000, DiscardPolicy::Old);
        assert_eq!(differs(&events, old), ["discard"].into());
        // A limit that refuses is an operator's to set. Where there is none, nothing is discarded either way.
        assert!(differs(&events, limit(1_000_000, DiscardPolicy::New)).is_empty());
        assert!(differs(&events, limit(-1, DiscardPolicy::New)).is_empty());
        let timers = layout.stream(StreamKind::Timers);
        assert!(differs(&timers, limit(1_000_000, DiscardPolicy::Old)).is_empty());
    }

    #[test]
    fn a_stream_whose_prefix_has_other_capitals_is_that_of_another_installation() {
        let own = layout("q5", None).stream(StreamKind::Events);
        for (prefix, is_another) in [("q5", false), ("Q5", true)] {
            let other = layout(prefix, None).stream(StreamKind::Events);
            let found = config(&other);
            assert_eq!(own.name, other.name);
            assert_eq!(claimed(&own, &found).is_some(), is_another);
            let named = compare(&own, &found)
                .into_iter()
                .find_map(|one| one.setting);
            assert_eq!(named == Some(PREFIX), is_another);
        }
        let mut changed = config(&own);
        changed.subjects = vec!["elsewhere.>".to_owned()];
        assert!(claimed(&own, &changed).is_none());
    }
}
