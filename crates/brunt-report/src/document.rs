//! A report as data: blocks from top to bottom, which every medium writes in its own way.
//!
//! A block has a level, the length of the report that first has it, and a rank: where a short report has too many lines, blocks of the
//! highest rank are left out first, those of rank 0 never. Invariant: a block that has nothing to say is not there.

use crate::assertion_text::{self, AssertionText};
use crate::grid::{Column, Grid, Rows};
use crate::layout::BarScale;
use crate::layout::Style;

/// How long a report is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// About twenty lines.
    #[default]
    Short,
    /// All that is known.
    Long,
}

/// One block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    level: Level,
    rank: u8,
    pub(crate) content: Content,
}

/// What a block says.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// The name of the part that begins.
    Heading(&'static str),
    /// Space between two blocks.
    Gap,
    /// Facts beside a label.
    Facts { label: String, facts: Vec<String> },
    /// A sentence beside a label of this style.
    Sentence { label: String, text: String, style: Style },
    /// What the subject comes to: a sentence, which may begin with a word of this style and a colon.
    Status { text: String, style: Style },
    /// What became of an assertion.
    Assertion(AssertionText),
    /// A sentence by the name of its check; those that are left out are counted.
    Advice { name: &'static str, text: String },
    /// A table.
    Table(Grid),
    /// Times one after another as bars.
    Chart { label: String, times_ns: Vec<Option<u64>>, scale: BarScale },
    /// Lines as they are.
    Verbatim(String),
}

impl Content {
    /// Facts by label, where it is such.
    pub(crate) fn labelled(&self) -> Option<(String, Vec<String>)> {
        match self {
            Self::Facts { label, facts } => Some((label.clone(), facts.clone())),
            Self::Sentence { label, text, .. } => Some((label.clone(), vec![text.clone()])),
            _ => None,
        }
    }
}

/// Assertions as a table.
pub(crate) fn assertion_grid(contents: &[&Content]) -> Grid {
    let texts = contents.iter().filter_map(|content| match content {
        Content::Assertion(text) => Some(text),
        _ => None,
    });
    Rows::of(texts, |_| Style::Plain)
        .texts(Column::of_words("assertion", 0), |text| text.subject.clone())
        .texts(Column::of_words("finding", 0), |text| text.finding.clone())
        .texts(Column::of_words("outcome", 0), |text| text.word())
        .grid(None)
}

/// Blocks from top to bottom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    blocks: Vec<Block>,
    /// Of the blocks that follow.
    level: Level,
    /// Pieces of advice that were left out.
    pub(crate) left_out: usize,
}

impl Document {
    /// The document that this writes.
    pub(crate) fn of(write: impl FnOnce(&mut Self)) -> Self {
        let mut document = Self::default();
        write(&mut document);
        document
    }

    /// Sets the level of the blocks that follow.
    pub(crate) fn begin(&mut self, level: Level) {
        self.level = level;
    }

    /// Adds a block, unless it is empty.
    pub(crate) fn push(&mut self, rank: u8, content: Content) {
        let is_empty = match &content {
            Content::Facts { facts, .. } => facts.iter().all(String::is_empty),
            Content::Table(grid) => grid.is_empty(),
            _ => false,
        };
        if !is_empty {
            self.blocks.push(Block { level: self.level, rank, content });
        }
    }

    pub(crate) fn heading(&mut self, name: &'static str) {
        self.push(0, Content::Gap);
        self.push(0, Content::Heading(name));
    }

    pub(crate) fn gap(&mut self) {
        self.push(0, Content::Gap);
    }

    pub(crate) fn facts(&mut self, label: impl Into<String>, facts: Vec<String>) {
        self.push(0, Content::Facts { label: label.into(), facts });
    }

    pub(crate) fn table(&mut self, grid: Grid) {
        self.push(0, Content::Table(grid));
    }

    /// What was asserted, what fails first. None is ever left out.
    pub(crate) fn assertions(&mut self, texts: impl Iterator<Item = AssertionText>) {
        self.gap();
        assertion_text::sorted(texts).into_iter().for_each(|text| self.push(0, Content::Assertion(text)));
    }

    /// What a report of this length has. A heading that nothing follows is not there.
    pub(crate) fn contents(&self, level: Level) -> impl Iterator<Item = &Content> {
        let held: Vec<&Content> =
            self.blocks.iter().filter(|block| block.level <= level).map(|block| &block.content).collect();
        let is_divider = |content: &Content| matches!(content, Content::Gap | Content::Heading(_));
        let keeps: Vec<bool> = (0..held.len())
            .map(|index| {
                let next = held[index + 1..].iter().find(|content| !matches!(content, Content::Gap));
                !matches!(held[index], Content::Heading(_)) || next.is_some_and(|next| !is_divider(next))
            })
            .collect();
        held.into_iter().zip(keeps).filter(|(_, keeps)| *keeps).map(|(content, _)| content)
    }

    /// The same in groups of one kind, each of which a page or Markdown writes as a list or a table.
    pub(crate) fn groups(&self, level: Level) -> Vec<Vec<&Content>> {
        use Content::{Advice, Assertion, Facts, Sentence};
        let is_of_one_group = |one: &&Content, other: &&Content| {
            let is_labelled = |content: &Content| matches!(content, Facts { .. } | Sentence { .. });
            is_labelled(one) && is_labelled(other)
                || matches!((one, other), (Advice { .. }, Advice { .. }) | (Assertion(_), Assertion(_)))
        };
        let contents: Vec<&Content> = self.contents(level).collect();
        contents.chunk_by(is_of_one_group).map(<[&Content]>::to_vec).collect()
    }

    pub(crate) fn is_empty(&self, level: Level) -> bool {
        self.contents(level).all(|content| matches!(content, Content::Gap))
    }

    /// Leaves out one block of the highest rank, of several the last.
    pub(crate) fn leave_one_out(&mut self) -> bool {
        let ranked = (0..self.blocks.len()).filter(|index| self.blocks[*index].rank > 0);
        let Some(index) = ranked.max_by_key(|index| self.blocks[*index].rank) else { return false };
        let block = self.blocks.remove(index);
        self.left_out += usize::from(matches!(block.content, Content::Advice { .. }));
        true
    }
}
