//! The files of the repository as git lists them, and Rust code without its comments and strings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file that git tracks or would track, relative to the repository.
pub(crate) fn files(pattern: &str) -> Vec<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            pattern,
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files: {listed:?}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut files: Vec<String> = listed.lines().map(str::to_owned).collect();
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    files
}

/// The text of a file of the repository.
pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Whether a Rust file is code that ships: not a test, and not the machinery of tests.
pub(crate) fn ships(file: &str) -> bool {
    let is_test =
        |part: &str| matches!(part, "tests" | "tests.rs" | "fixtures.rs" | "properties.rs");
    let machinery = ["crates/testkit/", "crates/simulation/"];
    !file.split('/').any(is_test) && !machinery.iter().any(|folder| file.starts_with(folder))
}

/// Rust code with comments, and the contents of strings and character literals, taken out. Lines stay where they are.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(length) = string(rest) {
            out.push_str("\"\"");
            length
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        out.extend(rest[..taken].chars().filter(|character| *character == '\n'));
        rest = &rest[taken..];
    }
    out
}

/// The length of the string or character literal with which a text begins, if it does.
fn string(text: &str) -> Option<usize> {
    let raw = text.strip_prefix('r').or_else(|| text.strip_prefix("br"));
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let begin = text.len() - raw.len() + hashes + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            return Some(begin + text[begin..].find(&end)? + end.len());
        }
    }
    if text.starts_with('\'') {
        let mut characters = text.char_indices().skip(1);
        let (_, first) = characters.next()?;
        let end = if first == '\\' {
            text[2..].find('\'')? + 2
        } else {
            characters.next()?.0
        };
        return text[end..].starts_with('\'').then_some(end + 1);
    }
    if !text.starts_with('"') {
        return None;
    }
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(place + 1),
            _ => {}
        }
    }
    None
}

#[test]
fn comments_and_strings_are_taken_out_and_lines_stay() {
    let text = "let a = \"// x\"; // y\nlet b = 'z'; let c = r#\"q\"w\"#; fn f<'a>() {}\n";
    assert_eq!(
        code(text),
        "let a = \"\"; \nlet b = \"\"; let c = \"\"; fn f<'a>() {}\n"
    );
}
