//! HTML as it is put together: brunt's own elements, blocks of documents, and texts from users and servers, which are escaped.
//!
//! Invariant: what is not a constant of this program reaches the page only as escaped text, as the escaped value of an attribute, or as a
//! picture, which escapes its own texts.

use crate::document::{Content, Document, Level, assertion_grid};
use crate::grid::Grid;
use crate::text::printable;
use brunt_picture::{Picture, write_svg_part};

/// HTML so far.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    text: String,
}

impl Markup {
    /// Markup of this program.
    pub(crate) fn raw(&mut self, markup: &'static str) {
        self.text.push_str(markup);
    }

    /// Text of one line: control characters are written out.
    pub(crate) fn text(&mut self, text: &str) {
        escape(&printable(text), &mut self.text);
    }

    /// Text in which no line is broken within an option.
    pub(crate) fn prose(&mut self, text: &str) {
        for (index, word) in text.split(' ').enumerate() {
            self.raw(if index > 0 { " " } else { "" });
            let is_option = word.starts_with("--");
            self.raw(if is_option { "<span class=option>" } else { "" });
            self.text(word);
            self.raw(if is_option { "</span>" } else { "" });
        }
    }

    /// Text of several lines.
    pub(crate) fn lines(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            self.text(line);
            self.text.push_str(end);
        }
    }

    /// Begins an element with attributes.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[(&'static str, &str)]) {
        self.text.extend(["<", name]);
        for (key, value) in attributes {
            self.text.extend([" ", key, "=\""]);
            self.text(value);
            self.text.push('"');
        }
        self.text.push('>');
    }

    /// Ends it.
    pub(crate) fn close(&mut self, name: &'static str) {
        self.text.extend(["</", name, ">\n"]);
    }

    /// An element that holds a text.
    pub(crate) fn element(&mut self, name: &'static str, text: &str) {
        self.open(name, &[]);
        self.text(text);
        self.close(name);
    }

    /// A chart.
    pub(crate) fn picture(&mut self, picture: &Picture) {
        let mut svg = Vec::new();
        // Memory takes everything, and a picture is text.
        let _ = write_svg_part(picture, &mut svg);
        self.text.push_str(&String::from_utf8_lossy(&svg));
    }

    /// A table; the first cell of each row names it, and leads to the part of the page called `LINKS-1`, `LINKS-2`... by row, if there are
    /// such. Where there is no row, there is no table.
    pub(crate) fn grid(&mut self, caption: &str, grid: &Grid, links: Option<&str>) {
        if grid.is_empty() {
            return;
        }
        self.raw("<div class=\"wide\"><table>");
        self.element("caption", caption);
        self.raw("<thead><tr>");
        self.headings(grid);
        self.raw("<tbody>\n");
        for (number, row) in (1..).zip(grid.rows()) {
            // No end tags: HTML ends cells and rows where the next begins, and tables are long.
            self.raw("<tr>");
            for (index, (cell, (_, is_words))) in row.zip(grid.headings()).enumerate() {
                self.raw(match (index, is_words) {
                    (0, _) => "<th scope=row>",
                    (_, false) => "<td>",
                    (_, true) => "<td class=words>",
                });
                if let Some(links) = links.filter(|_| index == 0) {
                    self.open("a", &[("href", &format!("#{links}-{number}"))]);
                    self.text(cell);
                    self.raw("</a>");
                } else {
                    self.text(cell);
                }
            }
            self.raw("\n");
        }
        self.raw("</table></div>\n");
    }

    /// The cells of a table's first row.
    pub(crate) fn headings(&mut self, grid: &Grid) {
        for (heading, is_words) in grid.headings() {
            self.open("th", &[("scope", "col"), ("class", if is_words { "words" } else { "number" })]);
            self.text(heading);
        }
    }

    /// A list of facts by label.
    pub(crate) fn facts(&mut self, rows: &[(String, Vec<String>)]) {
        self.raw("<dl>\n");
        for (label, facts) in rows.iter().filter(|(_, facts)| !facts.is_empty()) {
            self.element("dt", label);
            self.raw("<dd>");
            for (index, fact) in facts.iter().enumerate() {
                self.raw(if index > 0 { " · <span>" } else { "<span>" });
                self.text(fact);
                self.raw("</span>");
            }
            self.raw("</dd>\n");
        }
        self.raw("</dl>\n");
    }

    /// All blocks of a document but its charts, which a page draws itself.
    pub(crate) fn document(&mut self, document: &Document) {
        for group in document.groups(Level::Long) {
            match group[0] {
                Content::Gap | Content::Chart { .. } => {}
                Content::Heading(name) => self.element("h3", name),
                Content::Facts { .. } | Content::Sentence { .. } => {
                    let facts: Vec<_> = group.iter().filter_map(|content| content.labelled()).collect();
                    self.facts(&facts);
                }
                Content::Advice { .. } => self.advice(&group),
                Content::Assertion(_) => self.grid("Assertions", &assertion_grid(&group), None),
                Content::Status { text, .. } => self.element("p", text),
                // The first heading names it.
                Content::Table(grid) => {
                    let caption = grid.headings().next().map_or("", |(heading, _)| heading);
                    self.grid(caption, grid, None);
                }
                Content::Verbatim(text) => {
                    self.raw("<pre>");
                    self.lines(text);
                    self.raw("</pre>\n");
                }
            }
        }
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

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Column;
    use crate::layout::Style;

    #[test]
    fn texts_are_escaped_wherever_they_stand() {
        let hostile = "</script><img src=x onerror=\"alert('1')\">&\u{1b}[2J\u{202e}";
        let escaped =
            "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;\\u{1b}[2J\\u{202e}";
        let mut markup = Markup::default();
        markup.element("p", hostile);
        markup.open("p", &[("title", hostile)]);
        markup.lines(&format!("{hostile}\n{hostile}"));
        let expected = format!("<p>{escaped}</p>\n<p title=\"{escaped}\">{escaped}\n{escaped}");
        assert_eq!(markup.into_text(), expected);
        let mut markup = Markup::default();
        markup.prose("at least 4 a side: --repeat 6 <b>");
        let expected = "at least 4 a side: <span class=option>--repeat</span> 6 &lt;b&gt;";
        assert_eq!(markup.into_text(), expected);
        let mut markup = Markup::default();
        let mut grid = Grid::new(Column::all_of_words([hostile]));
        grid.push_texts([hostile.to_owned()], Style::Plain);
        markup.grid(hostile, &grid, None);
        markup.facts(&[(hostile.to_owned(), vec![hostile.to_owned()])]);
        let text = markup.into_text();
        assert!(!text.contains("<img") && !text.contains("</script"), "{text}");
        assert_eq!(text.matches(escaped).count(), 5);
    }
}
