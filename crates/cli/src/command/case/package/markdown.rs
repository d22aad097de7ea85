//! A document as Markdown (CommonMark, with tables).

use super::document::{Bar, Block, Document};
use crate::shared::output::one_line;

/// As many characters as a whole bar has.
const BAR: u8 = 20;

/// The document.
pub(super) fn text(document: &Document) -> String {
    let mut out = format!(
        "# {}\n\n{}\n",
        escaped(&document.title),
        escaped(&document.subtitle)
    );
    for section in &document.sections {
        out.push_str(&format!("\n## {}\n", section.title));
        for one in &section.blocks {
            out.push('\n');
            out.push_str(&block(one));
        }
    }
    out
}

fn block(block: &Block) -> String {
    match block {
        Block::Key(text) => format!("**{}**\n", escaped(text)),
        Block::Text(text) => format!("{}\n", escaped(text)),
        Block::Heading(text) => format!("### {}\n", escaped(text)),
        Block::List(items) => items
            .iter()
            .map(|item| format!("- {}\n", escaped(item)))
            .collect(),
        Block::Bars(bars) => bars.iter().map(bar).collect(),
        Block::Table { headings, rows } => {
            let rule = "---|".repeat(headings.len());
            let rows: String = rows.iter().map(|cells| row(cells)).collect();
            format!("| {} |\n|{rule}\n{rows}", headings.join(" | "))
        }
    }
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn bar(bar: &Bar) -> String {
    let places = (0..BAR).map(|place| f64::from(2 * place + 1) / f64::from(2 * BAR));
    let drawn: String = places
        .map(|place| if place < bar.share { '#' } else { '.' })
        .collect();
    format!(
        "- `{drawn}` {} {}\n",
        escaped(&bar.label),
        escaped(&bar.note)
    )
}

/// A text on one line in which nothing is Markdown or HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text, usize::MAX).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    // A name of the web would become a link by itself.
    out.replace("://", ":&#47;&#47;")
        .replace("www.", "www&#46;")
}
