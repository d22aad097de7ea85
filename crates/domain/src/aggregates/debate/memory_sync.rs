//! What happens before the first round: the parties write what they know into shared memory, and the
//! snapshot is taken that the debate refers to.
//!
//! Nobody is locked out. Whoever writes on meanwhile writes after the event that is the snapshot, or
//! before it; the debate sees what is before it, whatever is written later. The parties' libraries
//! hold their writes so that what they flush is whole.

use concord_events::{
    Deadline, DeadlineElapsed, DebateEvent, DebateOpened, Flushed, Heard, Synced,
};
use concord_wire::payload::Snapshot;
use concord_wire::payload::notification::{MemorySync, MemorySynced};
use concord_wire::{AgentId, ErrorCode, Fault, Recipient, Timestamp, Token};

use super::admission;
use super::input::{LadderMessage, MessageBody};
use super::state::{DebateState, MemorySyncState};
use crate::effect::{Effect, Round};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::precedent;

/// The name of the deadline.
const NAME: &str = "sync";

/// The deadline of the parties, in a list.
pub(super) fn deadline(until: Timestamp) -> Vec<Deadline> {
    vec![Deadline {
        name: Token::fixed(NAME),
        due: until,
    }]
}

/// Refuses a message that refers to another snapshot than the debate.
pub(super) fn check_snapshot(state: &DebateState, named: Option<Snapshot>) -> Result<(), Fault> {
    let (Some(named), Some(right)) = (named, state.snapshot) else {
        return Ok(());
    };
    if named == right {
        return Ok(());
    }
    Err(Fault::invalid(
        "/metadata/memory_snapshot",
        format!("It refers to {named}; this debate refers to {right}."),
        format!("Read memory as of {right}, and say it again with a new message_id."),
    ))
}

/// The parties, ordered.
fn parties(opened: &DebateOpened) -> Vec<AgentId> {
    let positions = opened.conflict.positions.iter();
    let mut parties: Vec<AgentId> = positions.map(|held| held.agent_id.clone()).collect();
    parties.sort();
    parties.dedup();
    parties
}

/// What to do about a message while the parties are awaited.
pub(super) fn message(
    state: &DebateState,
    sync: &MemorySyncState,
    opened: &DebateOpened,
    context: &Context,
    message: &LadderMessage,
) -> Decision<DebateEvent> {
    let who = &message.agent_id;
    if let Some(repeated) = admission::repetition(state, who, &message.message_id, &message.digest)
    {
        return repeated;
    }
    if !matches!(message.body, MessageBody::Acknowledgement { .. }) {
        return Decision::Reject(not_yet());
    }
    let parties = parties(opened);
    if !parties.contains(who) {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{who} is no party to this debate."),
            "Only agents whose findings conflict are asked.",
        ));
    }
    if sync.flushed.contains(who) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let heard = message.reference();
    if sync.flushed.len() + 1 < parties.len() {
        return Decision::Append(DebateEvent::Flushed(Flushed {
            case_id: opened.case_id.clone(),
            heard,
        }));
    }
    Decision::Append(synced(sync, opened, context, Some(heard)))
}

/// The time of the parties is over.
pub(super) fn elapsed(
    sync: &MemorySyncState,
    opened: &DebateOpened,
    context: &Context,
    elapsed: &DeadlineElapsed,
) -> Decision<DebateEvent> {
    if elapsed.name.as_str() != NAME || elapsed.due != sync.until {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    Decision::Append(synced(sync, opened, context, None))
}

/// What is said about a debate that has not begun.
pub(super) fn not_yet() -> Fault {
    Fault::invalid(
        "",
        "The debate has not begun: its parties write what they know into shared memory.",
        "Acknowledge memory_sync if you are a party; answer when you are asked.",
    )
}

fn synced(
    sync: &MemorySyncState,
    opened: &DebateOpened,
    context: &Context,
    last: Option<Heard>,
) -> DebateEvent {
    let mut flushed = sync.flushed.clone();
    flushed.extend(last.iter().map(|heard| heard.agent_id.clone()));
    let parties = parties(opened).into_iter();
    let silent = parties.filter(|party| !flushed.contains(party)).collect();
    // Where there are no rounds, nobody is asked and the round is due at once.
    let wait_ms = match opened.asked.is_empty() {
        true => 0,
        false => opened.policy.answer_timeout_ms,
    };
    DebateEvent::Synced(Box::new(Synced {
        case_id: opened.case_id.clone(),
        conflict: opened.conflict.clone(),
        last,
        flushed: flushed.into_iter().collect(),
        silent,
        rounds_max: opened.policy.rounds_max,
        tokens_per_message_max: opened.policy.tokens_per_message_max,
        asked: opened.asked.clone(),
        due: context.now.plus_millis(wait_ms),
        guidance: precedent::guidance_of(opened, &opened.conflict.positions).map(Box::new),
        added_context: opened.terms.added_context.clone(),
        dependants: opened.terms.dependants.clone(),
    }))
}

/// The parties are asked to write what they know.
pub(super) fn asks(opened: &DebateOpened, until: Timestamp) -> Vec<Effect> {
    let parties = parties(opened);
    let tell = |party: &AgentId| Effect::Notify {
        to: Recipient::Agent(party.clone()),
        data: Box::new(
            MemorySync {
                debate_id: opened.conflict.conflict_id.clone(),
                parties: parties.clone(),
                until,
            }
            .into(),
        ),
    };
    parties.iter().map(tell).collect()
}

/// The parties are told that they may write again, and are asked in the first round.
pub(super) fn begins(synced: &Synced, sequence: u64) -> Vec<Effect> {
    let parties = synced.conflict.positions.iter();
    let mut parties: Vec<&AgentId> = parties.map(|held| &held.agent_id).collect();
    parties.sort();
    parties.dedup();
    let told = parties.into_iter().map(|party| Effect::Notify {
        to: Recipient::Agent(party.clone()),
        data: Box::new(
            MemorySynced {
                debate_id: synced.conflict.conflict_id.clone(),
                snapshot: Snapshot(sequence),
                silent: synced.silent.clone(),
            }
            .into(),
        ),
    });
    let round = Round {
        case_id: &synced.case_id,
        conflict: &synced.conflict,
        round: 1,
        rounds_max: synced.rounds_max,
        tokens_max: synced.tokens_per_message_max,
        asked: &synced.asked,
        due: synced.due,
        guidance: synced.guidance.as_deref(),
        added_context: synced.added_context.as_deref(),
        dependants: &synced.dependants,
    };
    told.chain(round.questions()).collect()
}
