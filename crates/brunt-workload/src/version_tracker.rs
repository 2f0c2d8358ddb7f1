//! The writes of one writer: decides which versions of a value a read may no longer find.
//!
//! Not a copy of the store: nothing of other writers is known, so that nothing is said of their versions; and what the server
//! does between a request and its reply is unknown, so that of writes that overlap either may be the last. Forty bytes a key,
//! all of them there from the start. Invariant: a version that is called stale was overwritten by a write that was
//! acknowledged before the read was begun, and that began after every write of an older version had ended.

use brunt_plan::op::Version;
use brunt_plan::outcome::OutcomeClass;
use std::ops::Range;

/// Servers count lives in whole seconds of a clock of their own, which may be one late at either end.
pub const TTL_MARGIN_NS: u64 = 2_000_000_000;

/// The writes of one writer.
#[derive(Clone, Debug)]
pub struct VersionTracker {
    writer: u32,
    /// When the data set was stored before the first write, if it was, from the first store to the last.
    preload_ns: Option<Range<u64>>,
    /// How long values live; 0 means no expiry.
    ttl_ns: u64,
    keys: Vec<Key>,
}

/// What is known of a key; of one that was never written, nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    /// When the write that `floor` is about was begun, and when that or a later one had been acknowledged; nanoseconds on the
    /// caller's clock.
    floor_begun_ns: u64,
    floor_ns: u64,
    /// When the write that `alone` is about was begun.
    alone_ns: u64,
    /// Writes before this one are stale for reads that begin after that; 0 before anything is known.
    floor: u32,
    /// The last write that was begun while no other was in flight: those before it had ended.
    alone: u32,
    /// How many writes were begun, how many of them are in flight, and [`LOST`] where one may still happen.
    begun: u32,
}

/// A write without an end may happen at any time: nothing more is ever said of its key.
const LOST: u32 = 1 << 31;
/// Writes in flight are counted in the bits above the count and below [`LOST`].
const UNDER_WAY: u32 = Version::COUNT_MAX + 1;
const UNDER_WAY_BITS: u32 = LOST - UNDER_WAY;

/// What the version of a value says of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It may be there, as far as this writer knows.
    Possible,
    /// A later write had been acknowledged before the read began.
    Stale {
        /// That one, or one that began before it.
        newest: u32,
    },
    /// This writer has not written it, and no other writer has its number.
    NeverWritten,
}

impl VersionTracker {
    /// The tracker of a writer (from 1 to [`Version::WRITERS_MAX`]) of `keys` keys, none of them written; what is
    /// stored lives for `ttl_ns`, or for ever if that is 0.
    pub fn new(writer: u32, keys: u64, ttl_ns: u64) -> Self {
        assert!((1..=Version::WRITERS_MAX).contains(&writer), "{writer} is no writer");
        Self { writer, preload_ns: None, ttl_ns, keys: vec![Key::default(); keys as usize] }
    }

    /// All keys were stored anew within this time, and nothing was written since.
    pub fn preloaded(&mut self, preload_ns: Range<u64>) {
        self.preload_ns = Some(preload_ns);
    }

    /// The version that the next write of a key is to have. After a million writes of one key they keep the number of the last,
    /// and nothing is said of the key any more.
    #[inline]
    pub fn next(&self, id: u64) -> u32 {
        let count = self.keys[id as usize].begun & Version::COUNT_MAX;
        Version::of(self.writer, (count + 1).min(Version::COUNT_MAX)).0
    }

    /// A write of [`VersionTracker::next`] is begun, at this time.
    #[inline]
    pub fn begin(&mut self, id: u64, at_ns: u64) {
        let key = &mut self.keys[id as usize];
        let count = key.begun & Version::COUNT_MAX;
        if key.begun & UNDER_WAY_BITS == UNDER_WAY_BITS || count + 1 >= Version::COUNT_MAX {
            key.begun |= LOST;
        }
        if key.begun & (LOST | UNDER_WAY_BITS) == 0 {
            (key.alone, key.alone_ns) = (count + 1, at_ns);
        }
        if key.begun & LOST == 0 {
            key.begun += UNDER_WAY + 1;
        } else if count < Version::COUNT_MAX {
            key.begun += 1;
        }
    }

    /// A write of this version has come to an end, at this time.
    pub fn end(&mut self, id: u64, version: u32, class: OutcomeClass, at_ns: u64) {
        let key = &mut self.keys[id as usize];
        if key.begun & LOST != 0 {
            return;
        }
        match class {
            OutcomeClass::Done => {
                key.begun -= UNDER_WAY;
                // Whatever was begun before that one had ended before this one began, and is overwritten now.
                let count = Version(version).count();
                if count == key.floor {
                    // It was overtaken by the acknowledgement of a later one, and may have happened only now.
                    key.floor_ns = at_ns;
                } else if count >= key.alone && key.floor < key.alone {
                    (key.floor, key.floor_begun_ns, key.floor_ns) = (key.alone, key.alone_ns, at_ns);
                }
            }
            // Nothing was written.
            OutcomeClass::Rejected => key.begun -= UNDER_WAY,
            _ => key.begun |= LOST,
        }
    }

    /// What a version says that a read found which began at `began_ns`.
    #[inline]
    pub fn judge(&self, id: u64, version: u32, began_ns: u64) -> Freshness {
        let key = &self.keys[id as usize];
        let (is_own, count) = (Version(version).writer() == self.writer, Version(version).count());
        // Without a preload, an earlier run may have written it under the same number.
        if is_own && self.preload_ns.is_some() && count > key.begun & Version::COUNT_MAX {
            return Freshness::NeverWritten;
        }
        if self.is_written(id, began_ns) && (version == 0 || is_own && count < key.floor) {
            return Freshness::Stale { newest: Version::of(self.writer, key.floor).0 };
        }
        Freshness::Possible
    }

    /// Must a read between these times have found the key, unless it was deleted or evicted?
    pub fn is_expected_present(&self, id: u64, began_ns: u64, done_ns: u64) -> bool {
        let key = &self.keys[id as usize];
        let lives = |begun_ns: u64| self.ttl_ns == 0 || done_ns + TTL_MARGIN_NS < begun_ns + self.ttl_ns;
        // A store that failed may have taken the value before it along.
        key.begun & LOST == 0
            && (self.is_written(id, began_ns) && lives(key.floor_begun_ns)
                || self.preload_ns.as_ref().is_some_and(|preload_ns| lives(preload_ns.start)))
    }

    /// Was the life of this version over, which a read found that began at `began_ns`? Touched keys are not known here.
    pub fn is_expired(&self, id: u64, version: u32, began_ns: u64) -> bool {
        let key = &self.keys[id as usize];
        let is_over = |stored_ns: u64| self.ttl_ns > 0 && stored_ns + self.ttl_ns + TTL_MARGIN_NS < began_ns;
        let (is_own, count) = (Version(version).writer() == self.writer, Version(version).count());
        // The write time of a version above the floor is unknown, and those in flight may not be written at all.
        let is_settled = key.begun & (LOST | UNDER_WAY_BITS) == 0;
        match version {
            0 => self.preload_ns.as_ref().is_some_and(|preload_ns| is_over(preload_ns.end)),
            _ => is_own && is_settled && key.floor > 0 && count <= key.floor && is_over(key.floor_ns),
        }
    }

    /// Had a write been acknowledged when a read began?
    #[inline]
    fn is_written(&self, id: u64, began_ns: u64) -> bool {
        let key = &self.keys[id as usize];
        key.floor > 0 && key.floor_ns <= began_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutcomeClass::{Done, Lost, Rejected};
    use proptest::prelude::*;

    const WRITER: u32 = 3;

    fn version(count: u32) -> u32 {
        Version::of(WRITER, count).0
    }

    /// Begins a write of key 0 and ends it.
    fn write(ledger: &mut VersionTracker, class: OutcomeClass, at_ns: u64) -> u32 {
        let version = ledger.next(0);
        ledger.begin(0, at_ns - 1);
        ledger.end(0, version, class, at_ns);
        version
    }

    #[test]
    fn overwritten_versions_are_stale() {
        let mut ledger = VersionTracker::new(WRITER, 2, 0);
        assert_eq!(ledger.judge(0, 0, 0), Freshness::Possible);
        assert_eq!(ledger.judge(0, version(1), 0), Freshness::Possible, "of an earlier run");
        assert!(!ledger.is_expected_present(0, 50, 60));
        ledger.preloaded(0..40);
        assert_eq!(ledger.judge(0, version(1), 0), Freshness::NeverWritten);
        assert_eq!([write(&mut ledger, Done, 100), write(&mut ledger, Done, 200)], [1, 2].map(version));
        let newest = Freshness::Stale { newest: version(2) };
        for (held, began_ns, expected) in [
            (version(2), 300, Freshness::Possible),
            (version(1), 300, newest),
            (0, 200, newest),
            // Begun before the acknowledgement.
            (version(1), 199, Freshness::Possible),
            (version(3), 300, Freshness::NeverWritten),
            // Of another writer.
            (Version::of(WRITER + 1, 9).0, 300, Freshness::Possible),
        ] {
            assert_eq!(ledger.judge(0, held, began_ns), expected, "{held:x} at {began_ns}");
        }
        assert!(ledger.is_expected_present(0, 200, 210) && ledger.is_expected_present(1, 300, 310));
        assert_eq!(ledger.judge(1, 0, 300), Freshness::Possible, "another key");
        // What was refused is no write; what is in flight may have been.
        write(&mut ledger, Rejected, 400);
        assert_eq!(ledger.judge(0, version(2), 500), Freshness::Possible);
        ledger.begin(0, 0);
        assert_eq!(ledger.judge(0, version(4), 500), Freshness::Possible);
        assert_eq!(ledger.judge(0, version(2), 500), Freshness::Possible);
        assert_eq!(ledger.judge(0, version(1), 500), newest);
    }

    #[test]
    fn overlapping_writes_may_end_either_way() {
        let mut ledger = VersionTracker::new(WRITER, 1, 0);
        let (first, second) = (version(1), version(2));
        ledger.begin(0, 0);
        ledger.begin(0, 0);
        ledger.end(0, second, Done, 100);
        ledger.end(0, first, Done, 110);
        assert_eq!(ledger.judge(0, first, 200), Freshness::Possible);
        assert_eq!(ledger.judge(0, second, 200), Freshness::Possible);
        // One of the two has overwritten what the preload stored.
        assert!(matches!(ledger.judge(0, 0, 200), Freshness::Stale { .. }));
        write(&mut ledger, Done, 300);
        assert!(
            [first, second].iter().all(|held| matches!(ledger.judge(0, *held, 300), Freshness::Stale { .. }))
        );
    }

    #[test]
    fn writes_without_an_end_may_happen_at_any_time() {
        let mut ledger = VersionTracker::new(WRITER, 1, 0);
        write(&mut ledger, Done, 100);
        let lost = write(&mut ledger, Lost, 200);
        write(&mut ledger, Done, 300);
        write(&mut ledger, Done, 400);
        assert_eq!(ledger.judge(0, lost, 500), Freshness::Possible);
        assert_eq!(ledger.judge(0, version(4), 500), Freshness::Possible);
        // It was overwritten before that one began.
        assert_eq!(ledger.judge(0, 0, 500), Freshness::Stale { newest: version(1) });
    }

    #[test]
    fn values_expire_after_their_ttl() {
        const S: u64 = 1_000_000_000;
        let mut ledger = VersionTracker::new(WRITER, 3, 10 * S);
        ledger.preloaded(10 * S..12 * S);
        // Key 1 is written from 29 s to 30 s; key 2 never, and key 0 by a write without a known end.
        ledger.begin(1, 29 * S);
        ledger.end(1, version(1), Done, 30 * S);
        ledger.begin(0, 13 * S);
        ledger.end(0, version(1), Lost, 14 * S);
        for (id, done_s, expected) in
            [(2, 17, true), (2, 18, false), (1, 17, true), (1, 36, true), (1, 37, false), (0, 17, false)]
        {
            let done_ns = done_s * S;
            assert_eq!(
                ledger.is_expected_present(id, done_ns - 1, done_ns),
                expected,
                "key {id} at {done_s} s"
            );
        }
        for (id, held, began_s, expected) in [
            (2, 0, 24, false),
            (2, 0, 25, true),
            (1, version(1), 42, false),
            (1, version(1), 43, true),
            (1, 0, 25, true),
            // Of another writer, and of a write that may not have come yet.
            (1, Version::of(WRITER + 1, 1).0, 99, false),
            (0, version(1), 99, false),
        ] {
            assert_eq!(ledger.is_expired(id, held, began_s * S), expected, "key {id} at {began_s} s");
        }
        let mut forever = VersionTracker::new(WRITER, 1, 0);
        forever.preloaded(10..12);
        assert!(forever.is_expected_present(0, 100 * S, 101 * S) && !forever.is_expired(0, 0, 100 * S));
    }

    /// The later of two that overlap is acknowledged, and the earlier one happens long after.
    #[test]
    fn writes_in_flight_have_not_expired() {
        const S: u64 = 1_000_000_000;
        let mut ledger = VersionTracker::new(WRITER, 1, 10 * S);
        (0..2).for_each(|_| ledger.begin(0, S));
        ledger.end(0, version(2), Done, 2 * S);
        assert!(!ledger.is_expired(0, version(1), 15 * S), "it is still under way");
        ledger.end(0, version(1), Done, 14 * S);
        assert!(!ledger.is_expired(0, version(1), 26 * S) && ledger.is_expired(0, version(1), 27 * S));
        let mut unknown = VersionTracker::new(WRITER, 1, 10 * S);
        (0..2).for_each(|_| unknown.begin(0, S));
        unknown.end(0, version(2), Done, 2 * S);
        unknown.end(0, version(1), Lost, 3 * S);
        assert!(!unknown.is_expired(0, version(1), 99 * S), "it may come at any time");
    }

    #[test]
    fn overflowing_counts_judge_nothing() {
        let mut ledger = VersionTracker::new(Version::WRITERS_MAX, 1, 0);
        for _ in 0..Version::COUNT_MAX + 10 {
            write(&mut ledger, Done, 1);
        }
        assert_eq!(ledger.next(0), u32::MAX);
        assert_eq!(ledger.judge(0, u32::MAX, 2), Freshness::Possible);
        let mut many = VersionTracker::new(1, 1, 0);
        (0..5_000).for_each(|_| many.begin(0, 0));
        (1..=5_000).for_each(|count| many.end(0, Version::of(1, count).0, Done, 5));
        assert_eq!(many.judge(0, Version::of(1, 1).0, 6), Freshness::Possible);
    }

    proptest! {
        /// Against a register that is told every order in which writes and reads happen: what it holds is never called stale,
        /// and what is called stale it does not hold.
        #[test]
        fn possible_versions_are_never_stale(steps in prop::collection::vec((0..5u8, 0..8usize), 1..200)) {
            let mut ledger = VersionTracker::new(WRITER, 1, 0);
            let mut held = 0;
            // Begun and neither written nor ended; written and not ended; reads with what they found, if they have.
            let (mut begun, mut written, mut reads) = (Vec::new(), Vec::new(), Vec::new());
            for (now_ns, (step, choice)) in steps.into_iter().enumerate() {
                let now_ns = now_ns as u64 + 1;
                match step {
                    0 => {
                        begun.push(ledger.next(0));
                        ledger.begin(0, 0);
                    }
                    1 if !begun.is_empty() => {
                        held = begun.remove(choice % begun.len());
                        written.push(held);
                    }
                    2 if !written.is_empty() => {
                        let version = written.remove(choice % written.len());
                        ledger.end(0, version, Done, now_ns);
                    }
                    3 => reads.push((now_ns, held)),
                    4 if !reads.is_empty() => {
                        let (began_ns, found) = reads.remove(choice % reads.len());
                        prop_assert_eq!(ledger.judge(0, found, began_ns), Freshness::Possible);
                    }
                    _ => {}
                }
            }
        }
    }
}
