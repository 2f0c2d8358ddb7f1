//! The pieces of a command while it is being put together.
//!
//! Invariant: text that is always the same is in one piece, and no two random fields have the same draws.

use super::extent::Extent;
use super::piece::Piece;
use super::random_field::RandomField;
use super::word::{Part, Word};

/// Builds pieces; text that is always the same is put together.
#[derive(Debug, Default)]
pub(super) struct PieceBuilder {
    list: Vec<Piece>,
    pub text: Vec<u8>,
    /// Bytes of random fields so far: no two of them draw the same.
    pub drawn: u64,
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

    /// Random bytes.
    pub(super) fn random(&mut self, len: u32, draw: RandomField) {
        self.push(Piece::Random { len, draw, from: self.drawn });
        self.drawn += u64::from(len);
    }

    /// A word as it is; `length` is what `{bytes}` stands for.
    pub(super) fn word(&mut self, word: &Word, length: &Extent) {
        for part in &word.parts {
            match part {
                Part::Text(text) => self.text(text),
                Part::Key => self.push(Piece::Key),
                Part::Value => self.push(Piece::Value),
                Part::Length => self.push(Piece::Length { extent: length.clone(), is_binary: false }),
                Part::Random(len) => self.random(*len, RandomField::Letters),
                Part::Number(number) => self.push(Piece::Number(*number)),
            }
        }
    }

    pub(super) fn end(mut self) -> Vec<Piece> {
        if !self.text.is_empty() {
            self.list.push(Piece::Text(self.text.into_boxed_slice()));
        }
        self.list
    }
}
