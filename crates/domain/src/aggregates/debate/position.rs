//! The position of a party after its answer.

use concord_events::DebateOpened;
use concord_wire::payload::Position;
use concord_wire::{AgentId, Fault};
use serde_json::Value;

use super::input::AnswerMessage;
use crate::aggregates::case::{with_share, without_share};
use crate::rules::canonical::normalise;
use crate::rules::conflict_type::{RECOMMENDATION, meant, value_in_words};
use crate::rules::proved::holds;
use crate::rules::size_budget::truncate::{self, Room};

/// The position that the answer states, else the one of the peer it agrees with, else the one held before. Who agrees and writes a sentence in
/// place of a position holds the peer's, and who disagrees so (`I maintain my position`) what it held.
///
/// `positions` are those at the beginning of the round, which every party was shown. The party
/// agrees with those, not with what a peer has moved to since then; so the order of arrival decides
/// nothing.
pub(super) fn after(
    opened: &DebateOpened,
    positions: &[Position],
    held: &Position,
    message: &AnswerMessage,
    agrees: bool,
) -> Position {
    let answer = &message.answer;
    // Kept as it is meant, so that whatever follows compares it so: 28 where 25 % was held is 28 %.
    let as_meant = |value| Some(meant(value, &opened.conflict.positions));
    let (text, value) = match (&answer.revised_position, &answer.value) {
        (Some(text), Some(value)) => (truncate::words(text), as_meant(value)),
        (None, Some(value)) => (truncate::words(&spoken(value)), as_meant(value)),
        (Some(text), None) => {
            let stated = stated_in_words(opened, positions, held, &truncate::words(text));
            let names_one = || names_a_position(opened, positions, held, &stated);
            let maintained = || message.maintains().then(|| unchanged(held));
            let otherwise = peer_agreed_with(positions, held, message, agrees).or_else(maintained);
            otherwise.filter(|_| !names_one()).unwrap_or(stated)
        }
        (None, None) => {
            peer_agreed_with(positions, held, message, agrees).unwrap_or_else(|| unchanged(held))
        }
    };
    let stated = answer.confidence.or(message.confidence);
    let confidence = confidence(opened, held, (&text, value.as_ref()), stated);
    // What was shown before stays shown while there is room: new evidence is put in front of it.
    let mut evidence: Vec<String> = answer
        .evidence
        .iter()
        .map(|quote| truncate::item(quote))
        .collect();
    let given_now = evidence.len();
    for quote in &held.evidence {
        if !evidence.iter().take(given_now).any(|now| now == quote) {
            evidence.push(quote.clone());
        }
    }
    let whole = Position {
        agent_id: held.agent_id.clone(),
        position: text,
        value: value
            .filter(|value| !value.is_null())
            .map(|value| truncate::value(&value)),
        confidence,
        evidence,
        reasoning: Some(answer.reasoning.clone()).filter(|reasoning| !reasoning.is_empty()),
        evidence_omitted: held.evidence_omitted,
    };
    truncate::shortened_position(&whole, Room::MOST.among(positions.len()))
}

/// How sure a party is of what it holds now: as it states, or as before. Confirmations of its finding that count go on to count for as long as
/// it holds what they were of: they make it surer than it says, and no surer than both made it at the beginning. So nobody who repeats the
/// confidence that it was shown is made surer each time.
fn confidence(
    opened: &DebateOpened,
    held: &Position,
    now: (&str, Option<&Value>),
    stated: Option<f64>,
) -> f64 {
    let mut first = opened.conflict.positions.iter();
    let first = first.find(|first| first.agent_id == held.agent_id);
    let share = opened.terms.confirmed.get(&held.agent_id);
    let (Some(first), Some(share)) = (first, share) else {
        return stated.unwrap_or(held.confidence);
    };
    let is_confirmed = |(words, value)| holds(opened, first, words, value);
    let was_confirmed = is_confirmed((&held.position, held.value.as_ref()));
    match (stated, was_confirmed, is_confirmed(now)) {
        (None, true, false) => without_share(held.confidence, *share),
        (None, _, _) => held.confidence,
        (Some(stated), true, true) if stated == held.confidence => stated,
        (Some(stated), _, true) => stated.max(with_share(stated, *share).min(first.confidence)),
        (Some(stated), _, false) => stated,
    }
}

/// Checks that whoever an answer agrees with is another party.
pub(super) fn check_peer(positions: &[Position], message: &AnswerMessage) -> Result<(), Fault> {
    let named = message.answer.agrees_with.as_ref();
    let Some(named) = named.filter(|_| message.agrees()) else {
        return Ok(());
    };
    let parties = positions.iter().map(|position| &position.agent_id);
    let others: Vec<&str> = parties
        .filter(|party| **party != message.agent_id)
        .map(AgentId::as_str)
        .collect();
    if others.contains(&named.as_str()) {
        return Ok(());
    }
    Err(Fault::invalid(
        "/payload/agrees_with",
        format!("{named} is no other party of this debate."),
        format!(
            "Name one of {}, and answer again with a new message_id before the deadline.",
            others.join(", ")
        ),
    ))
}

/// Whether an answer that agrees says what it agrees to: it states a position, or there is a peer whose position it takes over.
pub(super) fn is_said(positions: &[Position], held: &Position, message: &AnswerMessage) -> bool {
    message.answer.revised_position.is_some()
        || message.answer.value.is_some()
        || peer_agreed_with(positions, held, message, true).is_some()
}

fn unchanged(held: &Position) -> (String, Option<Value>) {
    (held.position.clone(), held.value.clone())
}

fn spoken(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A position message in words only has the value of the position with the same words, if anyone
/// holds one; else the value that the words state.
fn stated_in_words(
    opened: &DebateOpened,
    positions: &[Position],
    held: &Position,
    text: &str,
) -> (String, Option<Value>) {
    let words = normalise(text);
    let same = |position: &&Position| normalise(&position.position) == words;
    let known = std::iter::once(held).chain(positions).find(same);
    let known = known.and_then(|position| position.value.clone());
    let stated = || value_in_words(&opened.conflict, &opened.policy, text);
    (text.to_owned(), known.or_else(stated))
}

/// Whether words are a position, and not a sentence about one: somebody holds the same, or they state a value of which the result of the case
/// is made. Any words may be a recommendation; whoever agrees with a peer and writes `I agree that we should not sign` recommends nothing new.
fn names_a_position(
    opened: &DebateOpened,
    positions: &[Position],
    held: &Position,
    (text, value): &(String, Option<Value>),
) -> bool {
    let is_recommendation = normalise(&opened.conflict.subject) == RECOMMENDATION;
    // A recommendation is its value: `Recommendation: reject` is that of who holds `reject`.
    let read = value.as_ref().and_then(|value| value.as_str());
    let words = normalise(read.filter(|_| is_recommendation).unwrap_or(text));
    let is_held = |position: &Position| normalise(&position.position) == words;
    let is_of_order = || {
        let mut order = opened.policy.caution_order.iter();
        order.any(|known| normalise(known) == words)
    };
    std::iter::once(held).chain(positions).any(is_held)
        || value.is_some() && (!is_recommendation || is_of_order())
}

/// The position of the peer named, or of the only peer position there is.
fn peer_agreed_with(
    positions: &[Position],
    held: &Position,
    message: &AnswerMessage,
    agrees: bool,
) -> Option<(String, Option<Value>)> {
    if !agrees {
        return None;
    }
    let peers: Vec<&Position> = positions
        .iter()
        .filter(|other| other.agent_id != held.agent_id)
        .collect();
    if let Some(named) = &message.answer.agrees_with {
        return peers
            .iter()
            .find(|peer| peer.agent_id == *named)
            .map(|peer| unchanged(peer));
    }
    let first = peers.first()?;
    let alike = |peer: &&Position| match (&peer.value, &first.value) {
        (Some(a), Some(b)) => a == b,
        _ => normalise(&peer.position) == normalise(&first.position),
    };
    peers.iter().all(alike).then(|| unchanged(first))
}
