//! Whether every service has read what is to be archived.

use std::collections::{BTreeMap, BTreeSet};

use concord_archive::CaseContents;
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_runtime::broker::{Operation, Unavailable, log_reader};
use futures::TryStreamExt;

/// The last sequences up to which every consumer of a service has read, as it was found last.
#[derive(Default)]
pub(super) struct ReadThrough(BTreeMap<StreamKind, u64>);

impl ReadThrough {
    /// The name of a consumer that has not read all of these cases; none where all have. The broker is asked only where what was found last
    /// does not suffice: there are some two hundred consumers.
    pub(super) async fn behind(
        &mut self,
        broker: &Broker,
        cases: &[CaseContents],
    ) -> Result<Option<String>, Unavailable> {
        let mut ends: BTreeMap<StreamKind, u64> = BTreeMap::new();
        for message in cases.iter().flat_map(|case| &case.messages) {
            let end = ends.entry(message.stream).or_default();
            *end = message.sequence.max(*end);
        }
        for (kind, end) in ends {
            if self.0.get(&kind).is_some_and(|through| *through >= end) {
                continue;
            }
            let (consumer, through) = slowest(broker, kind).await?;
            self.0.insert(kind, through);
            if through < end {
                return Ok(Some(consumer));
            }
        }
        Ok(None)
    }
}

/// The consumer of a service that has read the least of a stream, and up to which sequence. An installation may do without a service, and
/// then nobody waits for it.
async fn slowest(broker: &Broker, kind: StreamKind) -> Result<(String, u64), Unavailable> {
    // What comes after this is left for the next look.
    let end = log_reader::end(broker, kind).await?.last_sequence;
    let layout = &broker.layout;
    let all = layout
        .consumers()
        .into_iter()
        .chain(layout.adapter_consumers());
    let names = all.filter(|consumer| consumer.stream_kind == kind);
    let ours: BTreeSet<String> = names.map(|consumer| consumer.name).collect();
    let stream = broker.stream(kind).await?;
    let failed = |error| Operation::DescribeConsumer.failed(error);
    let exist = stream.consumer_names().try_collect::<BTreeSet<String>>();
    let mut unknown: BTreeSet<String> = exist.await.map_err(failed)?;
    unknown.retain(|name| ours.contains(name));
    let mut slowest = (String::new(), end);
    let mut consumers = stream.consumers();
    while let Some(info) = consumers.try_next().await.map_err(failed)? {
        let has_none = info.num_pending == 0 && info.num_ack_pending == 0;
        let through = info.ack_floor.stream_sequence;
        if unknown.remove(&info.name) && !has_none && through < slowest.1 {
            slowest = (info.name, through);
        }
    }
    // A cluster leaves out those whose server does not answer.
    if let Some(name) = unknown.pop_first() {
        slowest = (name, 0);
    }
    Ok(slowest)
}
