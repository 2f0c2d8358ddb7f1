//! Error replies by their first word, where a protocol has such words.
//!
//! Not outcomes: every error reply ends its operation, and that is in the books. Invariant: each word is there once.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Room for more words than any protocol tells apart, so that counting one does not allocate.
const WORDS: usize = 32;

/// How many error replies begin with each word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReplies(Vec<(Cow<'static, str>, u64)>);

impl Default for ErrorReplies {
    fn default() -> Self {
        Self(Vec::with_capacity(WORDS))
    }
}

impl ErrorReplies {
    /// Adds error replies that begin with this word.
    pub fn count(&mut self, word: Cow<'static, str>, times: u64) {
        match self.0.iter_mut().find(|(held, _)| *held == word) {
            Some((_, sum)) => *sum += times,
            None => self.0.push((word, times)),
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(word, times)| self.count(word.clone(), *times));
    }

    /// Each word with its number, the most frequent first.
    pub fn rows(&self) -> Vec<(&str, u64)> {
        let mut rows: Vec<_> = self.0.iter().map(|(word, times)| (word.as_ref(), *times)).collect();
        rows.sort_by(|(one, ones), (other, others)| others.cmp(ones).then_with(|| one.cmp(other)));
        rows
    }

    /// Number of error replies that begin with this word.
    pub fn count_of(&self, word: &str) -> u64 {
        self.0.iter().find(|(held, _)| held == word).map_or(0, |(_, times)| *times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_add_up_and_the_most_frequent_comes_first() {
        let (mut one, mut other) = (ErrorReplies::default(), ErrorReplies::default());
        [("OOM", 2), ("ERR", 3), ("OOM", 1)]
            .into_iter()
            .for_each(|(word, times)| one.count(word.into(), times));
        [("BUSY", 9), ("ERR", 1)].into_iter().for_each(|(word, times)| other.count(word.into(), times));
        one.merge(&other);
        assert_eq!(one.rows(), [("BUSY", 9), ("ERR", 4), ("OOM", 3)]);
        assert_eq!((one.count_of("OOM"), one.count_of("ASK")), (3, 0));
    }
}
