//! Level 3: a person is given the debate, and rules.

use concord_events::{
    DebateAssigned, DebateEvent, DebateOpened, RulingRefusal, RulingSetAside, Unassigned,
};
use concord_wire::AgentId;
use concord_wire::payload::{Contact, Level, Overflow, Resolution, RuledBy, Ruling, Status};
use concord_wire::{ErrorCode, Fault};

use super::fallback::Because;
use super::messages::heard;
use super::{Ladder, Said, brief, fallback};
use crate::aggregates::debate::{DebateState, Resolving};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::truncate;

type DebateDecision = Decision<DebateEvent>;

/// The queue has given the debate to an expert.
pub(crate) fn assigned(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    expert: &AgentId,
    contact: &Contact,
) -> DebateDecision {
    let waits = ladder.level == Level::Person && state.outcome.is_none();
    if !waits || ladder.expert.as_ref() == Some(expert) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    match brief::briefed(opened, ladder, &state.positions, expert) {
        Some(briefed) => Decision::Append(DebateEvent::Assigned(Box::new(DebateAssigned {
            case_id: opened.case_id.clone(),
            briefed,
            contact: contact.clone(),
            waits_for: ladder.waits_for.clone(),
        }))),
        // Its time is held: the expert is given it when it runs again, by the brief of that fact.
        None => Decision::Ignore(Ignored::AlreadyDone),
    }
}

/// The expert who has the debate has left.
pub(crate) fn unassigned(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    expert: &AgentId,
) -> DebateDecision {
    let waits = ladder.level == Level::Person && state.outcome.is_none();
    if !waits || ladder.expert.as_ref() != Some(expert) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(DebateEvent::Unassigned(Unassigned {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        expert: expert.clone(),
    }))
}

/// The queue has no place for the debate.
pub(crate) fn overflowed(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    handling: Overflow,
) -> DebateDecision {
    if ladder.level != Level::Person || state.outcome.is_some() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let because = match handling {
        Overflow::Escalate => Because::NoPlace,
        Overflow::Defer => Because::Deferred,
    };
    Decision::Append(fallback::fell_back(state, opened, context, because))
}

/// A person's ruling. Only that of the expert who has the debate, on the brief as it is, counts; others that come from an
/// expert who had it are recorded with the reason why they do not.
pub(super) fn ruling(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    said: &Said,
    ruling: &Ruling,
) -> DebateDecision {
    if ladder.expert.as_ref() != Some(&said.agent_id) {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{} has not been given this debate.", said.agent_id),
            "Only the expert to whom the queue has given a debate can rule on it; see `concord queue`.",
        ));
    }
    if let Some((reason, explanation)) = refusal(state, ladder, ruling) {
        let changed = reason == RulingRefusal::Changed;
        return Decision::Append(DebateEvent::RulingSetAside(Box::new(RulingSetAside {
            case_id: opened.case_id.clone(),
            heard: heard(said),
            reason,
            explanation,
            changes: if changed {
                brief::changes_since(ladder, &ruling.digest)
            } else {
                Vec::new()
            },
            brief: brief::briefed_again(opened, ladder, &state.positions).filter(|_| changed),
        })));
    }
    let resolution = match resolution(state, opened, said, ruling) {
        Ok(resolution) => resolution,
        Err(fault) => return Decision::Reject(fault),
    };
    let ruled = RuledBy {
        expert: said.agent_id.clone(),
        rationale: truncate::words(&ruling.rationale),
        digest: Some(ruling.digest.clone()),
    };
    let resolving = Resolving::of(opened, Status::Ruling, Level::Person, Some(resolution));
    Decision::Append(
        resolving
            .ruled(ruled)
            .heard(heard(said))
            .event(state, context),
    )
}

/// Why a ruling of the right expert does not count, and what stands instead.
fn refusal(
    state: &DebateState,
    ladder: &Ladder,
    ruling: &Ruling,
) -> Option<(RulingRefusal, String)> {
    let stands = |position: Option<&Resolution>| {
        position
            .map_or("nothing", |one| one.position.as_str())
            .to_owned()
    };
    if let Some(outcome) = &state.outcome {
        let stands = stands(outcome.resolution.as_ref());
        let reason = if outcome.status == Status::Ruling {
            RulingRefusal::Second
        } else {
            RulingRefusal::TimedOut
        };
        return Some((
            reason,
            format!("The debate is resolved ({}): {stands}.", outcome.status),
        ));
    }
    if ladder.level > Level::Person {
        let stands = stands(
            ladder
                .provisional
                .as_ref()
                .and_then(|provisional| provisional.resolution.as_ref()),
        );
        let words = "The time for a ruling is over; provisionally this stands";
        return Some((
            RulingRefusal::TimedOut,
            format!("{words}: {stands}. Review it at the gate."),
        ));
    }
    let words = "The debate has changed since the brief with that digest: evidence or positions are other than they \
                 were. Read the brief given here and rule on its digest.";
    (ladder.digest.as_ref() != Some(&ruling.digest))
        .then(|| (RulingRefusal::Changed, words.to_owned()))
}

fn resolution(
    state: &DebateState,
    opened: &DebateOpened,
    said: &Said,
    ruling: &Ruling,
) -> Result<Resolution, Fault> {
    let Some(position_id) = &ruling.position_id else {
        let position = truncate::words(ruling.position.as_deref().unwrap_or_default());
        let value = ruling.value.as_ref().map(truncate::value);
        return Ok(Resolution {
            position,
            value,
            supporters: vec![said.agent_id.clone()],
        });
    };
    let positions = brief::briefed_positions(opened, &state.positions);
    let known = positions
        .iter()
        .map(|one| one.position_id.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let chosen = positions.iter().find(|one| one.position_id == *position_id);
    let chosen = chosen.ok_or_else(|| {
        Fault::invalid(
            "/payload/position_id",
            format!("There is no position {position_id:?} in this debate."),
            format!("Name one of {known}, or give a position of your own in `position`."),
        )
    })?;
    Ok(Resolution {
        position: chosen.position.clone(),
        value: chosen.value.clone(),
        supporters: chosen
            .held_by
            .iter()
            .map(|position| position.agent_id.clone())
            .collect(),
    })
}
