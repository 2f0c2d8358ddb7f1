//! The words that a user writes, split and quoted as redis-cli does it, and the placeholders in them.
//!
//! Words are the same in every protocol; `template.rs` turns them into bytes. Invariant: a word has at least one part.

use crate::Request;
use crate::template::random_field::Number;

/// What a word consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(Vec<u8>),
    Key,
    Value,
    /// The length of a data block.
    Length,
    /// Letters and digits drawn for each operation; 0: as many bytes as a number of Thrift takes.
    Random(u32),
    /// A whole number, drawn for each operation.
    Number(Number),
}

impl Part {
    fn number(&self) -> Option<Number> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub parts: Vec<Part>,
}

impl Word {
    /// The whole word, if it has no placeholder.
    pub(super) fn text(&self) -> Option<&[u8]> {
        if let [Part::Text(text)] = &self.parts[..] { Some(text) } else { None }
    }

    /// The text before its first placeholder.
    pub(super) fn head(&self) -> &[u8] {
        if let Some(Part::Text(text)) = self.parts.first() { text } else { b"" }
    }

    /// Number of parts equal to this one.
    pub(super) fn count(&self, wanted: &Part) -> usize {
        self.parts.iter().filter(|part| *part == wanted).count()
    }

    /// Its length on the wire, as far as it is fixed, and what adds to it.
    pub(super) fn extent(&self) -> Extent {
        let of = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Random(len) => *len as usize,
            Part::Key | Part::Value | Part::Length | Part::Number(_) => 0,
        };
        Extent {
            bytes: self.parts.iter().map(of).sum(),
            keys: self.count(&Part::Key),
            values: self.count(&Part::Value),
            numbers: self.parts.iter().filter_map(Part::number).collect(),
        }
    }
}

/// What may be in braces, beside `{random:N}` and `{rand:MIN,MAX}`.
const PLACEHOLDERS: [(&[u8], Part); 4] =
    [(b"key", Part::Key), (b"value", Part::Value), (b"bytes", Part::Length), (b"random", Part::Random(0))];

/// The placeholders that error messages name.
const ACCEPTED: &str = "expected {key}, {value}, {random:N} for N letters and digits, {rand:MIN,MAX} for a whole number, and in \
                        memcached-text {bytes}; a plain brace is written \\{ in double quotes";

/// What other tools' commands have in the place of our placeholders.
const FOREIGN_PLACEHOLDERS: [(&str, &str); 3] =
    [("__key__", "{key}"), ("__data__", "{value}"), ("__rand_", "{rand:MIN,MAX}, such as {rand:0,99999}")];

/// The most letters of one random field.
const RANDOM_BYTES_MAX: u32 = 1 << 20;

/// A byte of an argument, and whether it was escaped: such a brace opens no placeholder.
type Letter = (u8, bool);

/// Splits a command into words, and each word into parts.
pub(super) fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut rest = text.as_bytes();
    let (mut words, mut numbers) = (Vec::new(), 0);
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(words);
        }
        let (letters, used) = argument(rest)
            .map_err(|what| format!("'{text}', at '{}': {what}", String::from_utf8_lossy(rest)))?;
        reject_foreign_placeholders(text, &letters)?;
        let mut parts = parts(&letters)?;
        for part in &mut parts {
            if let Part::Number(number) = part {
                *number = number.at(numbers);
                numbers += 1;
            }
        }
        words.push(Word { parts });
        rest = &rest[used..];
    }
}

/// Refuses other tools' placeholders, which would be sent as they are. An escaped underscore is meant so.
fn reject_foreign_placeholders(text: &str, letters: &[Letter]) -> Result<(), String> {
    let is_at = |at: &[Letter], theirs: &str| at.iter().copied().eq(theirs.bytes().map(|byte| (byte, false)));
    let holds = |theirs: &str| letters.windows(theirs.len()).any(|at| is_at(at, theirs));
    match FOREIGN_PLACEHOLDERS.iter().find(|(theirs, _)| holds(theirs)) {
        Some((theirs, ours)) => {
            let named = if theirs.ends_with("__") { theirs } else { "__rand_int__" };
            Err(format!("'{text}': {named} is a placeholder of other tools; ours is {ours}"))
        }
        None => Ok(()),
    }
}

/// The argument at the front, as redis-cli reads it: quotes may begin anywhere in it, and end it. Also how much of the
/// text it is.
fn argument(text: &[u8]) -> Result<(Vec<Letter>, usize), &'static str> {
    let mut letters = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' | b'\'' => {
                at += quoted(&text[at..], &mut letters)?;
                return match text.get(at) {
                    Some(behind) if !behind.is_ascii_whitespace() => {
                        Err("a closing quote is not followed by a blank: expected quotes around whole words")
                    }
                    _ => Ok((letters, at)),
                };
            }
            _ if byte.is_ascii_whitespace() => break,
            _ => letters.push((byte, false)),
        }
        at += 1;
    }
    Ok((letters, at))
}

/// What is in the quotes at the front, and how long it is with them.
fn quoted(text: &[u8], letters: &mut Vec<Letter>) -> Result<usize, &'static str> {
    let quote = text[0];
    let mut at = 1;
    loop {
        match &text[at..] {
            [] => return Err("a quote is not closed: expected 'TEXT' or \"TEXT\""),
            [byte, ..] if *byte == quote => return Ok(at + 1),
            [b'\\', rest @ ..] if quote == b'"' && !rest.is_empty() => {
                let (byte, used) = escape(rest);
                letters.push((byte, true));
                at += 1 + used;
            }
            [b'\\', b'\'', ..] if quote == b'\'' => {
                letters.push((b'\'', true));
                at += 2;
            }
            [byte, ..] => {
                letters.push((*byte, false));
                at += 1;
            }
        }
    }
}

/// The byte that stands for what is behind a backslash in double quotes, and how much that is.
fn escape(text: &[u8]) -> (u8, usize) {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    if let (b'x', Some(high), Some(low)) = (text[0], digit(1), digit(2)) {
        return ((high * 16 + low) as u8, 3);
    }
    let byte = match text[0] {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        byte => byte,
    };
    (byte, 1)
}

/// Finds the placeholders: a word in braces. Anything else in braces is text.
fn parts(letters: &[Letter]) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = letters;
    while let Some(((byte, _), behind)) = rest.split_first() {
        let Some(word) = placeholder(rest) else {
            text.push(*byte);
            rest = behind;
            continue;
        };
        let part = part(&word).ok_or_else(|| {
            format!("'{{{}}}' is no placeholder: {ACCEPTED}", String::from_utf8_lossy(&word))
        })?;
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
        rest = &rest[word.len() + 2..];
    }
    if !text.is_empty() || parts.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// What a word in braces stands for.
fn part(word: &[u8]) -> Option<Part> {
    if let Some(len) = word.strip_prefix(RANDOM) {
        let len = std::str::from_utf8(len).ok()?.parse().ok()?;
        return (1..=RANDOM_BYTES_MAX).contains(&len).then_some(Part::Random(len));
    }
    if let Some(range) = word.strip_prefix(NUMBER) {
        return Number::parse(std::str::from_utf8(range).ok()?).map(Part::Number);
    }
    PLACEHOLDERS.iter().find(|(name, _)| *name == word).map(|(_, part)| part.clone())
}

/// How `{random:N}` and `{rand:MIN,MAX}` begin: the only placeholders with a colon, which is in braces of other texts, too.
const RANDOM: &[u8] = b"random:";
const NUMBER: &[u8] = b"rand:";

/// The word in the braces at the front, if that is what is there.
fn placeholder(letters: &[Letter]) -> Option<Vec<u8>> {
    let ((b'{', false), rest) = letters.split_first()? else { return None };
    let end = rest.iter().position(|letter| {
        !matches!(letter, (b'a'..=b'z' | b'0'..=b'9' | b'_' | b':' | b',' | b'-', false))
    })?;
    let word: Vec<u8> = rest[..end].iter().map(|(byte, _)| *byte).collect();
    let is_plain = !word.iter().any(|byte| b":,-".contains(byte));
    let is_named = is_plain || word.starts_with(RANDOM) || word.starts_with(NUMBER);
    (end > 0 && is_named && rest[end] == (b'}', false)).then_some(word)
}

/// A length: bytes, keys, values and decimals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub bytes: usize,
    pub keys: usize,
    pub values: usize,
    /// Numbers in decimal.
    pub numbers: Vec<Number>,
}

impl Extent {
    /// Its length, where that is always the same.
    pub(super) fn fixed(&self) -> Option<usize> {
        (self.keys + self.values + self.numbers.len() == 0).then_some(self.bytes)
    }

    pub(super) fn plus(mut self, other: Self) -> Self {
        self.numbers.extend(other.numbers);
        Self {
            bytes: self.bytes + other.bytes,
            keys: self.keys + other.keys,
            values: self.values + other.values,
            numbers: self.numbers,
        }
    }

    /// Length in bytes for a request.
    pub(super) fn encoded_len(&self, request: &Request<'_>) -> usize {
        let of_numbers: usize = self.numbers.iter().map(|number| number.len(request.operand)).sum();
        of_numbers
            + self.bytes
            + self.keys * request.keys.first().len()
            + self.values * request.value.total_len()
    }
}
