//! Printing: text with colours on a terminal, tables, JSON.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

use anstyle::{AnsiColor, Effects, Style};
pub use concord_domain::text::{command_word, one_line};
use concord_domain::text::{is_deceptive, visible_json};
use concord_wire::Timestamp;
use serde::Serialize;

use crate::shared::failure::Failure;

/// Ordinary text.
pub const PLAIN: Style = Style::new();
/// Headings and results: bold.
pub const STRONG: Style = Style::new().effects(Effects::BOLD);
/// Details of less interest: dimmed.
pub const FAINT: Style = Style::new().effects(Effects::DIMMED);
/// A good state: green.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A state that needs attention: yellow.
pub const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
/// A bad state: red.
pub const BAD: Style = AnsiColor::Red.on_default();
/// The ids of cases, debates, agents and the like: cyan.
pub const NAMED: Style = AnsiColor::Cyan.on_default();

/// The word "error": bold red.
pub const ERROR: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// A text in a style. Printing removes the style where the output is no terminal or `NO_COLOR` is set.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The styles that a text may have.
const STYLES: [Style; 7] = [STRONG, FAINT, GOOD, DOUBTFUL, BAD, NAMED, ERROR];

/// The text without anything that a terminal would obey or not show, but for line breaks and the styles of this module. A view
/// gives what others wrote to [`one_line`]; this is for what it forgets.
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    'next: while let Some(c) = rest.chars().next() {
        if c == '\u{1b}' {
            let ours = STYLES.iter().flat_map(|style| {
                let style = *style;
                [format!("{style}"), format!("{style:#}")]
            });
            for code in ours.filter(|code| !code.is_empty()) {
                if let Some(after) = rest.strip_prefix(code.as_str()) {
                    clean.push_str(&code);
                    rest = after;
                    continue 'next;
                }
            }
        }
        clean.push(if c != '\n' && is_deceptive(c) { ' ' } else { c });
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    clean
}

/// Prints a text on standard error, without what a terminal would obey or not show.
pub fn complain(text: &str) {
    anstream::eprintln!("{}", harmless(text));
}

/// Prints a text in one piece, without what a terminal would obey or not show. When the reader of the output has closed it, the failure has exit code 0 and no message.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&harmless(text))
}

/// Writes a text as it is, for formats that programs read.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::closed(),
        _ => Failure::failed(format!("the output cannot be written: {error}")),
    })
}

/// Prints one JSON document, indented.
pub fn json(value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    let text =
        text.map_err(|error| Failure::failed(format!("the output cannot be written: {error}")))?;
    write(&(visible_json(&text) + "\n"))
}

/// Prints one JSON document on one line.
pub fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    let text =
        text.map_err(|error| Failure::failed(format!("the output cannot be written: {error}")))?;
    write(&(visible_json(&text) + "\n"))
}

/// One cell of a table.
pub struct Cell {
    text: String,
    style: Style,
    right: bool,
}

impl Cell {
    /// A cell with a text; what is not seen and line breaks are shown as spaces.
    pub fn text(text: impl std::fmt::Display) -> Self {
        let text = one_line(&text.to_string(), usize::MAX);
        Self {
            text,
            style: PLAIN,
            right: false,
        }
    }

    /// A number, aligned to the right.
    pub fn number(number: impl std::fmt::Display) -> Self {
        Self {
            right: true,
            ..Self::text(number)
        }
    }

    /// The same cell in a style.
    pub fn with(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// Rows under headings, in aligned columns.
pub struct Table<const COLUMNS: usize> {
    headings: [&'static str; COLUMNS],
    rows: Vec<[Cell; COLUMNS]>,
    indent: &'static str,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table with these headings and no rows.
    pub fn new(headings: [&'static str; COLUMNS]) -> Self {
        Self {
            headings,
            rows: Vec::new(),
            indent: "",
        }
    }

    /// Every line begins with this.
    pub fn indented(self, indent: &'static str) -> Self {
        Self { indent, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [Cell; COLUMNS]) {
        self.rows.push(cells);
    }
}

impl<const COLUMNS: usize> std::fmt::Display for Table<COLUMNS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut widths = self.headings.map(width);
        for row in &self.rows {
            for (known, cell) in widths.iter_mut().zip(row) {
                *known = (*known).max(width(&cell.text));
            }
        }
        let right = |column: usize| {
            self.rows
                .first()
                .and_then(|row| row.get(column))
                .is_some_and(|cell| cell.right)
        };
        let headings = self
            .headings
            .iter()
            .enumerate()
            .map(|(column, text)| (*text, FAINT, right(column)));
        line(f, self.indent, headings.zip(widths))?;
        for row in &self.rows {
            let cells = row
                .iter()
                .map(|cell| (cell.text.as_str(), cell.style, cell.right));
            line(f, self.indent, cells.zip(widths))?;
        }
        Ok(())
    }
}

type Part<'a> = ((&'a str, Style, bool), usize);

fn line<'a>(
    f: &mut std::fmt::Formatter<'_>,
    indent: &str,
    parts: impl Iterator<Item = Part<'a>>,
) -> std::fmt::Result {
    let mut text = String::new();
    // Spaces are written before the next cell only, so that no line ends with them.
    let mut gap = 0;
    for ((cell, style, right), column) in parts {
        let padding = column.saturating_sub(width(cell));
        let before = gap + if right { padding } else { 0 };
        if !cell.is_empty() {
            write!(text, "{:before$}{style}{cell}{style:#}", "")?;
            gap = 0;
        } else {
            gap = before;
        }
        gap += 2 + if right { 0 } else { padding };
    }
    writeln!(f, "{indent}{text}")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A span of time with two or three digits and one unit, for example "1.5 s" or "12 min".
pub fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("{millis} ms"),
        1..=9 => format!("{seconds}.{} s", millis % 1_000 / 100),
        10..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The time since `at`, as a span.
pub fn ago(at: Timestamp) -> String {
    span(concord_runtime::service::clock::now().millis_since(at))
}

/// "1 case", "2 cases", "2 processes".
pub fn count(number: impl Into<u64>, thing: &str) -> String {
    let plural = if thing.ends_with('s') { "es" } else { "s" };
    match number.into() {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}{plural}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_no_line_ends_with_a_space() {
        let mut table = Table::new(["CASE", "N", "TITLE"]);
        table.row([Cell::text("c-1"), Cell::number(7), Cell::text("Lease")]);
        table.row([Cell::text("c-1000"), Cell::number(1_200), Cell::text("")]);
        table.row([Cell::text("c-2"), Cell::number(3), Cell::text("two\nlines")]);
        let text = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(
            text,
            "CASE       N  TITLE\nc-1        7  Lease\nc-1000  1200\nc-2        3  two lines\n"
        );
    }

    #[test]
    fn a_terminal_obeys_nothing_but_our_own_styles() {
        let ours = format!("{} and {}\n", styled(GOOD, "fine"), styled(STRONG, "bold"));
        assert_eq!(harmless(&ours), ours);
        let theirs = "a\u{1b}[8mhidden\u{1b}]0;title\u{7}\u{202e}x\u{200b}y\u{9b}2J\r\n";
        assert_eq!(harmless(theirs), "a [8mhidden ]0;title  x y 2J \n");
    }

    #[test]
    fn spans_are_readable() {
        let spans = [
            (5, "5 ms"),
            (1_250, "1.2 s"),
            (90_000, "90 s"),
            (600_000, "10 min"),
            (90_000_000, "25 h"),
        ];
        for (millis, text) in spans {
            assert_eq!(span(millis), text);
        }
    }
}
