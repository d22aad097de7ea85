//! What follows from events of commitments: the sender is answered, the case hears of it, and a holder
//! that has not ended its commitment itself is told.

use concord_events::{CommitmentEvent, EndedLease, LeaseGranted, LeasesEnded};
use concord_wire::payload::CommitmentEnd;
use concord_wire::payload::notification::{CommitmentEnded, CommitmentMade};
use serde_json::json;

use crate::effect::Effect;

pub(super) fn effects(event: &CommitmentEvent) -> Vec<Effect> {
    match event {
        CommitmentEvent::Granted(granted) => {
            let lease = granted.lease.clone();
            let in_case = granted.case_id.is_some();
            let made = in_case.then(|| Effect::tell_all(CommitmentMade { lease }));
            std::iter::once(answer(granted)).chain(made).collect()
        }
        CommitmentEvent::Renewed(renewed) => vec![answer(renewed)],
        CommitmentEvent::Ended(ended) => {
            let answered = ended.heard.as_ref().map(|heard| Effect::Respond {
                to: heard.agent_id.clone(),
                request_id: heard.message_id.clone(),
                result: json!({ "ended": ended.leases }),
            });
            let told = ended.leases.iter().flat_map(|one| told(ended, one));
            answered.into_iter().chain(told).collect()
        }
    }
}

fn answer(granted: &LeaseGranted) -> Effect {
    Effect::Respond {
        to: granted.heard.agent_id.clone(),
        request_id: granted.heard.message_id.clone(),
        result: json!(granted.lease),
    }
}

fn told(ended: &LeasesEnded, one: &EndedLease) -> impl Iterator<Item = Effect> {
    let data = CommitmentEnded {
        resource: one.resource.clone(),
        holder: one.holder.clone(),
        term: one.term,
        reason: ended.reason,
    };
    let by_itself = ended.reason != CommitmentEnd::Released;
    let holder = by_itself.then(|| Effect::tell(one.holder.clone(), data.clone()));
    let in_case = ended.case_id.is_some();
    let all = in_case.then(|| Effect::tell_all(data));
    holder.into_iter().chain(all)
}
