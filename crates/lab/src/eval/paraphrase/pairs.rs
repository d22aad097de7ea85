//! Pairs of names of which it is known whether they mean the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use concord_cli::shared::failure::Failure;
use concord_wire::policy::NameKind;
use serde::Deserialize;
use serde_json::{Value, json};

/// The other words, which are ours.
const REWORDINGS: &str = include_str!("rewordings.json");

/// Names in other words.
#[derive(Debug, Deserialize)]
pub(super) struct Table {
    /// By the name of a clause as the contracts have it.
    clauses: BTreeMap<String, Rewordings>,
    /// By the recommendation.
    advice: BTreeMap<String, Rewordings>,
}

/// Other words for one name.
#[derive(Debug, Deserialize)]
struct Rewordings {
    /// Those that are in the vocabulary.
    aliases: Vec<String>,
    /// Those that are not.
    others: Vec<String>,
}

/// Two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// Of what they are names.
    pub(super) kind: NameKind,
    /// The one.
    pub(super) one: String,
    /// The other.
    pub(super) other: String,
    /// Whether they mean the same.
    pub(super) same: bool,
}

/// The table of other words.
pub(super) fn table() -> Result<Table, Failure> {
    serde_json::from_str(REWORDINGS).map_err(|error| Failure::usage(error.to_string()))
}

/// The names of all clauses in the contracts.
pub(super) fn clause_names(contracts: &Path) -> Result<BTreeSet<String>, Failure> {
    #[derive(Deserialize)]
    struct Contract {
        clauses: BTreeMap<String, Value>,
    }
    let file = contracts.display();
    let text = std::fs::read_to_string(contracts)
        .map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))?;
    let mut names = BTreeSet::new();
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let contract: Contract = serde_json::from_str(line)
            .map_err(|error| Failure::data(format!("{file}, line {}: {error}", place + 1)))?;
        names.extend(contract.clauses.into_keys());
    }
    Ok(names)
}

/// The vocabulary: each name with its aliases.
pub(super) fn vocabulary(table: &Table, known: &BTreeSet<String>) -> Value {
    let words = |names: &BTreeMap<String, Rewordings>, known: Option<&BTreeSet<String>>| {
        let names = names.iter();
        let kept = names.filter(|(name, _)| known.is_none_or(|known| known.contains(*name)));
        kept.map(|(name, words)| (name.clone(), json!(words.aliases)))
            .collect::<serde_json::Map<String, Value>>()
    };
    json!({ "topics": words(&table.clauses, Some(known)), "recommendations": words(&table.advice, None) })
}

/// The pairs: as many that mean the same as do not.
pub(super) fn pairs(table: &Table, known: &BTreeSet<String>) -> Vec<Pair> {
    let clauses = table.clauses.iter();
    let clauses = clauses.filter(|(name, _)| known.contains(*name));
    let clauses: Vec<Vec<&str>> = clauses.map(|(name, words)| wordings(name, words)).collect();
    let advice = table.advice.iter();
    let advice: Vec<Vec<&str>> = advice.map(|(name, words)| wordings(name, words)).collect();
    let mut pairs = Vec::new();
    for (kind, names) in [
        (NameKind::Topic, clauses),
        (NameKind::Recommendation, advice),
    ] {
        for place in 0..names.len() {
            pairs.extend(of_name(kind, &names, place));
        }
    }
    pairs
}

/// All wordings of a name, the name first.
fn wordings<'a>(name: &'a str, words: &'a Rewordings) -> Vec<&'a str> {
    let others = words.aliases.iter().chain(&words.others);
    std::iter::once(name)
        .chain(others.map(String::as_str))
        .collect()
}

/// The pairs of one name's wordings, and as many of its wordings with those of the two names that are most like it.
fn of_name(kind: NameKind, names: &[Vec<&str>], place: usize) -> Vec<Pair> {
    let Some(own) = names.get(place) else {
        return Vec::new();
    };
    let mut others: Vec<&Vec<&str>> = names
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place)
        .map(|(_, wordings)| wordings)
        .collect();
    others.sort_by_key(|other| std::cmp::Reverse(words_in_common(own, other)));
    others.truncate(2);
    let mut pairs = Vec::new();
    for (first, one) in own.iter().enumerate() {
        for (second, other) in own.iter().enumerate().skip(first + 1) {
            let pair = |other: &str, same| Pair {
                kind,
                one: (*one).to_owned(),
                other: other.to_owned(),
                same,
            };
            pairs.push(pair(other, true));
            let like = others.get((first + second) % others.len().max(1));
            pairs.extend(
                like.and_then(|like| like.get(second))
                    .map(|other| pair(other, false)),
            );
        }
    }
    pairs
}

fn words_in_common(one: &[&str], other: &[&str]) -> usize {
    let words = |names: &[&str]| -> BTreeSet<String> {
        let words = names.iter().flat_map(|name| name.split([' ', '-', '/']));
        words
            .map(str::to_lowercase)
            .filter(|word| word.len() > 3)
            .collect()
    };
    words(one).intersection(&words(other)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_pairs_that_mean_the_same_as_do_not_and_each_once() {
        let table = table().ok().unwrap();
        let known: BTreeSet<String> = table.clauses.keys().cloned().collect();
        let pairs = pairs(&table, &known);
        assert_eq!(
            pairs.len(),
            2 * 15 * (table.clauses.len() + table.advice.len())
        );
        assert_eq!(
            pairs.iter().filter(|pair| pair.same).count() * 2,
            pairs.len()
        );
        let distinct: BTreeSet<(&str, &str)> = pairs
            .iter()
            .map(|pair| (&*pair.one, &*pair.other))
            .collect();
        assert_eq!(distinct.len(), pairs.len());
        assert!(pairs.iter().all(|pair| pair.one != pair.other));
    }
}
