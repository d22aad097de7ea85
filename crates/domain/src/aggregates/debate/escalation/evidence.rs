//! Evidence and revisions of a party on levels 1 to 3.

use concord_events::names::{ACKNOWLEDGE, EVALUATION, EVIDENCE};
use concord_events::{ChallengerAsked, DebateEvent, DebateOpened, EvidenceGiven, Heard};
use concord_wire::payload::{
    ChallengeTerms, ConflictView, DebateLimits, Evidence, Position, Question,
};
use concord_wire::{ErrorCode, Fault, Timestamp, Token};

use super::messages::open_challenge;
use super::{OnLadder, brief, named};
use crate::machine::Decision;
use crate::rules::size_budget::truncate::{self, Room};

/// How often one party gives evidence in a debate at most: whoever gives much takes no room from the others.
pub(super) const EVIDENCE_MAX: u32 = 8;
/// The same with its answers in a challenge, which are recorded like evidence: so whoever has given all its evidence can still concede.
pub(super) const GIVEN_MAX: u32 = 2 * EVIDENCE_MAX;

/// What a party brings forward for its position.
pub(super) struct Support<'a> {
    pub(super) message: Heard,
    pub(super) evidence: Evidence,
    /// What the party held before.
    pub(super) held: &'a Position,
    /// What it holds now, still without the new evidence.
    pub(super) revised: &'a Position,
    /// How often the party may be recorded in this debate, with this message.
    pub(super) most: u32,
}

/// Records evidence or a revision. When it comes from the challenged agent, the challenger is asked
/// whether it settles the challenge.
pub(super) fn given(on: &OnLadder<'_>, support: Support<'_>) -> Decision<DebateEvent> {
    let party = &support.message.agent_id;
    let given = on.ladder.evidence.get(party).copied().unwrap_or_default();
    if given >= support.most {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!(
                "{party} has given evidence or answered {given} times in this debate; each party gives evidence {EVIDENCE_MAX} times at most, \
                 and {GIVEN_MAX} times with its answers to a challenge."
            ),
            "What was given stands; it is shown to whoever decides.",
        ));
    }
    debug_assert!(
        support.held.agent_id == support.revised.agent_id,
        "a party supports its own position"
    );
    let parties = on.state.positions.len();
    let position = supported(support.revised, support.held, &support.evidence, parties);
    let asked = open_challenge(on).filter(|terms| terms.challenged == support.message.agent_id);
    let policy = &on.opened.policy.ladder;
    let evaluation_ms = policy.times_of(on.opened.terms.priority).evaluation_ms;
    // Evidence that follows does not begin the time anew: whoever is challenged could keep the debate on this level with it.
    let from_now = || on.context.now.plus_millis(policy.scaled(evaluation_ms));
    let due = on.ladder.pending(EVALUATION).unwrap_or_else(from_now);
    let (waits_for, on_hold) = match asked {
        Some(_) => on.ladder.rearranged(
            &[ACKNOWLEDGE, EVIDENCE, EVALUATION],
            Some(named(EVALUATION, due)),
        ),
        None => on.ladder.rearranged(&[], None),
    };
    let mut after: Vec<Position> = on.state.positions.clone();
    after
        .iter_mut()
        .filter(|one| one.agent_id == position.agent_id)
        .for_each(|one| *one = position.clone());
    Decision::Append(DebateEvent::EvidenceGiven(Box::new(EvidenceGiven {
        case_id: on.opened.case_id.clone(),
        heard: support.message,
        question: asked.and_then(|terms| question(on.opened, terms, &after, due)),
        evidence: support.evidence,
        brief: brief::briefed_again(on.opened, on.ladder, &after),
        position,
        waits_for,
        held: on_hold,
    })))
}

/// The question to the challenger whether the evidence settles the challenge.
fn question(
    opened: &DebateOpened,
    terms: &ChallengeTerms,
    after: &[Position],
    due: Timestamp,
) -> Option<ChallengerAsked> {
    let (own, others): (Vec<Position>, Vec<Position>) = after
        .iter()
        .cloned()
        .partition(|position| position.agent_id == terms.challenger);
    let conflict = &opened.conflict;
    let question = Question {
        debate_id: conflict.conflict_id.clone(),
        case_id: opened.case_id.clone(),
        conflict: ConflictView {
            conflict_id: conflict.conflict_id.clone(),
            kind: conflict.kind,
            topic: conflict.topic.clone(),
            subject: conflict.subject.clone(),
        },
        round: 0,
        max_rounds: 0,
        your_position: own.into_iter().next()?,
        other_positions: others,
        guidance: None,
        added_context: None,
        dependants: Vec::new(),
        limits: DebateLimits {
            max_tokens: opened.policy.tokens_per_message_max,
        },
        deadline: due,
        reply_with: ["agreement", "disagreement"].map(Token::fixed).to_vec(),
    };
    Some(ChallengerAsked {
        to: terms.challenger.clone(),
        question,
    })
}

/// The position with the new evidence in front of the old.
fn supported(
    position: &Position,
    held: &Position,
    evidence: &Evidence,
    parties: usize,
) -> Position {
    let limits = evidence
        .limitation
        .iter()
        .map(|limitation| format!("Limitation: {limitation}"));
    let mut items: Vec<String> = evidence
        .evidence
        .iter()
        .cloned()
        .chain(limits)
        .map(|item| truncate::item(&item))
        .collect();
    for item in position.evidence.iter().chain(&held.evidence) {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    let reasoning = Some(evidence.statement.clone()).filter(|statement| !statement.is_empty());
    let whole = Position {
        evidence: items,
        reasoning: reasoning.or_else(|| position.reasoning.clone()),
        ..position.clone()
    };
    truncate::shortened_position(&whole, Room::MOST.among(parties))
}
