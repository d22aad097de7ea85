//! The broker itself: version, limits, clock.

use std::time::{Duration, Instant};

use concord_events::topology::{BROKER_VERSION_MIN, StreamKind};
use concord_runtime::{Broker, service::clock};
use concord_wire::Timestamp;
use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use serde::Deserialize;

use super::Check;

const AREA: &str = "Broker";
/// The number of times that the clock is read; the quickest answer is the most exact.
const READINGS: usize = 5;

pub(super) async fn look(broker: &Broker, skew_max: u64) -> Vec<Check> {
    let info = broker.client.server_info();
    let (major, minor) = BROKER_VERSION_MIN;
    // A broker that is too old was refused when the connection was made.
    let mut checks = vec![Check::good(
        AREA,
        format!(
            "nats-server {} ({major}.{minor} or newer is needed)",
            info.version
        ),
    )];
    let needed = ENVELOPE_BYTES_MAX + 65_536;
    checks.push(match info.max_payload >= needed {
        true => Check::good(
            AREA,
            format!("messages of up to {} KB", info.max_payload / 1_024),
        ),
        false => Check::fault(
            AREA,
            format!(
                "messages of more than {} KB are refused by the broker",
                info.max_payload / 1_024
            ),
            format!(
                "set max_payload to at least {} KB in the broker's configuration",
                needed / 1_024
            ),
        ),
    });
    checks.push(match skew(broker).await {
        Ok((skew, within)) if skew.unsigned_abs() <= skew_max => {
            Check::good(AREA, format!("the clocks agree: {skew} ms apart, to within {within} ms"))
        }
        Ok((skew, within)) => Check::fault(
            AREA,
            format!("the broker's clock is {skew} ms ahead of this machine's, to within {within} ms"),
            "synchronise the clocks of both machines (chrony, systemd-timesyncd): deadlines are set by one and fired by \
             the other",
        ),
        Err(error) => Check::fault(
            AREA,
            format!("the broker's clock could not be read: {error}"),
            "start a service, which creates the streams; then look again",
        ),
    });
    checks
}

/// An answer of the broker's, with its own time.
#[derive(Deserialize)]
struct Timed {
    ts: Option<Timestamp>,
}

/// By how many milliseconds the broker's clock is ahead, and the error of that, in milliseconds.
pub(super) async fn skew(broker: &Broker) -> Result<(i64, u64), String> {
    let subject = format!(
        "$JS.API.STREAM.INFO.{}",
        broker.layout.stream_name(StreamKind::Events)
    );
    let mut best: Option<(Duration, i64)> = None;
    for _ in 0..READINGS {
        let (before, begun) = (clock::now(), Instant::now());
        let answer = broker
            .client
            .request(subject.clone(), "".into())
            .await
            .map_err(|error| error.to_string())?;
        let took = begun.elapsed();
        let timed: Timed =
            serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())?;
        let theirs = timed.ts.ok_or("the stream of events does not answer")?;
        // The answer was given, at a guess, in the middle.
        let half = i64::try_from(took.as_millis() / 2).unwrap_or(i64::MAX);
        let skew = theirs.unix_millis() - before.unix_millis() - half;
        if best.is_none_or(|(quickest, _)| took < quickest) {
            best = Some((took, skew));
        }
    }
    let (took, skew) = best.ok_or("the broker does not answer")?;
    Ok((
        skew,
        u64::try_from(took.as_millis() / 2 + 1).unwrap_or(u64::MAX),
    ))
}
