//! Quotes cut to the room an answer has.

use crate::text::Sentence;

/// Letters in a token, roughly; the limit is a budget and not an exact count.
const LETTERS_PER_TOKEN: usize = 4;
/// What the field names and brackets of an answer take.
const FRAME: usize = 240;
/// The shortest cut quote worth sending.
const SHORTEST: usize = 40;
/// The most quotes in an answer.
const MOST: usize = 6;

/// The letters an answer may use for its texts under a limit of `max_tokens`.
#[must_use]
pub fn room(max_tokens: Option<usize>) -> usize {
    max_tokens.map_or(usize::MAX, |tokens| {
        tokens
            .saturating_mul(LETTERS_PER_TOKEN)
            .saturating_sub(FRAME)
    })
}

/// The first of `sentences`, each once, as many as fit into `room` letters; the last one is cut at
/// a word and ends in an ellipsis if only a part of it fits.
#[must_use]
pub fn fit(sentences: Vec<&Sentence>, room: usize) -> Vec<String> {
    let mut left = room;
    let mut quotes: Vec<String> = Vec::new();
    for sentence in sentences {
        if quotes.len() == MOST || quotes.iter().any(|quote| quote == sentence.text()) {
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
    quotes
}

fn cut(text: &str, room: usize) -> Option<String> {
    if room < SHORTEST {
        return None;
    }
    let fits = |end: &usize| *end + '\u{2026}'.len_utf8() <= room;
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
    fn quotes_fit_the_room_and_a_cut_quote_is_still_found() {
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
    fn the_room_is_four_letters_a_token_less_the_frame() {
        assert_eq!(room(Some(500)), 1760);
        assert_eq!(room(Some(10)), 0);
        assert_eq!(room(None), usize::MAX);
    }
}
