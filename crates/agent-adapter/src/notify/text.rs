//! The words of a mail. Topics and positions are written by strangers: each becomes one line of bounded length, so that
//! it can neither add a header nor pretend to be a part of the text around it.

use concord_domain::text::{command_word, one_line};
use concord_events::{AlertRaised, DeadlineControl};
use concord_wire::payload::notification::UnassignedReason;
use concord_wire::payload::{ChangedPart, DecisionChange};
use concord_wire::{AgentId, CaseId};

use super::notice::{Audience, Matter, Notice, Order, Position, What};

/// Longest subject, in characters.
const SUBJECT_MAX: usize = 120;
/// Longest line that a stranger wrote, in characters.
const LINE_MAX: usize = 500;
/// Positions that are listed; `concord queue next` shows all of them.
const POSITIONS_MAX: usize = 10;

/// The subject line.
pub(crate) fn subject(notice: &Notice) -> String {
    let topic = &notice.topic;
    let text = match (&notice.what, &notice.to) {
        (What::Assigned { .. }, _) => format!("[Concord] A ruling is awaited: {topic}"),
        (What::Reminded(percent), _) => {
            format!("[Concord] {percent} % of the time is over: {topic}")
        }
        (What::FellBack(_), Audience::Gate(gate)) => {
            format!("[Concord] Provisional before the gate {gate}: {topic}")
        }
        (What::AwaitsGate, Audience::Gate(gate)) => {
            format!("[Concord] The gate {gate} must review: {topic}")
        }
        (What::TakenBack(_) | What::Cancelled(_), _) => {
            format!("[Concord] Taken back from you: {topic}")
        }
        (What::DeadlinesMoved(control, _), _) => {
            let what = match control {
                DeadlineControl::Hold => "The time is held",
                DeadlineControl::Resume => "The time goes on",
                DeadlineControl::Extend => "There is more time",
            };
            format!("[Concord] {what}: {topic}")
        }
        (
            What::Changed {
                overridden: true, ..
            },
            _,
        ) => format!("[Concord] Your ruling was overridden: {topic}"),
        (What::Changed { .. }, _) => format!("[Concord] A decision has changed: {topic}"),
        (What::QuotaReached(_), _) => format!("[Concord] A quota is used up: {topic}"),
        (What::Alerted { .. }, _) => format!("[Concord] The regime has changed: {topic}"),
        (What::ReportMissed { .. }, _) => format!("[Concord] A report is missing: {topic}"),
        (What::Disproved { .. }, _) => {
            format!("[Concord] Something else proved right: {topic}")
        }
        (What::FellBack(_) | What::AwaitsGate, _) => {
            format!("[Concord] To be reviewed: {topic}")
        }
    };
    one_line(&text, SUBJECT_MAX)
}

/// The text.
pub(crate) fn body(notice: &Notice) -> String {
    let mut lines = vec![happened(notice), String::new()];
    if notice.debate_id.is_some() {
        lines.push(format!("Disputed: {}", one_line(&notice.topic, LINE_MAX)));
    }
    match &notice.what {
        What::Assigned {
            priority,
            positions,
            matter,
            ..
        } => {
            lines.extend(matter.iter().map(about));
            for position in positions.iter().take(POSITIONS_MAX) {
                let id = position.position_id.as_deref().unwrap_or("-");
                lines.push(format!("  {id}: {}", held(position)));
            }
            let more = positions.len().saturating_sub(POSITIONS_MAX);
            if more > 0 {
                lines.push(format!("  and {more} more"));
            }
            lines.push(format!("Priority: {}", priority.as_str()));
            lines.extend(matter.iter().flat_map(depends));
        }
        What::FellBack(Some(position)) => lines.push(format!("Provisionally: {}", held(position))),
        What::QuotaReached(reached) => {
            let (opener, counted) = (&reached.opener, reached.quota.counted());
            lines.push(format!("Opener: {opener}"));
            lines.push(format!("Quota: {} {counted}", reached.limit));
        }
        What::Changed { change, .. } => lines.extend(differences(change)),
        What::Alerted { raised, .. } => lines.extend(alerted(raised)),
        What::ReportMissed { missed, .. } => {
            lines.push(format!("Awaited of: {}", missed.by));
            lines.push(format!("It was due: {}", missed.due));
        }
        What::Disproved {
            right,
            by,
            explanation,
        } => {
            lines.push(format!("Proved right: {}", held(right)));
            lines.push(format!("Said by: {by}"));
            lines.push(format!("Because: {}", one_line(explanation, LINE_MAX)));
        }
        What::Cancelled(Order { by, why }) | What::DeadlinesMoved(_, Order { by, why }) => {
            lines.push(format!("By: {by}"));
            lines.push(format!("Because: {}", one_line(why, LINE_MAX)));
        }
        What::FellBack(None) | What::Reminded(_) | What::AwaitsGate | What::TakenBack(_) => {}
    }
    if let Some(until) = notice.until {
        lines.push(format!("Until: {until}"));
    }
    lines.push(match (&notice.debate_id, &notice.case_id) {
        (Some(debate), Some(case)) => format!("Debate: {debate} of the case {case}"),
        (_, Some(case)) => format!("Case: {case}"),
        (_, None) if is_of_alert(notice) => format!("Alert: {}", notice.about()),
        (_, None) => format!("Task: {}", notice.about()),
    });
    lines.push(String::new());
    lines.extend(answer(notice));
    lines.join("\n") + "\n"
}

fn is_of_alert(notice: &Notice) -> bool {
    matches!(
        notice.what,
        What::Alerted { .. } | What::ReportMissed { .. }
    )
}

/// What an alert says, one line each.
fn alerted(raised: &AlertRaised) -> Vec<String> {
    let alert = &raised.alert;
    let unknown = || "-".to_owned();
    let regimes =
        [&alert.old_regime, &alert.new_regime].map(|one| one.clone().unwrap_or_else(unknown));
    let mut lines = vec![format!("Regime: {}", regimes.join(" -> "))];
    if let Some(confidence) = alert.confidence {
        lines.push(format!("Confidence: {confidence:.2}"));
    }
    lines.push(format!("Raised by: {}", raised.heard.agent_id));
    for (what, said) in [
        ("Because", &alert.evidence),
        ("To do", &alert.recommended_actions),
    ] {
        lines.extend(
            said.iter()
                .take(POSITIONS_MAX)
                .map(|one| format!("{what}: {one}")),
        );
    }
    for (name, value) in alert.implications.iter().take(POSITIONS_MAX) {
        lines.push(format!("Implies: {name} {value}"));
    }
    if let Some(due) = raised.report_due {
        lines.push(format!("A report is awaited until: {due}"));
    }
    lines.iter().map(|line| one_line(line, LINE_MAX)).collect()
}

/// What a new version says otherwise than the one before, and by whom it came about.
fn differences(change: &DecisionChange) -> Vec<String> {
    let mut lines = vec![format!(
        "Version {} replaces version {}.",
        change.version, change.replaces
    )];
    let by = change.by.as_ref().map(|by| match &change.first_reviewer {
        Some(first) => format!(", by {first} and {by}"),
        None => format!(", by {by}"),
    });
    lines.push(format!(
        "Ended: {}{}, on level {}",
        change.status,
        by.unwrap_or_default(),
        change.level
    ));
    let part = |part: &ChangedPart| {
        let text = format!("  {}: {} -> {}", part.part, part.before, part.after);
        one_line(&text, LINE_MAX)
    };
    lines.extend(change.changed.iter().map(part));
    lines
}

fn about(matter: &Matter) -> String {
    let title = one_line(&matter.title, LINE_MAX);
    format!("Case: {title}, opened by {}", matter.opened_by)
}

/// What depends on a ruling: the case, the gate, and analyses.
fn depends(matter: &Matter) -> Vec<String> {
    let mut lines = Vec::new();
    match (matter.awaited, matter.decision) {
        (true, _) => {
            lines.push("The case is not decided before you rule, or the time is over.".into())
        }
        (false, Some(version)) => lines.push(format!(
            "The case is decided meanwhile, version {version}; your ruling can change that."
        )),
        (false, None) => {}
    }
    if let Some(gate) = &matter.gate {
        let gate = one_line(gate, LINE_MAX);
        lines.push(format!(
            "Without a ruling the gate {gate} reviews what stands then."
        ));
    }
    if !matter.dependants.is_empty() {
        let dependants = one_line(&matter.dependants.join(", "), LINE_MAX);
        lines.push(format!("Rests on it: {dependants}"));
    }
    lines
}

/// A position in words, and its value where the words do not hold it.
fn held(position: &Position) -> String {
    let words = one_line(&position.position, LINE_MAX);
    let value = position.value.as_ref().map(|value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    });
    match value.filter(|value| !words.contains(value.as_str())) {
        Some(value) => format!("{words} ({})", one_line(&value, LINE_MAX)),
        None => words,
    }
}

fn happened(notice: &Notice) -> String {
    one_line(&sentence(notice), LINE_MAX)
}

fn sentence(notice: &Notice) -> String {
    match (&notice.what, &notice.to) {
        (What::Assigned { .. }, _) => "A debate waits for your ruling.".into(),
        (What::Reminded(percent), _) => {
            format!("A debate waits for your ruling; {percent} % of the time is over.")
        }
        (What::FellBack(_), Audience::Gate(gate)) => {
            format!(
                "No person has ruled on a debate. What is decided stands provisionally, until the gate {gate} reviews it."
            )
        }
        (What::AwaitsGate, Audience::Gate(gate)) => {
            format!("A provisional decision waits for its review at the gate {gate}.")
        }
        (What::TakenBack(UnassignedReason::Reassigned), _) => "Somebody else was given the debate. A ruling of yours does not count any more.".into(),
        (What::TakenBack(UnassignedReason::Left), _) => "You are no expert any more, so the debate goes to somebody else. A ruling of yours does not count any more.".into(),
        (What::TakenBack(UnassignedReason::DidNotAct), _) => "Half of the time has passed without your ruling, so the debate goes to somebody else. A ruling of yours does not count any more.".into(),
        (What::Cancelled(_), _) => "A debate that waited for your ruling was cancelled. Nothing is to be done.".into(),
        (What::DeadlinesMoved(DeadlineControl::Hold, _), _) => "The time of a debate that waits for your ruling is held: it goes on when it is resumed.".into(),
        (What::DeadlinesMoved(DeadlineControl::Resume, _), _) => "The time of a debate that waits for your ruling was held, and goes on.".into(),
        (What::DeadlinesMoved(DeadlineControl::Extend, _), _) => "There is more time for a debate that waits for your ruling.".into(),
        (What::Changed { overridden: true, .. }, _) => "Something else stands now than what you had ruled.".into(),
        (What::Changed { .. }, _) => "The decision of a case in which you ruled or reviewed has changed.".into(),
        (What::QuotaReached(_), _) => "Something was refused because a quota is used up. Nobody is told again of it within an hour.".into(),
        (What::Alerted { .. }, _) => "An alert says that the regime has changed. Open cases are flagged with it, and debates that are opened from now on are held in the new one.".into(),
        (What::ReportMissed { .. }, _) => "The report that was to follow an alert has not come in time.".into(),
        (What::Disproved { .. }, _) => "Something else proved right than what you had ruled.".into(),
        (What::FellBack(_) | What::AwaitsGate, _) => {
            "A provisional decision stands.".into()
        }
    }
}

/// The lines that say how to answer.
fn answer(notice: &Notice) -> Vec<String> {
    let debate = notice.about();
    let case = notice.case_id.as_ref().map_or(debate, CaseId::as_str);
    match &notice.to {
        _ if matches!(notice.what, What::TakenBack(_) | What::Cancelled(_)) => Vec::new(),
        Audience::Person { .. } if is_of_alert(notice) => vec![
            "What it says, what has become of it, and the cases that are open:".into(),
            format!("  concord alert show {}", notice.about()),
            "  concord case list".into(),
        ],
        Audience::Person { .. } if notice.debate_id.is_none() => vec![
            "What is used, and what one of the cases holds:".into(),
            "  concord quota".into(),
            "  concord case list".into(),
            "A place is free when a case ends or is cancelled. Operators can raise the coordinator's settings service.quota.".into(),
        ],
        Audience::Person { .. } => vec![
            "What stands now, and how it came to be:".into(),
            format!("  concord case show {case}"),
        ],
        Audience::Expert { expert, .. } => {
            let expert = expert.as_ref().map_or("YOU", AgentId::as_str);
            vec![
                "What each side says, and the digest of it:".into(),
                format!("  concord queue next --expert {expert} --debate {debate}"),
                "Your ruling, on a position of the brief or on one of your own (--own):".into(),
                format!(
                    "  concord rule {debate} --position p1 --rationale \"...\" --expert {expert}"
                ),
            ]
        }
        Audience::Gate(gate) => {
            let gate = command_word(gate);
            vec![
                "What stands, and what rests on it:".into(),
                format!("  concord gate show {case}"),
                "Your review, or --override or --redebate instead:".into(),
                format!("  concord gate review {case} --gate {gate} --by YOU --confirm {debate}"),
            ]
        }
    }
}
