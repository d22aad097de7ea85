//! The object store in which payloads over 1 MB travel.

use concord_runtime::Broker;
use concord_runtime::broker::payload_store::{agent_bytes_max, stored_by};
use concord_runtime::broker::provision::{self, Deviation, Fill};
use concord_runtime::delivery::ErrorChain;

use super::{Check, storage};

const AREA: &str = "Large payloads";

/// Checks that the store exists, is as the settings say, and has room.
pub(super) async fn look(broker: &Broker, start: &str) -> Vec<Check> {
    let bucket = broker.layout.payload_bucket();
    let (deviations, fill) = match provision::inspect_payloads(broker).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let advice = format!(
                "{start} any service with the same --prefix, which creates it; where its log says that there is no room, lower \
                 storage.payload_store_bytes or raise max_file_store of the broker or the account"
            );
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
    let advice = format!(
        "raise storage.payload_store_bytes and the store's limit (nats stream edit OBJ_{bucket} --max-bytes), or keep \
         messages for fewer days: what finds no room is refused by the broker"
    );
    checks.push(storage::room(AREA, &bucket, fill, &advice));
    checks.extend(shares(broker).await);
    checks
}

/// A note about each agent that has taken most of what it may have, or all.
async fn shares(broker: &Broker) -> Vec<Check> {
    let Some(most) = agent_bytes_max(broker) else {
        return Vec::new();
    };
    // That the store cannot be looked at has been said above.
    let stored = stored_by(broker, None).await.unwrap_or_default();
    let much = stored
        .into_iter()
        .filter(|(_, bytes)| bytes.saturating_mul(100) >= most.saturating_mul(storage::FULL_SOON));
    much.map(|(agent, bytes)| {
        let of_agent = Fill {
            bytes,
            bytes_max: Some(most),
        };
        let found = format!("{agent} {}", storage::holds(of_agent));
        let advice = "what it sends beyond that is refused, and others go on: ask its owner to send less, or raise \
                      storage.payload_agent_bytes_max";
        Check::note(AREA, found, advice)
    })
    .collect()
}

fn differs(
    Deviation {
        stream,
        property,
        found,
        expected,
        setting,
    }: Deviation,
) -> Check {
    let setting = setting.unwrap_or_default();
    let advice = format!(
        "it follows from the setting {setting} of who looks: give the services' settings with --config; if it still differs, \
         change the store with: concord migrate --config FILE --apply"
    );
    Check::fault(
        AREA,
        format!("{stream}: {property} is {found} and should be {expected}"),
        advice,
    )
}
