//! Level 3: the review queue assigns the debate to an expert, and the expert rules.

use concord_events::{
    DebateAssigned, DebateEvent, DebateOpened, InsteadOf, RulingRefusal, RulingSetAside, Unassigned,
};
use concord_wire::AgentId;
use concord_wire::payload::{
    Background, Contact, Level, Overflow, Position, Resolution, Ruling, Status,
    notification::UnassignedReason,
};
use concord_wire::{ErrorCode, Fault};

use super::fallback::{self, FallbackReason};
use super::{OnLadder, brief};
use crate::aggregates::debate::input::LadderMessage;
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::aggregates::debate::signed;
use crate::aggregates::person::{Act, Signed};
use crate::machine::{Decision, Ignored};
use crate::rules::conflict_type::{check_resolution, valued};
use crate::rules::precedent::is_same;
use crate::rules::size_budget::truncate;

type DebateDecision = Decision<DebateEvent>;

fn waits_for_person(on: &OnLadder<'_>) -> bool {
    on.ladder.level == Level::Person && !on.is_resolved()
}

/// The review queue has assigned the debate to an expert. Another one can have it still: an operator has reassigned it, or it was given
/// back and assigned again before the debate heard of the first.
pub(in crate::aggregates::debate) fn assigned(
    on: &OnLadder<'_>,
    expert: &AgentId,
    contact: &Contact,
    background: Option<&Background>,
) -> DebateDecision {
    if !waits_for_person(on) || on.ladder.expert.as_ref() == Some(expert) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    match brief::briefed(
        on.opened,
        on.ladder,
        &on.state.positions,
        expert,
        background,
    ) {
        Some(briefed) => Decision::Append(DebateEvent::Assigned(Box::new(DebateAssigned {
            case_id: on.opened.case_id.clone(),
            briefed,
            contact: contact.clone(),
            instead_of: on.ladder.expert.clone().map(|expert| InsteadOf {
                expert,
                contact: on.ladder.contact.clone(),
            }),
            waits_for: on.ladder.waits_for.clone(),
        }))),
        // Its time is held: the expert is given it when it runs again, by the brief of that event.
        None => Decision::Ignore(Ignored::AlreadyDone),
    }
}

/// The queue has taken the debate back from the expert who has it.
pub(in crate::aggregates::debate) fn unassigned(
    on: &OnLadder<'_>,
    expert: &AgentId,
    reason: UnassignedReason,
) -> DebateDecision {
    if !waits_for_person(on) || on.ladder.expert.as_ref() != Some(expert) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(DebateEvent::Unassigned(Unassigned {
        case_id: on.opened.case_id.clone(),
        topic: on.opened.conflict.topic.clone(),
        expert: expert.clone(),
        contact: on.ladder.contact.clone(),
        reason,
    }))
}

/// The review queue has no place for the debate.
pub(in crate::aggregates::debate) fn overflowed(
    on: &OnLadder<'_>,
    handling: Overflow,
) -> DebateDecision {
    if !waits_for_person(on) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let reason = match handling {
        Overflow::Escalate => FallbackReason::NoPlace,
        Overflow::Defer => FallbackReason::Deferred,
    };
    Decision::Append(fallback::fell_back(on, reason))
}

/// What to do about a ruling. It counts when it comes from the expert who has the debate and names
/// the present brief. One that does not count is recorded with the reason when it comes from that
/// expert, and refused when it comes from others.
pub(super) fn ruling(
    on: &OnLadder<'_>,
    message: &LadderMessage,
    ruling: &Ruling,
) -> DebateDecision {
    if let Err(fault) = message.sender.allow(&message.agent_id, &Act::Rule) {
        return Decision::Reject(fault);
    }
    if on.ladder.expert.as_ref() != Some(&message.agent_id) {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{} has not been given this debate.", message.agent_id),
            "Only the expert to whom the queue has given a debate can rule on it; see `concord queue`.",
        ));
    }
    let signed = Signed {
        signature: ruling.signature.as_ref(),
        fits: message.signed_for.as_ref() == Some(&on.opened.case_id),
        required: on.opened.policy.ladder.signed,
        how: "concord rule --key FILE",
    };
    if let Err(fault) = message.sender.check_signature(&message.agent_id, &signed) {
        return Decision::Reject(fault);
    }
    if let Some((reason, explanation)) = refusal(on, ruling) {
        return Decision::Append(ruling_set_aside(on, message, ruling, reason, explanation));
    }
    let OnLadder { opened, state, .. } = on;
    let (conflict, policy, positions) = (&opened.conflict, &opened.policy, &state.positions);
    let resolved = resolution(opened, positions, &message.agent_id, ruling)
        .map(|resolution| valued(conflict, policy, resolution))
        .and_then(|resolution| {
            says_one_thing(opened, positions, ruling, &resolution)?;
            // What a party holds is no less a position for being none that the result could have.
            if ruling.position_id.is_none() {
                check_resolution(conflict, policy, positions, &resolution)?;
            }
            Ok(resolution)
        });
    let resolution = match resolved {
        Ok(resolution) => resolution,
        Err(fault) => return Decision::Reject(fault),
    };
    let ruled = signed::by_ruling(&message.agent_id, ruling);
    Decision::Append(
        OutcomeBuilder::new(on.opened, Status::Ruling, Level::Person, Some(resolution))
            .ruled_by(ruled)
            .message(message.reference())
            .ruling(ruling)
            .event(on.state, on.context),
    )
}

/// Checks that a ruling does not say two things, of which one would be left out: the position of the brief and another value, or the id of a
/// position as words.
fn says_one_thing(
    opened: &DebateOpened,
    positions: &[Position],
    ruling: &Ruling,
    resolution: &Resolution,
) -> Result<(), Fault> {
    if let (Some(id), Some(value)) = (&ruling.position_id, &ruling.value) {
        let chosen = (resolution.position.as_str(), resolution.value.as_ref());
        let is_it = resolution.value.is_some() && is_same(chosen, ("", Some(value)));
        return is_it.then_some(()).ok_or_else(|| {
            Fault::invalid(
                "/payload/value",
                format!("The value is {value}, and that of {id} is another."),
                "Leave value out to rule for a position of the brief, or give the value with words of your own in `position`.",
            )
        });
    }
    let words = ruling.position.as_deref().map(str::trim);
    let briefed = brief::briefed_positions(opened, positions);
    let meant = briefed
        .iter()
        .find(|one| Some(one.position_id.as_str()) == words);
    meant.map_or(Ok(()), |meant| {
        let id = &meant.position_id;
        Err(Fault::invalid(
            "/payload/position",
            format!("{id} is the id of a position of the brief, and no words of your own."),
            format!("Give position_id {id:?} (`concord rule ... --position {id}`), or say it in other words."),
        ))
    })
}

fn ruling_set_aside(
    on: &OnLadder<'_>,
    message: &LadderMessage,
    ruling: &Ruling,
    reason: RulingRefusal,
    explanation: String,
) -> DebateEvent {
    let has_changed = reason == RulingRefusal::Changed;
    DebateEvent::RulingSetAside(Box::new(RulingSetAside {
        case_id: on.opened.case_id.clone(),
        heard: message.reference(),
        reason,
        explanation,
        changes: if has_changed {
            brief::changes_since(on.ladder, &ruling.digest)
        } else {
            Vec::new()
        },
        brief: brief::briefed_again(on.opened, on.ladder, &on.state.positions)
            .filter(|_| has_changed),
    }))
}

/// Why a ruling of the right expert does not count, with an explanation that names what stands
/// instead.
fn refusal(on: &OnLadder<'_>, ruling: &Ruling) -> Option<(RulingRefusal, String)> {
    let stands = |position: Option<&Resolution>| {
        position
            .map_or("nothing", |one| one.position.as_str())
            .to_owned()
    };
    let ladder = on.ladder;
    if let Some(outcome) = &on.state.outcome {
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
        // Who had it to decide does not review it.
        let gate = on
            .opened
            .terms
            .gate
            .as_ref()
            .map_or_else(String::new, |gate| {
                format!(" A reviewer other than you decides at the gate \"{gate}\".")
            });
        return Some((RulingRefusal::TimedOut, format!("{words}: {stands}.{gate}")));
    }
    let what = match ladder.briefed.contains(&ruling.digest) {
        true => {
            "The debate has changed since the brief with that digest: evidence or positions are other than they were"
        }
        false => "No brief of this debate has had that digest",
    };
    let words = format!("{what}. Read the brief given here and rule on its digest.");
    (ladder.digest.as_ref() != Some(&ruling.digest)).then_some((RulingRefusal::Changed, words))
}

/// What the ruling of this expert makes of a debate with these positions.
pub(in crate::aggregates::debate) fn resolution(
    opened: &DebateOpened,
    positions: &[Position],
    expert: &AgentId,
    ruling: &Ruling,
) -> Result<Resolution, Fault> {
    let Some(position_id) = &ruling.position_id else {
        let position = truncate::words(ruling.position.as_deref().unwrap_or_default());
        let value = ruling.value.as_ref().map(truncate::value);
        return Ok(Resolution {
            position,
            value,
            supporters: vec![expert.clone()],
        });
    };
    let positions = brief::briefed_positions(opened, positions);
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
