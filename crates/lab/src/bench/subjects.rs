//! The subjects, streams and consumers of the measurement, named where all of them are.

use async_nats::jetstream::{self, stream::Stream};
use concord_events::topology::{ConsumerKind, Layout, StreamKind};
use concord_wire::subject::{Lane, Service, Subject, SubjectSpace};
use concord_wire::{AgentId, CaseId, Recipient, Token};

/// The subject of a message in a case.
pub(super) fn message(case: &str, from: &str, to: &str, kind: &str) -> anyhow::Result<String> {
    subject(Some(CaseId::new(case)?), from, to, kind)
}

/// The subject of a message outside a case.
pub(super) fn message_outside_cases(from: &str, to: &str, kind: &str) -> anyhow::Result<String> {
    subject(None, from, to, kind)
}

fn subject(case: Option<CaseId>, from: &str, to: &str, kind: &str) -> anyhow::Result<String> {
    let subject = Subject::Message {
        lane: Lane::Normal,
        case,
        from: AgentId::new(from)?,
        to: Recipient::new(to)?,
        kind: Token::new(kind)?,
    };
    Ok(SubjectSpace::default().build(&subject))
}

/// The subject of a verb of a service, for the installation's own operator.
pub(super) fn api(service: Service, verb: &'static str) -> String {
    SubjectSpace::default().build(&Subject::Api {
        service,
        verb: Token::fixed(verb),
        caller: None,
    })
}

/// Everything addressed to `to`.
pub(super) fn inbox(to: &str) -> anyhow::Result<String> {
    Ok(SubjectSpace::default().inbox(Lane::Normal, &Recipient::new(to)?))
}

/// The durable inbox of an agent.
pub(super) fn agent_inbox(name: &str) -> anyhow::Result<String> {
    let (_, consumer, _) = Layout::default().agent_inbox(Lane::Normal, &AgentId::new(name)?);
    Ok(consumer)
}

/// A stream of the installation that is measured.
pub(super) async fn stream(
    context: &jetstream::Context,
    kind: StreamKind,
) -> anyhow::Result<Stream> {
    Ok(context
        .get_stream(Layout::default().stream_name(kind))
        .await?)
}

/// The names of a service's consumers of a kind.
pub(super) fn consumers(kind: ConsumerKind) -> impl Iterator<Item = String> {
    Layout::default()
        .consumers_of(kind)
        .into_iter()
        .map(|consumer| consumer.name)
}
