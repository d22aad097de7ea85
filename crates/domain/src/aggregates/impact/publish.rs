//! Publishing an analysis: what is refused, and what is filled in.

use concord_events::AnalysisPublished;
use concord_wire::payload::{Dependency, DependencyKind, PublishAnalysis};
use concord_wire::{ErrorCode, Fault, Token};

use super::{ANALYSES_MAX, AUTHOR_BYTES_MAX, AUTHOR_VERSIONS_MAX, ImpactState, ReceivedAnalysis};
use crate::rules::impact::models::check_models;
use crate::rules::size_budget::json_bytes;

/// Where the analysis stands in its message.
pub(super) const PARAMETERS: &str = "/payload/parameters";
/// Most names that an answer repeats.
const NAMED_MAX: usize = 8;

pub(super) fn publish(
    state: &ImpactState,
    received: &ReceivedAnalysis,
) -> Result<AnalysisPublished, Fault> {
    let ReceivedAnalysis {
        heard,
        case_id,
        analysis,
    } = received;
    check_author(state, received)?;
    check_bounds(state, received)?;
    let mut analysis = analysis.clone();
    check_models(&analysis, &format!("{PARAMETERS}/models"))?;
    check_cycle(state, &analysis)?;
    for (place, dependency) in analysis.depends_on.iter_mut().enumerate() {
        if dependency.kind == DependencyKind::Analysis {
            let pointer = format!("{PARAMETERS}/depends_on/{place}");
            fill_in(state, dependency, &pointer)?;
        }
    }
    Ok(AnalysisPublished {
        case_id: case_id.clone(),
        version: state.version_of(&analysis.analysis_id).saturating_add(1),
        analysis,
        heard: heard.clone(),
    })
}

/// A path of analyses as a reader sees it.
pub(super) fn written(path: &[Token]) -> String {
    let names: Vec<&str> = path.iter().map(Token::as_str).collect();
    match names.as_slice() {
        [first @ .., _, _] if first.len() > NAMED_MAX => {
            let shown = names.get(..NAMED_MAX).unwrap_or_default().join(" -> ");
            let last = names.last().copied().unwrap_or_default();
            let more = names.len().saturating_sub(NAMED_MAX + 1);
            format!("{shown} -> ({more} more) -> {last}")
        }
        _ => names.join(" -> "),
    }
}

pub(super) fn bytes_of(analysis: &PublishAnalysis) -> u64 {
    u64::try_from(json_bytes(analysis)).unwrap_or(u64::MAX)
}

fn check_author(state: &ImpactState, received: &ReceivedAnalysis) -> Result<(), Fault> {
    let id = &received.analysis.analysis_id;
    let known = state.graph.get(id);
    let Some(known) = known.filter(|known| known.author != received.heard.agent_id) else {
        return Ok(());
    };
    Err(Fault::new(
        ErrorCode::Unauthorized,
        format!("{PARAMETERS}/analysis_id"),
        format!("The analysis {id} is that of {}.", known.author),
        "Publish yours under an id of its own.",
    ))
}

fn check_bounds(state: &ImpactState, received: &ReceivedAnalysis) -> Result<(), Fault> {
    let (author, analysis) = (&received.heard.agent_id, &received.analysis);
    let is_new = state.graph.get(&analysis.analysis_id).is_none();
    if is_new && state.graph.len() >= ANALYSES_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            format!("{PARAMETERS}/analysis_id"),
            format!("The case has {ANALYSES_MAX} analyses, and can have no more."),
            "Publish the figures as part of an analysis that there is.",
        ));
    }
    let written = state.authors.get(author).copied().unwrap_or_default();
    let bytes = written.bytes.saturating_add(bytes_of(analysis));
    if written.versions < AUTHOR_VERSIONS_MAX && bytes <= AUTHOR_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "",
        format!(
            "{author} has published {} versions with {} bytes in this case; at most {AUTHOR_VERSIONS_MAX} with \
             {AUTHOR_BYTES_MAX} are kept of one author.",
            written.versions, written.bytes
        ),
        "Publish when figures have changed, not at intervals.",
    ))
}

fn check_cycle(state: &ImpactState, analysis: &PublishAnalysis) -> Result<(), Fault> {
    let cycle = state
        .graph
        .cycle(&analysis.analysis_id, &analysis.depends_on);
    let Some(cycle) = cycle else {
        return Ok(());
    };
    // The path begins with the analysis itself; what it would use comes next.
    let used = cycle.get(1).map_or("", Token::as_str);
    let is_it = |one: &Dependency| one.kind == DependencyKind::Analysis && one.id == used;
    let place = analysis.depends_on.iter().position(is_it).unwrap_or(0);
    Err(Fault::invalid(
        format!("{PARAMETERS}/depends_on/{place}"),
        format!("An analysis would rest on itself: {}.", written(&cycle)),
        "Leave out the dependency that closes the circle, or have one of these analyses published without it first.",
    ))
}

/// Checks that the used analysis and its figure are there, and fills in what stands where the sender does not say what it used.
fn fill_in(state: &ImpactState, used: &mut Dependency, pointer: &str) -> Result<(), Fault> {
    let known = Token::new(used.id.as_str()).ok();
    let known = known.and_then(|id| state.graph.get(&id));
    let Some(known) = known else {
        let ids = state.graph.analyses().map(|(id, _)| id.as_str());
        return Err(Fault::invalid(
            format!("{pointer}/id"),
            format!("No analysis {:?} was published in this case.", used.id),
            format!(
                "Publish it first, or depend on one that there is: {}.",
                some_of(ids)
            ),
        ));
    };
    let published = &known.published;
    if let Some(metric) = &used.metric {
        let Some(figure) = published.figures.get(metric) else {
            return Err(Fault::invalid(
                format!("{pointer}/metric"),
                format!("{} has no figure {metric:?}.", used.id),
                format!(
                    "Use one that it has: {}.",
                    some_of(published.figures.keys().map(String::as_str))
                ),
            ));
        };
        used.value.get_or_insert_with(|| figure.clone());
    }
    used.confidence = used.confidence.or(published.confidence);
    used.version.get_or_insert(known.version);
    Ok(())
}

/// The first names of several, as a reader sees them.
pub(super) fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return "there is none".to_owned();
    }
    let mut shown: Vec<&str> = names.by_ref().take(NAMED_MAX).collect();
    if names.next().is_some() {
        shown.push("...");
    }
    shown.join(", ")
}
