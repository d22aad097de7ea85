//! Bugs of comparing estimates: conflicts are looked for among something else than what the case knows.

use concord_domain::Machine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::detection::{DetectionInput, DetectionMachine};
use concord_domain::machine::{Decision, Versioned};
use concord_events::{DetectionEvent, EventMeta};
use concord_runtime::delivery::{Delivery, HandleError, handlers};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Consistency, EventStore, Loaded, Since};
use concord_wire::CaseId;

use crate::faults::InjectedBug;
use crate::ports::SimPorts;

/// Looks for conflicts without regard to the tolerance or to the units.
pub(super) async fn compare_badly(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    let Ok((_, id)) = handlers::aggregate_of(service, delivery) else {
        return Ok(());
    };
    let (Ok(case_id), Ok(meta)) = (
        CaseId::new(id.as_str()),
        EventMeta::decode(&delivery.payload),
    ) else {
        return Ok(());
    };
    let ports = &service.ports;
    let events = ports
        .history(&delivery.payload, delivery.sequence, Since::FIRST)
        .await?;
    let mut case = Versioned::<CaseMachine>::default();
    events.into_iter().for_each(|event| case.apply(event));
    let Some(input) = DetectionInput::of_case(&case_id, &case.state) else {
        return Ok(());
    };
    let Loaded { records, head } = ports
        .load::<DetectionEvent>(&id, Since::FIRST, Consistency::Leader)
        .await?;
    let mut known = Versioned::<DetectionMachine>::default();
    records.into_iter().for_each(|record| known.apply(record));
    let context = service.of_event(meta.event_id);
    let policy = input.policy.clone();
    let changed = changed(input, bug);
    if let Decision::Append(mut event) = DetectionMachine::decide(&known.state, &context, &changed)
    {
        let DetectionEvent::Completed(detected) = &mut event;
        detected.policy = policy;
        let record = known.record(&id, &context, event);
        ports.append(&record, head, None).await?;
    }
    Ok(())
}

fn changed(mut input: DetectionInput, bug: InjectedBug) -> DetectionInput {
    if bug == InjectedBug::ToleranceIgnored {
        input.policy.estimates.tolerance.relative = 0.0;
        return input;
    }
    for received in &mut input.findings {
        for estimate in &mut received.finding.estimates {
            estimate.unit = None;
        }
    }
    input
}
