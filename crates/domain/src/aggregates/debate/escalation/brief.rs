//! The brief: what an expert is shown, and how it differs from what they were shown before.

use concord_events::names::PERSON;
use concord_events::{Briefed, DebateOpened};
use concord_wire::AgentId;
use concord_wire::payload::{Background, Brief, BriefedPosition, Level, Position};

use crate::aggregates::debate::state::Ladder;
use crate::digest;
use crate::rules::{precedent, vote};

/// Most lines about changes in one message.
const CHANGES_MAX: usize = 40;

/// What has changed since the brief with this digest. Empty where no expert has been shown such a
/// brief.
pub(super) fn changes_since(ladder: &Ladder, digest: &str) -> Vec<String> {
    let since = ladder
        .changes
        .iter()
        .skip_while(|(before, _)| before != digest);
    let mut lines: Vec<String> = since.map(|(_, line)| line.clone()).collect();
    let more = lines.len().saturating_sub(CHANGES_MAX);
    lines.truncate(CHANGES_MAX);
    if more > 0 {
        lines.push(format!("and {more} further changes"));
    }
    lines
}

/// The brief of a debate with these positions.
fn brief(
    opened: &DebateOpened,
    ladder: &Ladder,
    positions: &[Position],
    background: Option<&Background>,
) -> Brief {
    Brief {
        debate_id: opened.conflict.conflict_id.clone(),
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        priority: opened.terms.priority,
        challenge: opened.terms.challenge.clone(),
        positions: briefed_positions(opened, positions),
        mediation: ladder.mediation.clone(),
        precedents: opened.precedents.clone(),
        guidance: precedent::guidance_of(opened, positions).map(Box::new),
        added_context: opened.terms.added_context.clone(),
        background: background.cloned().map(Box::new),
    }
}

/// The positions in the order of their options, each with its holders.
pub(super) fn briefed_positions(
    opened: &DebateOpened,
    positions: &[Position],
) -> Vec<BriefedPosition> {
    let options = vote::options_of(
        vote::About::conflict(&opened.conflict, &opened.policy),
        positions,
    );
    let mut numbered: Vec<(usize, &Position)> = options.into_iter().zip(positions).collect();
    numbered.sort_by(|(a, p), (b, q)| a.cmp(b).then_with(|| p.agent_id.cmp(&q.agent_id)));
    let mut briefed: Vec<BriefedPosition> = Vec::new();
    for (option, position) in numbered {
        let position_id = format!("p{}", option + 1);
        match briefed
            .last_mut()
            .filter(|last| last.position_id == position_id)
        {
            Some(last) => last.held_by.push(position.clone()),
            None => briefed.push(BriefedPosition {
                position_id,
                position: position.position.clone(),
                value: position.value.clone(),
                held_by: vec![position.clone()],
            }),
        }
    }
    briefed
}

/// The brief for this expert, with its digest; `None` where the debate waits for no person.
pub(super) fn briefed(
    opened: &DebateOpened,
    ladder: &Ladder,
    positions: &[Position],
    expert: &AgentId,
    background: Option<&Background>,
) -> Option<Briefed> {
    let brief = brief(opened, ladder, positions, background);
    let json = serde_json::to_vec(&brief).unwrap_or_default();
    let held = || {
        ladder
            .held
            .iter()
            .flat_map(|(held, _)| held)
            .find(|deadline| deadline.name.as_str() == PERSON)
    };
    // While an operator holds the time, it ends later than stated here. The brief is bound to its
    // digest all the same.
    let due = ladder
        .due(PERSON)
        .or_else(|| held().map(|deadline| deadline.due))?;
    Some(Briefed {
        expert: expert.clone(),
        digest: digest(&json),
        brief,
        due,
    })
}

/// The brief after a change of positions, where an expert has one already.
pub(super) fn briefed_again(
    opened: &DebateOpened,
    ladder: &Ladder,
    after: &[Position],
) -> Option<Briefed> {
    let expert = ladder
        .expert
        .as_ref()
        .filter(|_| ladder.level == Level::Person)?;
    briefed(opened, ladder, after, expert, ladder.background.as_deref())
}
