//! Which analyses rest on what a conflict is about: known before anybody decides it.

use std::collections::BTreeSet;

use concord_wire::payload::{Conflict, ConflictType, Dependency, DependencyKind};
use concord_wire::{CaseId, DebateId, Token};

use super::graph::{Graph, Source, name_of};

/// The parts of a case's decision that a figure can be made of; a clause type follows the last.
pub const PARTS: [&str; 3] = ["risk_score", "recommendation", "clauses/"];

/// Most analyses that are named.
pub(crate) const NAMED_MAX: usize = 32;

/// The analyses of a case that rest on what this conflict is about: those that use it first, by id, then whatever rests on them, none
/// before one that it uses. An analysis uses it as an assumption with the name of the conflict's subject or of its metric, as the debate itself or one of
/// those that it takes up again, or as the part of the case's decision that the conflict decides.
pub fn resting_on(
    graph: &Graph,
    case_id: &CaseId,
    conflict: &Conflict,
    taken_up: &[DebateId],
) -> Vec<Token> {
    // Whether the case has another estimate of that metric is known when it is detected; what may rest on it is named.
    let assumptions = Source::decided(conflict, []);
    let debates = taken_up.iter().chain([&conflict.conflict_id]);
    let debates = debates.map(|debate| Source::Decision(debate.token()));
    let named: Vec<Source> = assumptions.chain(debates).collect();
    let decision = Source::Decision(case_id.token());
    let uses_part = |id: &&Token| {
        let uses = graph
            .get(id)
            .into_iter()
            .flat_map(|one| &one.published.depends_on);
        uses.into_iter()
            .any(|used| Source::of(used).as_ref() == Some(&decision) && is_of_part(used, conflict))
    };
    let named = named.iter().map(|source| graph.dependants(source));
    let parts = graph.dependants(&decision).filter(uses_part);
    let direct: BTreeSet<Token> = named.flatten().chain(parts).cloned().collect();
    let sources: Vec<Source> = direct.iter().cloned().map(Source::Analysis).collect();
    let further = graph.affected(&sources);
    let further = further.into_iter().filter(|id| !direct.contains(id));
    direct.iter().cloned().chain(further).collect()
}

/// Analyses by name, with room for them in an event: the first of them, and how many more there are.
pub fn named(analyses: &[Token]) -> Vec<String> {
    let shown = analyses.iter().take(NAMED_MAX).map(ToString::to_string);
    let more = analyses.len().saturating_sub(NAMED_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    shown.chain(more).collect()
}

/// Whether what is used of a decision is what the conflict decides: that part, or the whole of which it is one.
fn is_of_part(used: &Dependency, conflict: &Conflict) -> bool {
    debug_assert_eq!(
        used.kind,
        DependencyKind::Decision,
        "a part is one of a decision"
    );
    let part = used.metric.as_deref();
    let [risk_score, recommendation, clauses] = PARTS;
    match conflict.kind {
        ConflictType::RiskScoreDisagreement => part.is_none_or(|part| part == risk_score),
        ConflictType::RecommendationConflict => part.is_none_or(|part| part == recommendation),
        ConflictType::ClausePresenceDisagreement => part.is_none_or(|part| {
            part.strip_prefix(clauses)
                .is_some_and(|clause| name_of(clause) == name_of(&conflict.subject))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
