//! Every generated file of the repository: compares it with what the code makes, and writes it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{configuration, schema};

/// The folder of the generated schemas. Examples stand in folders below it and are written by hand.
const SCHEMAS: &str = "proto-schemas";
/// How the name of a generated schema ends.
const SCHEMA_ENDING: &str = ".schema.json";

/// A file that could not be read, written or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct Error {
    /// What was tried: `list`, `read`, `write` or `remove`.
    action: &'static str,
    /// The file or folder.
    path: PathBuf,
    source: io::Error,
}

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Its path in the repository, with `/` between folders.
    pub path: String,
    /// Its contents.
    pub contents: String,
}

/// How a file of the repository differs from what the code makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The file's path in the repository.
    pub path: String,
    /// The kind of difference.
    pub kind: DifferenceKind,
}

/// The kinds of differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The code makes the file, and it is not in the repository.
    Missing,
    /// The file has the name of a generated one, and the code does not make it any more.
    LeftOver,
    /// The contents differ; the first line that does, by its number from 1.
    Line {
        /// The number of the line.
        number: usize,
        /// The line in the repository; none where the file is shorter.
        found: Option<String>,
        /// The line that the code makes; none where the file is longer.
        made: Option<String>,
    },
    /// All lines are the same; the ends of lines or of the file are not.
    LineEnds,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        match &self.kind {
            DifferenceKind::Missing => f.write_str("it is missing"),
            DifferenceKind::LeftOver => f.write_str("nothing makes it any more"),
            DifferenceKind::Line {
                number,
                found,
                made,
            } => {
                let text = |line: &Option<String>| match line {
                    Some(line) => format!("{line:?}"),
                    None => "nothing".to_owned(),
                };
                let (found, made) = (text(found), text(made));
                write!(f, "line {number} is {found}, the code makes {made}")
            }
            DifferenceKind::LineEnds => f.write_str("only the ends of lines differ"),
        }
    }
}

/// Every generated file, made anew.
pub fn files() -> Vec<GeneratedFile> {
    let file = |path: &str, contents| GeneratedFile {
        path: path.to_owned(),
        contents,
    };
    let mut files: Vec<_> = schema::documents()
        .iter()
        .map(|(name, document)| file(&format!("{SCHEMAS}/{name}"), schema::pretty(document)))
        .collect();
    files.extend([
        file("proto-schemas/asyncapi.yaml", schema::asyncapi()),
        file("docs/subjects.md", schema::subjects()),
        file("docs/errors.md", schema::errors()),
        file("docs/configuration.md", configuration::configuration()),
    ]);
    files
}

/// How the repository at `root` differs from `files`; nothing where it is up to date.
pub fn differences(root: &Path, files: &[GeneratedFile]) -> Result<Vec<Difference>, Error> {
    let left_over = left_over(root, files)?.into_iter();
    let mut differences: Vec<_> = left_over
        .map(|path| Difference {
            path,
            kind: DifferenceKind::LeftOver,
        })
        .collect();
    for file in files {
        let path = root.join(&file.path);
        let kind = match fs::read_to_string(&path) {
            Ok(found) if found == file.contents => continue,
            Ok(found) => first_difference(&found, &file.contents),
            Err(error) if error.kind() == io::ErrorKind::NotFound => DifferenceKind::Missing,
            Err(source) => return Err(failed("read", path, source)),
        };
        differences.push(Difference {
            path: file.path.clone(),
            kind,
        });
    }
    Ok(differences)
}

/// Writes `files` into the repository at `root`, and removes what is left over of earlier ones. Files that are up to date are
/// left alone. Gives what was changed.
pub fn write(root: &Path, files: &[GeneratedFile]) -> Result<Vec<Difference>, Error> {
    let differences = differences(root, files)?;
    for difference in &differences {
        let path = root.join(&difference.path);
        if difference.kind == DifferenceKind::LeftOver {
            fs::remove_file(&path).map_err(|source| failed("remove", path, source))?;
        }
    }
    let changed: BTreeSet<&str> = differences.iter().map(|one| one.path.as_str()).collect();
    for file in files.iter().filter(|file| changed.contains(&*file.path)) {
        let path = root.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|source| failed("write", folder.to_owned(), source))?;
        }
        fs::write(&path, &file.contents).map_err(|source| failed("write", path, source))?;
    }
    Ok(differences)
}

/// Files with the name of a generated schema that nothing makes.
fn left_over(root: &Path, files: &[GeneratedFile]) -> Result<Vec<String>, Error> {
    let made: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let folder = root.join(SCHEMAS);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed("list", folder, source)),
    };
    let mut left_over = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| failed("list", folder.clone(), source))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{SCHEMAS}/{name}");
        if name.ends_with(SCHEMA_ENDING) && !made.contains(path.as_str()) {
            left_over.push(path);
        }
    }
    left_over.sort();
    Ok(left_over)
}

fn failed(action: &'static str, path: PathBuf, source: io::Error) -> Error {
    Error {
        action,
        path,
        source,
    }
}

fn first_difference(found: &str, made: &str) -> DifferenceKind {
    let mut found = found.lines();
    let mut made = made.lines();
    for number in 1.. {
        match (found.next(), made.next()) {
            (None, None) => break,
            (found, made) if found == made => {}
            (found, made) => {
                return DifferenceKind::Line {
                    number,
                    found: found.map(str::to_owned),
                    made: made.map(str::to_owned),
                };
            }
        }
    }
    DifferenceKind::LineEnds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, contents: &str) -> GeneratedFile {
        GeneratedFile {
            path: path.into(),
            contents: contents.into(),
        }
    }

    #[test]
    fn what_differs_is_named_and_writing_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join(SCHEMAS)).unwrap();
        fs::write(root.join("proto-schemas/old.schema.json"), "{}").unwrap();
        fs::write(root.join("proto-schemas/notes.txt"), "by hand").unwrap();
        fs::write(root.join("changed.md"), "one\ntwo\n").unwrap();
        fs::write(root.join("ends.md"), "one").unwrap();
        let files = [
            file("docs/new.md", "new\n"),
            file("changed.md", "one\nthree\n"),
            file("ends.md", "one\n"),
        ];
        let told: Vec<_> = differences(root, &files)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "proto-schemas/old.schema.json: nothing makes it any more",
                "docs/new.md: it is missing",
                "changed.md: line 2 is \"two\", the code makes \"three\"",
                "ends.md: only the ends of lines differ",
            ]
        );
        assert_eq!(write(root, &files).unwrap().len(), 4);
        assert_eq!(differences(root, &files).unwrap(), []);
        assert!(root.join("proto-schemas/notes.txt").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SCHEMAS), "no folder").unwrap();
        let error = differences(folder.path(), &[]).unwrap_err();
        assert!(error.to_string().starts_with("cannot list "), "{error}");
    }
}
