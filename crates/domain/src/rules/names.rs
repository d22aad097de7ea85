//! Names that mean the same: findings are compared by the words of the policy's vocabulary.
//!
//! A name in a finding that the vocabulary knows is replaced by its word before the findings are
//! compared, so every rule compares words. What was replaced is kept with the event.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use concord_events::{MatchedBy, NameMatch, ReceivedFinding};
use concord_wire::payload::Finding;
use concord_wire::policy::{NameKind, Vocabulary, name_form};

use crate::activation::cosine;
use crate::rules::size_budget::{NAMES_BYTES_MAX, SCORED_BYTES_MAX, count, json_bytes};

/// Most names of a case for which the sentence model is asked, shared among its findings: each takes
/// about 10 ms once.
const SCORED_MAX: usize = 256;

/// The words that names stand for.
struct Words<'a> {
    /// By kind and compared form: the word, by what it was found, and how similar it is.
    words: BTreeMap<(NameKind, String), (&'a str, MatchedBy, Option<f64>)>,
}

impl<'a> Words<'a> {
    fn of(vocabulary: &'a Vocabulary, scored: &'a [NameMatch]) -> Self {
        let mut words = BTreeMap::new();
        for one in scored {
            let form = (one.kind, name_form(&one.name));
            words.insert(form, (one.word.as_str(), one.by, one.score));
        }
        for kind in NameKind::ALL {
            for (word, aliases) in vocabulary.words(kind) {
                for name in aliases.iter().chain([word]) {
                    let found = (word.as_str(), MatchedBy::Vocabulary, None);
                    words.insert((kind, name_form(name)), found);
                }
            }
        }
        Self { words }
    }
}

/// The names in the findings that may be asked of the sentence model: topics and recommendations that
/// the vocabulary does not know, where it has words for them. Metrics are not, because different
/// margins are similar. Each finding has the same share.
pub fn unknown(
    vocabulary: &Vocabulary,
    findings: &[ReceivedFinding],
) -> BTreeSet<(NameKind, String)> {
    let known = Words::of(vocabulary, &[]);
    let share = SCORED_MAX / findings.len().max(1);
    let mut unknown = BTreeSet::new();
    for received in findings {
        let mut of_finding = BTreeSet::new();
        each_name(&mut received.finding.clone(), |kind, name| {
            let form = name_form(name);
            let asks = kind != NameKind::Metric && !vocabulary.words(kind).is_empty();
            if asks && !form.is_empty() && !known.words.contains_key(&(kind, form.clone())) {
                of_finding.insert((kind, form));
            }
        });
        unknown.extend(of_finding.into_iter().take(share));
    }
    unknown
}

/// The names that are similar enough to a name of the vocabulary, each with the word whose name is
/// most similar and how similar it is. `vector` is the sentence model; a name without a vector is like
/// nothing.
pub fn scored<V: AsRef<[f32]>>(
    vocabulary: &Vocabulary,
    unknown: &BTreeSet<(NameKind, String)>,
    vector: impl Fn(&str) -> Option<V>,
) -> Vec<NameMatch> {
    let Some(least) = vocabulary.similarity_min else {
        return Vec::new();
    };
    let mut known: Vec<(NameKind, &str, V)> = Vec::new();
    for kind in NameKind::ALL {
        if !unknown.iter().any(|(asked, _)| *asked == kind) {
            continue;
        }
        for (word, aliases) in vocabulary.words(kind) {
            let names = aliases.iter().chain([word]);
            let vectors = names.filter_map(|name| vector(&name_form(name)));
            known.extend(vectors.map(|vector| (kind, word.as_str(), vector)));
        }
    }
    let best = |(kind, name): &(NameKind, String)| {
        let asked = vector(name)?;
        let similar = known.iter().filter(|(of, ..)| of == kind);
        let similar = similar.map(|(_, word, vector)| {
            let score = f64::from(cosine(asked.as_ref(), vector.as_ref()));
            (((score * 1e4).round() / 1e4).clamp(0.0, 1.0), *word)
        });
        // Of equally similar words the first.
        let (score, word) = similar.reduce(|best, one| if one.0 > best.0 { one } else { best })?;
        (score >= least).then(|| NameMatch {
            kind: *kind,
            name: name.clone(),
            word: word.to_owned(),
            by: MatchedBy::Model,
            score: Some(score),
        })
    };
    let (kept, _) = with_room(unknown.iter().filter_map(best).collect(), SCORED_BYTES_MAX);
    kept
}

/// The matches that the sentence model has made.
pub fn scored_in(matches: &[NameMatch]) -> Vec<NameMatch> {
    let by_model = matches.iter().filter(|one| one.by == MatchedBy::Model);
    by_model.cloned().collect()
}

/// What is wrong with matches that the sentence model is said to have made.
pub fn problem(vocabulary: &Vocabulary, scored: &[NameMatch]) -> Option<String> {
    let least = vocabulary.similarity_min;
    let is_wrong = |one: &&NameMatch| {
        let is_enough = least
            .zip(one.score)
            .is_some_and(|(least, score)| score >= least);
        !is_enough
            || !vocabulary.words(one.kind).contains_key(&one.word)
            || vocabulary.word(one.kind, &one.name).is_some()
    };
    let wrong = scored.iter().find(is_wrong)?;
    Some(format!(
        "{:?} was taken for {:?} with the similarity {:?}, which the policy does not allow",
        wrong.name, wrong.word, wrong.score
    ))
}

/// Findings in the words of a vocabulary.
pub struct Worded<'a> {
    /// The findings, in the order in which they were given.
    pub findings: Cow<'a, [ReceivedFinding]>,
    /// Which names stand for which words, in the order of kinds and names.
    pub matches: Vec<NameMatch>,
    /// How many more there are, for which an event has no room.
    pub matches_omitted: u32,
}

/// The findings in the words of the vocabulary, where the sentence model has taken `scored` for words
/// of it. They are borrowed where no name can be replaced.
pub fn worded<'a>(
    vocabulary: &Vocabulary,
    scored: &[NameMatch],
    findings: &'a [ReceivedFinding],
) -> Worded<'a> {
    if vocabulary.is_empty() {
        return Worded {
            findings: Cow::Borrowed(findings),
            matches: Vec::new(),
            matches_omitted: 0,
        };
    }
    let words = Words::of(vocabulary, scored);
    let mut matched = BTreeMap::new();
    let mut findings = findings.to_vec();
    for received in &mut findings {
        each_name(&mut received.finding, |kind, name| {
            let form = (kind, name_form(name));
            let Some(found) = words.words.get(&form) else {
                return;
            };
            let (word, ..) = *found;
            if form.1 != name_form(word) {
                matched.insert(form, *found);
            }
            word.clone_into(name);
        });
    }
    // Those of the model first: nothing else says what they were.
    let matches = matched
        .into_iter()
        .map(|((kind, name), (word, by, score))| NameMatch {
            kind,
            name,
            word: word.to_owned(),
            by,
            score,
        });
    let (mut by_model, by_alias): (Vec<_>, Vec<_>) =
        matches.partition(|one| one.by == MatchedBy::Model);
    let (by_alias, matches_omitted) = with_room(by_alias, NAMES_BYTES_MAX);
    by_model.extend(by_alias);
    Worded {
        findings: Cow::Owned(findings),
        matches: by_model,
        matches_omitted,
    }
}

/// As many matches as there is room for, and the number of the others.
fn with_room(mut matches: Vec<NameMatch>, bytes_max: usize) -> (Vec<NameMatch>, u32) {
    let mut left = bytes_max;
    let fits = |one: &&NameMatch| {
        let rest = left.checked_sub(json_bytes(one) + 1);
        rest.inspect(|rest| left = *rest).is_some()
    };
    let kept = matches.iter().take_while(fits).count();
    let omitted = count(matches.len() - kept);
    matches.truncate(kept);
    (matches, omitted)
}

/// Calls `each` with every name in a finding that is compared with what others name.
fn each_name(finding: &mut Finding, mut each: impl FnMut(NameKind, &mut String)) {
    if let Some(recommendation) = &mut finding.recommendation {
        each(NameKind::Recommendation, recommendation);
    }
    for critical in &mut finding.critical_findings {
        each(NameKind::Topic, &mut critical.topic);
    }
    for clause in &mut finding.clauses {
        each(NameKind::Topic, &mut clause.kind);
    }
    for name in &mut finding.affected_clauses {
        each(NameKind::Topic, name);
    }
    for fact in &mut finding.facts {
        each(NameKind::Topic, &mut fact.subject);
        each(NameKind::Topic, &mut fact.attribute);
    }
    for estimate in &mut finding.estimates {
        if let Some(subject) = &mut estimate.subject {
            each(NameKind::Topic, subject);
        }
        each(NameKind::Metric, &mut estimate.metric);
    }
}
