//! Signs before numbers, as people and models write them: `−2`, `–2`, `+2`.

/// The signs of currencies, which may stand between a sign and its number.
pub(crate) const CURRENCIES: [char; 3] = ['$', '€', '£'];
/// The minus of typography. It is nothing else, also with a space before its number.
const MINUS: char = '\u{2212}';
/// What is written for a minus: hyphens, the dashes of the length of a digit and of an `n`, and their wide forms.
const DASHES: [char; 8] = [
    '-', MINUS, '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{fe63}', '\u{ff0d}',
];

/// Whether it is a dash of any length, which may be a minus or stand between words.
pub(crate) fn is_dash(c: char) -> bool {
    DASHES.contains(&c) || matches!(c, '\u{2014}' | '\u{2015}')
}

/// The text with `-` for each minus before a number and nothing for each plus, and with a zero before a point: `−.5` is `-0.5`. A dash in a range
/// (`20–30`), in a name (`pre-2020`) or before a space (`growth – 2`) may be none, and stays as it is.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let last = plain.chars().next_back();
        let may_begin = last.is_none_or(is_before_a_number);
        rest = after;
        match c {
            MINUS if may_begin && is_number(after.trim_start()) => {
                plain.push('-');
                rest = after.trim_start();
            }
            _ if DASHES.contains(&c) && may_begin && is_number(after) => plain.push('-'),
            '+' if may_begin && is_number(after) => {}
            '.' if (may_begin || last == Some('-')) && begins_with_digit(after) => {
                plain.push_str("0.");
            }
            _ => plain.push(c),
        }
    }
    plain
}

/// Whether a sign after this may be that of a number.
fn is_before_a_number(last: char) -> bool {
    last.is_whitespace()
        || CURRENCIES.contains(&last)
        || matches!(
            last,
            ':' | '：' | '=' | '(' | '[' | '"' | '\'' | '\u{201c}' | '*'
        )
}

fn is_number(text: &str) -> bool {
    let amount = text.trim_start_matches(CURRENCIES);
    let is_amount = amount.len() < text.len() && begins_with_digit(amount.trim_start());
    begins_with_digit(text.strip_prefix('.').unwrap_or(text)) || is_amount
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_sign_is_one_where_it_can_be_nothing_else() {
        for (text, read) in [
            ("\u{2212}2 %", "-2 %"),
            ("\u{2212} 2 %", "-2 %"),
            ("growth: \u{2212}2 %", "growth: -2 %"),
            ("\u{2013}2 %", "-2 %"),
            ("\u{ff0d}2 %", "-2 %"),
            ("(\u{2212}2 %)", "(-2 %)"),
            ("\u{2212}$5 or $\u{2212}5", "-$5 or $-5"),
            ("+2 %", "2 %"),
            (".5 %", "0.5 %"),
            ("\u{2212}.5 %", "-0.5 %"),
            ("- 2 %", "- 2 %"),
            ("growth \u{2013} 2 %", "growth \u{2013} 2 %"),
            ("20\u{2013}30 %", "20\u{2013}30 %"),
            ("2024-2025", "2024-2025"),
            ("pre\u{2013}2020", "pre\u{2013}2020"),
            ("+/-2", "+/-2"),
            ("1.5", "1.5"),
        ] {
            assert_eq!(plain(text), read, "{text}");
        }
    }
}
