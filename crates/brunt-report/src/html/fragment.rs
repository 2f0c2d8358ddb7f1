//! Blocks of a document as a part of a page.
//!
//! Invariant: what the document says is text, whatever is in it.

use super::markup::{Heading, Markup};
use crate::document::{Content, Document, Level};
use crate::grid::Grid;

impl Markup {
    /// All blocks of a document but its charts, which a page draws itself.
    pub(crate) fn document(&mut self, document: &Document) {
        let contents: Vec<&Content> = document.contents(Level::Long).collect();
        let both = |one: &&Content, other: &&Content, is: fn(&Content) -> bool| is(one) && is(other);
        let is_alike = |one: &&Content, other: &&Content| {
            both(one, other, |content| matches!(content, Content::Facts { .. } | Content::Sentence { .. }))
                || both(one, other, |content| matches!(content, Content::Advice { .. }))
        };
        for group in contents.chunk_by(is_alike) {
            match group[0] {
                Content::Gap | Content::Chart { .. } => {}
                Content::Heading(name) => self.element("h3", name),
                Content::Facts { .. } | Content::Sentence { .. } => {
                    self.facts(&group.iter().filter_map(|content| labelled(content)).collect::<Vec<_>>());
                }
                Content::Advice { .. } => self.advice(group),
                Content::Status { word, text, .. } => self.element("p", &format!("{word}: {text}")),
                Content::Table(grid) => self.grid(grid),
                Content::Verbatim(text) => {
                    self.raw("<pre>");
                    self.lines(text);
                    self.raw("</pre>\n");
                }
            }
        }
    }

    /// A table, whose first heading names it.
    fn grid(&mut self, grid: &Grid) {
        let headings = grid.headings();
        let caption = headings.first().map_or("", |(text, _)| text.as_str());
        let typed: Vec<Heading<'_>> = headings
            .iter()
            .map(|(text, is_words)| if *is_words { Heading::Words(text) } else { Heading::Number(text) })
            .collect();
        self.table(caption, &typed, &grid.texts());
    }

    fn advice(&mut self, contents: &[&Content]) {
        self.raw("<ul class=\"findings\">\n");
        for content in contents {
            let Content::Advice { name, text } = content else { continue };
            self.raw("<li><b>");
            self.text(name);
            self.raw("</b> ");
            let (found, fix) = text.split_once(" -> ").unwrap_or((text, ""));
            self.text(found);
            if !fix.is_empty() {
                self.raw(" <span class=\"fix\">→ ");
                self.text(fix);
                self.raw("</span>");
            }
            self.close("li");
        }
        self.raw("</ul>\n");
    }
}

fn labelled(content: &Content) -> Option<(String, Vec<String>)> {
    match content {
        Content::Facts { label, facts } => Some((label.clone(), facts.clone())),
        Content::Sentence { label, text, .. } => Some((label.clone(), vec![text.clone()])),
        _ => None,
    }
}
