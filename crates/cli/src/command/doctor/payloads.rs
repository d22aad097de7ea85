//! The object store in which payloads over 1 MB travel.

use concord_runtime::Broker;
use concord_runtime::broker::provision::{self, Deviation, Fill};
use concord_runtime::delivery::ErrorChain;

use super::Check;

const AREA: &str = "Large payloads";
/// The store is noted from this share of its limit on, in percent.
const FULL_SOON: u64 = 80;
/// The store counts as full from this share of its limit on, in percent: an object of a few megabytes may find no room.
const FULL: u64 = 95;

/// Checks that the store exists, is as the settings say, and has room.
pub(super) async fn look(broker: &Broker) -> Vec<Check> {
    let bucket = broker.layout.payload_bucket();
    let (deviations, fill) = match provision::inspect_payloads(broker).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let advice = "start any service with the same --prefix, which creates it; where its log says that there is no room, \
                          lower storage.payload_store_bytes or raise max_file_store of the broker or the account";
            return vec![Check::fault(
                AREA,
                format!("{bucket} is missing: payloads over 1 MB cannot travel"),
                advice,
            )];
        }
        Err(error) => {
            let found = format!("{bucket} cannot be looked at: {}", ErrorChain(&error));
            return vec![Check::fault(
                AREA,
                found,
                "enable JetStream for this account on the broker",
            )];
        }
    };
    let mut checks: Vec<Check> = deviations.into_iter().map(differs).collect();
    checks.push(room(&bucket, fill));
    checks
}

fn differs(
    Deviation {
        stream,
        property,
        found,
        expected,
    }: Deviation,
) -> Check {
    let setting = match property {
        "max_bytes" => "storage.payload_store_bytes",
        "max_age" => "storage.message_days",
        _ => "storage.replicas",
    };
    let advice = format!(
        "it follows from the setting {setting} of who looks: give the services' settings with --config, or change the store \
         with: concord migrate --apply"
    );
    Check::fault(
        AREA,
        format!("{stream}: {property} is {found} and should be {expected}"),
        advice,
    )
}

fn room(bucket: &str, Fill { bytes, bytes_max }: Fill) -> Check {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1_048_576.0);
    let Some(most) = bytes_max else {
        return Check::good(
            AREA,
            format!("{bucket} holds {}, without a limit", megabytes(bytes)),
        );
    };
    let percent = bytes.saturating_mul(100) / most.max(1);
    let found = format!(
        "{bucket} holds {} of {} ({percent} %)",
        megabytes(bytes),
        megabytes(most)
    );
    let advice = format!(
        "raise storage.payload_store_bytes and the store's limit (nats stream edit OBJ_{bucket} --max-bytes), or keep \
         messages for fewer days: what finds no room is refused by the broker"
    );
    match percent {
        FULL.. => Check::fault(AREA, found, advice),
        FULL_SOON.. => Check::note(AREA, found, advice),
        _ => Check::good(AREA, found),
    }
}
