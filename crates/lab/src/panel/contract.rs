//! Contracts as files, and the task that the agents are given for a contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use concord_wire::payload::Task;
use serde::Deserialize;
use serde_json::{Value, json};

use concord_cli::shared::failure::Failure;

/// The kind of task that the panel works on.
const TASK_TYPE: &str = "contract_review";

/// A contract with what lawyers have marked in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Contract {
    /// The id of the contract.
    pub(crate) contract_id: String,
    /// The title, for people.
    pub(crate) title: String,
    /// Clause type -> the sentences that the lawyers marked as it.
    pub(crate) clauses: BTreeMap<String, Vec<String>>,
    /// Clause type -> what the lawyers answered: `Yes`, `No`, a date, a state.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, Value>,
}

impl Contract {
    /// The task for the agents: every sentence once and in alphabetical order, so that neither a name nor the order
    /// tells under which clause type the lawyers had put it.
    pub(crate) fn task(&self) -> Task {
        Task {
            kind: TASK_TYPE.to_owned(),
            title: self.title.clone(),
            input: json!({
                "contract_id": self.contract_id,
                "title": self.title,
                "sentences": self.sentences(),
            }),
        }
    }

    fn sentences(&self) -> BTreeSet<&str> {
        self.clauses
            .values()
            .flatten()
            .map(|sentence| sentence.trim())
            .filter(|sentence| !sentence.is_empty())
            .collect()
    }
}

/// One contract: the file's only one, or the one on `line` (from 1) of a file with one contract a line.
pub(crate) fn read_one(path: &Path, line: Option<usize>) -> Result<Contract, Failure> {
    let text = read_text(path)?;
    let name = path.display();
    let is_lines = line.is_some()
        || path
            .extension()
            .is_some_and(|extension| extension == "jsonl");
    if !is_lines {
        return parse(&text, &|error| match error.column() {
            0 => format!("{name}"),
            column => format!("{name}, line {}, column {column}", error.line()),
        });
    }
    let number = line.unwrap_or(1);
    let of_line = number
        .checked_sub(1)
        .and_then(|index| text.lines().nth(index));
    let of_line = of_line.ok_or_else(|| {
        Failure::usage(format!(
            "{name} has no line {number}: it has {} lines, counted from 1",
            text.lines().count()
        ))
    })?;
    parse_line(of_line, &name.to_string(), number)
}

/// The contracts of a file with one a line, at most `limit` of them. Empty lines are passed over.
pub(crate) fn read_lines(path: &Path, limit: Option<usize>) -> Result<Vec<Contract>, Failure> {
    let text = read_text(path)?;
    let name = path.display().to_string();
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .take(limit.unwrap_or(usize::MAX))
        .map(|(index, line)| parse_line(line, &name, index + 1))
        .collect()
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::data(format!(
            "{name} is not UTF-8 text from byte {} on",
            error.utf8_error().valid_up_to()
        ))
    })?;
    if text.trim().is_empty() {
        return Err(Failure::data(format!(
            "{name} is empty; expected a contract as JSON"
        )));
    }
    Ok(text)
}

fn parse_line(line: &str, name: &str, number: usize) -> Result<Contract, Failure> {
    parse(line, &|error| match error.column() {
        0 => format!("{name}, line {number}"),
        column => format!("{name}, line {number}, column {column}"),
    })
}

/// Reads a contract; `place` says where in the file an error is.
fn parse(text: &str, place: &dyn Fn(&serde_json::Error) -> String) -> Result<Contract, Failure> {
    let contract: Contract = serde_json::from_str(text).map_err(|error| {
        // The place that the parser names is that in the text it was given, which may be one line of the file.
        let message = error.to_string();
        let what = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(what, _)| what);
        Failure::data(format!("{}: this is not a contract: {what}", place(&error)))
    })?;
    if contract.sentences().is_empty() {
        return Err(Failure::data(format!(
            "contract {:?} has no sentence in \"clauses\"",
            contract.contract_id
        )));
    }
    Ok(contract)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const GOOD: &str = r#"{"contract_id":"c","file":"c.pdf","title":"T","clauses":{"Zeta":["Beta applies."," Alpha applies. "],"Audit Rights":["Beta applies.",""]},"labels":{"Zeta":"Yes"}}"#;

    fn file(directory: &tempfile::TempDir, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = directory.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    #[test]
    fn the_agents_are_given_sentences_and_neither_clause_types_nor_labels() {
        let contract: Contract = serde_json::from_str(GOOD).unwrap();
        let task = contract.task();
        assert_eq!(
            (task.kind.as_str(), task.title.as_str()),
            ("contract_review", "T")
        );
        let expected = json!({"contract_id": "c", "title": "T", "sentences": ["Alpha applies.", "Beta applies."]});
        assert_eq!(task.input, expected);
        let told = serde_json::to_string(&task).unwrap();
        assert!(
            !told.contains("Zeta") && !told.contains("Audit") && !told.contains("Yes"),
            "{told}"
        );
    }

    #[test]
    fn neither_the_names_nor_the_order_of_clause_types_changes_the_task() {
        let other = GOOD.replace("Zeta", "A").replace("Audit Rights", "B");
        let (one, other): (Contract, Contract) = (
            serde_json::from_str(GOOD).unwrap(),
            serde_json::from_str(&other).unwrap(),
        );
        assert_eq!(one.task(), other.task());
    }

    #[test]
    fn a_contract_is_read_from_a_file_of_one_and_from_a_line_of_many() {
        let directory = tempfile::tempdir().unwrap();
        let pretty =
            serde_json::to_string_pretty(&serde_json::from_str::<Value>(GOOD).unwrap()).unwrap();
        let one = file(&directory, "one.json", pretty);
        let second = GOOD.replace(r#""contract_id":"c""#, r#""contract_id":"d""#);
        let many = file(&directory, "many.jsonl", format!("{GOOD}\n\n{second}\n"));
        assert_eq!(read_one(&one, None).unwrap().contract_id, "c");
        assert_eq!(read_one(&many, None).unwrap().contract_id, "c");
        assert_eq!(read_one(&many, Some(3)).unwrap().contract_id, "d");
        assert_eq!(read_lines(&many, None).unwrap().len(), 2);
        assert_eq!(read_lines(&many, Some(1)).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_contract_gets_one_clear_line_and_its_exit_code() {
        let directory = tempfile::tempdir().unwrap();
        let bad_line = format!("{GOOD}\n{{\"contract_id\":\"d\"}}\n");
        for (name, contents, code, part) in [
            ("empty.json", "".as_bytes(), 65, "is empty"),
            ("blank.jsonl", b"\n \n", 65, "is empty"),
            (
                "cut.json",
                b"{\"contract_id\":",
                65,
                "cut.json, line 1, column 15: this is not a contract: EOF",
            ),
            ("list.json", b"[]", 65, "not a contract"),
            ("text.json", b"Dear Sirs", 65, "not a contract"),
            ("bytes.json", b"\xff\xfe", 65, "not UTF-8"),
            (
                "other.json",
                br#"{"contract_id":"c","title":"T","clauses":{"A":"B"}}"#,
                65,
                "invalid type",
            ),
            (
                "nothing.json",
                br#"{"contract_id":"c","title":"T","clauses":{"A":[" "]}}"#,
                65,
                "has no sentence",
            ),
        ] {
            let error = read_one(&file(&directory, name, contents), None).unwrap_err();
            assert_eq!(error.code(), code, "{name}: {error}");
            let text = error.to_string();
            assert!(
                text.contains(part)
                    && text.contains(if part.contains("sentence") { "" } else { name }),
                "{text}"
            );
            assert_eq!(text.lines().count(), 1, "{text}");
        }
        let lines = file(&directory, "lines.jsonl", &bad_line);
        let error = read_lines(&lines, None).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("lines.jsonl, line 2, column 19: this is not a contract: missing field"),
            "{error}"
        );
        assert_eq!(read_one(&lines, Some(7)).unwrap_err().code(), 2);
        assert_eq!(read_one(&lines, Some(0)).unwrap_err().code(), 2);
        let missing = read_one(&directory.path().join("missing.json"), None).unwrap_err();
        assert_eq!(missing.code(), 2);
        assert!(
            missing.to_string().contains("missing.json cannot be read"),
            "{missing}"
        );
    }
}
