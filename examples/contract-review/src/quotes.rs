//! Quotes that fit into the size limit of an answer.

use crate::text::Sentence;

/// The approximate number of letters in a token. The limit is a budget, so this need not be exact.
const LETTERS_PER_TOKEN: usize = 4;
/// The letters that the field names and brackets of an answer take.
const FRAME: usize = 240;
/// A quote that is cut to fewer letters is left out.
const CUT_MIN: usize = 40;
/// The maximum number of quotes in an answer.
const QUOTES_MAX: usize = 6;

/// The number of letters that the texts of an answer may have under a limit of `max_tokens`.
pub(crate) fn budget(max_tokens: Option<usize>) -> usize {
    max_tokens.map_or(usize::MAX, |tokens| {
        tokens
            .saturating_mul(LETTERS_PER_TOKEN)
            .saturating_sub(FRAME)
    })
}

/// The first of `sentences`, each once, as many as fit into `budget` letters. If only a part of the
/// last one fits, it is cut after a word and ends in an ellipsis.
pub(crate) fn fit(sentences: Vec<&Sentence>, budget: usize) -> Vec<String> {
    let mut left = budget;
    let mut quotes: Vec<String> = Vec::new();
    for sentence in sentences {
        if quotes.len() == QUOTES_MAX || quotes.iter().any(|quote| quote == sentence.text()) {
            continue;
        }
        let text = sentence.text();
        if text.len() <= left {
            left -= text.len();
            quotes.push(text.to_owned());
        } else {
            quotes.extend(cut(text, left));
            break;
        }
    }
    debug_assert!(
        quotes.iter().map(String::len).sum::<usize>() <= budget,
        "the quotes are longer than their budget"
    );
    quotes
}

fn cut(text: &str, budget: usize) -> Option<String> {
    if budget < CUT_MIN {
        return None;
    }
    let fits = |end: &usize| *end + '\u{2026}'.len_utf8() <= budget;
    let (end, _) = text
        .char_indices()
        .filter(|(_, letter)| *letter == ' ')
        .take_while(|(at, _)| fits(at))
        .last()?;
    text.get(..end).map(|head| format!("{head}\u{2026}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Document;

    #[test]
    fn quotes_fit_the_budget_and_a_cut_quote_is_still_found() {
        let long = "This sentence is rather long and goes on and on about rather little";
        let document = Document::new(["Short one.", long]);
        let sentences: Vec<&Sentence> = document.sentences().iter().collect();
        let quotes = fit(sentences.clone(), 60);
        assert_eq!(quotes.len(), 2);
        assert!(quotes.iter().map(String::len).sum::<usize>() <= 60);
        assert_eq!(
            quotes
                .last()
                .and_then(|quote| document.find(quote))
                .map(Sentence::text),
            Some(long)
        );
        assert_eq!(fit(sentences.clone(), 20), ["Short one."]);
        assert_eq!(fit(sentences, usize::MAX).len(), 2);
    }

    #[test]
    fn the_budget_is_four_letters_a_token_less_the_frame() {
        assert_eq!(budget(Some(500)), 1760);
        assert_eq!(budget(Some(10)), 0);
        assert_eq!(budget(None), usize::MAX);
    }
}
