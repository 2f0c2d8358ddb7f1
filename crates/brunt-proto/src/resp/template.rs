//! Command templates: what a user writes as `HSET {key} f {value}`, and the bytes of it.
//!
//! Not a script and not a shell: one command, words split and quoted as redis-cli has it, with places for the key and the
//! value. A template is parsed once; what can be known then is written then, so that encoding copies pieces and puts
//! lengths between them.

use crate::Request;
use crate::out::Out;
use crate::step::LINE_END;
use std::sync::Arc;

/// One command with places for what each op brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// The argument that decides where in a cluster the command goes.
    routed: Option<Box<[Part]>>,
    /// How often the key stands in it.
    key_uses: usize,
    /// The bytes of it all but keys and values, each length at its longest.
    fixed_bytes: usize,
    carries_value: bool,
}

/// What a command consists of on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Bytes that are always the same, heads of arguments among them.
    Text(Box<[u8]>),
    /// The length of the argument that follows: so many bytes of text, and so many keys and values.
    Length {
        text_bytes: usize,
        keys: usize,
        values: usize,
    },
    Key,
    Value,
}

/// What an argument consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Key,
    Value,
}

/// What may stand in braces.
const PLACEHOLDERS: [(&[u8], Part); 2] = [(b"key", Part::Key), (b"value", Part::Value)];

/// For messages.
const ACCEPTED: &str = "accepted: {key} and {value}; a plain brace is written \\{ in double quotes";

/// Commands after which a connection no longer gives one reply for one request.
const UNANSWERED: [&str; 7] = ["subscribe", "psubscribe", "ssubscribe", "monitor", "quit", "sync", "psync"];

/// The longest decimal of a length.
const LENGTH_BYTES_MAX: usize = "18446744073709551615".len();

impl Template {
    /// Parses what a user wrote.
    ///
    /// # Errors
    /// With what was given and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let arguments = arguments(text)?;
        let Some((command, _)) = arguments.split_first() else {
            return Err(
                "a command template is empty; accepted: a command such as HSET {key} f {value}".to_owned()
            );
        };
        let [Part::Text(name)] = &command[..] else {
            return Err(format!(
                "'{text}' begins with a placeholder or with nothing; it must begin with a command"
            ));
        };
        let name = String::from_utf8_lossy(name);
        if UNANSWERED.iter().any(|word| word.eq_ignore_ascii_case(&name)) || is_reply_switch(&arguments) {
            return Err(format!(
                "'{text}': after {name} a connection does not answer each request once, so it cannot be measured; \
                 accepted: commands with one reply"
            ));
        }
        let count = |wanted: &Part| arguments.iter().flatten().filter(|part| *part == wanted).count();
        let (key_uses, values) = (count(&Part::Key), count(&Part::Value));
        if values > 1 {
            return Err(format!("'{text}' has {{value}} {values} times; accepted: once, or not at all"));
        }
        let pieces = pieces(&arguments);
        let fixed = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Length { .. } => LENGTH_BYTES_MAX,
            Piece::Key | Piece::Value => 0,
        });
        let is_routed = |parts: &&Vec<Part>| parts.contains(&Part::Key) && !parts.contains(&Part::Value);
        Ok(Self {
            key_uses,
            fixed_bytes: fixed.sum(),
            carries_value: values == 1,
            routed: arguments.iter().find(is_routed).map(|parts| parts.clone().into_boxed_slice()),
            pieces: pieces.into_boxed_slice(),
        })
    }

    /// Does an op bring a value along?
    pub fn carries_value(&self) -> bool {
        self.carries_value
    }

    /// Does an op bring a key along?
    pub fn has_key(&self) -> bool {
        self.key_uses > 0
    }

    /// Appends the argument that decides where in a cluster the command goes: the first with the key in it. False if
    /// there is none.
    pub fn write_routed(&self, key: &[u8], to: &mut Vec<u8>) -> bool {
        for part in self.routed.iter().flatten() {
            match part {
                Part::Text(text) => to.extend_from_slice(text),
                Part::Key => to.extend_from_slice(key),
                Part::Value => {}
            }
        }
        self.routed.is_some()
    }

    /// Appends one request.
    fn encode(&self, request: &Request<'_>, out: &mut Out) {
        let (key, value) = (request.keys.first(), &request.value);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.put(text),
                Piece::Length { text_bytes, keys, values } => {
                    out.put_decimal((text_bytes + keys * key.len() + values * value.total_len()) as u64);
                }
                Piece::Key => out.put(key),
                Piece::Value => out.put_value(value),
            }
        }
    }
}

/// All templates of a plan, shared by its connections.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    list: Arc<[Template]>,
    /// Of all of them the longest, as in [`Template`].
    fixed_bytes: usize,
    key_uses: usize,
}

impl Templates {
    /// In the order that an op's `template` counts them in.
    pub fn new(list: Vec<Template>) -> Self {
        Self {
            fixed_bytes: list.iter().map(|template| template.fixed_bytes).max().unwrap_or(0),
            key_uses: list.iter().map(|template| template.key_uses).max().unwrap_or(0),
            list: list.into(),
        }
    }

    /// The templates in order.
    pub fn iter(&self) -> impl Iterator<Item = &Template> {
        self.list.iter()
    }

    /// An upper bound on a request with this many key bytes, its value aside.
    #[inline]
    pub(super) fn encoded_len_max(&self, key_bytes: usize) -> usize {
        self.fixed_bytes + self.key_uses * key_bytes
    }

    /// Appends one request.
    ///
    /// # Panics
    /// If there is no such template.
    pub(super) fn encode(&self, request: &Request<'_>, out: &mut Out) {
        self.list[usize::from(request.template)].encode(request, out);
    }
}

/// `CLIENT REPLY`, which switches replies off.
fn is_reply_switch(arguments: &[Vec<Part>]) -> bool {
    let is = |at: usize, word: &str| matches!(arguments.get(at).map(Vec::as_slice), Some([Part::Text(text)]) if text.eq_ignore_ascii_case(word.as_bytes()));
    is(0, "client") && is(1, "reply")
}

/// The bytes of a command, those that are always the same put together.
fn pieces(arguments: &[Vec<Part>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = format!("*{}\r\n", arguments.len()).into_bytes();
    let flush = |text: &mut Vec<u8>, pieces: &mut Vec<Piece>, piece: Piece| {
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(text).into_boxed_slice()));
        }
        pieces.push(piece);
    };
    for parts in arguments {
        let count = |wanted: &Part| parts.iter().filter(|part| *part == wanted).count();
        let (keys, values) = (count(&Part::Key), count(&Part::Value));
        let texts = parts.iter().map(|part| if let Part::Text(text) = part { text.len() } else { 0 });
        let text_bytes: usize = texts.sum();
        text.push(b'$');
        if keys + values == 0 {
            text.extend_from_slice(text_bytes.to_string().as_bytes());
        } else {
            flush(&mut text, &mut pieces, Piece::Length { text_bytes, keys, values });
        }
        text.extend_from_slice(LINE_END);
        for part in parts {
            match part {
                Part::Text(own) => text.extend_from_slice(own),
                Part::Key => flush(&mut text, &mut pieces, Piece::Key),
                Part::Value => flush(&mut text, &mut pieces, Piece::Value),
            }
        }
        text.extend_from_slice(LINE_END);
    }
    pieces.push(Piece::Text(text.into_boxed_slice()));
    pieces
}

/// A byte of an argument, and whether it was escaped: such a brace opens no placeholder.
type Letter = (u8, bool);

/// Splits a command into arguments, and those into parts.
fn arguments(text: &str) -> Result<Vec<Vec<Part>>, String> {
    let mut rest = text.as_bytes();
    let mut arguments = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(arguments);
        }
        let (letters, used) = argument(rest)
            .map_err(|what| format!("'{text}', at '{}': {what}", String::from_utf8_lossy(rest)))?;
        arguments.push(parts(&letters)?);
        rest = &rest[used..];
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
                        Err("a closing quote is not followed by a blank; accepted: quotes around whole words")
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

/// What stands in the quotes at the front, and how long it is with them.
fn quoted(text: &[u8], letters: &mut Vec<Letter>) -> Result<usize, &'static str> {
    let quote = text[0];
    let mut at = 1;
    loop {
        match &text[at..] {
            [] => return Err("a quote is not closed; accepted: 'TEXT' or \"TEXT\""),
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
        let Some((_, part)) = PLACEHOLDERS.iter().find(|(name, _)| *name == word) else {
            return Err(format!("'{{{}}}' is no placeholder; {ACCEPTED}", String::from_utf8_lossy(&word)));
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part.clone());
        rest = &rest[word.len() + 2..];
    }
    if !text.is_empty() || parts.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// The word in the braces at the front, if that is what stands there.
fn placeholder(letters: &[Letter]) -> Option<Vec<u8>> {
    let ((b'{', false), rest) = letters.split_first()? else { return None };
    let end = rest.iter().position(|letter| !matches!(letter, (b'a'..=b'z' | b'0'..=b'9' | b'_', false)))?;
    (end > 0 && rest[end] == (b'}', false)).then(|| rest[..end].iter().map(|(byte, _)| *byte).collect())
}

#[cfg(test)]
mod tests;
