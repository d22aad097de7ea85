//! Cuts texts.

/// The beginning of a text: at most `bytes_max` bytes, up to the end of a character.
pub fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
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
}
