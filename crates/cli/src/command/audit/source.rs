//! What is compared with a kept head: the streams of a broker, or the files of a bundle.

use concord_events::topology::{Layout, StreamKind};
use concord_runtime::Broker;

use super::bundle::Bundle;
use crate::shared::failure::Failure;
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// Where stored messages are read.
pub(super) enum Source<'a> {
    /// A broker.
    Broker(&'a Broker),
    /// A bundle.
    Bundle(&'a Bundle),
}

impl Source<'_> {
    /// The names of the installation.
    pub(super) fn layout(&self) -> &Layout {
        match self {
            Self::Broker(broker) => &broker.layout,
            Self::Bundle(bundle) => &bundle.layout,
        }
    }

    /// Reads a stream from one end to the other, on subjects that match a filter if there is one; a bundle is always read
    /// whole. `what` names the work for the progress bar.
    pub(super) async fn for_each(
        &self,
        kind: StreamKind,
        filter: Option<String>,
        what: &'static str,
        mut take: impl FnMut(StreamMessage) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Broker(broker) => {
                let scope = match filter {
                    Some(filter) => Scope::of(kind, filter),
                    None => Scope::all(kind),
                };
                stream_reader::for_each(broker, &scope.with_non_events(), what, take).await?;
            }
            Self::Bundle(bundle) => {
                for stored in bundle.messages(kind)? {
                    take(stored?)?;
                }
            }
        }
        Ok(())
    }
}
