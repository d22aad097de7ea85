//! The dependency graph of a case: analyses, and what each of them has used.
//!
//! An edge leads from a [`Source`] to an analysis that uses it. The graph has no cycle: what would
//! close one is refused, with its path. No function recurses, so a chain may be as long as the
//! graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_wire::payload::{
    Conflict, ConflictType, Dependency, DependencyKind, Figure, PublishAnalysis,
};
use concord_wire::{AgentId, Timestamp, Token};

use crate::rules::conflict_type::rule_of;
use crate::rules::conservative::words;

/// What an analysis can use. The order is the one in which sources are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A debate of the case, or its decision.
    Decision(Token),
    /// An assumption, by its normalised name.
    Assumption(String),
    /// Another analysis.
    Analysis(Token),
}

/// A name in the form in which names are compared: in any case and spacing, and with `_`, `-` and `/` for a space, as metrics are. What
/// is escaped in the subject of a conflict, which joins two names, is a `/` too.
pub fn name_of(text: &str) -> String {
    words(&text.replace("~1", "/").replace("~0", "~"))
}

impl Source {
    /// An assumption of this name.
    pub fn assumption(name: &str) -> Self {
        Self::Assumption(name_of(name))
    }

    /// The assumptions that a debate decides about: that of the name of its subject, and where it is about estimates of one of several
    /// subjects, the metric alone, unless another of the conflicts has that metric too. One of the same subject is the same that is debated again.
    pub fn decided<'a>(
        conflict: &Conflict,
        others: impl IntoIterator<Item = &'a Conflict>,
    ) -> impl Iterator<Item = Self> {
        // What is challenged is the name that the challenge uses, and no other.
        let metric = |of: &Conflict| match of.kind {
            ConflictType::Challenge => Self::assumption(&of.subject),
            kind => Self::assumption(&rule_of(kind).metric(&of.subject)),
        };
        let (whole, alone) = (Self::assumption(&conflict.subject), metric(conflict));
        let is_another =
            |one: &&Conflict| (one.kind, &one.subject) != (conflict.kind, &conflict.subject);
        let mut others = others.into_iter().filter(is_another);
        let is_it = alone == whole || others.any(|other| metric(other) == alone);
        let alone = (!is_it).then_some(alone);
        std::iter::once(whole).chain(alone)
    }

    /// What a dependency is about; none for an id that cannot be one.
    pub fn of(dependency: &Dependency) -> Option<Self> {
        let id = dependency.id.as_str();
        match dependency.kind {
            DependencyKind::Decision => Token::new(id).ok().map(Self::Decision),
            DependencyKind::Assumption => Some(Self::assumption(id)),
            DependencyKind::Analysis => Token::new(id).ok().map(Self::Analysis),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> DependencyKind {
        match self {
            Self::Decision(_) => DependencyKind::Decision,
            Self::Assumption(_) => DependencyKind::Assumption,
            Self::Analysis(_) => DependencyKind::Analysis,
        }
    }

    /// Its id or name.
    pub fn name(&self) -> &str {
        match self {
            Self::Decision(id) | Self::Analysis(id) => id.as_str(),
            Self::Assumption(name) => name,
        }
    }
}

/// An analysis as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// What was published.
    pub published: PublishAnalysis,
    /// The version, from 1.
    pub version: u32,
    /// Whose it is.
    pub author: AgentId,
    /// When it was published.
    pub at: Timestamp,
    /// The version in which a figure was last different from the version before.
    pub changed_in: u32,
}

impl Analysis {
    /// One that was published just now.
    pub fn new(published: PublishAnalysis, version: u32, author: AgentId, at: Timestamp) -> Self {
        Self {
            published,
            version,
            author,
            at,
            changed_in: version,
        }
    }

    /// What it uses, in the order in which it was stated.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        self.published.depends_on.iter().filter_map(Source::of)
    }
}

/// What an agent has said of a figure of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEstimate {
    /// What the analysis uses, with the values for which it was asked.
    pub uses: Vec<Dependency>,
    /// The new value and how sure the agent is of it, 0 to 1; else why there is none.
    pub result: Result<(Figure, f64), String>,
}

/// Most estimates of one figure that are kept, each for other values.
const ESTIMATES_MAX: usize = 4;

/// Analyses and who uses what.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// What agents have said of figures of the versions that stand.
    estimates: BTreeMap<Token, BTreeMap<String, Vec<AgentEstimate>>>,
    analyses: BTreeMap<Token, Arc<Analysis>>,
    dependants: BTreeMap<Source, BTreeSet<Token>>,
}

impl Graph {
    /// An analysis as it stands.
    pub fn get(&self, id: &Token) -> Option<&Arc<Analysis>> {
        self.analyses.get(id)
    }

    /// All analyses, by id.
    pub fn analyses(&self) -> impl Iterator<Item = (&Token, &Arc<Analysis>)> {
        self.analyses.iter()
    }

    /// The number of analyses.
    pub fn len(&self) -> usize {
        self.analyses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.analyses.is_empty()
    }

    /// Whatever some analysis uses, in the order of sources.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.dependants.keys()
    }

    /// Puts an analysis into its place. What its earlier version used is forgotten.
    pub fn put(&mut self, mut analysis: Analysis) {
        debug_assert_eq!(
            self.cycle(
                &analysis.published.analysis_id,
                &analysis.published.depends_on
            ),
            None,
            "a dependency closes no cycle"
        );
        let id = analysis.published.analysis_id.clone();
        self.estimates.remove(&id);
        if let Some(before) = self.analyses.get(&id) {
            // Of what has no figures nobody knows whether it is the same.
            let figures = &analysis.published.figures;
            if !figures.is_empty() && before.published.figures == *figures {
                analysis.changed_in = before.changed_in;
            }
            for source in before.sources() {
                if let Some(dependants) = self.dependants.get_mut(&source) {
                    dependants.remove(&id);
                    if dependants.is_empty() {
                        self.dependants.remove(&source);
                    }
                }
            }
        }
        for source in analysis.sources() {
            self.dependants
                .entry(source)
                .or_default()
                .insert(id.clone());
        }
        self.analyses.insert(id, Arc::new(analysis));
    }

    /// Keeps what an agent has said of a figure of this version; nothing if the analysis stands in another one.
    pub fn keep_estimate(
        &mut self,
        (id, version): (&Token, u32),
        metric: &str,
        estimate: AgentEstimate,
    ) {
        if self
            .analyses
            .get(id)
            .is_none_or(|one| one.version != version)
        {
            return;
        }
        let of_analysis = self.estimates.entry(id.clone()).or_default();
        let kept = of_analysis.entry(metric.to_owned()).or_default();
        kept.retain(|one| one.uses != estimate.uses);
        kept.push(estimate);
        let excess = kept.len().saturating_sub(ESTIMATES_MAX);
        kept.drain(..excess);
    }

    /// What an agent has said of a figure for these values; none where it was not asked, or has not answered yet.
    pub fn estimate_of(
        &self,
        id: &Token,
        metric: &str,
        uses: &[Dependency],
    ) -> Option<&AgentEstimate> {
        let kept = self.estimates.get(id)?.get(metric)?;
        kept.iter().rev().find(|one| one.uses == uses)
    }

    /// The analyses that use this directly, by id.
    pub fn dependants(&self, source: &Source) -> impl Iterator<Item = &Token> {
        self.dependants.get(source).into_iter().flatten()
    }

    /// The cycle that an analysis with these dependencies would close: from the analysis through what it would use back to itself.
    /// Of several cycles a shortest one.
    pub fn cycle(&self, id: &Token, depends_on: &[Dependency]) -> Option<Vec<Token>> {
        let used = depends_on.iter().filter_map(Source::of);
        if !self.analyses.contains_key(id) {
            // Nobody uses what there is not yet, but itself.
            let mut used = used;
            let own = Source::Analysis(id.clone());
            return used
                .any(|one| one == own)
                .then(|| vec![id.clone(), id.clone()]);
        }
        let mut came_from: BTreeMap<Token, Option<Token>> = BTreeMap::new();
        let mut level: Vec<Token> = Vec::new();
        for source in used {
            if let Source::Analysis(used) = source
                && came_from.insert(used.clone(), None).is_none()
            {
                level.push(used);
            }
        }
        while !level.is_empty() {
            if let Some(end) = level.iter().find(|one| *one == id) {
                return Some(path(id, end, &came_from));
            }
            let mut next = Vec::new();
            for one in &level {
                let sources = self.analyses.get(one).into_iter().flat_map(|a| a.sources());
                for source in sources {
                    let Source::Analysis(used) = source else {
                        continue;
                    };
                    if !came_from.contains_key(&used) {
                        came_from.insert(used.clone(), Some(one.clone()));
                        next.push(used);
                    }
                }
            }
            level = next;
        }
        None
    }

    /// Every analysis that rests on one of these, directly or not: each once, and none before one that it uses. Among those that
    /// could stand at a place the first by id stands there.
    pub fn affected(&self, changed: &[Source]) -> Vec<Token> {
        let reached = self.reached(changed);
        let mut missing: BTreeMap<&Token, usize> = BTreeMap::new();
        for id in &reached {
            let sources = self.analyses.get(*id).into_iter().flat_map(|a| a.sources());
            let inside: BTreeSet<Token> = sources
                .filter_map(|source| match source {
                    Source::Analysis(used) if reached.contains(&used) => Some(used),
                    _ => None,
                })
                .collect();
            missing.insert(*id, inside.len());
        }
        let mut ready: BTreeSet<&Token> = missing
            .iter()
            .filter(|(_, count)| **count == 0)
            .map(|(id, _)| *id)
            .collect();
        let mut ordered = Vec::with_capacity(reached.len());
        while let Some(id) = ready.pop_first() {
            ordered.push(id.clone());
            for dependant in self.dependants(&Source::Analysis(id.clone())) {
                if let Some(count) = missing.get_mut(dependant) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        ready.insert(dependant);
                    }
                }
            }
        }
        debug_assert_eq!(ordered.len(), reached.len(), "the graph has no cycle");
        ordered
    }

    fn reached(&self, changed: &[Source]) -> BTreeSet<&Token> {
        let mut reached: BTreeSet<&Token> = BTreeSet::new();
        let mut open: Vec<&Token> = changed
            .iter()
            .flat_map(|one| self.dependants(one))
            .collect();
        while let Some(id) = open.pop() {
            if reached.insert(id) {
                open.extend(self.dependants(&Source::Analysis(id.clone())));
            }
        }
        reached
    }
}

/// The way from `id` to `end`, which is the same analysis, as the search went.
fn path(id: &Token, end: &Token, came_from: &BTreeMap<Token, Option<Token>>) -> Vec<Token> {
    let mut back = vec![end.clone()];
    let mut at = end;
    while let Some(Some(before)) = came_from.get(at) {
        back.push(before.clone());
        at = before;
    }
    back.push(id.clone());
    back.reverse();
    back
}

#[cfg(test)]
mod tests;
