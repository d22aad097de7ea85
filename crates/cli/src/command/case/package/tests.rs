use super::document::{Bar, Block, Document, Section};
use super::{Format, html, markdown};

fn hostile() -> Document {
    let text =
        "<script>alert(1)</script> **x** [a](https://evil) | `b` \u{202e}c\n# d www.evil \"e\" 'f'";
    let section = |title, blocks| Section::new(title, blocks);
    let sections = [
        section(
            "One",
            vec![Block::Key(text.into()), Block::Text(text.into())],
        ),
        Section::reference("Two", vec![Block::Heading(text.into())]),
        section("Three", vec![Block::List(vec![text.into()])]),
        section(
            "Four",
            vec![
                Block::Bars(vec![Bar {
                    label: text.into(),
                    share: 0.5,
                    note: text.into(),
                }]),
                Block::Table {
                    headings: &["A", "B"],
                    rows: vec![vec![text.into(), "2".into()]],
                },
            ],
        ),
        section("Empty", vec![Block::List(vec![])]),
    ];
    Document {
        title: text.into(),
        subtitle: text.into(),
        sections: sections.into_iter().flatten().collect(),
    }
}

#[test]
fn nothing_that_others_wrote_runs_or_is_loaded_in_a_browser() {
    let page = html::text(&hostile());
    assert!(page.starts_with("<!doctype html>") && page.contains("default-src 'none'"));
    for bad in [
        "<script", "</script", "<a ", "<img", "src=", "href=", "\u{202e}",
    ] {
        assert!(!page.contains(bad), "{bad}:\n{page}");
    }
    assert!(
        page.contains("&lt;script&gt;") && page.contains("&quot;e&quot;"),
        "{page}"
    );
    assert!(page.contains("<details><summary>Two</summary>") && !page.contains("Empty"));
    assert!(page.contains("width:50%"));
    for tag in ["section", "table", "ul", "details", "div", "p"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn nothing_that_others_wrote_is_markup_in_markdown() {
    let text = markdown::text(&hostile());
    for bad in [
        "<script", "https://", "www.evil", "\n# d", "\u{202e}", "**x**", "[a](", "| `b`",
    ] {
        assert!(!text.contains(bad), "{bad}:\n{text}");
    }
    assert!(
        text.contains("\\*\\*x\\*\\*") && text.contains("`##########..........`"),
        "{text}"
    );
    let row = text.lines().find(|line| line.ends_with("| 2 |")).unwrap();
    assert_eq!(
        row.matches('|').count() - row.matches("\\|").count(),
        3,
        "{row}"
    );
}

#[test]
fn the_format_follows_from_the_ending_of_the_file() {
    for (file, format) in [
        ("a.html", Some(Format::Html)),
        ("b.HTM", Some(Format::Html)),
        ("c.md", Some(Format::Markdown)),
        ("d.json", Some(Format::Json)),
        ("e.txt", None),
        ("f", None),
    ] {
        assert_eq!(Format::of(std::path::Path::new(file)), format, "{file}");
    }
}

#[test]
fn an_ending_that_is_not_known_is_written_only_as_what_is_named() {
    use std::path::Path;
    for (named, file, expected) in [
        (None, None, Some(Format::Markdown)),
        (None, Some("acme"), Some(Format::Markdown)),
        (None, Some("acme.html"), Some(Format::Html)),
        (None, Some("acme.pdf"), None),
        (
            Some(Format::Markdown),
            Some("acme.txt"),
            Some(Format::Markdown),
        ),
    ] {
        let found = super::format(named, file.map(Path::new)).ok();
        assert_eq!(found, expected, "{named:?} {file:?}");
    }
}
