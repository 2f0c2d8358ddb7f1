//! A purge: deletes of most keys of a data set, in the middle of a run.
//!
//! Every stream deletes its own share of the keys, one after the other, each as often as there are servers that hold
//! it.

use brunt_plan::shard::{StreamPart, share};
use std::ops::Range;

/// The deletes of one stream that are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Purge {
    ids: Range<u64>,
    keep_every: u64,
    copies: u32,
    /// How often the first of `ids` was deleted.
    deleted: u32,
}

impl Purge {
    /// Of `keys` keys, all whose ids are no multiples of `keep_every`.
    pub(crate) fn new(keys: u64, keep_every: u64, part: StreamPart, copies: u32) -> Self {
        Self { ids: share(keys, part.index, part.of), keep_every, copies, deleted: 0 }
    }

    /// How many deletes there are from the first on.
    pub(crate) fn count(&self) -> u64 {
        let kept_below = |id: u64| id.div_ceil(self.keep_every);
        let kept = kept_below(self.ids.end) - kept_below(self.ids.start);
        (self.ids.end - self.ids.start - kept) * u64::from(self.copies)
    }

    /// The next key. There must be one.
    pub(crate) fn next_id(&mut self) -> u64 {
        if self.deleted == self.copies {
            self.ids.start += 1;
            self.deleted = 0;
        }
        if self.ids.start.is_multiple_of(self.keep_every) {
            self.ids.start += 1;
        }
        self.deleted += 1;
        debug_assert!(self.ids.start < self.ids.end, "more deletes than were counted");
        self.ids.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_but_those_that_are_kept_is_deleted_on_every_server() {
        for (keys, keep_every, of, copies) in [(100, 10, 1, 1), (101, 10, 3, 2), (7, 2, 4, 1), (5, 10, 9, 3)]
        {
            let mut deleted = Vec::new();
            for index in 0..of {
                let mut purge = Purge::new(keys, keep_every, StreamPart { index, of }, copies);
                deleted.extend((0..purge.count()).map(|_| purge.next_id()));
            }
            let expected: Vec<u64> = (0..keys)
                .filter(|id| !id.is_multiple_of(keep_every))
                .flat_map(|id| std::iter::repeat_n(id, copies as usize))
                .collect();
            assert_eq!(deleted, expected, "{keys} {keep_every} {of} {copies}");
        }
    }
}
