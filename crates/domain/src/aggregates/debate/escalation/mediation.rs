//! Level 2: the track records of both sides are compared.

use concord_events::{DebateEvent, DebateOpened, EscalationReason};
use concord_wire::Token;
use concord_wire::payload::{
    Credibility, Level, MediatedSide, Mediation, Position, Resolution, SettlementReason, Status,
};

use super::OnLadder;
use super::levels::{Escalation, escalate};
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::rules::credibility;
use crate::rules::vote;

/// Most sides that are reported, the most credible first.
const SIDES_MAX: usize = 16;

/// The holders of one option, and who speaks for them: of those of whom enough is known the most credible one.
struct Side<'a> {
    position_id: String,
    held: Vec<&'a Position>,
    speaker: &'a Position,
    credibility: Credibility,
}

/// Compares the sides by credibility. The most credible side wins if it settles against each of the
/// others.
pub(in crate::aggregates::debate) fn mediate(
    opened: &DebateOpened,
    positions: &[Position],
    opinion: Option<&str>,
) -> (Mediation, Option<Resolution>) {
    let mut sides = sides(opened, positions);
    sides.sort_by(|a, b| {
        b.credibility
            .score
            .total_cmp(&a.credibility.score)
            .then_with(|| a.position_id.cmp(&b.position_id))
    });
    let mut others = sides.iter();
    let first = others.next();
    // The most credible rival is not always the hardest one: an interval may be wider.
    let closest = first.and_then(|first| {
        let settled =
            others.map(|other| credibility::settle(&first.credibility, &other.credibility));
        settled.min_by(|a, b| {
            let clear = |one: &concord_wire::payload::Settlement| one.winner.is_some();
            clear(a)
                .cmp(&clear(b))
                .then_with(|| (a.gap - a.threshold).total_cmp(&(b.gap - b.threshold)))
        })
    });
    let winner = first.filter(|_| {
        closest
            .as_ref()
            .is_some_and(|closest| closest.winner.is_some())
    });
    let reason = closest
        .as_ref()
        .map_or(SettlementReason::InsufficientData, |closest| closest.reason);
    let (gap, threshold) = closest.map_or((0.0, credibility::GAP_MIN), |closest| {
        (closest.gap, closest.threshold)
    });
    let evidence = positions
        .iter()
        .map(|position| position.evidence.len())
        .sum::<usize>();
    let mediation = Mediation {
        gap,
        threshold,
        reason: Token::fixed(reason.as_str()),
        reasoning: reasoning(first, gap, threshold, reason),
        evidence_considered: u32::try_from(evidence).unwrap_or(u32::MAX),
        opinion: opinion.map(str::to_owned),
        sides: sides.iter().take(SIDES_MAX).map(Side::reported).collect(),
    };
    let resolution = winner.map(|winner| Resolution {
        position: winner.speaker.position.clone(),
        value: winner.speaker.value.clone(),
        supporters: winner
            .held
            .iter()
            .map(|position| position.agent_id.clone())
            .collect(),
    });
    (mediation, resolution)
}

impl Side<'_> {
    fn reported(&self) -> MediatedSide {
        MediatedSide {
            position_id: self.position_id.clone(),
            agent_id: self.speaker.agent_id.clone(),
            credibility: self.credibility.score,
            half_width: self.credibility.interval.half_width(),
            data_points: self.credibility.data_points,
        }
    }
}

fn sides<'a>(opened: &DebateOpened, positions: &'a [Position]) -> Vec<Side<'a>> {
    let options = vote::options_of(
        vote::About::conflict(&opened.conflict, &opened.policy),
        positions,
    );
    let mut sides: Vec<Side<'a>> = Vec::new();
    for (option, position) in options.into_iter().zip(positions) {
        let position_id = format!("p{}", option + 1);
        let credibility = opened
            .credibility
            .get(&position.agent_id)
            .cloned()
            .unwrap_or_else(credibility::unknown);
        match sides
            .iter_mut()
            .find(|side| side.position_id == position_id)
        {
            Some(side) => {
                side.held.push(position);
                if is_better(&credibility, &side.credibility) {
                    (side.speaker, side.credibility) = (position, credibility);
                }
            }
            None => sides.push(Side {
                position_id,
                held: vec![position],
                speaker: position,
                credibility,
            }),
        }
    }
    sides
}

/// Whether one record speaks for a side rather than another. A score without enough data points is no record: a supporter without one
/// takes nothing from those who have one.
fn is_better(one: &Credibility, other: &Credibility) -> bool {
    let rank = |of: &Credibility| (of.data_points >= credibility::DATA_POINTS_MIN, of.score);
    rank(one) > rank(other)
}

fn reasoning(
    first: Option<&Side<'_>>,
    gap: f64,
    threshold: f64,
    reason: SettlementReason,
) -> String {
    let Some(first) = first else {
        return "Nobody holds a position.".to_owned();
    };
    let leads = format!(
        "{} ({}) leads with credibility {:.3}, {gap:.3} before the next; {threshold:.3} is needed",
        first.position_id, first.speaker.agent_id, first.credibility.score
    );
    match reason {
        SettlementReason::GapExceedsThreshold => format!("{leads}: its position stands."),
        SettlementReason::GapTooSmall => format!("{leads}: a person decides."),
        SettlementReason::InsufficientData => {
            format!(
                "{leads}, and {} data points of each side: a person decides.",
                credibility::DATA_POINTS_MIN
            )
        }
    }
}

/// The event by which mediation settles the debate, or takes it to a person.
pub(super) fn conclude(on: &OnLadder<'_>) -> DebateEvent {
    debug_assert!(
        on.ladder.level == Level::Mediation,
        "track records are compared on level 2 only"
    );
    let positions = &on.state.positions;
    let (mediation, resolution) = mediate(on.opened, positions, on.ladder.opinion.as_deref());
    if resolution.is_some() {
        return OutcomeBuilder::new(on.opened, Status::Mediation, Level::Mediation, resolution)
            .mediation(mediation)
            .event(on.state, on.context);
    }
    escalate(
        on.opened,
        on.context,
        Escalation {
            from: Level::Mediation,
            reason: EscalationReason::CredibilityInconclusive,
            positions,
            message: None,
            discussion: None,
            mediation: Some(mediation),
        },
    )
}
