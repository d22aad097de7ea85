//! The copies of the streams on the brokers of a cluster, as the leader of each stream sees them.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::stream::{Info, PeerInfo};
use concord_events::topology::StreamKind;

use crate::broker::{Broker, Unavailable, room};

/// A copy that the leader has not heard for so long is lost, though nobody has said so, as where its broker is frozen or cut off.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// A copy that lacks more than this is worth a word. Under load each lacks a little all the time.
const LAG_MAX: u64 = 1_000;

/// The copies that one broker has beside those that lead, by the streams' names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copies {
    /// How many there are.
    pub all: usize,
    /// The streams whose copy is lost to the others.
    pub lost: Vec<String>,
    /// The streams whose copy is there and lacks much, and how many operations.
    pub behind: Vec<(String, u64)>,
}

/// The copies of these streams, by the name of the broker that has them; empty where there is no cluster.
pub(crate) fn of<'i>(streams: impl IntoIterator<Item = &'i Info>) -> BTreeMap<String, Copies> {
    let mut brokers = BTreeMap::<String, Copies>::new();
    for info in streams {
        let stream = &info.config.name;
        for copy in info.cluster.iter().flat_map(|cluster| &cluster.replicas) {
            let of_broker = brokers.entry(copy.name.clone()).or_default();
            of_broker.all += 1;
            let lag = copy.lag.unwrap_or(0);
            if is_lost(copy) {
                of_broker.lost.push(stream.clone());
            } else if !copy.current && lag > LAG_MAX {
                of_broker.behind.push((stream.clone(), lag));
            }
        }
    }
    brokers
}

fn is_lost(copy: &PeerInfo) -> bool {
    // A leader that was elected since has never heard it.
    let is_silent = copy.active.is_zero() || copy.active > SILENT_MAX;
    copy.offline || !copy.current && is_silent
}

/// The copies of all streams that there are, by the name of the broker that has them; empty where there is no cluster.
pub async fn by_broker(broker: &Broker) -> Result<BTreeMap<String, Copies>, Unavailable> {
    let mut there = Vec::new();
    for kind in StreamKind::ALL {
        there.extend(room::info(broker, kind).await?);
    }
    Ok(of(&there))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stream(name: &str, replicas: &Value) -> Info {
        serde_json::from_value(json!({
            "config": {
                "name": name, "subjects": [], "retention": "limits", "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
                "max_age": 0, "storage": "file", "num_replicas": 3, "discard": "old",
            },
            "created": "2026-11-30T11:00:00Z",
            "state": {
                "messages": 0, "bytes": 0, "first_seq": 0, "first_ts": "2026-11-30T11:00:00Z", "last_seq": 0,
                "last_ts": "2026-11-30T11:00:00Z", "consumer_count": 0,
            },
            "cluster": { "name": "c", "leader": "n1", "replicas": replicas },
            "ts": "2026-11-30T11:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn a_copy_is_lost_when_the_leader_says_so_or_does_not_hear_it() {
        let second = 1_000_000_000_u64;
        for (what, [current, offline], [active, lag], lost, behind) in [
            ("here", [true, false], [second, 0], false, None),
            // Where nothing is stored, nothing is said for long.
            ("idle", [true, false], [60 * second, 0], false, None),
            ("gone", [false, true], [second, 0], true, None),
            ("frozen", [false, false], [11 * second, 5_000], true, None),
            // What a leader says that was elected when it had gone.
            ("never heard", [false, false], [0, 2], true, None),
            ("busy", [false, false], [1, 40], false, None),
            ("back", [false, false], [1, 5_000], false, Some(5_000)),
        ] {
            let copy = json!({
                "name": "n2", "current": current, "offline": offline, "active": active, "lag": lag,
            });
            let copies = of(&[stream("S", &json!([copy]))]);
            let found = &copies["n2"];
            assert_eq!(found.all, 1, "{what}");
            assert_eq!(!found.lost.is_empty(), lost, "{what}");
            assert_eq!(found.behind.first().map(|(_, lag)| *lag), behind, "{what}");
        }
    }
}
