//! What a command consists of on the wire: pieces that are copied, and places for the key and value of an operation between them.
//!
//! Random fields are functions of the operation's own number, so the same operation has the same bytes whenever it is
//! written. Nothing here allocates.

use crate::out::Out;
use crate::template::word::{Number, Part, Word};
use crate::{KEY_BYTES_MAX, Request};
use brunt_plan::split_mix::output;

/// The longest decimal of a length.
const LENGTH_BYTES_MAX: usize = "18446744073709551615".len();

/// An inline command copies its value, so that must be shorter than values that are referenced. Redis bounds the whole line at
/// 64 KiB, and every byte may need four.
pub(crate) const INLINE_VALUE_BYTES_MAX: usize = brunt_plan::plan::INLINE_VALUE_BYTES_MAX as usize;
const _: () = assert!(INLINE_VALUE_BYTES_MAX < Out::REFERENCE_FROM);

/// A piece of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Bytes that are always the same, heads of arguments among them.
    Text(Box<[u8]>),
    /// The length of something that follows: in decimal, or in four bytes, the highest first.
    Length {
        of: Vec<Piece>,
        is_binary: bool,
    },
    Key,
    Value,
    /// Bytes drawn for each operation, from this place of its draws on.
    Random {
        len: u32,
        draw: RandomField,
        from: u64,
    },
    /// A whole number, drawn for each operation, in decimal.
    Number(Number),
    /// A word of an inline command, quoted if key or value need it.
    Quoted(Vec<Piece>),
}

impl Piece {
    pub(super) fn text(text: &[u8]) -> Self {
        Self::Text(text.into())
    }

    /// The bytes of it all but keys and values, at most.
    pub(super) fn fixed_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Length { .. } => LENGTH_BYTES_MAX,
            Self::Key | Self::Value => 0,
            Self::Random { len, .. } => *len as usize,
            Self::Number(_) => Number::BYTES_MAX,
            Self::Quoted(pieces) => {
                let of = |piece: &Self| match piece {
                    Self::Text(text) => ESCAPED_BYTES * text.len(),
                    // Beyond the value itself, which the caller counts.
                    Self::Value => (ESCAPED_BYTES - 1) * INLINE_VALUE_BYTES_MAX,
                    other => other.fixed_bytes(),
                };
                pieces.iter().map(of).sum::<usize>() + 2
            }
        }
    }

    /// How many bytes it has, where these are always as many.
    fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.len()),
            Self::Length { is_binary: true, .. } => Some(size_of::<u32>()),
            Self::Random { len, .. } => Some(*len as usize),
            Self::Length { is_binary: false, .. }
            | Self::Key
            | Self::Value
            | Self::Number(_)
            | Self::Quoted(_) => None,
        }
    }

    /// How many bytes it has in a request.
    fn len(&self, request: &Request<'_>) -> usize {
        match self {
            Self::Key => request.keys.first().len(),
            Self::Value => request.value.total_len(),
            Self::Number(number) => number.len(request.operand),
            other => other.fixed_len().expect("no length counts a decimal length, nor an inline command"),
        }
    }

    /// Appends it.
    pub(super) fn put(&self, request: &Request<'_>, out: &mut Out) {
        match self {
            Self::Text(text) => out.put(text),
            Self::Length { of, is_binary } => {
                let len: usize = of.iter().map(|piece| piece.len(request)).sum();
                match is_binary {
                    false => out.put_decimal(len as u64),
                    true => out.put(&(len as u32).to_be_bytes()),
                }
            }
            Self::Key => out.put(request.keys.first()),
            Self::Value => out.put_value(&request.value),
            Self::Random { len, draw, from } => {
                draw.write(request.operand, *from, out.grow(*len as usize));
            }
            Self::Number(number) => {
                out.put(number.decimal(request.operand, &mut [0; Number::BYTES_MAX]));
            }
            Self::Quoted(pieces) => {
                put_quoted(out, |take| pieces.iter().for_each(|piece| piece.visit(request, take)));
            }
        }
    }

    /// Shows its bytes, in order.
    pub(super) fn visit(&self, request: &Request<'_>, take: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Text(text) => take(text),
            Self::Key => take(request.keys.first()),
            Self::Value => visit_value(request, take),
            Self::Random { len, draw: _, from } => visit_letters(*len, *from, request, take),
            Self::Number(number) => take(number.decimal(request.operand, &mut [0; Number::BYTES_MAX])),
            Self::Length { .. } | Self::Quoted(_) => {
                unreachable!("a payload has neither lengths nor quotes, and nor has a quoted word")
            }
        }
    }
}

fn visit_value(request: &Request<'_>, take: &mut dyn FnMut(&[u8])) {
    let value = &request.value;
    take(value.head);
    take(&value.block[value.offset..value.offset + value.len]);
}

fn visit_letters(len: u32, from: u64, request: &Request<'_>, take: &mut dyn FnMut(&[u8])) {
    let mut room = [0; 64];
    let end = from + u64::from(len);
    let mut at = from;
    while at < end {
        let letters = &mut room[..(end - at).min(64) as usize];
        RandomField::Letters.write(request.operand, at, letters);
        take(letters);
        at += letters.len() as u64;
    }
}

// --- Words of inline commands ---

/// The most bytes that one takes in quotes: `\x0a`.
pub(super) const ESCAPED_BYTES: usize = "\\x0a".len();

/// Does Redis take this byte of an inline command as it is, without quotes?
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\')
}

/// Must this byte be escaped in double quotes? Redis reads a line up to the first line feed, with functions that stop at a zero.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0 | b'\r' | b'\n' | b'"' | b'\\')
}

/// Appends a word of an inline command, whose bytes `visit` shows: as they are where Redis reads them so, else in double quotes.
pub(crate) fn put_quoted(out: &mut Out, visit: impl Fn(&mut dyn FnMut(&[u8]))) {
    let (mut is_all_plain, mut len) = (true, 0);
    visit(&mut |bytes| {
        is_all_plain &= bytes.iter().all(|byte| is_plain(*byte));
        len += bytes.len();
    });
    if is_all_plain && len > 0 {
        return visit(&mut |bytes| out.put(bytes));
    }
    out.put(b"\"");
    visit(&mut |bytes| {
        for &byte in bytes {
            if is_escaped(byte) {
                let digit = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
                out.put(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
            } else {
                out.put(&[byte]);
            }
        }
    });
    out.put(b"\"");
}

/// Quotes a constant text as a word of an inline command.
pub(super) fn quoted(text: &[u8], to: &mut Vec<u8>) {
    let mut out = Out::with_room(ESCAPED_BYTES * text.len() + 2);
    put_quoted(&mut out, |take| take(text));
    to.extend_from_slice(out.contiguous().unwrap_or_default());
}

/// The most that every byte of a key takes in an inline command: escaped, and a blank and two quotes around a key of one byte.
pub(crate) const INLINE_KEY_FACTOR: usize = ESCAPED_BYTES + 3;
const _: () = assert!(INLINE_KEY_FACTOR * KEY_BYTES_MAX < 64 << 10);

/// Builds pieces; text that is always the same is put together.
#[derive(Debug, Default)]
pub(super) struct PieceBuilder {
    list: Vec<Piece>,
    pub text: Vec<u8>,
    /// Bytes of random fields so far: no two of them draw the same.
    drawn: u64,
}

impl PieceBuilder {
    pub(super) fn text(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    pub(super) fn push(&mut self, piece: Piece) {
        if !self.text.is_empty() {
            self.list.push(Piece::Text(std::mem::take(&mut self.text).into_boxed_slice()));
        }
        self.list.push(piece);
    }

    /// Adds the length of these pieces, in decimal or in four bytes.
    pub(super) fn length(&mut self, of: Vec<Piece>, is_binary: bool) {
        match of.iter().map(Piece::fixed_len).sum::<Option<usize>>() {
            Some(len) if is_binary => self.text(&(len as u32).to_be_bytes()),
            Some(len) => self.text(len.to_string().as_bytes()),
            None => self.push(Piece::Length { of, is_binary }),
        }
    }

    /// Random bytes.
    pub(super) fn random(&mut self, len: u32, draw: RandomField) {
        self.push(Piece::Random { len, draw, from: self.drawn });
        self.drawn += u64::from(len);
    }

    /// A word as it is; `length` is what `{bytes}` stands for.
    pub(super) fn word(&mut self, word: &Word, data: &[Piece]) {
        for part in &word.parts {
            match part {
                Part::Text(text) => self.text(text),
                Part::Key => self.push(Piece::Key),
                Part::Value => self.push(Piece::Value),
                Part::Length => self.length(data.to_vec(), false),
                Part::Random(len) => self.random(*len, RandomField::Letters),
                Part::Number(number) => self.push(Piece::Number(*number)),
            }
        }
    }

    /// A word of an inline command. Random letters are plain, so that only the rest must be looked at.
    pub(super) fn quoted(&mut self, word: &Word) {
        let mut pieces = Self { drawn: self.drawn, ..Self::default() };
        pieces.word(word, &[]);
        self.drawn = pieces.drawn;
        self.push(Piece::Quoted(pieces.end()));
    }

    pub(super) fn end(mut self) -> Vec<Piece> {
        if !self.text.is_empty() {
            self.list.push(Piece::Text(self.text.into_boxed_slice()));
        }
        self.list
    }
}

/// What random bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RandomField {
    /// Letters and digits, each as often as the others.
    Letters,
    /// Any bytes.
    Bytes,
    /// 0 or 1.
    Bool,
    /// The eight bytes of a floating-point number from 0 to 1, the highest first.
    UnitDouble,
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl RandomField {
    /// The bytes from `at` on of an operation's draws, as many as `to` has room for.
    pub(super) fn write(self, number: u64, at: u64, to: &mut [u8]) {
        match self {
            Self::UnitDouble => {
                let double = (output(number, at) >> 11) as f64 / (1_u64 << 53) as f64;
                to.copy_from_slice(&double.to_be_bytes());
            }
            _ => to.iter_mut().zip(at..).for_each(|(byte, at)| *byte = self.byte(output(number, at))),
        }
    }

    fn byte(self, draw: u64) -> u8 {
        match self {
            Self::Letters => LETTERS[(((draw >> 32) * LETTERS.len() as u64) >> 32) as usize],
            Self::Bytes | Self::UnitDouble => (draw >> 56) as u8,
            Self::Bool => (draw >> 63) as u8,
        }
    }
}
