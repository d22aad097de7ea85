//! A policy's vocabulary: names that mean the same.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::out_of_range;
use crate::fault::Fault;
use crate::payload::check_name;

/// Most names in a vocabulary, words and aliases of all lists together.
const NAMES_MAX: usize = 512;
/// Most bytes of a vocabulary as JSON: it stands in several events of a case.
const BYTES_MAX: usize = 16 * 1024;

/// Names that mean the same: for each word the aliases that findings may use in its place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Vocabulary {
    /// Topics of critical findings, types of clauses, subjects of facts and estimates, and attributes of facts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub topics: BTreeMap<String, Vec<String>>,
    /// Recommendations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recommendations: BTreeMap<String, Vec<String>>,
    /// Metrics of estimates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Vec<String>>,
    /// From which similarity on, 0 to 1, a topic or a recommendation that is no name here is taken for the word whose name is most similar to
    /// it by the sentence model of the conflict detector; none for aliases alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub similarity_min: Option<f64>,
}

/// Of which list a name is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A topic, a type of clause, the subject of a fact or an estimate, or an attribute of a fact.
    Topic,
    /// A recommendation.
    Recommendation,
    /// A metric of an estimate.
    Metric,
}

impl NameKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Topic, Self::Recommendation, Self::Metric];

    /// The field of the vocabulary.
    fn field(self) -> &'static str {
        match self {
            Self::Topic => "topics",
            Self::Recommendation => "recommendations",
            Self::Metric => "metrics",
        }
    }
}

/// A text in the form in which texts are compared: lower case, single spaces, without quotation marks at the ends and without a
/// final full stop.
pub fn plain_form(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let joined = words.join(" ");
    joined
        .trim_matches(|c: char| {
            matches!(
                c,
                '"' | '\'' | '\u{201c}' | '\u{201d}' | '.' | ',' | ';' | ' '
            )
        })
        .to_owned()
}

/// A name in the form in which names of a vocabulary are compared: as [`plain_form`], with `_`, `-` and `/` as spaces.
pub fn name_form(name: &str) -> String {
    plain_form(&name.replace(['_', '-', '/'], " "))
}

impl Vocabulary {
    /// Whether it has no word.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The words of a list, each with its aliases.
    pub fn words(&self, kind: NameKind) -> &BTreeMap<String, Vec<String>> {
        match kind {
            NameKind::Topic => &self.topics,
            NameKind::Recommendation => &self.recommendations,
            NameKind::Metric => &self.metrics,
        }
    }

    /// The word that a name stands for, in every form in which it may be written; none for a name that is not in the list.
    pub fn word(&self, kind: NameKind, name: &str) -> Option<&str> {
        let words = self.words(kind);
        if words.is_empty() {
            return None;
        }
        let name = name_form(name);
        let is_it = |(word, aliases): &(&String, &Vec<String>)| {
            name_form(word) == name || aliases.iter().any(|alias| name_form(alias) == name)
        };
        words.iter().find(is_it).map(|(word, _)| word.as_str())
    }

    /// Checks that every name stands for one word. `pointer` is where this stands, for the fault.
    pub(super) fn check(&self, pointer: &str) -> Result<(), Fault> {
        let lists = NameKind::ALL.map(|kind| self.words(kind));
        let names: usize = lists
            .iter()
            .flat_map(|list| list.values())
            .map(|aliases| aliases.len() + 1)
            .sum();
        let similarity = self.similarity_min.filter(|min| !(0.0..=1.0).contains(min));
        if let Some(similarity) = similarity {
            let similarity = similarity.to_string();
            return Err(out_of_range(
                pointer,
                "similarity_min",
                &similarity,
                "0 to 1",
            ));
        }
        // A vocabulary has no map with other than text keys, so writing it cannot fail.
        let bytes = serde_json::to_vec(self).map_or(0, |json| json.len());
        if names > NAMES_MAX || bytes > BYTES_MAX {
            return Err(Fault::invalid(
                pointer,
                format!("The vocabulary has {names} names and {bytes} bytes."),
                format!(
                    "Give at most {NAMES_MAX} names, words and aliases together, in {BYTES_MAX} bytes."
                ),
            ));
        }
        NameKind::ALL
            .into_iter()
            .try_for_each(|kind| self.check_list(kind, &format!("{pointer}/{}", kind.field())))
    }

    fn check_list(&self, kind: NameKind, pointer: &str) -> Result<(), Fault> {
        // What each name stands for.
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for (word, aliases) in self.words(kind) {
            let at = format!("{pointer}/{}", word.replace('~', "~0").replace('/', "~1"));
            let aliases = aliases.iter().enumerate();
            let aliases = aliases.map(|(place, alias)| (format!("{at}/{place}"), alias));
            for (at, name) in std::iter::once((at.clone(), word)).chain(aliases) {
                check_name(&at, name)?;
                let form = name_form(name);
                if form.is_empty() {
                    return Err(Fault::invalid(
                        at,
                        format!("{name:?} is no name."),
                        "Leave it out, or write a word.",
                    ));
                }
                let other = known.insert(form, word).filter(|other| other != word);
                if let Some(other) = other {
                    return Err(Fault::invalid(
                        at,
                        format!("{name:?} stands for {other:?} and for {word:?}."),
                        "Give it to one of the two words: a name means one thing.",
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::Policy;

    fn read(vocabulary: Value) -> Result<Vocabulary, Fault> {
        let policy = Policy::resolve(&json!({ "vocabulary": vocabulary }), "/policy");
        policy.map(|policy| policy.vocabulary)
    }

    #[test]
    fn a_name_is_known_in_any_case_and_spacing() {
        let vocabulary = read(json!({
            "topics": { "Governing Law": ["applicable law", "choice_of_law"] },
            "recommendations": { "reject": ["Do not sign."] },
        }))
        .unwrap();
        for (kind, name, word) in [
            (NameKind::Topic, "Applicable  Law", Some("Governing Law")),
            (NameKind::Topic, "Choice-of-law", Some("Governing Law")),
            (NameKind::Topic, "governing law", Some("Governing Law")),
            (NameKind::Recommendation, "\"do not sign\"", Some("reject")),
            (NameKind::Recommendation, "sign", None),
            (NameKind::Recommendation, "applicable law", None),
            (NameKind::Metric, "margin", None),
        ] {
            assert_eq!(vocabulary.word(kind, name), word, "{name}");
        }
    }

    #[test]
    fn a_bad_vocabulary_is_refused_at_its_place_and_says_why() {
        let twice = json!({ "topics": { "Term": ["duration"], "Renewal": ["x", "Duration "] } });
        let word = json!({ "metrics": { "margin": [], "profit": ["Margin"] } });
        let aliases: Vec<String> = (0..NAMES_MAX).map(|n| format!("a{n}")).collect();
        for (vocabulary, pointer, said) in [
            (
                twice,
                "/policy/vocabulary/topics/Term/0",
                "\"duration\" stands for \"Renewal\" and for \"Term\"",
            ),
            (
                word,
                "/policy/vocabulary/metrics/profit/0",
                "\"Margin\" stands for \"margin\" and for \"profit\"",
            ),
            (
                json!({ "recommendations": { "a/b": ["no", " . "] } }),
                "/policy/vocabulary/recommendations/a~1b/1",
                "is no name",
            ),
            (
                json!({ "topics": { "": ["x"] } }),
                "/policy/vocabulary/topics/",
                "is no name",
            ),
            (
                json!({ "topics": { "t": ["x".repeat(257)] } }),
                "/policy/vocabulary/topics/t/0",
                "257 bytes",
            ),
            (
                json!({ "topics": { "t": aliases } }),
                "/policy/vocabulary",
                "513 names",
            ),
            (
                json!({ "topics": { "t": "x" } }),
                "/policy/vocabulary/topics/t",
                "",
            ),
            (
                json!({ "similarity_min": 1.5 }),
                "/policy/vocabulary/similarity_min",
                "1.5",
            ),
            (json!({ "words": {} }), "/policy/vocabulary/words", ""),
        ] {
            let fault = read(vocabulary.clone()).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{vocabulary}");
            assert!(fault.to_string().contains(said), "{fault}");
        }
        // An alias that is the word itself, or stands there twice, means nothing else.
        assert!(read(json!({ "topics": { "Term": ["term", "duration", "duration"] } })).is_ok());
    }
}
