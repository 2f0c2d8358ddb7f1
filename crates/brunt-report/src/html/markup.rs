//! HTML as it is put together: brunt's own elements, and texts from users and servers, which are escaped.
//!
//! Invariant: what is not a constant of this program reaches the page only as escaped text, as the escaped value of an attribute, or as a
//! picture, which escapes its own texts.

use crate::paragraph::printable;
use brunt_picture::{Picture, write_svg_part};

/// HTML so far.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    text: String,
}

/// The heading of a column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heading<'a> {
    /// Above numbers.
    Number(&'a str),
    /// Above words.
    Words(&'a str),
    /// Above words that lead to parts of the page: by row, from 1, `NAME-1`, `NAME-2`...
    Links(&'a str, &'static str),
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

    /// A table; the first cell of each row names it. Where there is no row, there is no table.
    pub(crate) fn table(&mut self, caption: &str, headings: &[Heading<'_>], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        self.raw("<div class=\"wide\"><table>");
        self.element("caption", caption);
        self.raw("<thead><tr>");
        for heading in headings {
            let (class, text) = match heading {
                Heading::Number(text) => ("number", text),
                Heading::Words(text) | Heading::Links(text, _) => ("words", text),
            };
            self.open("th", &[("scope", "col"), ("class", class)]);
            self.text(text);
        }
        self.raw("<tbody>\n");
        for (number, row) in (1..).zip(rows) {
            // No end tags: HTML ends cells and rows where the next begins, and tables are long.
            self.raw("<tr>");
            for (index, (cell, heading)) in row.iter().zip(headings).enumerate() {
                self.raw(match (index, heading) {
                    (0, _) => "<th scope=row>",
                    (_, Heading::Number(_)) => "<td>",
                    (_, Heading::Words(_) | Heading::Links(..)) => "<td class=words>",
                });
                if let Heading::Links(_, name) = heading {
                    self.open("a", &[("href", &format!("#{name}-{number}"))]);
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
        markup.table(hostile, &[Heading::Words(hostile)], &[vec![hostile.to_owned()]]);
        markup.facts(&[(hostile.to_owned(), vec![hostile.to_owned()])]);
        let text = markup.into_text();
        assert!(!text.contains("<img") && !text.contains("</script"), "{text}");
        assert_eq!(text.matches(escaped).count(), 5);
    }
}
