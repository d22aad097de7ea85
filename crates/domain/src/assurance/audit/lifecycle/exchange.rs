//! The lives of agents on the register and of the requests between them.

use concord_events::{AgentEvent, RequestEvent, WakeEvent};

use super::{Life, Lives, LivesOf};
use crate::activation::conversation::WakeMachine;
use crate::aggregates::agent::AgentMachine;
use crate::aggregates::request::{RequestMachine, RequestState};

impl Life for AgentMachine {
    const ENDS: bool = false;

    fn begins(event: &AgentEvent) -> bool {
        matches!(event, AgentEvent::Registered(_))
    }

    fn ends(_: &AgentEvent) -> bool {
        false
    }

    fn may_follow_end(_: &AgentEvent) -> bool {
        true
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.agents
    }
}

impl Life for RequestMachine {
    const ENDS: bool = true;
    // Of a request that is answered before it is read, the answer is heard first.
    const MAY_BEGIN_LATER: bool = true;

    fn begins(event: &RequestEvent) -> bool {
        matches!(
            event,
            RequestEvent::HeardEarly(_) | RequestEvent::Opened(_) | RequestEvent::Failed(_)
        )
    }

    fn ends(event: &RequestEvent) -> bool {
        matches!(event, RequestEvent::Answered(_) | RequestEvent::Failed(_))
    }

    fn may_follow_end(event: &RequestEvent) -> bool {
        matches!(event, RequestEvent::AnsweredLate(_))
    }

    fn begins_again(event: &RequestEvent) -> bool {
        // What has no id of its own may be asked again in the same words.
        let begins = matches!(event, RequestEvent::Opened(_) | RequestEvent::Failed(_));
        begins
            && event
                .request()
                .is_some_and(|request| request.request_id.is_derived())
    }

    fn may_rest(state: &RequestState) -> bool {
        // What was heard of a request that nobody made waits for nothing.
        state.opened.is_none()
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.requests
    }
}

impl Life for WakeMachine {
    const ENDS: bool = false;

    fn begins(_: &WakeEvent) -> bool {
        true
    }

    fn ends(_: &WakeEvent) -> bool {
        false
    }

    fn may_follow_end(_: &WakeEvent) -> bool {
        true
    }

    fn lives(all: &mut Lives) -> &mut LivesOf<Self> {
        &mut all.conversations
    }
}
