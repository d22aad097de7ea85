//! Texts of others: cut, made visible, and quoted for the command line.

use std::fmt::Write;

/// The beginning of a text: at most `bytes_max` bytes, up to the end of a character.
pub fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Whether a character moves the cursor, turns the direction of writing, or is not seen: a text with it does not say what it
/// seems to say. Line breaks and tabs are among them.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Joiners, fillers and separators without width.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            // Marks and overrides of direction, and separators of lines and paragraphs.
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2065}'..='\u{206f}'
            // Annotations, tags and selectors of variants.
            | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text on one line that says what it seems to say: what is deceptive, and every run of spaces, becomes one space. It has at
/// most `length_max` characters, the last of which says that something was cut.
pub fn one_line(text: &str, length_max: usize) -> String {
    let mut flat = String::new();
    let words = text
        .split(|c: char| c.is_whitespace() || is_deceptive(c))
        .filter(|word| !word.is_empty());
    for word in words {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.push_str(word);
    }
    if flat.chars().count() <= length_max {
        return flat;
    }
    let cut: String = flat.chars().take(length_max.saturating_sub(1)).collect();
    cut + "…"
}

/// A text in which what is deceptive is written as an escape, line breaks included: one line, as of a log.
pub fn visible_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// JSON in which what is deceptive is written as an escape, but for the line breaks between values. It is read as what it was.
pub fn visible_json(json: &str) -> String {
    let mut visible = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_deceptive(c) {
            visible.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            let written = write!(visible, "\\u{unit:04x}");
            debug_assert!(written.is_ok(), "a string is full");
        }
    }
    visible
}

/// A text as one word of a command line (POSIX; `$'...'`, where it has characters that are not seen, is of POSIX 2024, bash and zsh).
/// Whatever it holds, a copied command runs nothing of it.
pub fn command_word(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    if !text.chars().any(is_deceptive) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            c if !is_deceptive(c) => word.push(c),
            c => {
                // A string takes whatever is written into it.
                let written = write!(word, "\\U{:08x}", u32::from(c));
                debug_assert!(written.is_ok(), "a string is full");
            }
        }
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, bytes_max, expected) in [
            ("", 0, ""),
            ("abc", 9, "abc"),
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("aäb", 2, "a"),
            ("aäb", 3, "aä"),
            ("€", 2, ""),
        ] {
            assert_eq!(beginning(text, bytes_max), expected, "{text:?} {bytes_max}");
        }
    }

    #[test]
    fn a_line_of_a_log_shows_what_is_in_it() {
        for (text, expected) in [
            ("Refused ä message.", "Refused ä message."),
            ("c\u{1b}[31mRED\u{7}", "c\\u{1b}[31mRED\\u{7}"),
            ("a\nINFO b\u{202e}\u{9b}", "a\\nINFO b\\u{202e}\\u{9b}"),
        ] {
            assert_eq!(visible_line(text), expected);
        }
    }

    #[test]
    fn a_line_says_what_it_seems_to_say() {
        for (text, expected) in [
            ("Überprüfung  der Miete", "Überprüfung der Miete"),
            ("a\u{1b}[31m\tb\r\nc", "a [31m b c"),
            ("pay\u{200b}ment\u{202e}gnp.exe", "pay ment gnp.exe"),
            ("\u{feff}\u{2066}x\u{2069}\u{e0041}", "x"),
            ("日本語 שלום", "日本語 שלום"),
        ] {
            assert_eq!(one_line(text, 99), expected);
        }
        assert_eq!(one_line("Überprüfung", 5), "Über…");
    }

    #[test]
    fn json_shows_everything_and_is_read_as_it_was() {
        let value = serde_json::json!({ "a": "x\u{9b}2J\u{202e}y\u{e0041}\n" });
        let shown = visible_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(
            !shown.chars().any(|c| c != '\n' && is_deceptive(c)),
            "{shown}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }

    #[test]
    fn a_word_of_a_command_is_one_word() {
        for (text, expected) in [
            ("valuation", "valuation"),
            ("valuation review", "'valuation review'"),
            ("v$(touch x)", "'v$(touch x)'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
            ("~", "'~'"),
            ("a\n'b\\", "$'a\\U0000000a\\'b\\\\'"),
            ("v\u{202e}", "$'v\\U0000202e'"),
        ] {
            assert_eq!(command_word(text), expected);
        }
    }
}
