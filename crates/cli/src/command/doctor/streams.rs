//! The streams, consumers and dead letters on the broker.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use concord_events::topology::{ConsumerDefinition, StreamKind};
use concord_runtime::broker::copies::{self, Copies};
use concord_runtime::broker::provision::Changed;
use concord_runtime::{Broker, broker::provision};
use concord_wire::subject::Service;

use super::{Check, RESTART};
use crate::command::dead;
use crate::shared::output::{count, span};

const STREAMS: &str = "Streams";
const CONSUMERS: &str = "Consumers";
const DEAD: &str = "Dead letters";
/// The longest pause that `concord backup` makes, in milliseconds: the most that its `--pause-max` may be.
const PAUSE_MAX_MS: u64 = 86_400_000;
/// Most consumers that a note names.
const NAMED_MAX: usize = 5;

/// Checks that the streams are as they are defined. What is missing is made when somebody does what `start` says with a service.
pub(super) async fn streams(broker: &Broker, start: &str) -> Vec<Check> {
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
            ("existence", _) if start == RESTART => format!(
                "if it was lost, stop all services and restore the last backup, which has all streams together or none \
                 (docs/recovery.md); where there is none, {start} all services with the same --prefix: they create what is missing"
            ),
            ("existence", _) => format!(
                "{start} all services with the same --prefix: they create what is missing when they start"
            ),
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

/// Checks that each broker of a cluster has its copies of the streams.
pub(super) async fn copies(broker: &Broker) -> Vec<Check> {
    // That the streams cannot be looked at has been said.
    let brokers = copies::by_broker(broker).await.unwrap_or_default();
    let mut checks = Vec::new();
    for (node, Copies { all, lost, behind }) in brokers {
        if !lost.is_empty() {
            let found = format!(
                "the broker {node} is lost to the cluster: its copies of {} of {all} streams are away or silent ({})",
                lost.len(),
                lost.join(", ")
            );
            let advice = "start it again or replace it before a second one goes, see docs/operating.md#concordbrokernodelost; nothing is lost yet";
            checks.push(Check::fault(STREAMS, found, advice));
        }
        let lacks = behind
            .iter()
            .map(|(stream, lag)| format!("{stream} ({lag} changes)"));
        let lacks: Vec<String> = lacks.collect();
        if !lacks.is_empty() {
            let found = format!("the broker {node} is behind with {}", lacks.join(", "));
            let advice = "it catches up by itself when it has just come back; look again";
            checks.push(Check::note(STREAMS, found, advice));
        }
    }
    checks
}

/// Checks that every consumer exists and keeps up; those of a service of `left_out` need not exist.
pub(super) async fn consumers(
    broker: &Broker,
    lag_max: u64,
    ack_wait: Duration,
    left_out: &[Service],
) -> Vec<Check> {
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
    // An installation may do without a service, always without the adapter, and then has none of its consumers.
    let mut optional = broker.layout.adapter_consumers();
    optional.retain(|one| !is_gone(one));
    optional.extend(definitions.extract_if(.., |one| left_out.contains(&one.service)));
    for definition in optional {
        if !is_missing(broker, &definition).await {
            definitions.push(definition);
        }
    }
    let mut missing = Vec::new();
    for definition in &definitions {
        match look(broker, definition, lag_max, ack_wait).await {
            Ok(Looked::KeepsUp(lag)) => {
                good += 1;
                waiting += lag;
            }
            Ok(Looked::Paused(left)) => pausing.push((definition.name.clone(), left)),
            Ok(Looked::Missing) => missing.push(definition),
            Err(check) => checks.push(check),
        }
    }
    checks.extend(absent(&missing, &definitions));
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

/// What is said of consumers that are missing: in one line of a service that has none of those that are looked at.
fn absent(missing: &[&ConsumerDefinition], all: &[ConsumerDefinition]) -> Vec<Check> {
    let mut of_services: BTreeMap<Service, Vec<&ConsumerDefinition>> = BTreeMap::new();
    for definition in missing {
        let of_service = of_services.entry(definition.service).or_default();
        of_service.push(*definition);
    }
    let mut checks = Vec::new();
    for (service, missing) in of_services {
        let advice =
            format!("start the {service}, which creates what is missing and takes what waits");
        let number = all.iter().filter(|one| one.service == service).count();
        if missing.len() == number && number > 1 {
            let found =
                format!("{service}: its {number} consumers are missing; it was never started");
            checks.push(Check::fault(CONSUMERS, found, advice));
            continue;
        }
        checks.extend(
            missing
                .into_iter()
                .map(|ConsumerDefinition { name, stream, .. }| {
                    let found = format!("{name} is missing on {stream}");
                    Check::fault(CONSUMERS, found, &advice)
                }),
        );
    }
    checks
}

/// How it is with a consumer.
enum Looked {
    /// There is none.
    Missing,
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
    ack_wait: Duration,
) -> Result<Looked, Check> {
    let ConsumerDefinition {
        name,
        service,
        stream,
        ..
    } = definition;
    let Some(info) = describe(broker, definition).await? else {
        return Ok(Looked::Missing);
    };
    if info.config.filter_subject != definition.filter || !info.config.filter_subjects.is_empty() {
        let advice = format!("{}; {}", brought_back(*service), handed_again(name));
        return Err(Check::fault(
            CONSUMERS,
            format!("{name} on {stream} is given other subjects than defined"),
            advice,
        ));
    }
    if let Some(changed) = provision::changed(&info.config, ack_wait).first() {
        return Err(differs(definition, changed));
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

/// What brings consumers back that somebody has changed.
fn brought_back(service: Service) -> String {
    format!("restart the {service}, which brings its consumers to their definition")
}

/// What has done that a consumer was not given while it had other subjects.
fn handed_again(consumer: &str) -> String {
    format!(
        "then hand it what it was not given meanwhile: concord redeliver --consumer {consumer} --since TIME, from a little before the change"
    )
}

/// The fault of a consumer that somebody has changed.
fn differs(definition: &ConsumerDefinition, changed: &Changed) -> Check {
    let ConsumerDefinition {
        name,
        service,
        stream,
        ..
    } = definition;
    let Changed {
        property,
        found,
        expected,
    } = changed;
    let restart = brought_back(*service);
    let advice = match *property {
        provision::ACK_WAIT => format!(
            "it follows from the setting work.ack_wait_ms: give the services' settings with --config; if it still differs, {restart}"
        ),
        provision::ACK_POLICY => format!(
            "the broker never changes it: remove the consumer (nats consumer rm {stream} {name}) and restart the {service}, which makes it \
             anew"
        ),
        _ => restart,
    };
    let found = format!("{name} on {stream}: {property} is {found} and should be {expected}");
    Check::fault(CONSUMERS, found, advice)
}

/// The note, or fault, about consumers that hand nothing over at this moment, with the milliseconds that each has left.
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
    if longest > PAUSE_MAX_MS {
        let advice = "no backup pauses for so long, and what they are for waits; go on with: nats consumer resume STREAM NAME";
        return Some(Check::fault(CONSUMERS, found, advice));
    }
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

/// What the broker says of a consumer; none where there is none.
async fn describe(broker: &Broker, definition: &ConsumerDefinition) -> Result<Option<Info>, Check> {
    let ConsumerDefinition { name, stream, .. } = definition;
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
    match described {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(None),
        Err(error) => Err(Check::fault(
            CONSUMERS,
            format!("{name} on {stream}: {error}"),
            "see the streams above",
        )),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_was_never_started_is_said_once() {
        let all = concord_testkit::layout().consumers();
        let of = |service| all.iter().filter(move |one| one.service == service);
        let mut missing: Vec<_> = of(Service::ConflictDetector).collect();
        let number = missing.len();
        missing.extend(of(Service::EscalationTimer).take(1));
        let checks = absent(&missing, &all);
        let found: Vec<&str> = checks.iter().map(|check| check.found.as_str()).collect();
        let never =
            format!("conflict-detector: its {number} consumers are missing; it was never started");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.contains(&never.as_str()), "{found:?}");
        let one = found.iter().find(|found| **found != never).unwrap();
        assert!(one.contains("is missing on CONCORD_"), "{found:?}");
    }
}
