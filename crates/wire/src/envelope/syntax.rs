//! What is wrong with a text that is no JSON, in the words of somebody who wrote it, and where: line and column, both from 1 on.

/// The longest word that is repeated.
const WORD_BYTES_MAX: usize = 16;

/// What is wrong, and what to do about it: two sentences.
pub(super) fn in_words(bytes: &[u8], error: &serde_json::Error) -> (String, String) {
    let text = error.to_string();
    let said = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(said, _)| said);
    if bytes.trim_ascii().is_empty() {
        let what = "There is nothing where JSON is expected.".to_owned();
        return (what, "Send one JSON object, at least {}.".to_owned());
    }
    if let Some((what, advice)) = by_beginning(bytes) {
        return (what.to_owned(), advice.to_owned());
    }
    let at = offset(bytes, error);
    let (what, advice) = wrong_at(bytes, at, said);
    let (line, column) = place(bytes, at);
    (
        format!("In line {line}, column {column}, {what}."),
        advice.to_owned(),
    )
}

/// What is no text in UTF-8 at all, as its first bytes say.
fn by_beginning(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const COMPRESSED: &str = "Say how it is compressed in the header Content-Encoding (gzip or zstd), or send it as it is.";
    const UTF_16: (&str, &str) = ("It is UTF-16.", "Write the message in UTF-8.");
    Some(match bytes {
        [0x1f, 0x8b, ..] => (
            "It is compressed with gzip, and no header says so.",
            COMPRESSED,
        ),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => (
            "It is compressed with zstd, and no header says so.",
            COMPRESSED,
        ),
        [0xef, 0xbb, 0xbf, ..] => (
            "It begins with a byte order mark, which JSON does not have.",
            "Write the message in UTF-8 without one; Python calls that \"utf-8\", and the other \"utf-8-sig\".",
        ),
        // With a byte order mark, or with a bracket or a blank of two bytes.
        [0xff, 0xfe, ..]
        | [0xfe, 0xff, ..]
        | [0, b'{' | b'[' | b' ', ..]
        | [b'{' | b'[' | b' ', 0, ..] => UTF_16,
        _ => return None,
    })
}

/// Where in the text the parser stopped: at the last byte that it has looked at.
fn offset(bytes: &[u8], error: &serde_json::Error) -> usize {
    let line = error.line().saturating_sub(1);
    let start = match line {
        0 => 0,
        line => bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .nth(line - 1)
            .map_or(bytes.len(), |(at, _)| at + 1),
    };
    let last = bytes.len().saturating_sub(1);
    (start + error.column()).saturating_sub(1).min(last)
}

/// The line and column of a byte. A character of several bytes is one column.
fn place(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let last = before.rsplit(|byte| *byte == b'\n').next();
    let is_start = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
    let column = last.unwrap_or_default().iter().filter(is_start).count();
    (line, column + 1)
}

/// What is wrong at a place, as the end of a sentence, and what to do about it.
fn wrong_at(bytes: &[u8], at: usize, said: &str) -> (String, &'static str) {
    if let Some(known) = by_error(said) {
        return known;
    }
    let found = bytes.get(at..).unwrap_or_default();
    if found.starts_with(b"//") || found.starts_with(b"/*") || found.starts_with(b"#") {
        let what = "a comment begins, which JSON does not have";
        return (what.to_owned(), "Leave comments out.");
    }
    if found.starts_with(b"'") || found.starts_with("\u{201c}".as_bytes()) {
        let what = "a text or a name stands in other quotation marks than JSON has";
        return (
            what.to_owned(),
            "Write texts and names in straight double quotation marks: \"text\".",
        );
    }
    if let Some(known) = by_word(&word(bytes, at)) {
        return known;
    }
    by_expected(said)
}

/// What the parser itself says well enough.
fn by_error(said: &str) -> Option<(String, &'static str)> {
    if said == "recursion limit exceeded" {
        let what = "objects and lists are nested too deep";
        return Some((what.to_owned(), "Nest them at most 128 deep."));
    }
    if said.starts_with("EOF") {
        let what = "it ends before a text, a list or an object that it has begun is closed";
        return Some((
            what.to_owned(),
            "Send the whole object, with every quotation mark and bracket closed.",
        ));
    }
    let (what, advice) = match said {
        "trailing comma" => (
            "a list or an object ends after a comma",
            "Leave out the comma before the closing bracket.",
        ),
        "trailing characters" => (
            "something follows after the end",
            "Send one JSON object and nothing after it; several are several messages.",
        ),
        "number out of range" => (
            "a number is larger than can be read",
            "Write a smaller number, or a text.",
        ),
        "invalid escape"
        | "unexpected end of hex escape"
        | "lone leading surrogate in hex escape" => (
            "a backslash stands before something that it cannot stand before",
            "Write a backslash as \\\\, and a character by its number as \\u and four digits, of which two such follow each other above \\uffff.",
        ),
        "invalid unicode code point" => (
            "there are bytes that are no UTF-8",
            "Write the message in UTF-8.",
        ),
        said if said.starts_with("control character") => (
            "a text has a line break, a tab or another control character in it",
            "Write it as \\n, \\t or \\u and four digits.",
        ),
        _ => return None,
    };
    Some((what.to_owned(), advice))
}

/// The word that stands at a place, whichever of its letters the parser stopped at.
fn word(bytes: &[u8], at: usize) -> String {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let (before, after) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
    let first = before.iter().rev().take_while(|byte| is_letter(byte));
    let first = first.take(WORD_BYTES_MAX).count();
    let word = before.iter().skip(before.len() - first);
    let word = word.chain(after.iter().take_while(|byte| is_letter(byte)));
    word.take(WORD_BYTES_MAX)
        .map(|byte| char::from(*byte))
        .collect()
}

/// Words that other languages have where JSON has none, or another.
fn by_word(word: &str) -> Option<(String, &'static str)> {
    let advice = match word.to_ascii_lowercase().as_str() {
        "" => return None,
        "nan" | "inf" | "infinity" => "Write null, or leave the field out.",
        "true" | "false" | "none" | "null" | "undefined" | "nil" => {
            "Write true, false or null, in small letters."
        }
        _ => "Write texts and names in double quotation marks: \"text\".",
    };
    Some((
        format!("the word {word:?} stands without quotation marks"),
        advice,
    ))
}

/// What the parser expects where nothing better is known.
fn by_expected(said: &str) -> (String, &'static str) {
    let (what, advice) = match said {
        "expected `,` or `}`" | "expected `,` or `]`" => (
            "neither a comma nor the end of the list or object follows a value",
            "Write a comma between two values, and close every bracket; within a text write a quotation mark as \\\".",
        ),
        "expected `:`" => (
            "no colon follows the name of a field",
            "Write \"name\": value.",
        ),
        "key must be a string" | "expected `\"`" => (
            "there is no name of a field",
            "Write \"name\": value, with the name in double quotation marks.",
        ),
        "invalid number" => (
            "a number is not written as JSON has it",
            "Write it in decimal digits, with a digit before and after the point and no zero in front: 0.5.",
        ),
        "expected value" => (
            "there is no value",
            "Write a text, a number, an object, a list, true, false or null there.",
        ),
        _ => {
            return (
                format!("it is no JSON: {said}"),
                "Send one JSON object in UTF-8.",
            );
        }
    };
    (what.to_owned(), advice)
}

#[cfg(test)]
mod tests {
    use crate::envelope::value_from_json;

    /// What is written, where it is wrong, and words that the fault and its advice have.
    const FAULTS: &[(&str, &str, &str)] = &[
        ("", "nothing", "at least {}"),
        (
            "{\n  // mine\n  \"a\": 1 }",
            "line 2, column 3, a comment",
            "Leave comments out",
        ),
        (
            "{ \"a\": 1 /* one */ }",
            "line 1, column 10, a comment",
            "Leave comments out",
        ),
        (
            "/* all */ {}",
            "line 1, column 1, a comment",
            "Leave comments out",
        ),
        ("{ \"a\": 1 } // end", "column 12", "nothing after it"),
        (
            "{ \"a\": [1, 2,] }",
            "column 14, a list or an object ends after a comma",
            "comma",
        ),
        (
            "{\n\"a\": 1,\n}",
            "line 3, column 1, a list or an object ends after a comma",
            "comma",
        ),
        ("{ \"a\": NaN }", "\"NaN\"", "Write null, or leave"),
        ("{ \"a\": nan }", "\"nan\"", "Write null, or leave"),
        (
            "{ \"a\": -Infinity }",
            "\"Infinity\"",
            "Write null, or leave",
        ),
        (
            "{ \"a\": True }",
            "column 8, the word \"True\"",
            "in small letters",
        ),
        ("{ \"a\": None }", "\"None\"", "in small letters"),
        ("{ \"a\": undefined }", "\"undefined\"", "in small letters"),
        (
            "{ 'a': 1 }",
            "other quotation marks",
            "double quotation marks",
        ),
        (
            "{ \"a\": \u{201c}b\u{201d} }",
            "other quotation marks",
            "double quotation marks",
        ),
        ("{ a: 1 }", "the word \"a\"", "double quotation marks"),
        ("{ \"ä\" 1 }", "column 7, no colon", "\"name\": value"),
        (
            "{ \"a\": \"b \"c\" d\" }",
            "the word \"c\"",
            "double quotation marks",
        ),
        (
            "{ \"a\": \"b\" \"c\": 1 }",
            "neither a comma nor",
            "comma between",
        ),
        ("{ \"a\": \"one\ntwo\" }", "line break", "\\n"),
        ("{ \"a\": \"C:\\dir\" }", "backslash", "\\\\"),
        ("{ \"a\": .5 }", "there is no value", "a number"),
        ("{ \"a\": 01 }", "not written as JSON", "decimal digits"),
        ("{ \"a\": 1e999 }", "larger than can be read", "smaller"),
        ("{ \"a\": { \"b\": 1 }", "ends before", "whole object"),
        ("{}{}", "column 3, something follows", "several messages"),
    ];

    #[test]
    fn what_is_no_json_is_said_with_its_place_and_not_by_its_depth() {
        for (written, what, advice) in FAULTS {
            let fault = value_from_json::<serde_json::Value>(written.as_bytes(), "").unwrap_err();
            assert!(
                fault.message.contains(what) && fault.advice.contains(advice),
                "{written}: {fault}"
            );
            assert!(!fault.advice.contains("128"), "{written}: {fault}");
        }
        let not_utf8 =
            value_from_json::<serde_json::Value>(b"{ \"a\": \"\xff\" }", "").unwrap_err();
        assert!(not_utf8.message.contains("no UTF-8"), "{not_utf8}");
    }

    #[test]
    fn what_is_no_text_in_utf_8_is_recognised_by_its_beginning() {
        let rows: &[(&[u8], &str, &str)] = &[
            (
                b"\x1f\x8b\x08\0\0",
                "compressed with gzip",
                "Content-Encoding",
            ),
            (
                b"\x28\xb5\x2f\xfd\x04",
                "compressed with zstd",
                "Content-Encoding",
            ),
            (b"\xef\xbb\xbf{}", "byte order mark", "without one"),
            (b"\xff\xfe{\0}\0", "UTF-16", "in UTF-8"),
            (b"\xfe\xff\0{\0}", "UTF-16", "in UTF-8"),
            (b"{\0}\0", "UTF-16", "in UTF-8"),
            (b"\0{\0}", "UTF-16", "in UTF-8"),
        ];
        for (written, what, advice) in rows {
            let fault = value_from_json::<serde_json::Value>(written, "").unwrap_err();
            assert!(fault.message.contains(what), "{written:?}: {fault}");
            assert!(fault.advice.contains(advice), "{written:?}: {fault}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_told_how_deep_it_may_be() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let fault = value_from_json::<serde_json::Value>(deep.as_bytes(), "").unwrap_err();
        assert!(fault.advice.contains("at most 128 deep"), "{fault}");
    }
}
