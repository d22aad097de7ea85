//! What the documents name exists: files, folders and tests.

use std::collections::BTreeSet;

use crate::hygiene::source::{files, read, root};

/// Documents that name files and tests.
fn documents() -> Vec<String> {
    let mut all = files("*.md");
    // A changelog speaks of what was; records of decisions too.
    all.retain(|file| file != "CHANGELOG.md" && !file.starts_with("docs/adr/0"));
    all
}

/// What stands between single backticks, outside of blocks of code.
fn quoted(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// Whether a quotation is the path of a file or folder of this repository.
fn is_path(quotation: &str) -> bool {
    let known = [
        "crates/",
        "tests/",
        "docs/",
        "scripts/",
        "examples/",
        "clients/",
        "proto-schemas/",
        "xtask/",
        "deploy/",
    ];
    let plain = |character: char| character.is_alphanumeric() || "/._-".contains(character);
    known.iter().any(|folder| quotation.starts_with(folder)) && quotation.chars().all(plain)
}

/// Whether a quotation is the name of a test: several words with underscores; `...` stands for the rest of it.
fn is_test_name(quotation: &str) -> bool {
    let name = test_name(quotation);
    let letters = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
    };
    name.matches('_').count() >= 3 && name.chars().all(letters)
}

/// The beginning of a test's name in a quotation, without its module.
fn test_name(quotation: &str) -> &str {
    let name = quotation.rsplit("::").next().unwrap_or(quotation);
    name.trim_end_matches("...")
}

/// Whether a path exists; the record of a decision may be named by its number alone.
fn exists(path: &str) -> bool {
    let is_record = path.starts_with("docs/adr/") && !path.ends_with(".md");
    let records = || {
        files("docs/adr/*.md")
            .iter()
            .any(|file| file.starts_with(path))
    };
    root().join(path).exists() || (is_record && records())
}

#[test]
fn every_file_that_a_document_names_exists() {
    let mut missing = Vec::new();
    for document in documents() {
        let text = read(&document);
        for path in quoted(&text)
            .into_iter()
            .filter(|quotation| is_path(quotation))
        {
            let path = path.trim_end_matches(['.', '/']);
            if !exists(path) {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "named and not there:\n  {}\n",
        missing.join("\n  ")
    );
}

#[test]
fn every_test_that_the_specification_names_exists() {
    let mut tests = BTreeSet::new();
    for file in files("*.rs").into_iter().chain(files("*.py")) {
        let text = read(&file);
        let names = text.lines().filter_map(|line| {
            let line = line.trim_start();
            let line = line.strip_prefix("async ").unwrap_or(line);
            line.strip_prefix("fn ")
                .or_else(|| line.strip_prefix("def "))
        });
        tests.extend(
            names
                .filter_map(|name| name.split('(').next())
                .map(str::to_owned),
        );
    }
    assert!(tests.contains("every_test_that_the_specification_names_exists"));
    let text = read("docs/specification.md");
    let missing: Vec<&str> = quoted(&text)
        .into_iter()
        .filter(|quotation| is_test_name(quotation))
        .filter(|name| {
            let begin = test_name(name);
            !tests.iter().any(|test| {
                if !name.ends_with("...") {
                    test == begin
                } else {
                    test.starts_with(begin)
                }
            })
        })
        .collect();
    assert!(
        missing.is_empty(),
        "named in docs/specification.md and not there: {missing:?}"
    );
}
