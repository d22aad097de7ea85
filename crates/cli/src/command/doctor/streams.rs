//! The streams, consumers and dead letters on the broker.

use async_nats::jetstream::consumer::Info;
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use concord_events::topology::{ConsumerDefinition, StreamKind};
use concord_runtime::{Broker, broker::provision};

use super::Check;
use crate::command::dead;
use crate::shared::output::{count, span};

const STREAMS: &str = "Streams";
const CONSUMERS: &str = "Consumers";
const DEAD: &str = "Dead letters";
/// Most consumers that a note names.
const NAMED_MAX: usize = 5;

/// Checks that the streams are as they are defined.
pub(super) async fn streams(broker: &Broker) -> Vec<Check> {
    let deviations = match provision::inspect(broker).await {
        Ok(deviations) => deviations,
        Err(error) => {
            let found = format!(
                "the streams cannot be looked at: {}",
                concord_runtime::delivery::ErrorChain(&error)
            );
            return vec![Check::fault(
                STREAMS,
                found,
                "enable JetStream for this account on the broker",
            )];
        }
    };
    if deviations.is_empty() {
        let found = format!("all {} are as they are defined", StreamKind::ALL.len());
        return vec![Check::good(STREAMS, found)];
    }
    let check = |deviation: provision::Deviation| {
        let provision::Deviation {
            stream,
            property,
            found,
            expected,
            setting,
        } = deviation;
        let advice = match (property, setting) {
            ("existence", _) => {
                "start any service with the same --prefix: it creates what is missing".to_owned()
            }
            (_, Some(setting)) => format!(
                "it follows from the setting {setting} of who looks: give the services' settings with --config; if it still differs, change the \
                 stream with: concord migrate --config FILE --apply"
            ),
            _ => "look with `concord migrate --config FILE`, with the services' settings, and change it back with --apply; nobody else may change Concord's \
                  streams"
                .to_owned(),
        };
        Check::fault(
            STREAMS,
            format!("{stream}: {property} is {found} and should be {expected}"),
            advice,
        )
    };
    deviations.into_iter().map(check).collect()
}

/// Checks that every consumer exists and keeps up.
pub(super) async fn consumers(broker: &Broker, lag_max: u64) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut good = 0_u64;
    let (mut waiting, mut pausing) = (0, Vec::new());
    let gone = missing_streams(broker).await;
    let is_gone = |definition: &ConsumerDefinition| gone.contains(&definition.stream);
    let (without, mut definitions): (Vec<_>, Vec<_>) =
        broker.layout.consumers().into_iter().partition(is_gone);
    checks.extend(gone.iter().filter_map(|stream| {
        let lost = without.iter().filter(|one| one.stream == *stream).count() as u64;
        let found = format!(
            "{stream} is missing, and its {} with it",
            count(lost, "consumer")
        );
        (lost > 0).then(|| Check::fault(CONSUMERS, found, "see the streams above"))
    }));
    let adapters = broker.layout.adapter_consumers();
    for definition in adapters.into_iter().filter(|one| !is_gone(one)) {
        // An installation may do without the adapter, and then has none of its consumers.
        if !is_missing(broker, &definition).await {
            definitions.push(definition);
        }
    }
    for definition in definitions {
        match look(broker, &definition, lag_max).await {
            Ok(Looked::KeepsUp(lag)) => {
                good += 1;
                waiting += lag;
            }
            Ok(Looked::Paused(left)) => pausing.push((definition.name, left)),
            Err(check) => checks.push(check),
        }
    }
    checks.extend(paused(&pausing));
    if good > 0 {
        let found = format!(
            "{} keep up; {} waiting",
            count(good, "consumer"),
            count(waiting, "message")
        );
        checks.insert(0, Check::good(CONSUMERS, found));
    }
    checks
}

/// Names of the streams that are not there: each has many consumers, which are all missing for this one reason.
async fn missing_streams(broker: &Broker) -> Vec<String> {
    let deviations = provision::inspect(broker).await.unwrap_or_default();
    let missing = deviations
        .into_iter()
        .filter(|one| one.property == "existence");
    missing.map(|one| one.stream).collect()
}

/// A consumer with which nothing is wrong.
enum Looked {
    /// So many messages wait in it.
    KeepsUp(u64),
    /// It hands nothing over, for so many milliseconds more.
    Paused(u64),
}

/// How it is with a consumer; a check where something is wrong with it.
async fn look(
    broker: &Broker,
    definition: &ConsumerDefinition,
    lag_max: u64,
) -> Result<Looked, Check> {
    let ConsumerDefinition {
        name,
        service,
        stream,
        ..
    } = definition;
    let info = describe(broker, definition).await?;
    if info.config.filter_subject != definition.filter || !info.config.filter_subjects.is_empty() {
        let advice =
            format!("restart the {service}, which brings its consumers to their definition");
        return Err(Check::fault(
            CONSUMERS,
            format!("{name} on {stream} is given other subjects than defined"),
            advice,
        ));
    }
    let paused = info.pause_remaining.filter(|_| info.paused);
    if let Some(left) = paused {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        return Ok(Looked::Paused(left));
    }
    let (pending, under_way) = (info.num_pending, info.num_ack_pending);
    if pending > lag_max {
        let advice = format!(
            "add processes of the {service}, which share this consumer; or look at its log for what keeps failing \
             ({} delivered again)",
            count(info.num_redelivered as u64, "message")
        );
        let found = format!(
            "{name}: {} waiting, {under_way} under way",
            count(pending, "message")
        );
        return Err(Check::fault(CONSUMERS, found, advice));
    }
    Ok(Looked::KeepsUp(pending))
}

/// The note about consumers that hand nothing over at this moment, with the milliseconds that each has left.
fn paused(consumers: &[(String, u64)]) -> Option<Check> {
    let longest = consumers.iter().map(|(_, left)| *left).max()?;
    let named = consumers.iter().take(NAMED_MAX);
    let named: Vec<&str> = named.map(|(name, _)| name.as_str()).collect();
    let more = match consumers.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let found = format!(
        "{} paused for up to {}: {}{more}",
        count(consumers.len() as u64, "consumer"),
        span(longest),
        named.join(", ")
    );
    let advice = "nothing is to be done while `concord backup` runs, which pauses all; else they go on by themselves then, or now with: \
                  nats consumer resume STREAM NAME";
    Some(Check::note(CONSUMERS, found, advice))
}

async fn is_missing(broker: &Broker, definition: &ConsumerDefinition) -> bool {
    let Ok(stream) = broker
        .jetstream
        .get_stream_no_info(&definition.stream)
        .await
    else {
        return false;
    };
    let described = stream.consumer_info(&definition.name).await;
    described.is_err_and(|error| error.kind() == ConsumerInfoErrorKind::NotFound)
}

async fn describe(broker: &Broker, definition: &ConsumerDefinition) -> Result<Info, Check> {
    let ConsumerDefinition {
        name,
        service,
        stream,
        ..
    } = definition;
    let handle = broker.jetstream.get_stream_no_info(stream).await;
    let described = match handle {
        Ok(handle) => handle.consumer_info(name).await,
        Err(error) => {
            return Err(Check::fault(
                CONSUMERS,
                format!("{name}: {error}"),
                "see the streams above",
            ));
        }
    };
    described.map_err(|error| match error.kind() {
        ConsumerInfoErrorKind::NotFound => {
            let advice = format!("start the {service}, which creates it and takes what waits");
            Check::fault(CONSUMERS, format!("{name} is missing on {stream}"), advice)
        }
        _ => Check::fault(
            CONSUMERS,
            format!("{name} on {stream}: {error}"),
            "see the streams above",
        ),
    })
}

/// Looks for dead letters. A message that was refused is noted, for its sender was told; a message that a service failed to
/// process is a fault.
pub(super) async fn dead(broker: &Broker) -> Vec<Check> {
    let letters = match dead::letters(broker).await {
        Ok(letters) => letters.all,
        Err(failure) => {
            return vec![Check::fault(
                DEAD,
                failure.to_string(),
                "see the streams above",
            )];
        }
    };
    let open = letters
        .iter()
        .filter(|letter| letter.about.retried.is_none());
    let (failures, refused): (Vec<_>, Vec<_>) = open.partition(|letter| letter.is_failure());
    let mut checks = Vec::new();
    if !failures.is_empty() {
        let found = format!(
            "{} that services failed to process",
            count(failures.len() as u64, "message")
        );
        let advice = "see `concord dead list`; when the cause is mended, send them again with `concord dead retry NUMBER` or `--all`";
        checks.push(Check::fault(DEAD, found, advice));
    }
    if !refused.is_empty() {
        let found = format!(
            "{} refused; their senders were told",
            count(refused.len() as u64, "message")
        );
        checks.push(Check::note(DEAD, found, "see `concord dead list`"));
    }
    if checks.is_empty() {
        checks.push(Check::good(DEAD, "none"));
    }
    checks
}
