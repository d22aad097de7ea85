//! The room that is left: in the account, in each stream, and whether the broker stores anything at all.

use concord_runtime::Broker;
use concord_runtime::broker::provision::Fill;
use concord_runtime::broker::room;
use concord_runtime::delivery::ErrorChain;

use super::Check;

const AREA: &str = "Storage";
/// A store is noted from this share of its limit on, in percent.
pub(super) const FULL_SOON: u64 = 80;
/// It counts as full from this share on, in percent: a large message may find no room.
const FULL: u64 = 95;
const MAKE_ROOM: &str = "see docs/operating.md#concordnoroom: archive cases that are over, keep messages for fewer days, or give the \
                         broker more room (max_file_store, the account's limit, storage.bytes_max)";

/// Has the broker store something, and looks how much room is left.
pub(super) async fn look(broker: &Broker) -> Vec<Check> {
    let mut checks = vec![match room::try_to_store(broker).await {
        Ok(()) => Check::good(AREA, "the broker stores what it is given"),
        Err(error) => {
            let found = format!("the broker stores nothing: {}", ErrorChain(&error));
            Check::fault(AREA, found, MAKE_ROOM)
        }
    }];
    match room::account(broker).await {
        Ok(fill) => checks.extend(limited("the account", fill, MAKE_ROOM)),
        Err(error) => {
            let found = format!("the account cannot be looked at: {}", ErrorChain(&error));
            checks.push(Check::note(AREA, found, "allow this user $JS.API.INFO"));
        }
    }
    // That a stream is missing is said elsewhere.
    let fills = room::fills(broker).await.unwrap_or_default();
    checks.extend(
        fills
            .into_iter()
            .filter_map(|(kind, fill)| limited(&broker.layout.stream_name(kind), fill, MAKE_ROOM)),
    );
    checks
}

/// How full something with a limit is; none where it has no limit.
fn limited(name: &str, fill: Fill, advice: &str) -> Option<Check> {
    fill.bytes_max?;
    Some(room(AREA, name, fill, advice))
}

/// How full something is, as a check.
pub(super) fn room(area: &'static str, name: &str, fill: Fill, advice: &str) -> Check {
    let found = format!("{name} {}", holds(fill));
    match percent(fill) {
        FULL.. => Check::fault(area, found, advice),
        FULL_SOON.. => Check::note(area, found, advice),
        _ => Check::good(area, found),
    }
}

/// What something holds, and of how much.
pub(super) fn holds(fill: Fill) -> String {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1_048_576.0);
    let bytes = megabytes(fill.bytes);
    match fill.bytes_max {
        None => format!("holds {bytes}, without a limit"),
        Some(most) => format!("holds {bytes} of {} ({} %)", megabytes(most), percent(fill)),
    }
}

/// The share of its limit that something has taken, in percent; 0 where it has no limit.
fn percent(fill: Fill) -> u64 {
    let most = fill.bytes_max.unwrap_or(u64::MAX).max(1);
    fill.bytes.saturating_mul(100) / most
}
