//! Just enough of Rust's grammar to tell code from comments and strings, tests from product, one function from the next.
//!
//! Not a parser: it yields tokens with their lines, and line ranges found by counting brackets. That is exact for code
//! that compiles, which is all that the rules ask for.

use std::ops::RangeInclusive;

/// A word, a number, a literal (as `""`), or punctuation: single characters, but `->` and `::` whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Counted from 1.
    pub(super) line: usize,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// From the line of `fn` to the line of the last brace.
    pub(super) lines: RangeInclusive<usize>,
}

/// The tokens of a source text, without comments; strings and characters become `""`.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (length, token) = next_token(rest, first);
        if let Some(text) = token {
            tokens.push(Token { text, line });
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The length of what `rest` begins with, and the token it is, if it is one.
fn next_token(rest: &str, first: char) -> (usize, Option<&str>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment_len(rest), None);
    }
    if let Some(length) = literal_len(rest) {
        return (length, Some("\"\""));
    }
    if first == '_' || first.is_alphanumeric() {
        let length = word_len(rest);
        return (length, Some(&rest[..length]));
    }
    if first.is_whitespace() {
        return (first.len_utf8(), None);
    }
    let length = if rest.starts_with("->") || rest.starts_with("::") { 2 } else { first.len_utf8() };
    (length, Some(&rest[..length]))
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
}

/// Block comments nest in Rust.
fn block_comment_len(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let step = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string or character literal that `text` begins with, its prefix (`b`, `c`, `r#`) included.
fn literal_len(text: &str) -> Option<usize> {
    let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|length| *length <= 2)?;
    let (letters, body) = text.split_at(prefix);
    let hashes = body.len() - body.trim_start_matches('#').len();
    if letters.contains('r') && body[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = prefix + hashes + 1;
        return Some(text[inside..].find(&end).map_or(text.len(), |at| inside + at + end.len()));
    }
    match body.as_bytes() {
        [b'"', ..] => Some(prefix + quoted_len(body, b'"')),
        // An apostrophe opens a character if another closes it after one character or an escape; else it is a lifetime.
        [b'\'', b'\\', ..] => Some(prefix + quoted_len(body, b'\'')),
        [b'\'', ..] => {
            let inner = body[1..].chars().next()?.len_utf8();
            body[1 + inner..].starts_with('\'').then_some(prefix + inner + 2)
        }
        _ => None,
    }
}

fn quoted_len(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Do the tokens from `at` on read like this?
pub(super) fn reads(tokens: &[Token<'_>], at: usize, words: &[&str]) -> bool {
    words
        .iter()
        .enumerate()
        .all(|(offset, word)| tokens.get(at + offset).is_some_and(|token| token.text == *word))
}

/// The lines of items under `#[cfg(test)]`.
pub(super) fn test_lines(tokens: &[Token<'_>]) -> Vec<RangeInclusive<usize>> {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    (0..tokens.len())
        .filter(|at| reads(tokens, *at, &ATTRIBUTE))
        .map(|at| tokens[at].line..=tokens[item_end(tokens, at + ATTRIBUTE.len())].line)
        .collect()
}

/// The functions that have a body, nested ones too.
pub(super) fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Function<'a>> {
    let is_name = |at: usize| {
        tokens.get(at).is_some_and(|token| token.text.starts_with(|c: char| c == '_' || c.is_alphabetic()))
    };
    (0..tokens.len())
        .filter(|at| tokens[*at].text == "fn" && is_name(at + 1))
        .map(|at| (at, item_end(tokens, at)))
        .filter(|(_, end)| tokens[*end].text == "}")
        .map(|(at, end)| Function { name: tokens[at + 1].text, lines: tokens[at].line..=tokens[end].line })
        .collect()
}

/// Where the item around `from` ends: at its closing brace, or at a semicolon outside all brackets.
fn item_end(tokens: &[Token<'_>], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth <= 1 => return at,
            "}" => depth -= 1,
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    tokens.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tokens(text: &str, expected: &str) {
        let words: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        check_tokens("a // b\nc", "a c");
        check_tokens("a /* b /* c */ d */ e", "a e");
        check_tokens(r#"f("a \" // b", c)"#, r#"f ( "" , c )"#);
        check_tokens("f(r#\"a \" b\"#, br\"\\\", b\"x\", c\"y\")", r#"f ( "" , "" , "" , "" )"#);
        check_tokens(r"match 'a' { '\'' => b'\\', '}' => 'é' }", r#"match "" { "" = > "" , "" = > "" }"#);
        check_tokens(
            "fn f<'a>(x: &'a str) -> &'a str { x }",
            "fn f < ' a > ( x : & ' a str ) -> & ' a str { x }",
        );
        check_tokens("r#type - crate::b", "r # type - crate :: b");
        check_tokens("br_x - rb - 1_000u64", "br_x - rb - 1_000u64");
    }

    #[test]
    fn tokenizing_ends_on_any_input() {
        for text in ["\"", "'", "/*", "r#\"", "b'", "'\\", "\"\\", "fn", "#[cfg(test)]", "é", ""] {
            let tokens = tokens(text);
            functions(&tokens);
            if !tokens.is_empty() {
                test_lines(&tokens);
            }
        }
    }

    #[test]
    fn functions_and_test_regions_have_their_lines() {
        let text = "\
fn one(a: [u8; 4]) {
    let text = \"}\";
    fn two() {
    }
}
trait T { fn no_body(&self); }
type F = fn(u8);
#[cfg(test)]
mod elsewhere;
#[cfg(test)]
mod tests {
    fn three() {}
}
";
        let tokens = tokens(text);
        let found: Vec<_> = functions(&tokens).into_iter().map(|found| (found.name, found.lines)).collect();
        assert_eq!(found, [("one", 1..=5), ("two", 3..=4), ("three", 12..=12)]);
        assert_eq!(test_lines(&tokens), [8..=9, 10..=13]);
    }
}
