//! A document as one HTML file that loads nothing and runs nothing.

use super::document::{Bar, Block, Document, Section};
use crate::shared::output::one_line;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--key:#1a5fb4}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:1.8rem 0 .4rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1rem 0 .2rem}.sub{opacity:.7;margin:.2rem 0 0}
.key{font-size:1.15rem;font-weight:600;border-left:.3rem solid var(--key);padding:.4rem .8rem;background:var(--soft)}
table{border-collapse:collapse;width:100%;font-size:.92rem}th,td{text-align:left;padding:.3rem .6rem .3rem 0;
border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}th{font-weight:600;white-space:nowrap}
ul{margin:.3rem 0;padding-left:1.2rem}summary{cursor:pointer;font-weight:600;margin:1.8rem 0 .4rem}
.bar{display:grid;grid-template-columns:9rem 1fr 16rem;gap:.8rem;align-items:center;margin:.3rem 0}
.bar>span:first-child{font-weight:600;overflow-wrap:anywhere}.track{background:var(--soft);height:.9rem;border-radius:.2rem}
.fill{background:var(--key);height:100%;border-radius:.2rem}.note{font-size:.9rem;opacity:.8}
@media(max-width:40rem){.bar{grid-template-columns:1fr}}@media print{body{margin:0;max-width:none}}";

/// The document.
pub(super) fn text(document: &Document) -> String {
    let title = escaped(&document.title);
    let sections: String = document.sections.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style></head>\n\
         <body>\n<h1>{title}</h1>\n<p class=\"sub\">{}</p>\n{sections}</body></html>\n",
        escaped(&document.subtitle)
    )
}

fn section(section: &Section) -> String {
    let title = escaped(section.title);
    let blocks: String = section.blocks.iter().map(block).collect();
    match section.is_reference {
        true => format!("<details><summary>{title}</summary>\n{blocks}</details>\n"),
        false => format!("<section><h2>{title}</h2>\n{blocks}</section>\n"),
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Key(text) => format!("<p class=\"key\">{}</p>\n", escaped(text)),
        Block::Text(text) => format!("<p>{}</p>\n", escaped(text)),
        Block::Heading(text) => format!("<h3>{}</h3>\n", escaped(text)),
        Block::List(items) => {
            let items = items
                .iter()
                .map(|item| format!("<li>{}</li>\n", escaped(item)));
            format!("<ul>\n{}</ul>\n", items.collect::<String>())
        }
        Block::Bars(bars) => bars.iter().map(bar).collect(),
        Block::Table { headings, rows } => {
            let headings: String = headings
                .iter()
                .map(|heading| format!("<th>{}</th>", escaped(heading)))
                .collect();
            let rows: String = rows.iter().map(|cells| row(cells)).collect();
            format!("<table><thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n")
        }
    }
}

fn row(cells: &[String]) -> String {
    let cells = cells
        .iter()
        .map(|cell| format!("<td>{}</td>", escaped(cell)));
    format!("<tr>{}</tr>\n", cells.collect::<String>())
}

fn bar(bar: &Bar) -> String {
    let percent = (bar.share.clamp(0.0, 1.0) * 100.0).round();
    format!(
        "<div class=\"bar\"><span>{}</span><div class=\"track\"><div class=\"fill\" style=\"width:{percent}%\"></div></div>\
         <span class=\"note\">{}</span></div>\n",
        escaped(&bar.label),
        escaped(&bar.note)
    )
}

/// A text on one line in which nothing is HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text, usize::MAX).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
