//! Files have at most 400 lines and functions at most 70, formatted by rustfmt's defaults; `main.rs` has at most 60 lines.

use crate::hygiene::source::{files, read};

/// Most lines of a file. A file of 410 is not worth a detour, so the test has some room above what is aimed at.
const FILE_LINES_MAX: usize = 430;
/// Most lines of a function, from its name to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Most lines of a `main.rs`: a program is its library.
const MAIN_LINES_MAX: usize = 60;

/// The functions of a formatted file that are too long: name, line, number of lines.
fn long_functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let rest = lines[place..].iter();
        let ends = |line: &str| {
            line == closing || (indent > 0 && line.trim_end() == format!("{closing},"))
        };
        let length = rest
            .clone()
            .position(|line| ends(line))
            .map_or(1, |end| end + 1);
        let is_declaration = rest
            .clone()
            .take(length)
            .take_while(|line| !line.contains('{'))
            .any(|line| line.ends_with(';'));
        if length > FUNCTION_LINES_MAX && !is_declaration {
            found.push((name.to_owned(), place + 1, length));
        }
    }
    found
}

/// The name of the function that begins on a line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    if words.starts_with("pub(") {
        words = words.split_once(") ")?.1;
    }
    for word in ["pub ", "const ", "async ", "unsafe "] {
        words = words.strip_prefix(word).unwrap_or(words);
    }
    let name = words.strip_prefix("fn ")?;
    name.split(|character: char| !character.is_alphanumeric() && character != '_')
        .next()
}

#[test]
fn files_and_functions_are_short() {
    let mut long = Vec::new();
    for file in files("*.rs") {
        let text = read(&file);
        let lines = text.lines().count();
        let most = if file.ends_with("/main.rs") && text.contains("fn main(") {
            MAIN_LINES_MAX
        } else {
            FILE_LINES_MAX
        };
        if lines > most {
            long.push(format!("{file}: {lines} lines; at most {most}"));
        }
        for (name, line, length) in long_functions(&text) {
            long.push(format!(
                "{file}:{line}: {name} has {length} lines; at most {FUNCTION_LINES_MAX}"
            ));
        }
    }
    assert!(
        long.is_empty(),
        "split by what changes together:\n  {}\n",
        long.join("\n  ")
    );
}

#[test]
fn a_long_function_is_seen() {
    let body = "        step();\n".repeat(FUNCTION_LINES_MAX - 1);
    let text = format!(
        "impl A {{\n    pub(crate) async fn long(&self) {{\n{body}    }}\n\n    fn short() {{}}\n}}\n"
    );
    assert_eq!(
        long_functions(&text),
        [("long".to_owned(), 2, FUNCTION_LINES_MAX + 1)]
    );
    assert_eq!(
        long_functions("trait A {\n    fn declared(&self);\n}\n"),
        []
    );
}
