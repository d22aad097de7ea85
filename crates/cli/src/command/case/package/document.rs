//! A document as its parts, before it is written in a format. Texts are as they are; a format makes them harmless.

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    pub(super) title: String,
    /// Facts in a line below the title.
    pub(super) subtitle: String,
    pub(super) sections: Vec<Section>,
}

/// A part with a heading.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    pub(super) title: &'static str,
    /// Whether it is for reference, and folded where the format can.
    pub(super) is_reference: bool,
    pub(super) blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// The sentence that a reader must not miss.
    Key(String),
    /// A sentence.
    Text(String),
    /// A heading within the section.
    Heading(String),
    /// Sentences.
    List(Vec<String>),
    /// Shares of a whole.
    Bars(Vec<Bar>),
    /// Rows under headings.
    Table {
        headings: &'static [&'static str],
        rows: Vec<Vec<String>>,
    },
}

/// A share of a whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) label: String,
    /// 0 to 1.
    pub(super) share: f64,
    pub(super) note: String,
}

impl Section {
    /// A section that everybody reads; `None` where it is empty.
    pub(super) fn new(title: &'static str, blocks: Vec<Block>) -> Option<Self> {
        let is_empty = |block: &Block| match block {
            Block::List(items) => items.is_empty(),
            Block::Bars(bars) => bars.is_empty(),
            Block::Table { rows, .. } => rows.is_empty(),
            Block::Key(_) | Block::Text(_) | Block::Heading(_) => false,
        };
        let blocks: Vec<Block> = blocks.into_iter().filter(|one| !is_empty(one)).collect();
        (!blocks.is_empty()).then_some(Self {
            title,
            is_reference: false,
            blocks,
        })
    }

    /// A section for reference.
    pub(super) fn reference(title: &'static str, blocks: Vec<Block>) -> Option<Self> {
        Self::new(title, blocks).map(|section| Self {
            is_reference: true,
            ..section
        })
    }
}
