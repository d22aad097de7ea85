//! Levels 1 to 3: what the parties and the mediator say.

use concord_events::names::{ACKNOWLEDGE, COMPARE, EVALUATION, EVIDENCE};
use concord_events::{
    Acknowledged, ChallengerAsked, Clarified, Deadline, DebateEvent, DebateOpened,
    EscalationReason, EvidenceGiven, Heard, OpinionGiven,
};
use concord_wire::payload::{
    Answer, ChallengeTerms, ConflictView, DebateLimits, Evidence, LADDER_ITEMS_MAX, Level,
    Position, Question, Resolution, SetAsideReason, Status,
};
use concord_wire::{ErrorCode, Fault, Timestamp, Token};

use super::{Ladder, Said, Word, brief, deadlines, human, named};
use crate::aggregates::case::reused_message_id;
use crate::aggregates::debate::{self, DebateState, GivenAnswer, Resolving};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::truncate::{self, Room};

type DebateDecision = Decision<DebateEvent>;

/// Most clarifications passed on in one debate.
const CLARIFICATIONS_MAX: u32 = 20;

/// What a challenge waits for when it is opened.
pub(crate) fn opening_deadlines(
    now: Timestamp,
    opened: &DebateOpened,
    terms: &ChallengeTerms,
) -> Vec<Deadline> {
    let (ladder, times) = (
        &opened.policy.ladder,
        opened.policy.ladder.times_of(opened.terms.priority),
    );
    let evidence = terms
        .escalation_timer
        .map_or(times.evidence_ms, |seconds| seconds.saturating_mul(1_000));
    vec![
        named(
            ACKNOWLEDGE,
            now.plus_millis(ladder.scaled(times.acknowledge_ms)),
        ),
        named(EVIDENCE, now.plus_millis(ladder.scaled(evidence))),
    ]
}

/// Something said on the ladder.
pub(crate) fn said(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: Option<&Ladder>,
    context: &Context,
    said: &Said,
) -> DebateDecision {
    if let Some(known) = repetition(state, said) {
        return known;
    }
    let Some(ladder) = ladder else {
        return Decision::Reject(Fault::invalid(
            "/message_type",
            "This debate is discussed in rounds; it waits for nothing of this kind.",
            "Answer its questions with agreement, disagreement or revision.",
        ));
    };
    if let Word::Ruling(ruling) = &said.word {
        return human::ruling(state, opened, ladder, context, said, ruling);
    }
    let mediator = opened.policy.ladder.mediator.as_ref() == Some(&said.agent_id)
        && ladder.level == Level::Mediation;
    let held = state
        .positions
        .iter()
        .find(|position| position.agent_id == said.agent_id);
    if let (Word::Evidence(evidence), true) = (&said.word, mediator && state.outcome.is_none()) {
        return opinion(opened, ladder, context, said, evidence);
    }
    let Some(held) = held else {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{} is no party to this debate.", said.agent_id),
            "Only challenger and challenged, or the agents whose findings conflict, can speak in it.",
        ));
    };
    if state.outcome.is_some() || ladder.level >= Level::Fallback {
        return late(state, opened, said);
    }
    match &said.word {
        Word::Acknowledgement { commit_by } => acknowledged(opened, ladder, said, *commit_by),
        Word::Clarification { text } => clarified(opened, ladder, said, text),
        Word::Evidence(evidence) => {
            given(state, opened, ladder, context, said, held, evidence, None)
        }
        Word::Ruling(_) => Decision::Ignore(Ignored::AlreadyDone),
    }
}

/// A message that was recorded before.
fn repetition(state: &DebateState, said: &Said) -> Option<DebateDecision> {
    let (agent_id, digest) = state.seen.get(&said.message_id)?;
    let same = (agent_id, digest) == (&said.agent_id, &said.digest);
    Some(if same {
        Decision::Ignore(Ignored::Repetition)
    } else {
        Decision::Reject(reused_message_id())
    })
}

pub(super) fn heard(said: &Said) -> Heard {
    Heard {
        agent_id: said.agent_id.clone(),
        message_id: said.message_id.clone(),
        digest: said.digest.clone(),
    }
}

pub(crate) fn heard_answer(given: &GivenAnswer) -> Heard {
    Heard {
        agent_id: given.agent_id.clone(),
        message_id: given.message_id.clone(),
        digest: given.digest.clone(),
    }
}

/// Recorded as late, if there is room for it.
fn late(state: &DebateState, opened: &DebateOpened, said: &Said) -> DebateDecision {
    debate::set_aside(
        state,
        opened,
        heard(said),
        Answer::default(),
        SetAsideReason::Late,
    )
}

/// The terms of the challenge, where the debate is one and the agents are still at it.
fn challenge<'a>(opened: &'a DebateOpened, ladder: &Ladder) -> Option<&'a ChallengeTerms> {
    opened
        .terms
        .challenge
        .as_ref()
        .filter(|_| ladder.level == Level::Agents)
}

fn acknowledged(
    opened: &DebateOpened,
    ladder: &Ladder,
    said: &Said,
    commit_by: Option<Timestamp>,
) -> DebateDecision {
    let Some(terms) = challenge(opened, ladder).filter(|terms| terms.challenged == said.agent_id)
    else {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            "Only the challenged agent acknowledges a challenge, while the agents are still at it.",
            "Give evidence, or answer what you are asked.",
        ));
    };
    if ladder.acknowledged {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let (waits_for, held) = ladder.rearranged(&[ACKNOWLEDGE], None);
    Decision::Append(DebateEvent::Acknowledged(Acknowledged {
        case_id: opened.case_id.clone(),
        heard: heard(said),
        challenger: terms.challenger.clone(),
        commit_by,
        waits_for,
        held,
    }))
}

fn clarified(opened: &DebateOpened, ladder: &Ladder, said: &Said, text: &str) -> DebateDecision {
    let Some(terms) = challenge(opened, ladder) else {
        return Decision::Reject(Fault::invalid(
            "/message_type",
            "Clarifications are passed on while challenger and challenged settle a challenge themselves.",
            "Give evidence instead; it is shown to whoever decides.",
        ));
    };
    if ladder.clarifications >= CLARIFICATIONS_MAX {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!("{CLARIFICATIONS_MAX} clarifications have been passed on in this debate."),
            "Give evidence, or say whether it settles the challenge.",
        ));
    }
    let to = if said.agent_id == terms.challenger {
        &terms.challenged
    } else {
        &terms.challenger
    };
    Decision::Append(DebateEvent::Clarified(Clarified {
        case_id: opened.case_id.clone(),
        heard: heard(said),
        to: to.clone(),
        text: text.to_owned(),
    }))
}

fn opinion(
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    said: &Said,
    evidence: &Evidence,
) -> DebateDecision {
    if ladder.opinion.is_some() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let words = std::iter::once(&evidence.statement)
        .chain(&evidence.evidence)
        .chain(&evidence.limitation);
    let text = words
        .filter(|text| !text.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    // The track records are compared as soon as the opinion is there.
    let (waits_for, held) = ladder.rearranged(&[COMPARE], Some(named(COMPARE, context.now)));
    Decision::Append(DebateEvent::OpinionGiven(OpinionGiven {
        case_id: opened.case_id.clone(),
        heard: heard(said),
        text: truncate::words(&text),
        waits_for,
        held,
    }))
}

/// Evidence or a revision of a party.
#[allow(clippy::too_many_arguments)] // All of it is what one message means in one debate.
fn given(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    said: &Said,
    held: &Position,
    evidence: &Evidence,
    revised: Option<&Position>,
) -> DebateDecision {
    if ladder.evidence as usize >= LADDER_ITEMS_MAX {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!("Evidence was given {LADDER_ITEMS_MAX} times in this debate."),
            "What was given stands; it is shown to whoever decides.",
        ));
    }
    let position = supported(
        revised.unwrap_or(held),
        held,
        evidence,
        state.positions.len(),
    );
    let asked = challenge(opened, ladder).filter(|terms| terms.challenged == said.agent_id);
    let times = opened.policy.ladder.times_of(opened.terms.priority);
    let due = context
        .now
        .plus_millis(opened.policy.ladder.scaled(times.evaluation_ms));
    let (waits_for, on_hold) = match asked {
        Some(_) => ladder.rearranged(
            &[ACKNOWLEDGE, EVIDENCE, EVALUATION],
            Some(named(EVALUATION, due)),
        ),
        None => ladder.rearranged(&[], None),
    };
    let mut after: Vec<Position> = state.positions.clone();
    after
        .iter_mut()
        .filter(|one| one.agent_id == position.agent_id)
        .for_each(|one| *one = position.clone());
    Decision::Append(DebateEvent::EvidenceGiven(Box::new(EvidenceGiven {
        case_id: opened.case_id.clone(),
        heard: heard(said),
        question: asked.and_then(|terms| question(opened, terms, &after, due)),
        evidence: evidence.clone(),
        brief: brief::briefed_again(opened, ladder, &after),
        position,
        waits_for,
        held: on_hold,
    })))
}

/// The challenger is asked whether what it was answered settles the challenge.
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

/// What a party holds with this evidence: new evidence stands before old.
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

/// An agreement, disagreement or revision in a debate that is on the ladder.
pub(crate) fn answer(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    given_answer: &GivenAnswer,
    held: &Position,
    revised: Option<&Position>,
) -> DebateDecision {
    let heard = heard_answer(given_answer);
    let Some(terms) = challenge(opened, ladder).filter(|_| state.outcome.is_none()) else {
        return debate::set_aside(
            state,
            opened,
            heard,
            given_answer.answer.clone(),
            SetAsideReason::Late,
        );
    };
    if given_answer.agent_id == terms.challenged {
        return revision(state, opened, ladder, context, given_answer, held, revised);
    }
    let accepts = given_answer
        .answer
        .agrees_with_peer
        .unwrap_or(given_answer.is_agreement);
    if accepts {
        let conceded = state
            .positions
            .iter()
            .find(|position| position.agent_id == terms.challenged)
            .unwrap_or(held);
        let resolution = Resolution {
            position: conceded.position.clone(),
            value: conceded.value.clone(),
            supporters: vec![terms.challenged.clone(), terms.challenger.clone()],
        };
        let resolving = Resolving::of(opened, Status::Accepted, Level::Agents, Some(resolution));
        return Decision::Append(resolving.heard(heard).event(state, context));
    }
    if !ladder.evaluating {
        return Decision::Reject(Fault::invalid(
            "",
            "There is no evidence yet that could be rejected.",
            "Wait for the challenged agent's evidence, or for its time to pass; agree if you withdraw the challenge.",
        ));
    }
    deadlines::escalated(
        state,
        opened,
        ladder,
        context,
        EscalationReason::Rejected,
        Some(heard),
    )
}

/// The challenged agent moves, or keeps its position with a reason: both are evidence for the challenger to weigh.
fn revision(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    answer: &GivenAnswer,
    held: &Position,
    revised: Option<&Position>,
) -> DebateDecision {
    let evidence = Evidence {
        statement: truncate::words(&answer.answer.reasoning),
        evidence: answer
            .answer
            .evidence
            .iter()
            .take(LADDER_ITEMS_MAX)
            .map(|item| truncate::item(item))
            .collect(),
        limitation: None,
    };
    let said = Said {
        agent_id: answer.agent_id.clone(),
        message_id: answer.message_id.clone(),
        digest: answer.digest.clone(),
        word: Word::Evidence(evidence.clone()),
    };
    given(
        state, opened, ladder, context, &said, held, &evidence, revised,
    )
}
