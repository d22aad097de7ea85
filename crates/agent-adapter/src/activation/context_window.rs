//! The verb `context`: what an agent may see of a case's conversation, by request and reply.

use concord_domain::activation::conversation::conversation;
use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_runtime::service::api::{self, Caller, Verb, answer};
use concord_runtime::service::operator_api::unprepared;
use concord_runtime::service::reading::no_case;
use concord_runtime::service::under_way::UnderWay;
use concord_wire::envelope::from_json;
use concord_wire::payload::Role;
use concord_wire::{AgentId, CaseId, ErrorCode, Fault};
use serde::Deserialize;
use serde_json::json;

use crate::context::AdapterContext;

/// `context`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    case_id: CaseId,
    /// The agent; whoever asks when it is left out.
    #[serde(default)]
    agent_id: Option<AgentId>,
}

/// Answers `context`: `{"case_id": ..., "agent_id": ..., "messages": [...]}`, the oldest first, `max` at most. An agent asks for its
/// own window, an operator and an auditor for any.
pub(crate) fn verb<P: Ports>(adapter: &AdapterContext<P>, max: usize) -> Verb {
    let state = (adapter.clone(), UnderWay::of_pages(), max);
    api::verb(state, |(adapter, under_way, max), call| async move {
        let Asked { case_id, agent_id } = from_json(&call.body, "")?;
        let _place = under_way.place(&call)?;
        let agent_id = whose(call.caller.as_ref(), agent_id)?;
        let id = conversation(Some(&case_id), case_id.as_str());
        let known = adapter.conversations.load(&id).await;
        let known = known.map_err(|error| unprepared(HandleError::from(error)))?;
        let windows = known.state.windows.at(Some(&case_id));
        let opened = adapter.cases.opening_of(&case_id).await;
        let opened = opened.map_err(unprepared)?;
        let opened = opened.ok_or_else(|| no_case(&adapter.service.ports, &case_id))?;
        let is_inside = opened.participants.contains(&agent_id)
            || opened.opened_by == agent_id
            || windows.joined().any(|joined| *joined == agent_id);
        if !is_inside {
            return Err(not_inside(&agent_id));
        }
        let messages = windows.of(&agent_id, max);
        let messages: Vec<_> = messages.iter().map(AsRef::as_ref).collect();
        answer(&json!({ "case_id": case_id, "agent_id": agent_id, "messages": messages }))
    })
}

/// The agent whose window it is about, if whoever asks may read it.
fn whose(caller: Option<&Caller>, named: Option<AgentId>) -> Result<AgentId, Fault> {
    let Some(caller) = caller else {
        return named.ok_or_else(|| {
            Fault::invalid(
                "/agent_id",
                "It is not said whose window it is.",
                "Name the agent.",
            )
        });
    };
    let agent = named.unwrap_or_else(|| caller.name.clone());
    let reads_all = [Role::Operator, Role::Auditor];
    let reads_all = reads_all.iter().any(|role| caller.authority.holds(*role));
    if agent == caller.name || reads_all {
        return Ok(agent);
    }
    Err(Fault::new(
        ErrorCode::Unauthorized,
        "/agent_id",
        format!("{} asks for the window of {agent}.", caller.name),
        "Leave agent_id out and read your own; an operator or auditor reads that of others.",
    ))
}

fn not_inside(agent: &AgentId) -> Fault {
    Fault::new(
        ErrorCode::Unauthorized,
        "/agent_id",
        format!("{agent} takes no part in this case, and has no window in it."),
        "`concord case show` names those who do; whoever opened the case can let an agent in with add_participant.",
    )
}

#[cfg(test)]
mod tests {
    use concord_domain::aggregates::person::Authority;

    use super::*;

    #[test]
    fn everybody_reads_their_own_window() {
        let name = |name: &str| AgentId::new(name).unwrap();
        let ann = Caller {
            name: name("ann"),
            authority: Authority::default(),
        };
        assert_eq!(whose(Some(&ann), None).unwrap(), name("ann"));
        let fault = whose(Some(&ann), Some(name("ben"))).unwrap_err();
        assert_eq!(fault.code, ErrorCode::Unauthorized);
        let opal = Caller {
            authority: Authority::of_installation(),
            ..ann
        };
        assert_eq!(whose(Some(&opal), Some(name("ben"))).unwrap(), name("ben"));
        assert_eq!(whose(None, None).unwrap_err().pointer, "/agent_id");
    }
}
