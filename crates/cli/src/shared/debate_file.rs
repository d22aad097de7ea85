//! Everything that is stored of one debate, and its positions as text.

use std::collections::BTreeMap;

use concord_domain::aggregates::case::PassedGate;
use concord_domain::aggregates::debate::{DebateMachine, DebateState, value_wanted};
use concord_events::{DebateEvent, StoredEvent};
use concord_runtime::Broker;
use concord_wire::payload::{
    Conflict, ConflictOutcome, HistoricalContext, Level, Resolution, RuledBy, Status,
};
use concord_wire::policy::Policy;
use concord_wire::{AgentId, CaseId, DebateId};
use serde_json::Value;

use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{DOUBTFUL, FAINT, one_line, styled};

/// At most so many characters of an earlier case are shown.
const SIMILAR: usize = 200;

/// A debate and its events; an error when there is none under this id.
pub(crate) async fn load(
    broker: &Broker,
    debate: &DebateId,
) -> Result<(DebateState, Vec<StoredEvent<DebateEvent>>), Failure> {
    let source = EventSource::new(broker).await?;
    let (state, events) = source.aggregate::<DebateMachine>(&debate.token()).await?;
    match state.opened {
        Some(_) => Ok((state, events)),
        None => Err(Failure::failed(format!(
            "there is no debate {debate}; `concord queue` and `concord case show CASE --json` name those there are"
        ))),
    }
}

/// The case that a debate belongs to.
pub(crate) fn case_of(state: &DebateState, debate: &DebateId) -> Result<CaseId, Failure> {
    let case = state.opened.as_ref().map(|opened| opened.case_id.clone());
    case.ok_or_else(|| Failure::failed(format!("debate {debate} was never opened")))
}

/// A chosen position with those who hold it.
pub(crate) fn resolution_text(resolution: &Resolution) -> String {
    let value = value_text(resolution.value.as_ref());
    chosen_text(resolution, &value)
}

/// The same for a line that is made plain afterwards.
pub(crate) fn plain_resolution(resolution: &Resolution) -> String {
    let value = resolution.value.as_ref().map(plain_value);
    chosen_text(resolution, &value.unwrap_or_default())
}

fn chosen_text(resolution: &Resolution, value: &str) -> String {
    let supporters: Vec<&str> = resolution.supporters.iter().map(AgentId::as_str).collect();
    let who = if supporters.is_empty() {
        String::new()
    } else {
        format!(" ({})", supporters.join(", "))
    };
    format!("{}{value}{who}", one_line(&resolution.position, 200))
}

/// A note that words of a person decide nothing of the decision, because they state no value that it can have; empty where they do.
pub(crate) fn wanted_note(
    conflict: &Conflict,
    policy: &Policy,
    said: (&str, Option<&Value>),
) -> String {
    let note = |wanted| {
        let note = format!(
            "the words state no value: the decision keeps to the cautious position, and what rests on it is unknown; --value does: {wanted}"
        );
        format!("  {}\n", styled(DOUBTFUL, note))
    };
    value_wanted(conflict, policy, said).map_or_else(String::new, note)
}

/// Who has decided: a person, or the two who had to say the same.
pub(crate) fn deciders(ruled_by: &RuledBy) -> String {
    both(ruled_by.first_reviewer.as_ref(), &ruled_by.expert)
}

/// The one who has decided, or both where two had to say the same.
pub(crate) fn both(first_reviewer: Option<&AgentId>, by: &AgentId) -> String {
    match first_reviewer {
        Some(first) => format!("{first} and {by}"),
        None => by.to_string(),
    }
}

/// Who has decided and why, each with the own reason; whoever gave none is named alone.
pub(crate) fn reasons(ruled_by: &RuledBy, reason_max: usize) -> Vec<String> {
    let first = ruled_by.first_reviewer.as_ref();
    let first = first.map(|first| (first, ruled_by.first_rationale.as_deref()));
    reasons_of(first, (&ruled_by.expert, &ruled_by.rationale), reason_max)
}

/// The same of the first reviewer, where there is one, and of whoever decided.
pub(crate) fn reasons_of(
    first: Option<(&AgentId, Option<&str>)>,
    (by, why): (&AgentId, &str),
    reason_max: usize,
) -> Vec<String> {
    let said = |name: &AgentId, why: &str| match one_line(why, reason_max) {
        why if why.is_empty() => name.to_string(),
        why => format!("{name}: {why}"),
    };
    let first = first.map(|(first, why)| said(first, why.unwrap_or_default()));
    first.into_iter().chain([said(by, why)]).collect()
}

/// Who has let a case pass a gate and why, in a line each.
pub(crate) fn pass_reasons(passed: &PassedGate, reason_max: usize) -> Vec<String> {
    let first = passed.first_reviewer.as_ref();
    let first = first.map(|first| (first, passed.first_rationale.as_deref()));
    reasons_of(first, (&passed.by, &passed.rationale), reason_max)
}

/// An outcome that stands: what was chosen, and who has said so.
pub(crate) fn standing_text(outcome: &ConflictOutcome) -> String {
    let chosen = outcome
        .resolution
        .as_ref()
        .map_or("nothing".to_owned(), |chosen| {
            let value = value_text(chosen.value.as_ref());
            format!("{}{value}", one_line(&chosen.position, 200))
        });
    let person = outcome.ruled_by.as_ref().map(deciders);
    let by = match (outcome.status, person) {
        (Status::Ruling, Some(person)) => format!("ruled by {person}"),
        (Status::Confirmed, Some(person)) => format!("confirmed by {person}"),
        (Status::Overridden, Some(person)) => format!("decided at a gate by {person}"),
        (Status::Discussion | Status::Accepted, _) => "agreed on".to_owned(),
        (Status::Vote, _) => "voted".to_owned(),
        (Status::Mediation, _) => "by track record".to_owned(),
        (status, _) => status.to_string(),
    };
    format!("{chosen}, {by}")
}

/// With which key a person has signed, as a note; empty where they have not.
pub(crate) fn signed_text(ruled_by: &RuledBy) -> String {
    ruled_by.key.as_ref().map_or_else(String::new, |key| {
        let note = format!("signed by {} (key {key})", ruled_by.expert);
        format!("  {}", styled(FAINT, note))
    })
}

/// The value of a position in brackets, after its words; empty where it has none.
pub(crate) fn value_text(value: Option<&Value>) -> String {
    value.map_or_else(String::new, |value| styled(FAINT, plain_value(value)))
}

fn plain_value(value: &Value) -> String {
    format!("  [{}]", one_line(&value.to_string(), 80))
}

/// Earlier cases that an agent names, in a line each; how many more there are is the last one.
pub(crate) fn similar_lines(context: &HistoricalContext, shown_max: usize) -> Vec<String> {
    let text = |pattern: &BTreeMap<String, Value>| {
        let field = |(name, value): (&String, &Value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}: {value}")
        };
        let fields: Vec<String> = pattern.iter().map(field).collect();
        one_line(&fields.join(", "), SIMILAR)
    };
    let named = &context.similar_patterns;
    let more = named.len().saturating_sub(shown_max);
    let more = (more > 0).then(|| format!("and {more} more"));
    named.iter().take(shown_max).map(text).chain(more).collect()
}

/// What somebody claims about earlier cases, in numbers; none where it is nothing.
pub(crate) fn claimed_text(context: &HistoricalContext) -> Option<String> {
    let own = context.my_accuracy_on_pattern;
    context.pattern_success_rate.or(own)?;
    Some(claim_text(
        context.pattern_success_rate,
        context.observations,
        own,
    ))
}

/// The same of each number.
pub(crate) fn claim_text(rate: Option<f64>, of: Option<u32>, own: Option<f64>) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let rate = rate.map_or_else(|| "no rate".to_owned(), percent);
    let of = of.map(|of| format!(" of {of}"));
    let own = own.map(|own| format!(", own accuracy {}", percent(own)));
    rate + &of.unwrap_or_default() + &own.unwrap_or_default()
}

/// The name of a level.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Agents => "the agents",
        Level::Mediation => "mediation by track record",
        Level::Person => "a person",
        Level::Fallback => "the cautious position, provisionally",
        Level::Gate => "the review at a gate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_two_reviewers_has_the_own_reason() {
        let ruled = |first: Option<&str>, why: Option<&str>, last: &str| RuledBy {
            expert: AgentId::fixed("greta"),
            first_reviewer: first.map(|name| AgentId::new(name).unwrap()),
            first_rationale: why.map(str::to_owned),
            rationale: last.to_owned(),
            digest: None,
            key: None,
        };
        for (ruled, said) in [
            (ruled(None, None, "g3"), vec!["greta: g3"]),
            (ruled(None, None, ""), vec!["greta"]),
            (
                ruled(Some("gail"), Some("g1"), "g3"),
                vec!["gail: g1", "greta: g3"],
            ),
            (ruled(Some("gail"), None, "g3"), vec!["gail", "greta: g3"]),
        ] {
            assert_eq!(reasons(&ruled, 100), said);
        }
    }

    #[test]
    fn a_plain_resolution_leaves_no_rest_of_a_style_in_a_line() {
        let resolution = Resolution {
            position: "Risk score: 80".into(),
            value: Some(serde_json::json!(80.0)),
            supporters: vec![AgentId::fixed("ben")],
        };
        let line = one_line(&plain_resolution(&resolution), 160);
        assert_eq!(line, "Risk score: 80 [80.0] (ben)");
        assert!(resolution_text(&resolution).contains('\u{1b}'));
    }
}
