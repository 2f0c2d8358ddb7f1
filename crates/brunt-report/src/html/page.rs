//! A page: HTML as it is put together from brunt's own elements, blocks of documents, and texts from users and servers; and its frame, which
//! says what a browser may do with it, with style, script, and the result that it keeps.
//!
//! Invariants: what is not a constant of this program reaches the page only as escaped text, as the escaped value of an attribute, or as a
//! picture, which escapes its own texts. A page loads nothing and sends nothing: its policy forbids all but its own style and script. That of a
//! run that goes on may hear from where it came from, and from nowhere else.

use crate::document::{Content, Document, Level, assertion_grid};
use crate::grid::Grid;
use crate::json;
use crate::text::printable;
use brunt_picture::{Escaped, Ink, Picture, Theme, svg_part, textures};
use brunt_stats::status::Status;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of the script in base64, by which the policy knows it; a test computes it.
const SCRIPT_SHA256: &str = include_str!("script.sha256");

/// The head of a page: what it comes to, in the colour of a status, if it is one, and facts by label.
pub(crate) fn header(
    markup: &mut Markup,
    status: Option<Status>,
    title: &str,
    facts: &[(String, Vec<String>)],
) {
    let class = status.map_or("neutral".to_owned(), |status| status.name().to_ascii_lowercase());
    markup.open("header", &[("class", &class)]);
    markup.raw(
        "<p class=\"tool\">brunt result<button type=button id=theme hidden>Dark or light</button></p>\n",
    );
    markup.raw("<h1>");
    markup.prose(title);
    markup.close("h1");
    markup.facts(facts);
    markup.close("header");
}

/// A page around its sections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub(crate) title: String,
    /// At the end of each printed page.
    pub(crate) foot: String,
    pub(crate) sections: String,
    /// The result that it keeps, packed; may be empty.
    pub(crate) result: String,
    /// Does it follow a run: does it ask for the events beside it, and become theirs?
    pub(crate) is_live: bool,
}

impl Page {
    /// Writes it.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { foot, sections, result, is_live, .. } = self;
        let (script, connect) = (SCRIPT_SHA256.trim(), if *is_live { "; connect-src 'self'" } else { "" });
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'sha256-{script}'{connect}; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             {}<style>\n{}{}{STYLE}</style>\n</head>\n<body>",
            self.title_element(),
            colors(),
            footer(foot)
        )?;
        if *is_live {
            writeln!(out, "<p id=\"news\" role=\"status\"></p>")?;
        }
        writeln!(out, "{}<main>\n{sections}</main>", textures())?;
        writeln!(out, "<script type=\"application/octet-stream\" id=\"result\">{result}</script>")?;
        writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
    }

    /// The title and the sections alone, as an event has them.
    pub fn changing_part(&self) -> String {
        format!("{}<main>\n{}</main>\n", self.title_element(), self.sections)
    }

    fn title_element(&self) -> String {
        let mut escaped = Markup::default();
        escaped.element("title", &format!("brunt: {}", self.title));
        escaped.into_text()
    }
}

/// The foot of each printed page: what the page comes to, and its number. A style has no escapes that HTML knows: only characters that mean
/// nothing to either are taken over.
fn footer(title: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || " .,:;+-/%()±·≤=".contains(character);
    let text: String = title.chars().filter(|character| is_plain(*character)).collect();
    format!(
        "@page{{margin:14mm 12mm 18mm;@bottom-left{{content:\"{text}\";font:8pt sans-serif;width:80%}}\
         @bottom-right{{content:counter(page) \" of \" counter(pages);font:8pt sans-serif}}}}\n"
    )
}

/// The colours of both themes, and the classes that pictures refer to them by. What a reader chose has precedence over what the browser prefers.
fn colors() -> String {
    let variables =
        |theme| Ink::all().map(|ink| format!("--{ink}:{};", ink.color(theme))).collect::<String>();
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    let class = |ink| format!(".fill-{ink}{{fill:var(--{ink})}}.stroke-{ink}{{stroke:var(--{ink})}}\n");
    format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n{}",
        Ink::all().map(class).collect::<String>()
    )
}

// ---- the result inside a page ---------------------------------------------------------------------------------------------

/// A result of more bytes, which one of a thousand servers or a comparison of many runs has, is not kept in its page.
const RESULT_BYTES_MAX: usize = 80_000;

/// The result packed for its page; empty where it is too long.
pub(crate) fn packed(result: &impl Serialize) -> serde_json::Result<String> {
    let packed = json::packed(result)?;
    Ok(if packed.len() > RESULT_BYTES_MAX { String::new() } else { packed })
}

// ---- HTML --------------------------------------------------------------------------------------------------------------

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
        // Writing to a string does not fail.
        let _ = write!(self.text, "{}", Escaped(&printable(text)));
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
        self.text.push_str(&svg_part(picture));
    }

    /// A part of the page with a heading.
    pub(crate) fn section(&mut self, id: &'static str, heading: &'static str, write: impl FnOnce(&mut Self)) {
        self.open("section", &[("id", id)]);
        self.raw("\n");
        self.element("h2", heading);
        write(self);
        self.close("section");
    }

    /// A table; the first cell of each row names it, and leads to the part of the page called `LINKS-1`, `LINKS-2`... by row, if there are
    /// such. Where there is no row, there is no table.
    pub(crate) fn grid(&mut self, caption: &str, grid: &Grid, links: Option<&str>) {
        if grid.is_empty() {
            return;
        }
        self.raw("<div class=\"wide\"><table>");
        self.element("caption", caption);
        self.rows(grid, |markup, row, index, cell, is_words| {
            if index > 0 {
                markup.raw(if is_words { "<td class=words>" } else { "<td>" });
                return markup.text(cell);
            }
            markup.raw("<tr><th scope=row>");
            match links {
                None => markup.text(cell),
                Some(links) => {
                    markup.open("a", &[("href", &format!("#{links}-{}", row + 1))]);
                    markup.text(cell);
                    markup.raw("</a>");
                }
            }
        });
        self.raw("</table></div>\n");
    }

    /// The rows of a table: its headings, and its cells as they are written by row and column, with whether the column is of words.
    pub(crate) fn rows(&mut self, grid: &Grid, mut write: impl FnMut(&mut Self, usize, usize, &str, bool)) {
        self.raw("<thead><tr>");
        for (heading, is_words) in grid.headings() {
            self.open("th", &[("scope", "col"), ("class", if is_words { "words" } else { "number" })]);
            self.text(heading);
        }
        self.raw("<tbody>\n");
        // No end tags: HTML ends cells and rows where the next begins, and tables are long.
        for (row, cells) in grid.rows().enumerate() {
            for (index, (cell, (_, is_words))) in cells.zip(grid.headings()).enumerate() {
                write(self, row, index, cell, is_words);
            }
            self.raw("\n");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Column;
    use crate::layout::Style;
    use base64::Engine as _;

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

    #[test]
    fn the_policy_knows_the_script() {
        let digest = ring::digest::digest(&ring::digest::SHA256, SCRIPT.as_bytes());
        assert_eq!(
            SCRIPT_SHA256.trim(),
            base64::engine::general_purpose::STANDARD.encode(digest),
            "what belongs into script.sha256 is on the right"
        );
    }

    #[test]
    fn the_script_and_the_style_stay_in_their_elements() {
        let ends = |script: &str| script.contains("</script") || script.contains("<!--");
        assert!(!ends(SCRIPT) && !STYLE.contains("</style"));
    }

    #[test]
    fn what_is_packed_comes_back() {
        let text = "</script> ".repeat(1_000);
        let packed = packed(&text).unwrap();
        assert!(packed.len() < 150, "{}", packed.len());
        assert_eq!(json::unpacked(&packed), Ok(text.into()));
    }
}
