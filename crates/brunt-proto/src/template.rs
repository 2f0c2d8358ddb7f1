//! Command templates: what a user writes as `HSET {key} f {value}`, and the bytes of it in each protocol that has them.
//!
//! One command each: words are split and quoted as redis-cli does it, with placeholders for the key and the value of an operation. A
//! template is parsed once; bytes that are always the same are written then, so that encoding copies pieces and puts lengths
//! between them.

mod piece;
mod thrift;
mod word;

use crate::Request;
use crate::out::Out;
use crate::step::LINE_END;
use crate::template::piece::PieceBuilder;
use brunt_plan::plan::Protocol;
use piece::Piece;
pub(crate) use piece::{INLINE_KEY_FACTOR, INLINE_VALUE_BYTES_MAX, put_quoted};
use std::sync::Arc;
use word::{Part, Word};

/// One command with places for key, value, random text and numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// The argument whose hash slot decides which cluster node gets the command.
    routing_key: Option<Box<[Part]>>,
    /// Number of places of the key, in the inline protocol times the growth by escapes.
    key_uses: usize,
    /// Bytes without keys and values, with each length at its longest.
    fixed_bytes: usize,
    is_answered: bool,
}

/// Redis's commands after which a connection no longer gives one reply for one request.
const UNANSWERED_BY_REDIS: [&str; 7] =
    ["subscribe", "psubscribe", "ssubscribe", "monitor", "quit", "sync", "psync"];

/// memcached's commands that have no reply of the classic text protocol, or many.
const UNANSWERED_BY_MEMCACHED: [&str; 8] = ["watch", "lru_crawler", "mg", "ms", "md", "ma", "me", "mn"];

/// What ends a message of the echo protocol behind its payload: four bytes of CRC-32 and a line end.
pub(crate) const ECHO_TAIL_BYTES: usize = 4 + LINE_END.len();

impl Template {
    /// Parses what a user wrote.
    ///
    /// # Errors
    /// With what was given and what is accepted.
    pub fn parse(protocol: Protocol, text: &str) -> Result<Self, String> {
        let words = word::words(text)?;
        let Some(first) = words.first() else {
            return Err("empty command: expected a command, e.g. HSET {key} f {value}".to_owned());
        };
        let name = first.text();
        if protocol != Protocol::Echo && name.is_none_or(<[u8]>::is_empty) {
            return Err(format!(
                "'{text}' begins with a placeholder or with nothing; it must begin with a command"
            ));
        }
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        check_answered(protocol, text, &name, &words)?;
        let count = |wanted: &Part| words.iter().map(|word| word.count(wanted)).sum::<usize>();
        let (key_uses, values, lengths) = (count(&Part::Key), count(&Part::Value), count(&Part::Length));
        if values > 1 {
            return Err(format!("'{text}' has {{value}} {values} times: expected once, or not at all"));
        }
        if lengths > 0 && protocol != Protocol::MemcachedText {
            return Err(format!("'{text}': only --protocol memcached-text has {{bytes}}"));
        }
        if protocol != Protocol::Thrift && count(&Part::Random(0)) > 0 {
            return Err(format!(
                "'{text}': {{random}} has a length, such as {{random:8}} for 8 letters and digits"
            ));
        }
        let pieces = match protocol {
            Protocol::Resp2 | Protocol::Resp3 => resp(&words),
            Protocol::RespInline => inline(&words),
            Protocol::MemcachedText => memcached_text(text, &words, lengths > 0)?,
            Protocol::Echo => echo(&words),
            Protocol::Ping if words.len() == 1 && name == "PING" => vec![Piece::text(b"PING\r\n")],
            Protocol::Ping => return Err(format!("'{text}' was given; --protocol ping accepts PING")),
            Protocol::Thrift => thrift::call(text, &words)?,
            Protocol::MemcachedMeta | Protocol::MemcachedBinary => {
                return Err(format!("--protocol {protocol} has no commands of this form"));
            }
        };
        let line = if lengths > 0 { &words[..words.len() - 1] } else { &words[..] };
        let is_quiet = || line.last().and_then(Word::text) == Some(b"noreply") || name == "quit";
        let is_known = |part: &Part| matches!(part, Part::Key | Part::Text(_));
        let has_known_key = |word: &&Word| word.count(&Part::Key) > 0 && word.parts.iter().all(is_known);
        Ok(Self {
            key_uses: if protocol == Protocol::RespInline {
                piece::ESCAPED_BYTES * key_uses
            } else {
                key_uses
            },
            fixed_bytes: pieces.iter().map(Piece::fixed_bytes).sum(),
            is_answered: protocol != Protocol::MemcachedText || !is_quiet(),
            routing_key: words.iter().find(has_known_key).map(|word| word.parts.clone().into_boxed_slice()),
            pieces: pieces.into_boxed_slice(),
        })
    }

    /// Placeholder in the list for a command of another protocol of the same plan; no operation refers to it.
    pub fn unused() -> Self {
        Self { is_answered: true, ..Self::default() }
    }

    /// Appends the argument whose hash slot decides which cluster node gets the command: the first with the key in it. False if
    /// there is none.
    pub fn write_routing_key(&self, key: &[u8], to: &mut Vec<u8>) -> bool {
        for part in self.routing_key.iter().flatten() {
            match part {
                Part::Text(text) => to.extend_from_slice(text),
                Part::Key => to.extend_from_slice(key),
                Part::Value | Part::Length | Part::Random(_) | Part::Number(_) => {}
            }
        }
        self.routing_key.is_some()
    }
}

/// All templates of a plan, shared by its connections.
#[derive(Debug, Default)]
pub struct Templates {
    list: Arc<[Template]>,
    /// The largest of all templates, as `key_uses` below; see [`Template`].
    fixed_bytes: usize,
    key_uses: usize,
}

impl Clone for Templates {
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), ..*self }
    }

    /// A connection that is reset keeps its templates: then the reference count stays untouched.
    fn clone_from(&mut self, source: &Self) {
        if !Arc::ptr_eq(&self.list, &source.list) {
            self.list = source.list.clone();
        }
        (self.fixed_bytes, self.key_uses) = (source.fixed_bytes, source.key_uses);
    }
}

impl Templates {
    /// In order: the `command` of a request is the number of a template, from 1.
    pub fn new(list: Vec<Template>) -> Self {
        Self {
            fixed_bytes: list.iter().map(|template| template.fixed_bytes).max().unwrap_or(0),
            key_uses: list.iter().map(|template| template.key_uses).max().unwrap_or(0),
            list: list.into(),
        }
    }

    /// The templates with at least this bound on encoded requests.
    pub(crate) fn with_bound(self, fixed_bytes: usize, key_uses: usize) -> Self {
        let (fixed_bytes, key_uses) = (self.fixed_bytes.max(fixed_bytes), self.key_uses.max(key_uses));
        Self { fixed_bytes, key_uses, ..self }
    }

    /// An upper bound on a request with this many key bytes, its value aside.
    #[inline]
    pub(crate) fn encoded_len_max(&self, key_bytes: usize) -> usize {
        self.fixed_bytes + self.key_uses * key_bytes
    }

    fn template(&self, request: &Request<'_>) -> &Template {
        &self.list[usize::from(request.command) - 1]
    }

    /// Appends one request. True: there will be a reply.
    ///
    /// # Panics
    /// If there is no such template.
    pub(crate) fn encode(&self, request: &Request<'_>, out: &mut Out) -> bool {
        let template = self.template(request);
        template.pieces.iter().for_each(|piece| piece.put(request, out));
        template.is_answered
    }

    /// The CRC-32 of what a template makes of a request, and how long that is.
    pub(crate) fn checksum(&self, request: &Request<'_>) -> (u32, usize) {
        let template = self.template(request);
        let (mut hasher, mut len) = (crc32fast::Hasher::new(), 0);
        let mut take = |bytes: &[u8]| {
            hasher.update(bytes);
            len += bytes.len();
        };
        template.pieces.iter().for_each(|piece| piece.visit(request, &mut take));
        (hasher.finalize(), len)
    }
}

/// Refuses commands that do not have one reply each.
fn check_answered(protocol: Protocol, text: &str, name: &str, words: &[Word]) -> Result<(), String> {
    let is_one_of = |list: &[&str]| list.iter().any(|word| word.eq_ignore_ascii_case(name));
    let is_unanswered = match protocol {
        Protocol::Resp2 | Protocol::Resp3 | Protocol::RespInline => {
            is_one_of(&UNANSWERED_BY_REDIS) || is_reply_switch(words)
        }
        Protocol::MemcachedText => is_one_of(&UNANSWERED_BY_MEMCACHED),
        _ => false,
    };
    if !is_unanswered {
        return Ok(());
    }
    Err(match protocol {
        Protocol::MemcachedText => format!(
            "'{text}': {name} has no reply of the classic text protocol, or several, so it cannot be measured: expected \
             commands with one reply"
        ),
        _ => format!(
            "'{text}': after {name} a connection does not answer each request once, so it cannot be measured: \
             expected commands with one reply"
        ),
    })
}

/// `CLIENT REPLY`, which switches replies off.
fn is_reply_switch(words: &[Word]) -> bool {
    let first = words.iter().take(2).map(|word| word.text().unwrap_or_default().to_ascii_lowercase());
    first.eq([&b"client"[..], b"reply"])
}

/// An array of bulk strings.
fn resp(words: &[Word]) -> Vec<Piece> {
    let mut pieces = PieceBuilder::default();
    pieces.text(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        pieces.text(b"$");
        pieces.length(pieces_of(word), false);
        pieces.text(LINE_END);
        pieces.word(word, &[]);
        pieces.text(LINE_END);
    }
    pieces.end()
}

/// A line of words that Redis splits.
fn inline(words: &[Word]) -> Vec<Piece> {
    let mut pieces = PieceBuilder::default();
    for (index, word) in words.iter().enumerate() {
        pieces.text(if index == 0 { b"" } else { b" " });
        match word.text() {
            Some(text) => piece::quoted(text, &mut pieces.text),
            None => pieces.quoted(word),
        }
    }
    pieces.text(LINE_END);
    pieces.end()
}

/// A line, and a data block where the line holds its length.
fn memcached_text(text: &str, words: &[Word], has_data: bool) -> Result<Vec<Piece>, String> {
    let (line, data) = match words.split_last() {
        Some((data, line)) if has_data => (line, Some(data)),
        _ => (words, None),
    };
    let breaks = |part: &Part| matches!(part, Part::Text(text) if text.iter().any(|byte| matches!(byte, b'\r' | b'\n')));
    let has_value = line.iter().any(|word| word.count(&Part::Value) > 0);
    let has_length = data.is_some_and(|data| data.count(&Part::Length) > 0);
    if has_value || has_length || line.iter().flat_map(|word| &word.parts).any(breaks) {
        return Err(format!(
            "'{text}': expected one line; with {{bytes}} in it, its last word is the data block, such as \
             cas {{key}} 0 0 {{bytes}} 7 {{value}}"
        ));
    }
    let mut pieces = PieceBuilder::default();
    let data_pieces = data.map(pieces_of).unwrap_or_default();
    for (index, word) in line.iter().enumerate() {
        pieces.text(if index == 0 { b"" } else { b" " });
        pieces.word(word, &data_pieces);
    }
    pieces.text(LINE_END);
    if let Some(data) = data {
        pieces.word(data, &[]);
        pieces.text(LINE_END);
    }
    Ok(pieces.end())
}

/// The pieces of a word by itself.
fn pieces_of(word: &Word) -> Vec<Piece> {
    let mut pieces = PieceBuilder::default();
    pieces.word(word, &[]);
    pieces.end()
}

/// A payload; the codec appends the checksum, which it must know to check the reply.
fn echo(words: &[Word]) -> Vec<Piece> {
    let mut pieces = PieceBuilder::default();
    for (index, word) in words.iter().enumerate() {
        pieces.text(if index == 0 { b"" } else { b" " });
        pieces.word(word, &[]);
    }
    pieces.end()
}

#[cfg(test)]
mod tests;
