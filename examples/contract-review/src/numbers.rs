//! Numbers that a contract spells out in words.

const ONES: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen \
    fourteen fifteen sixteen seventeen eighteen nineteen";
const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";

/// The regular expression that `{number}` stands for: digits, or one number word.
pub(crate) fn expression() -> String {
    let words = format!("{ONES} {TENS} hundred").replace(' ', "|");
    format!("(?:[0-9]+|{words})")
}

/// The value of one word: digits, or a number word.
fn value_of(word: &str) -> Option<f64> {
    let at = |names: &str| names.split(' ').position(|name| name == word);
    let spelled = at(ONES)
        .or_else(|| at(TENS).map(|index| (index + 2) * 10))
        .or_else(|| (word == "hundred").then_some(100));
    match spelled {
        Some(value) => u32::try_from(value).ok().map(f64::from),
        None => word.parse().ok(),
    }
}

/// The value of a row of number words: `ninety 90` is 90, `one hundred and eighty` is 180. `None`
/// for a row without a number above zero.
pub(crate) fn value_of_row(row: &str) -> Option<f64> {
    let words: Vec<&str> = row.split_whitespace().collect();
    // Contracts repeat a number in digits, "ninety (90)", and then the digits count.
    if let Some(last) = words.last().filter(|word| is_digits(word)) {
        return value_of(last);
    }
    let mut total = 0.0;
    for value in words.iter().filter_map(|word| value_of(word)) {
        // "one hundred" is a product, "hundred eighty" is a sum.
        if value >= 100.0 && total > 0.0 {
            total *= value;
        } else {
            total += value;
        }
    }
    (total > 0.0).then_some(total)
}

fn is_digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_number_words() {
        for (row, value) in [
            ("ninety 90", Some(90.0)),
            ("one hundred and eighty", Some(180.0)),
            ("twenty five", Some(25.0)),
            ("12", Some(12.0)),
            ("and", None),
            ("zero", None),
        ] {
            assert_eq!(value_of_row(row), value, "{row}");
        }
    }
}
