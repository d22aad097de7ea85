//! `concord gate show`: what requires review at the gate ahead.

use std::fmt::{Result as Written, Write};

use concord_domain::aggregates::case::{Beside, CaseState, Phase, digest_of_shown};
use concord_wire::payload::{AlertFlag, ConflictOutcome};
use concord_wire::{CaseId, DebateId};
use serde::Serialize;

use super::first_reviews::{self, FirstReview};
use super::standing::Standing;
use super::{beside, requires_review};
use crate::shared::debate_file::resolution_text;
use crate::shared::flags;
use crate::shared::output::{
    DOUBTFUL, FAINT, GOOD, NAMED, STRONG, command_word, count, one_line, styled,
};

/// The gate ahead, and what has to be done before the case can pass it.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
    case_id: &'a CaseId,
    phase: Phase,
    /// None when no gate is ahead.
    gate: Option<&'a str>,
    /// The digest that a review that lets the case pass this gate may name.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The decision of the case, which is what somebody lets pass; none while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    stands: Option<Standing<'a>>,
    requires_review: usize,
    provisional: Vec<Provisional<'a>>,
    /// Reviews that count when a second reviewer says the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    first_reviews: Vec<FirstReview<'a>>,
    /// Debates that are under way; the gate is not passed before they have ended.
    under_way: Vec<&'a DebateId>,
    /// The changes of regime while the case was open that this gate is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alerts: Vec<&'a AlertFlag>,
}

/// A provisional decision that requires review.
#[derive(Debug, Serialize)]
struct Provisional<'a> {
    topic: &'a str,
    /// The digest that a review of it may name.
    digest: Option<String>,
    #[serde(flatten)]
    outcome: &'a ConflictOutcome,
    /// What stands in its place, where it does not stand itself.
    #[serde(flatten)]
    beside: Option<Beside<'a>>,
}

pub(super) fn shown<'a>(
    case_id: &'a CaseId,
    state: &'a CaseState,
    first_reviews: Vec<FirstReview<'a>>,
) -> Shown<'a> {
    let topic = |debate: &DebateId| {
        let conflict = state
            .debated
            .iter()
            .find(|conflict| conflict.conflict_id == *debate);
        conflict
            .map(|conflict| conflict.topic.as_str())
            .unwrap_or_default()
    };
    let provisional: Vec<Provisional<'a>> = state
        .unreviewed()
        .map(|outcome| Provisional {
            topic: topic(&outcome.conflict_id),
            digest: digest_of_shown(state, Some(&outcome.conflict_id)),
            outcome,
            beside: state.beside(outcome),
        })
        .collect();
    Shown {
        case_id,
        phase: state.phase,
        gate: state.gate(),
        digest: digest_of_shown(state, None),
        requires_review: provisional.len(),
        provisional,
        first_reviews,
        stands: Standing::of(state),
        under_way: state.open_debates().collect(),
        alerts: state
            .flags
            .iter()
            .map(AsRef::as_ref)
            .filter(|flag| state.gate().is_some_and(|gate| flag.is_shown_at(gate)))
            .collect(),
    }
}

pub(super) fn text(shown: &Shown<'_>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_gate(&mut text, shown);
    text
}

fn write_gate(out: &mut String, shown: &Shown<'_>) -> Written {
    let case = shown.case_id;
    match shown.gate {
        _ if shown.phase == Phase::Cancelled => {
            return writeln!(
                out,
                "case {} is cancelled; nothing is reviewed in it any more",
                styled(NAMED, case)
            );
        }
        Some(gate) => writeln!(
            out,
            "case {} is at the gate {}",
            styled(NAMED, case),
            styled(STRONG, gate)
        )?,
        None => writeln!(out, "case {} has no gate ahead", styled(NAMED, case))?,
    }
    let style = if shown.provisional.is_empty() {
        GOOD
    } else {
        DOUBTFUL
    };
    writeln!(
        out,
        "{}",
        styled(style, requires_review(shown.requires_review))
    )?;
    if let Some(stands) = &shown.stands {
        stands.write(out)?;
    }
    for provisional in &shown.provisional {
        write_provisional(out, provisional)?;
        write_first(out, shown, Some(&provisional.outcome.conflict_id))?;
    }
    write_first(out, shown, None)?;
    if !shown.under_way.is_empty() {
        let names: Vec<&str> = shown
            .under_way
            .iter()
            .map(|debate| debate.as_str())
            .collect();
        let number = count(shown.under_way.len() as u64, "debate");
        writeln!(out, "\n{number} under way: {}", names.join(", "))?;
    }
    flags::write(out, shown.alerts.iter().copied())?;
    match shown.gate {
        Some(gate) => write_next(out, shown, gate),
        None => Ok(()),
    }
}

/// What to do next, which is never what would be refused.
fn write_next(out: &mut String, shown: &Shown<'_>, gate: &str) -> Written {
    let case = shown.case_id;
    let (verbs, digest) = match (shown.provisional.first(), shown.under_way.first()) {
        (Some(first), _) => (
            format!("--confirm {}", first.outcome.conflict_id),
            &first.digest,
        ),
        (None, Some(debate)) => {
            let wait = format!(
                "The gate can be passed when no debate is under way; follow it with: concord debate show {debate}"
            );
            return writeln!(out, "\n{}", styled(FAINT, wait));
        }
        (None, None) if shown.phase < Phase::Decided => {
            let wait = format!(
                "The gate can be passed when the case is decided; follow it with: concord case watch {case}"
            );
            return writeln!(out, "\n{}", styled(FAINT, wait));
        }
        (None, None) => ("--pass".to_owned(), &shown.digest),
    };
    let mut line = format!(
        "concord gate review {case} --gate {} --by PERSON {verbs}",
        command_word(gate)
    );
    if let Some(digest) = digest {
        // With the digest, so that nobody reviews something newer unread.
        line.push_str(&format!(" --digest {digest}"));
        if shown.provisional.is_empty() {
            writeln!(out, "  digest        {digest}")?;
        }
    }
    writeln!(out, "\n{}", styled(FAINT, format!("Go on with: {line}")))
}

fn write_first(out: &mut String, shown: &Shown<'_>, debate: Option<&DebateId>) -> Written {
    for first in first_reviews::about(&shown.first_reviews, debate) {
        let says = first_reviews::in_words(first.review);
        let counts = first.standing();
        writeln!(out, "  {:<13} {says}; {counts}", first.by.as_str())?;
    }
    Ok(())
}

fn write_provisional(
    out: &mut String,
    Provisional {
        topic,
        digest,
        outcome,
        beside,
    }: &Provisional<'_>,
) -> Written {
    writeln!(
        out,
        "\n{}  {}",
        styled(NAMED, &outcome.conflict_id),
        styled(STRONG, one_line(topic, 200))
    )?;
    if let Some(digest) = digest {
        writeln!(out, "  digest        {digest}")?;
    }
    let stands = outcome
        .resolution
        .as_ref()
        .map_or("nothing".to_owned(), resolution_text);
    match beside {
        None => writeln!(out, "  stands        {stands}")?,
        Some(beside) => beside::write(out, &stands, beside)?,
    }
    let Some(provisional) = &outcome.provisional else {
        return Ok(());
    };
    writeln!(
        out,
        "  because       {}",
        one_line(&provisional.rationale, 4_096)
    )?;
    for alternative in &provisional.alternatives {
        writeln!(out, "  alternative   {}", resolution_text(alternative))?;
    }
    if !provisional.dependants.is_empty() {
        writeln!(
            out,
            "  rest on it    {}",
            one_line(&provisional.dependants.join(", "), 4_096)
        )?;
    }
    if let Some(gate) = &provisional.review_at {
        let gate = one_line(gate, 200);
        writeln!(out, "  review at     {gate}")?;
        writeln!(out, "  window        until gate \"{gate}\" is passed")?;
    }
    writeln!(out, "  awaits gate   from {}", provisional.until)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_requires_review_is_shown_with_its_reasons() {
        let outcome: ConflictOutcome = serde_json::from_value(json!({
            "conflict_id": "d-1", "status": "provisional", "rounds": [], "positions": [],
            "resolved_at": "2026-11-21T20:00:00.000Z",
            "resolution": { "position": "90", "value": 90, "supporters": ["ben"] },
            "provisional": {
                "rationale": "Lowest price target.", "review_at": "valuation", "until": "2026-11-22T20:00:00.000Z",
                "alternatives": [{ "position": "120", "supporters": ["ann"] }], "dependants": ["dcf", "report"],
            },
        }))
        .unwrap();
        let (case, open) = (CaseId::new("c-1").unwrap(), DebateId::new("d-2").unwrap());
        let flag: AlertFlag = serde_json::from_value(serde_json::json!({
            "alert": "a-1", "event_type": "regime_change", "at": "2026-11-22T20:00:00.000Z", "raised_by": "macro",
            "new_regime": "BEAR", "affected": [{ "kind": "assumption", "name": "rate", "implication": "rate_changes" }],
        }))
        .unwrap();
        let shown = Shown {
            case_id: &case,
            phase: Phase::Decided,
            gate: Some("valuation"),
            digest: Some("def456".into()),
            requires_review: 1,
            provisional: vec![Provisional {
                topic: "Price target",
                digest: Some("abc123".into()),
                outcome: &outcome,
                beside: None,
            }],
            first_reviews: vec![],
            stands: None,
            under_way: vec![&open],
            alerts: vec![&flag],
        };
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        for seen in [
            "case c-1 is at the gate valuation\n1 provisional decision requires review\n",
            "d-1  Price target\n  digest        abc123\n  stands        90  [90] (ben)\n  because       Lowest price target.",
            "alternative   120 (ann)",
            "rest on it    dcf, report",
            "  window        until gate \"valuation\" is passed\n  awaits gate   from 2026-11-22T20:00:00.000Z\n",
            "1 debate under way: d-2",
            "  - -> BEAR at 2026-11-22T20:00:00.000Z, alert a-1 by macro\n    concerns the assumption rate (rate_changes)",
            "concord gate review c-1 --gate valuation --by PERSON --confirm d-1 --digest abc123",
        ] {
            assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
        }
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(
            (
                &json["requires_review"],
                &json["provisional"][0]["conflict_id"]
            ),
            (&json!(1), &json!("d-1"))
        );
    }

    /// A case at this gate of which nothing waits for a review.
    fn nothing_waits<'a>(case_id: &'a CaseId, gate: &'a str) -> Shown<'a> {
        Shown {
            case_id,
            phase: Phase::Decided,
            gate: Some(gate),
            digest: None,
            requires_review: 0,
            provisional: vec![],
            first_reviews: vec![],
            stands: None,
            under_way: vec![],
            alerts: vec![],
        }
    }

    /// An earlier version opened cases with gates of any name.
    #[test]
    fn a_gate_of_any_name_is_one_word_of_the_command() {
        let case = CaseId::new("c-1").unwrap();
        for (gate, word) in [
            ("v$(touch x)", "'v$(touch x)'"),
            ("it's", "'it'\\''s'"),
            ("v\u{1b}[2J", "$'v\\U0000001b[2J'"),
        ] {
            let text = text(&nothing_waits(&case, gate));
            let command = format!("concord gate review c-1 --gate {word} --by PERSON --pass");
            assert!(text.contains(&command), "{command} is missing:\n{text}");
        }
    }

    #[test]
    fn what_would_be_refused_is_not_advised() {
        let (case, open) = (CaseId::new("c-1").unwrap(), DebateId::new("d-2").unwrap());
        for (phase, under_way, told) in [
            (Phase::Decided, vec![&open], "concord debate show d-2"),
            (Phase::Collecting, vec![], "concord case watch c-1"),
            (Phase::Cancelled, vec![], "case c-1 is cancelled"),
        ] {
            let text = text(&Shown {
                phase,
                under_way,
                ..nothing_waits(&case, "valuation")
            });
            let text = anstream::adapter::strip_str(&text).to_string();
            assert!(text.contains(told) && !text.contains("--pass"), "{text}");
        }
    }
}
