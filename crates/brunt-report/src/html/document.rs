//! The frame of a page: what a browser may do with it, its style, its script, and the result that it keeps.
//!
//! Invariant: a page loads nothing and sends nothing: its policy forbids all but its own style and the script of this program. The page of a run
//! that goes on has a second script, which may hear from where the page came from, and from nowhere else.

use super::markup::Markup;
use brunt_picture::{Ink, Theme, write_textures};
use brunt_stats::status::Status;
use std::fmt::Write as _;
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of the script in base64, by which the policy knows it; a test computes it.
const SCRIPT_SHA256: &str = include_str!("script.sha256");

/// The script that follows a run, and its hash.
const LIVE_SCRIPT: &str = include_str!("live.js");
const LIVE_SCRIPT_SHA256: &str = include_str!("live.sha256");
const LIVE_STYLE: &str =
    "#news:not(:empty){border:2px dashed var(--caution);padding:4px 10px}.silent main{opacity:.5}\n";

/// Colours that textures are drawn in.
const TEXTURED: [Ink; 4] = [Ink::Soft, Ink::Caution, Ink::Invalid, Ink::Series(0)];

/// What the colour of a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ok,
    Caution,
    Invalid,
    /// It is no status.
    Neutral,
}

impl Standing {
    pub(crate) const fn of(status: Status) -> Self {
        match status {
            Status::Ok => Self::Ok,
            Status::Caution => Self::Caution,
            Status::Invalid => Self::Invalid,
        }
    }
}

/// The head of a page: what it comes to, and facts by label.
pub(crate) fn header(markup: &mut Markup, standing: Standing, title: &str, facts: &[(String, Vec<String>)]) {
    let class = match standing {
        Standing::Ok => "ok",
        Standing::Caution => "caution",
        Standing::Invalid => "invalid",
        Standing::Neutral => "neutral",
    };
    markup.open("header", &[("class", class)]);
    markup.raw(
        "<p class=\"tool\">brunt result<button type=button id=theme hidden>Dark or light</button></p>\n",
    );
    markup.raw("<h1>");
    markup.prose(title);
    markup.close("h1");
    markup.facts(facts);
    markup.close("header");
}

/// Writes a page around its sections, with a result that it keeps, which may be empty. Printed pages end with `foot`.
///
/// # Errors
/// What `out` returns.
pub(crate) fn write(
    title: &str,
    foot: &str,
    sections: &str,
    result: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let hash = SCRIPT_SHA256.trim();
    open(title, foot, &format!("script-src 'sha256-{hash}'"), "", out)?;
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

/// Writes a page that follows a run: it asks for the events beside it, and its sections become theirs.
///
/// # Errors
/// What `out` returns.
pub(crate) fn write_live(title: &str, sections: &str, out: &mut dyn Write) -> io::Result<()> {
    let hashes = [SCRIPT_SHA256, LIVE_SCRIPT_SHA256].map(str::trim);
    let policy = format!("script-src 'sha256-{}' 'sha256-{}'; connect-src 'self'", hashes[0], hashes[1]);
    open(title, title, &policy, LIVE_STYLE, out)?;
    writeln!(out, "<p id=\"news\" role=\"status\"></p>")?;
    write_textures(&TEXTURED, out)?;
    writeln!(out, "<main>\n{sections}</main>")?;
    writeln!(out, "<script type=\"application/octet-stream\" id=\"result\"></script>")?;
    writeln!(out, "<script>{SCRIPT}</script>\n<script>{LIVE_SCRIPT}</script>\n</body>\n</html>")
}

/// The title and the sections alone, as an event has them.
pub(crate) fn sections(title: &str, sections: &str) -> String {
    format!("<title>brunt: {}</title>\n<main>\n{sections}</main>\n", escaped(title))
}

fn escaped(text: &str) -> String {
    let mut escaped = Markup::default();
    escaped.text(text);
    escaped.into_text()
}

/// Everything up to the body, with what the policy allows beside the style.
fn open(title: &str, foot: &str, policy: &str, style: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         {policy}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>brunt: {}</title>\n<style>\n{}{}{STYLE}{style}</style>\n</head>\n<body>",
        escaped(title),
        colors(),
        footer(foot)
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

// ---- the result inside a page ---------------------------------------------------------------------------------------------

/// The most that zlib compresses: a page is read more often than written.
const COMPRESSION: u8 = 9;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The JSON of a result as a zlib stream in base64, which holds nothing that HTML would read.
pub(crate) fn packed(text: &str) -> String {
    base64(&miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), COMPRESSION))
}

/// RFC 4648, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= group.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
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
                base64(digest.as_ref()),
                "what belongs into {name}.sha256 is on the right"
            );
        }
    }

    #[test]
    fn the_script_and_the_style_stay_in_their_elements() {
        let ends = |script: &str| script.contains("</script") || script.contains("<!--");
        assert!(!ends(SCRIPT) && !ends(LIVE_SCRIPT) && !STYLE.contains("</style"));
    }

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_as_its_standard_has_it() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn what_is_packed_comes_back() {
        let text = "</script> ".repeat(1_000);
        let stream = miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), COMPRESSION);
        assert!(stream.len() < 100, "{}", stream.len());
        let back = miniz_oxide::inflate::decompress_to_vec_zlib(&stream).unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), text);
        assert_eq!(packed(&text), base64(&stream));
    }
}
