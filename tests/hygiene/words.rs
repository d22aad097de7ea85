//! One word, one meaning. A word of this list stands in the names of code only where it means what the list says.

use std::collections::BTreeSet;

use crate::hygiene::source::{code, files, read, ships};

/// A word, what to say instead, and the files in whose names it may stand because it means something else there.
const WORDS: [(&str, &str, &[&str]); 5] = [
    ("ledger", "event store", &[]),
    (
        "shell",
        "service context",
        // What people type commands into.
        &["crates/cli/src/command/completions.rs"],
    ),
    (
        "fact",
        "event, if a stored event is meant; a fact is a claim in a finding",
        // Findings and their rules speak of facts; the key of a stored event on the wire is `fact`.
        &[
            "crates/domain/src/rules/",
            "crates/wire/src/payload",
            "crates/events/src/non_event.rs",
            "crates/events/src/stored_event.rs",
            "crates/lab/src/panel/",
            "examples/contract-review/",
        ],
    ),
    ("rush", "deadline burst", &[]),
    ("plant", "injected bug", &[]),
];

/// The words of which the names in a file consist.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let code = code(text);
    for name in code.split(|character: char| !character.is_alphanumeric() && character != '_') {
        for part in name.split('_') {
            let mut word = String::new();
            for character in part.chars() {
                if character.is_uppercase() && word.ends_with(|last: char| last.is_lowercase()) {
                    words.insert(std::mem::take(&mut word).to_lowercase());
                }
                word.push(character);
            }
            words.insert(word.to_lowercase());
        }
    }
    words
}

#[test]
fn no_word_has_two_meanings() {
    let mut found = Vec::new();
    for file in files("*.rs")
        .into_iter()
        .filter(|file| ships(file) && file.contains("/src/"))
    {
        let used = words(&read(&file));
        for (word, instead, except) in WORDS {
            let allowed = except.iter().any(|allowed| file.starts_with(allowed));
            if !allowed && (used.contains(word) || used.contains(&format!("{word}s"))) {
                found.push(format!("{file}: {word}; say {instead}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} words with another meaning:\n  {}\n",
        found.len(),
        found.join("\n  ")
    );
}

#[test]
fn the_words_of_names_are_seen_whatever_their_case() {
    let words = words("struct NatsLedger; fn read_facts() {} // shell\nlet x = \"rush\";");
    assert!(
        words.contains("ledger") && words.contains("facts"),
        "{words:?}"
    );
    assert!(
        !words.contains("shell") && !words.contains("rush"),
        "{words:?}"
    );
}
