//! The frame of a page: what a browser may do with it, its style, its script, and the result that it keeps.
//!
//! Invariant: a page loads nothing and sends nothing: its policy forbids all but its own style and the script of this program. The page of a run
//! that goes on has a second script, which may hear from where the page came from, and from nowhere else.

use super::markup::Markup;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brunt_picture::{Ink, Theme, write_textures};
use brunt_stats::status::Status;
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of the script in base64, by which the policy knows it; a test computes it.
const SCRIPT_SHA256: &str = include_str!("script.sha256");

/// The script that follows a run, and its hash.
const LIVE_SCRIPT: &str = include_str!("live.js");
const LIVE_SCRIPT_SHA256: &str = include_str!("live.sha256");

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
pub(crate) struct Page {
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
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { foot, sections, result, is_live, .. } = self;
        let (script, live) = (SCRIPT_SHA256.trim(), LIVE_SCRIPT_SHA256.trim());
        let live_policy = format!(" 'sha256-{live}'; connect-src 'self'");
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'sha256-{script}'{}; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             {}<style>\n{}{}{STYLE}</style>\n</head>\n<body>",
            if *is_live { &live_policy } else { "" },
            self.title_element(),
            colors(),
            footer(foot)
        )?;
        if *is_live {
            writeln!(out, "<p id=\"news\" role=\"status\"></p>")?;
        }
        write_textures(out)?;
        writeln!(out, "<main>\n{sections}</main>")?;
        writeln!(out, "<script type=\"application/octet-stream\" id=\"result\">{result}</script>")?;
        writeln!(out, "<script>{SCRIPT}</script>")?;
        if *is_live {
            writeln!(out, "<script>{LIVE_SCRIPT}</script>")?;
        }
        writeln!(out, "</body>\n</html>")
    }

    /// The title and the sections alone, as an event has them.
    pub(crate) fn changing_part(&self) -> String {
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

/// The most that zlib compresses: a page is read more often than written.
const COMPRESSION: u8 = 9;

/// The JSON of a result as a zlib stream in base64, which holds nothing that HTML would read.
pub(crate) fn packed(text: &str) -> String {
    STANDARD.encode(miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), COMPRESSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_knows_the_scripts() {
        for (name, script, hash) in
            [("script", SCRIPT, SCRIPT_SHA256), ("live", LIVE_SCRIPT, LIVE_SCRIPT_SHA256)]
        {
            let digest = ring::digest::digest(&ring::digest::SHA256, script.as_bytes());
            assert_eq!(
                hash.trim(),
                STANDARD.encode(digest),
                "what belongs into {name}.sha256 is on the right"
            );
        }
    }

    #[test]
    fn the_script_and_the_style_stay_in_their_elements() {
        let ends = |script: &str| script.contains("</script") || script.contains("<!--");
        assert!(!ends(SCRIPT) && !ends(LIVE_SCRIPT) && !STYLE.contains("</style"));
    }

    #[test]
    fn what_is_packed_comes_back() {
        let text = "</script> ".repeat(1_000);
        let stream = miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), COMPRESSION);
        assert!(stream.len() < 100, "{}", stream.len());
        let back = miniz_oxide::inflate::decompress_to_vec_zlib(&stream).unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), text);
        assert_eq!(packed(&text), STANDARD.encode(&stream));
    }
}
