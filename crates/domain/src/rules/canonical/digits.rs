//! Digits as people write them: `1,000,000`, `28.5`, `28,5`.

/// The number that these digits are, with a sign before them where they have one. Commas separate groups of three digits, or of two before
/// the last (`1,00,000`); a single one that cannot is a decimal comma: `28,5` is 28.5, and `0,125` an eighth. None where commas are neither.
pub(crate) fn number(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text),
    };
    let Some((before, after)) = digits.split_once(',') else {
        return text.parse().ok();
    };
    let whole = digits.split('.').next().unwrap_or_default();
    let number: f64 = if are_groups(whole) {
        digits.replace(',', "").parse().ok()?
    } else if is_digits(before) && is_digits(after) {
        format!("{before}.{after}").parse().ok()?
    } else {
        return None;
    };
    Some(sign * number)
}

fn are_groups(whole: &str) -> bool {
    let groups: Vec<&str> = whole.split(',').collect();
    let [first, middle @ .., last] = &groups[..] else {
        return false;
    };
    let begins = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let goes_on = middle.iter().all(|group| (2..=3).contains(&group.len()));
    begins && goes_on && last.len() == 3 && groups.iter().all(|group| is_digits(group))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn commas_separate_groups_or_are_decimal() {
        for (text, read) in [
            ("28.5", Some(28.5)),
            ("28,5", Some(28.5)),
            ("-28,5", Some(-28.5)),
            ("28,50", Some(28.5)),
            ("0,125", Some(0.125)),
            ("1234,567", Some(1_234.567)),
            ("1,000", Some(1_000.0)),
            ("-12,000", Some(-12_000.0)),
            ("1,000,000.25", Some(1_000_000.25)),
            ("1,00,000", Some(100_000.0)),
            ("1e5", Some(100_000.0)),
            ("1,2,3", None),
            ("1.234,5", None),
            ("1,0000,000", None),
            ("28,", None),
            (",5", None),
            ("1,000,5", None),
        ] {
            assert_eq!(number(text), read, "{text}");
        }
    }
}
