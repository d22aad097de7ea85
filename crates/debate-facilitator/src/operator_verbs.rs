//! What operators ask by request and reply: who has which debate, when its deadlines run, and what is known of agents from
//! elsewhere.

use concord_domain::aggregates::debate::Command;
use concord_domain::aggregates::debate::DebateInput;
use concord_domain::aggregates::review_queue::{self, QueueInput};
use concord_domain::aggregates::track_record::Observe;
use concord_events::{DeadlineControl, ImportOrigin};
use concord_runtime::Ports;
use concord_runtime::service::operator_api;
use concord_runtime::service::{Binder, ServiceContext};
use concord_wire::payload::track_record::ImportedRecord;
use concord_wire::{AgentId, DebateId, Fault, Token};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::stores::Stores;

/// `reassign_debate`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reassign {
    debate_id: DebateId,
    to: AgentId,
    by: AgentId,
    why: String,
}

/// `control_debate`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Control {
    debate_id: DebateId,
    control: DeadlineControl,
    #[serde(default)]
    later_ms: u64,
    by: AgentId,
    why: String,
}

/// `cancel_debate`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    debate_id: DebateId,
    by: AgentId,
    why: String,
}

/// `import_record`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    record: ImportedRecord,
    by: AgentId,
}

/// Adds the verbs to the service's API.
pub(crate) fn bind<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    binder: &mut impl Binder,
) {
    let reassign = operator_api::verb(service, &stores.queue, reassign);
    binder.answer("reassign_debate", reassign);
    let on_debate = |read| operator_api::verb(service, &stores.debates, read);
    binder.answer("control_debate", on_debate(control));
    binder.answer("cancel_debate", on_debate(cancel));
    binder.answer(
        "import_record",
        operator_api::verb(service, &stores.records, import),
    );
}

fn read<T: DeserializeOwned>(request: &[u8]) -> Result<T, Fault> {
    concord_wire::envelope::from_json(request, "")
}

fn reassign(request: &[u8]) -> Result<(Token, QueueInput), Fault> {
    let Reassign {
        debate_id,
        to,
        by,
        why,
    } = read(request)?;
    Ok((
        review_queue::id(),
        QueueInput::Reassign {
            debate_id,
            to,
            by,
            why,
        },
    ))
}

fn import(request: &[u8]) -> Result<(Token, Observe), Fault> {
    let Import { record, by } = read(request)?;
    record.check("/record")?;
    let observe = Observe {
        observation: record.observation(),
        debate_id: None,
        case_id: None,
        opened_by: None,
        by,
        imported: Some(ImportOrigin {
            id: record.id,
            source: record.source,
        }),
        tell: None,
    };
    Ok((record.agent.token(), observe))
}

fn control(request: &[u8]) -> Result<(Token, DebateInput), Fault> {
    let Control {
        debate_id,
        control,
        later_ms,
        by,
        why,
    } = read(request)?;
    Ok((
        debate_id.token(),
        DebateInput::Command(Box::new(Command::Deadlines {
            control,
            later_ms,
            by,
            why,
        })),
    ))
}

fn cancel(request: &[u8]) -> Result<(Token, DebateInput), Fault> {
    let Cancel { debate_id, by, why } = read(request)?;
    Ok((
        debate_id.token(),
        DebateInput::Command(Box::new(Command::Cancel { by, why })),
    ))
}
