//! The brief of a debate, as text for its expert.

use std::fmt::{Result, Write};

use concord_domain::aggregates::debate::DebateState;
use concord_events::{Briefed, DebateEvent, StoredEvent, names};
use concord_runtime::service::clock;
use concord_wire::payload::{Brief, BriefedPosition, Mediation, Position, SIMILAR_PATTERNS_MAX};

use super::background;
use crate::shared::debate_file::{similar_lines, value_text};
use crate::shared::output::{
    BAD, Cell, DOUBTFUL, FAINT, NAMED, STRONG, Table, ago, count, one_line, span, styled,
};

/// At most so many characters of a text are shown: as many as a text may have, for an expert must be able to read all of it.
pub(super) const TEXT: usize = 4_096;

/// The latest brief of a debate; none while no expert has it. Its deadline is the present one, which may have been moved.
pub(crate) fn latest(state: &DebateState, events: &[StoredEvent<DebateEvent>]) -> Option<Briefed> {
    let last = events.iter().rev().find_map(|event| match &event.event {
        DebateEvent::Assigned(assigned) => Some(Some(assigned.briefed.clone())),
        DebateEvent::EvidenceGiven(given) => given.brief.clone().map(Some),
        // Whoever had it has left, and the brief is nobody's.
        DebateEvent::Unassigned(_) => Some(None),
        _ => None,
    });
    let mut briefed = last.flatten()?;
    if let Some(ladder) = &state.ladder {
        let mut pending = ladder
            .held
            .iter()
            .flat_map(|(held, _)| held)
            .chain(&ladder.waits_for);
        if let Some(person) = pending.find(|one| one.name.as_str() == names::PERSON) {
            briefed.due = person.due;
        }
    }
    Some(briefed)
}

/// A brief as text; `is_held` while an operator holds the deadlines.
pub(crate) fn text(briefed: &Briefed, is_held: bool) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_brief(&mut text, briefed, is_held);
    text
}

fn write_brief(out: &mut String, briefed: &Briefed, is_held: bool) -> Result {
    let Briefed {
        expert,
        digest,
        brief,
        due,
    } = briefed;
    writeln!(
        out,
        "debate {}  {}",
        styled(NAMED, &brief.debate_id),
        styled(STRONG, one_line(&brief.topic, TEXT))
    )?;
    writeln!(out, "  case      {}", brief.case_id)?;
    writeln!(out, "  expert    {expert}")?;
    writeln!(out, "  priority  {}", brief.priority.as_str())?;
    let left = match due.millis_since(clock::now()) {
        _ if is_held => styled(DOUBTFUL, "and later: an operator holds it"),
        0 => styled(BAD, "the time is over"),
        left => styled(FAINT, format!("{} left", span(left))),
    };
    writeln!(out, "  until     {due}  {left}")?;
    writeln!(out, "  digest    {digest}")?;
    background::write_before(out, brief)?;
    write_challenge(out, brief)?;
    if let Some(context) = &brief.added_context {
        writeln!(
            out,
            "\n{}\n  {}",
            styled(STRONG, "Added since it was debated before"),
            one_line(context, TEXT)
        )?;
    }
    writeln!(out, "\n{}", styled(STRONG, "Positions"))?;
    brief
        .positions
        .iter()
        .try_for_each(|position| write_position(out, position))?;
    if let Some(mediation) = &brief.mediation {
        write_mediation(out, mediation)?;
    }
    background::write_after(out, brief)?;
    write_precedents(out, brief)?;
    // With the digest, so that nobody rules on a newer brief unread.
    let rule = format!(
        "concord rule {} --expert {expert} --position p1 --rationale \"...\" --digest {digest}",
        brief.debate_id
    );
    writeln!(out, "\n{}", styled(FAINT, format!("Rule with: {rule}")))
}

fn write_challenge(out: &mut String, brief: &Brief) -> Result {
    let Some(challenge) = &brief.challenge else {
        return Ok(());
    };
    writeln!(out, "\n{}", styled(STRONG, "Challenge"))?;
    writeln!(
        out,
        "  {} disputes {}",
        styled(NAMED, &challenge.challenger),
        styled(NAMED, &challenge.challenged)
    )?;
    writeln!(out, "  because {}", one_line(&challenge.basis, TEXT))?;
    for wanted in &challenge.required_evidence {
        writeln!(out, "  wants to see: {}", one_line(wanted, TEXT))?;
    }
    if let Some(wanted) = &challenge.provisional_resolution {
        let wanted = wanted
            .as_str()
            .map_or_else(|| wanted.to_string(), str::to_owned);
        writeln!(out, "  wants meanwhile: {}", one_line(&wanted, TEXT))?;
    }
    let context = challenge.historical_context.as_ref();
    let named = context.map(|context| similar_lines(context, SIMILAR_PATTERNS_MAX));
    for line in named.unwrap_or_default() {
        writeln!(out, "  names earlier cases: {line}")?;
    }
    Ok(())
}

fn write_position(out: &mut String, position: &BriefedPosition) -> Result {
    let id = styled(STRONG, &position.position_id);
    writeln!(
        out,
        "  {id}  {}{}",
        one_line(&position.position, TEXT),
        value_text(position.value.as_ref())
    )?;
    position
        .held_by
        .iter()
        .try_for_each(|held| write_holder(out, held))
}

fn write_holder(out: &mut String, held: &Position) -> Result {
    let confidence = styled(FAINT, format!("confidence {:.2}", held.confidence));
    writeln!(
        out,
        "      {} {confidence}: {}",
        styled(NAMED, &held.agent_id),
        one_line(&held.position, TEXT)
    )?;
    if let Some(reasoning) = &held.reasoning {
        writeln!(out, "        because {}", one_line(reasoning, TEXT))?;
    }
    for item in &held.evidence {
        writeln!(out, "        evidence: {}", one_line(item, TEXT))?;
    }
    match held.evidence_omitted {
        0 => Ok(()),
        omitted => writeln!(
            out,
            "        {}",
            styled(DOUBTFUL, format!("and {}", count(omitted, "further item")))
        ),
    }
}

fn write_mediation(out: &mut String, mediation: &Mediation) -> Result {
    writeln!(out, "\n{}", styled(STRONG, "Mediation by track record"))?;
    let mut table =
        Table::new(["POSITION", "AGENT", "CREDIBILITY", "+/-", "POINTS"]).indented("  ");
    for side in &mediation.sides {
        table.row([
            Cell::text(&side.position_id),
            Cell::text(&side.agent_id).with(NAMED),
            Cell::number(format!("{:.3}", side.credibility)),
            Cell::number(format!("{:.3}", side.half_width)),
            Cell::number(format!("{:.0}", side.data_points)),
        ]);
    }
    if !mediation.sides.is_empty() {
        write!(out, "{table}")?;
    }
    writeln!(out, "  {}", one_line(&mediation.reasoning, TEXT))?;
    match &mediation.opinion {
        Some(opinion) => writeln!(out, "  the mediator's opinion: {}", one_line(opinion, TEXT)),
        None => Ok(()),
    }
}

fn write_precedents(out: &mut String, brief: &Brief) -> Result {
    writeln!(
        out,
        "\n{}",
        styled(
            STRONG,
            format!("Earlier debates like this one ({})", brief.precedents.len())
        )
    )?;
    if let Some(known) = &brief.guidance {
        background::write_guidance(out, known)?;
    }
    for precedent in &brief.precedents {
        let how = format!(
            "level {}, {}, {} ago",
            precedent.level,
            one_line(&precedent.status, 40),
            ago(precedent.at)
        );
        let chosen = match precedent.position.as_str() {
            "" => "nothing was chosen".to_owned(),
            position => one_line(position, TEXT),
        };
        writeln!(out, "  {}  {chosen}", styled(NAMED, &precedent.debate_id))?;
        writeln!(
            out,
            "      {} {}",
            one_line(&precedent.topic, TEXT),
            styled(FAINT, format!("({how})"))
        )?;
        background::write_proved(out, brief, &precedent.debate_id)?;
    }
    let claims = brief.background.as_ref().map(|one| one.claims.as_slice());
    background::write_claims(out, claims.unwrap_or_default())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// What stands in it beside the positions.
    fn background() -> serde_json::Value {
        json!({
            "task": {
                "type": "valuation", "title": "The target", "input": "First line.\nSecond\u{1b}[2J line.", "bytes": 40_000,
                "opened_by": "olga",
            },
            "findings": [{
                "agent_id": "ann", "message_id": "m-1", "confidence": 0.9, "summary": "Growth goes on.", "risk_score": 20.0,
                "recommendation": "buy", "severity": "low", "about": ["price target: 120"], "evidence": ["10-K"], "omitted": 1,
            }],
            "said": [
                { "round": 0, "agent_id": "ben", "words": "Which margins?" },
                { "round": 1, "agent_id": "ann", "agrees": false, "position": "120", "words": "They hold." },
                { "round": 2, "agent_id": "ben", "agrees": true, "moved": true, "position": "100", "words": "Half of it." },
            ],
            "said_omitted": 3,
            "claims": [{
                "agent_id": "ben", "claimed_rate": 0.72, "claimed_observations": 40, "claimed_accuracy": 0.81,
                "known": { "right": 0, "known": 0, "interval": { "low": 0.0, "high": 1.0 } },
                "is_far_outside": false, "remark": "Not known here.",
            }],
            "credibility": { "ann": {
                "score": 0.75, "interval": { "low": 0.6, "high": 0.9 }, "data_points": 20.0, "effective_size": 21.0,
                "observations": 22, "factors": [{
                    "name": "base_accuracy", "value": 0.8, "data_points": 20.0, "applied": true,
                    "explanation": "16 of 20 were correct.",
                }],
                "held_back": { "points": 60.0, "held": 31.04 },
            } },
            "proved": { "d-0": {
                "position": "95", "value": 95, "explanation": "The year's report.", "at": "2026-02-01T00:00:00.000Z",
            } },
            "depends": {
                "gate": "valuation", "decision": 1, "dependants": ["dcf"],
                "related": [{ "debate_id": "d-2", "topic": "The same", "status": "vote", "position": "80" }],
            },
        })
    }

    /// A brief with everything in it.
    pub(crate) fn example() -> Briefed {
        serde_json::from_value(json!({
            "expert": "eva",
            "digest": "abc123",
            "due": "2026-11-21T20:00:00.000Z",
            "brief": {
                "debate_id": "d-1", "case_id": "c-1", "topic": "Price target", "priority": "critical-path",
                "challenge": {
                    "challenge_id": "ch-1", "challenger": "ben", "challenged": "ann", "basis": "Margins are stale.",
                    "required_evidence": ["the model"],
                    "historical_context": {
                        "similar_patterns": [{ "company": "MSFT", "year": 2016, "outcome": "It paid\u{1b}[2J off" }],
                    },
                },
                "positions": [
                    { "position_id": "p1", "position": "120", "value": 120, "held_by": [
                        { "agent_id": "ann", "position": "120", "value": 120, "confidence": 0.8,
                          "evidence": ["filing"], "reasoning": "growth", "evidence_omitted": 2 },
                    ] },
                    { "position_id": "p2", "position": "90", "held_by": [
                        { "agent_id": "ben", "position": "90", "confidence": 0.7 },
                    ] },
                ],
                "mediation": {
                    "sides": [
                        { "position_id": "p1", "agent_id": "ann", "credibility": 0.75, "half_width": 0.1, "data_points": 20.0 },
                        { "position_id": "p2", "agent_id": "ben", "credibility": 0.7, "half_width": 0.1, "data_points": 18.0 },
                    ],
                    "gap": 0.05, "threshold": 0.25, "reason": "gap_too_small", "reasoning": "Too close.",
                    "evidence_considered": 1, "opinion": "I lean to p2.",
                },
                "precedents": [
                    { "debate_id": "d-0", "topic": "Price target", "position": "", "level": 3, "status": "ruling",
                      "at": "2026-01-01T00:00:00.000Z" },
                ],
                "added_context": "A new filing.",
                "background": background(),
            },
        }))
        .unwrap()
    }

    #[test]
    fn everything_that_an_expert_must_know_is_shown() {
        let text = anstream::adapter::strip_str(&text(&example(), false)).to_string();
        for seen in [
            "debate d-1  Price target",
            "priority  critical-path",
            "until     2026-11-21T20:00:00.000Z",
            "digest    abc123",
            "ben disputes ann",
            "because Margins are stale.",
            "wants to see: the model",
            "names earlier cases: company: MSFT, outcome: It paid [2J off, year: 2016",
            "ben claims 72 % of 40, own accuracy 81 % in cases like this: Not known here.",
            "  p1  120  [120]\n      ann confidence 0.80: 120\n        because growth\n        evidence: filing",
            "and 2 further items",
            "  p1        ann          0.750  0.100      20",
            "Too close.",
            "the mediator's opinion: I lean to p2.",
            "d-0  nothing was chosen",
            "(level 3, ruling, ",
            "A new filing.",
            "concord rule d-1 --expert eva --position p1 --rationale \"...\" --digest abc123",
            "valuation: The target (opened by olga)\n  | First line.\n  | Second [2J line.\n",
            "40000 bytes in all; the whole: concord case show c-1 --json",
            "ann confidence 0.90, risk 20, low, recommends buy: Growth goes on.\n      price target: 120\n      evidence: 10-K\n",
            "and 3 earlier statements\n  before ben says: Which margins?\n  round 1 ann stays with 120: They hold.\n",
            "round 2 ben now holds 100: Half of it.",
            "ann 0.750 (0.600 to 0.900), 20.0 data points\n      x 0.800 base_accuracy: 16 of 20 were correct.",
            "      31 of 60 points of one opener's cases are held back: above 20 points, no opener's cases weigh more than",
            "the case is decided, version 1; a ruling that changes something gives the next",
            "without a ruling the gate valuation reviews what stands\n  rests on it: dcf\n  about the same: d-2 The same (vote: 80)",
            "proved right: 95  [95]: The year's report.",
        ] {
            assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
        }
    }
}
