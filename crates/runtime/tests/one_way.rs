//! The modules of this crate know each other in one direction: each knows only those before it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the ground up, as `src/lib.rs` describes them. A module may use those before it, and itself.
const ORDER: [&str; 13] = [
    "error_chain",
    "clock",
    "settings",
    "signing",
    "telemetry",
    "broker",
    "codec",
    "event_store",
    "ports",
    "context",
    "delivery",
    "admission",
    "service",
];

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|known| *known == module)
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// The names that the crate root gives to items of its modules, with these modules.
fn root_names(library: &str) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for statement in library.split(';') {
        let Some((_, path)) = statement.rsplit_once("pub use ") else {
            continue;
        };
        let module = path.split("::").next().unwrap_or_default().trim();
        let items = path.rsplit("::").next().unwrap_or_default();
        let items = items.trim_matches(|c: char| "{} \n".contains(c));
        for item in items.split(',').map(str::trim).filter(|i| !i.is_empty()) {
            names.push((item.to_owned(), module.to_owned()));
        }
    }
    names
}

/// The modules that a source text names after `crate::`, with those in braces.
fn named_modules(text: &str, names: &[(String, String)]) -> Vec<String> {
    let mut modules = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        // A longer name that ends in `crate`, as of another crate, is none of ours.
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let after = &text[at + "crate::".len()..];
        if let Some(group) = after.strip_prefix('{') {
            let mut depth = 0;
            let mut item = String::new();
            for c in group.chars() {
                match c {
                    '}' if depth == 0 => break,
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => modules.push(std::mem::take(&mut item)),
                    _ => {}
                }
                if depth == 0 && c != ',' {
                    item.push(c);
                }
            }
            modules.push(item);
        } else {
            modules.push(after.to_owned());
        }
    }
    let first = |path: &String| {
        let path = path.trim_start();
        let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let name = &path[..end.unwrap_or(path.len())];
        let of_root = names.iter().find(|(item, _)| item == name);
        of_root.map_or_else(|| name.to_owned(), |(_, module)| module.clone())
    };
    modules.retain(|path| !path.trim().is_empty());
    modules.iter().map(first).collect()
}

#[test]
fn each_module_knows_only_those_before_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let library = fs::read_to_string(source.join("lib.rs")).unwrap();
    let names = root_names(&library);
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut backwards = Vec::new();
    for file in &files {
        let inside = file.strip_prefix(&source).unwrap();
        let first = inside.components().next().unwrap().as_os_str();
        let module = first.to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(module) else {
            panic!("say in this test where the module {module} stands");
        };
        for used in named_modules(&fs::read_to_string(file).unwrap(), &names) {
            match rank(&used) {
                Some(other) if other <= own => {}
                _ => backwards.push(format!("{} uses {used}", inside.display())),
            }
        }
    }
    assert!(files.len() > 40, "the sources were not found");
    assert!(backwards.is_empty(), "backwards:\n{}", backwards.join("\n"));
}
