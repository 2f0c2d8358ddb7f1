//! The frame of a page: what a browser may do with it, its style, its script, and the result that it keeps.
//!
//! Invariant: a page loads nothing and sends nothing: its policy forbids all but its own style and the one script of this program.

use super::markup::Markup;
use brunt_picture::{Ink, Theme, write_textures};
use brunt_stats::verdict::Status;
use std::fmt::Write as _;
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of the script in base64, by which the policy knows it; a test computes it.
const SCRIPT_SHA256: &str = include_str!("script.sha256");

/// Colours that textures are drawn in.
const TEXTURED: [Ink; 4] = [Ink::Soft, Ink::Caution, Ink::Distrusted, Ink::Series(0)];

/// What the colour of a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Trusted,
    Caution,
    Distrusted,
    /// It is no verdict.
    Neutral,
}

impl Standing {
    pub(crate) const fn of(status: Status) -> Self {
        match status {
            Status::Trusted => Self::Trusted,
            Status::Caution => Self::Caution,
            Status::NotTrusted => Self::Distrusted,
        }
    }
}

/// The head of a page: what it comes to, and facts by label.
pub(crate) fn header(markup: &mut Markup, standing: Standing, title: &str, facts: &[(String, Vec<String>)]) {
    let class = match standing {
        Standing::Trusted => "trusted",
        Standing::Caution => "caution",
        Standing::Distrusted => "distrusted",
        Standing::Neutral => "neutral",
    };
    markup.open("header", &[("class", class)]);
    markup.raw(
        "<p class=\"tool\">brunt result<button type=button id=theme hidden>Dark or light</button></p>\n",
    );
    markup.element("h1", title);
    markup.facts(facts);
    markup.close("header");
}

/// Writes a page around its sections, with a result that it keeps, which may be empty.
///
/// # Errors
/// What `out` returns.
pub(crate) fn write(title: &str, sections: &str, result: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut escaped = Markup::default();
    escaped.text(title);
    let (plain, title, hash) = (title, escaped.into_text(), SCRIPT_SHA256.trim());
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>brunt: {title}</title>\n<style>\n{}{}{STYLE}</style>\n</head>\n<body>",
        colors(),
        footer(plain)
    )?;
    write_textures(&TEXTURED, out)?;
    writeln!(out, "<main>\n{sections}</main>")?;
    writeln!(out, "<script type=\"application/octet-stream\" id=\"result\">{result}</script>")?;
    writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
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
    let mut style = String::new();
    let variables = |theme| {
        Ink::all().fold(String::new(), |mut text, ink| {
            // Writing to a string does not fail.
            let _ = write!(text, "--{ink}:{};", ink.color(theme));
            text
        })
    };
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    let _ = writeln!(style, ":root{{{light}}}");
    let _ = writeln!(
        style,
        "@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    );
    let _ = writeln!(style, "@media screen{{:root[data-theme=dark]{{{dark}}}}}");
    for ink in Ink::all() {
        let _ = writeln!(style, ".fill-{ink}{{fill:var(--{ink})}}.stroke-{ink}{{stroke:var(--{ink})}}");
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::packed::base64;

    #[test]
    fn the_policy_knows_the_script() {
        let digest = ring::digest::digest(&ring::digest::SHA256, SCRIPT.as_bytes());
        assert_eq!(
            SCRIPT_SHA256.trim(),
            base64(digest.as_ref()),
            "what belongs into script.sha256 is on the right"
        );
    }

    #[test]
    fn the_script_and_the_style_stay_in_their_elements() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
    }
}
