//! Which key is asked for: the sampler behind the plan's `--popularity`.
//!
//! Tables only, never changed after they are built: one chooser serves all sessions of a class. The state of the draw is
//! the caller's generator, and where a session stands in a law that moves is its [`Cursor`]. Ranks become ids through a
//! bijection that depends on the data seed alone, so that every worker and every agent finds the same keys hot, and that
//! the hot keys are not neighbours.
//!
//! Every law works on the ring of `keys` ids from an origin: the id that its ranks are counted from, before they are
//! scattered. It moves with the drift, with the steps of a walk, with what is inserted; it is fixed when the op is made
//! and stands in the op, so that the keys of a multi-get are the same whenever they are asked for.

use crate::permutation::Permutation;
use crate::rng::{Draw, DrawRng};
use crate::zipf::Zipf;
use brunt_plan::op::{KeyRef, Op};
use brunt_plan::popularity::{Drift, Popularity};
use brunt_plan::shard::StreamPart;

/// Draws key ids from `0..keys`.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    keys: u64,
    law: Law,
    drift: Option<Drift>,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    Zipf { ranks: Zipf, scatter: Permutation },
    Hotspot { ranks: Hotspot, scatter: Permutation },
    Sequential,
    Latest { ages: Zipf },
    Gaussian(Gaussian),
}

/// Where a session stands in laws that move. One per session, plain counters.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    part: StreamPart,
    /// Steps of a walk that the session has taken. Times `of` it is what all sessions have asked for, which no run
    /// brings to 2⁶⁴.
    walked: u64,
    /// Keys that the session has inserted; the same holds.
    inserted: u64,
}

impl Cursor {
    /// The beginning, for this session among all of its class in the whole run.
    pub fn new(part: StreamPart) -> Self {
        Self { part, walked: 0, inserted: 0 }
    }

    /// The place of this session's turn number `turn` where all sessions take turns.
    #[inline]
    fn place(&self, turn: u64) -> u64 {
        u64::from(self.part.index) + turn * u64::from(self.part.of)
    }
}

impl KeyChooser {
    /// The sampler of this law over `0..keys`; `keys` is at least 1. The drift moves what a law finds hot: nothing in
    /// uniform and sequential ones.
    pub fn new(popularity: &Popularity, drift: Option<Drift>, keys: u64, data_seed: u64) -> Self {
        assert!(keys > 0, "no keys to choose from");
        let scatter = || Permutation::new(keys, data_seed);
        let law = match *popularity {
            Popularity::Uniform => Law::Uniform,
            Popularity::Zipf { exponent } => {
                Law::Zipf { ranks: Zipf::new(keys, exponent), scatter: scatter() }
            }
            Popularity::Hotspot { keys: hot, ops } => {
                Law::Hotspot { ranks: Hotspot::new(keys, hot, ops), scatter: scatter() }
            }
            Popularity::Sequential => Law::Sequential,
            Popularity::Latest { exponent } => Law::Latest { ages: Zipf::new(keys, exponent) },
            Popularity::Gaussian { deviation } => Law::Gaussian(Gaussian::new(keys, deviation)),
        };
        Self { keys, law, drift }
    }

    /// How many keys there are to choose from.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The key of the next op that has one, `since_ns` after time 0 of the schedule; `inserts` where the op stores a key
    /// that need not be there (set, add).
    #[inline]
    pub fn next_id(&self, cursor: &mut Cursor, draw: &mut impl Draw, since_ns: u64, inserts: bool) -> u64 {
        let origin = self.origin(cursor, since_ns, inserts);
        match self.law {
            Law::Latest { .. } if inserts => origin,
            _ => self.choose(draw, origin),
        }
    }

    /// The keys of the next op that asks for `count` of them, `since_ns` after time 0 of the schedule: what belongs into
    /// [`Op::key`] and [`Op::operand`].
    #[inline]
    pub fn next_keys(
        &self,
        cursor: &mut Cursor,
        draw: &mut impl Draw,
        since_ns: u64,
        count: u16,
    ) -> (KeyRef, u64) {
        match self.law {
            Law::Sequential => {
                let first = cursor.place(cursor.walked) % self.keys;
                cursor.walked += u64::from(count);
                (KeyRef::Drawn(u64::from(cursor.part.of) % self.keys), first)
            }
            _ => (KeyRef::Drawn(draw.next_u64()), self.origin(cursor, since_ns, false)),
        }
    }

    /// The origin that the next op's keys are counted from, `since_ns` after time 0 of the schedule. An op that `inserts`
    /// (set, add) puts its key at the frontier of `latest`, and that is its origin.
    ///
    /// Sessions do not talk to each other: each takes the turns that are its own, and assumes that the others take
    /// theirs as often.
    #[inline]
    pub fn origin(&self, cursor: &mut Cursor, since_ns: u64, inserts: bool) -> u64 {
        match self.law {
            Law::Uniform => 0,
            Law::Sequential => {
                cursor.walked += 1;
                cursor.place(cursor.walked - 1) % self.keys
            }
            Law::Latest { .. } if inserts => {
                cursor.inserted += 1;
                self.add(cursor.place(cursor.inserted - 1) % self.keys, self.shift(since_ns))
            }
            Law::Latest { .. } => {
                let frontier = cursor.inserted * u64::from(cursor.part.of) % self.keys;
                self.add(self.subtract(frontier, 1 % self.keys), self.shift(since_ns))
            }
            Law::Zipf { .. } | Law::Hotspot { .. } | Law::Gaussian(_) => self.shift(since_ns),
        }
    }

    /// An id drawn by the law from this origin. A walk draws nothing: its origin is the id.
    #[inline]
    pub fn choose(&self, draw: &mut impl Draw, origin: u64) -> u64 {
        match &self.law {
            Law::Uniform => draw.below(self.keys),
            Law::Zipf { ranks, scatter } => scatter.apply(self.add(ranks.rank(draw), origin)),
            Law::Hotspot { ranks, scatter } => scatter.apply(self.add(ranks.rank(draw), origin)),
            Law::Sequential => origin,
            Law::Latest { ages } => self.subtract(origin, ages.rank(draw)),
            Law::Gaussian(gaussian) => self.add(gaussian.place(draw), origin),
        }
    }

    /// The id of the key of this popularity rank, 0 being the hottest. Uniform laws and walks have no ranks: there it
    /// counts on from the origin.
    pub fn id_of_rank(&self, rank: u64, origin: u64) -> u64 {
        match &self.law {
            Law::Uniform | Law::Sequential => self.add(rank, origin),
            Law::Zipf { scatter, .. } | Law::Hotspot { scatter, .. } => scatter.apply(self.add(rank, origin)),
            Law::Latest { .. } => self.subtract(origin, rank),
            Law::Gaussian(gaussian) => self.add(gaussian.place_of_rank(rank), origin),
        }
    }

    /// The ids of the keys of an op, in the order of the request; the same again whenever it is asked. A multi-get may
    /// hold a key twice, as hot keys are hot within a request too.
    ///
    /// Ops with literal keys (`KeyRef::Offset`) have none: that is an assertion.
    #[inline]
    pub fn ids(&self, op: &Op) -> Ids<'_> {
        Ids::new(op, self.keys, Some(self))
    }

    /// How far the drift has moved the ranks: ⌊t / every⌋ · step, on the ring.
    #[inline]
    fn shift(&self, since_ns: u64) -> u64 {
        let Some(drift) = self.drift else { return 0 };
        let periods = u128::from(since_ns / drift.every.0);
        (periods * u128::from(drift.step) % u128::from(self.keys)) as u64
    }

    #[inline]
    fn add(&self, place: u64, by: u64) -> u64 {
        add_on_ring(place, by, self.keys)
    }

    #[inline]
    fn subtract(&self, place: u64, by: u64) -> u64 {
        if place >= by { place - by } else { self.keys - (by - place) }
    }
}

/// The place `by` behind `place` on a ring of `keys`; both are below that.
#[inline]
fn add_on_ring(place: u64, by: u64, keys: u64) -> u64 {
    let (sum, overflows) = place.overflowing_add(by);
    if overflows || sum >= keys { sum.wrapping_sub(keys) } else { sum }
}

/// Ranks of which the first ones get a fraction of the ops.
#[derive(Clone, Debug)]
struct Hotspot {
    keys: u64,
    hot: u64,
    ops: f64,
}

impl Hotspot {
    /// Both fractions are above 0 and at most 1. One key at least is hot, and, below 1, one at least is not.
    fn new(keys: u64, hot: f64, ops: f64) -> Self {
        let most = if hot < 1.0 { (keys - 1).max(1) } else { keys };
        let hot = libm::round(hot * keys as f64) as u64;
        Self { keys, hot: hot.clamp(1, most), ops }
    }

    /// A rank from 0 (hottest) to `keys − 1`.
    #[inline]
    fn rank(&self, draw: &mut impl Draw) -> u64 {
        if self.hot == self.keys {
            draw.below(self.keys)
        } else if draw.unit_open() <= self.ops {
            draw.below(self.hot)
        } else {
            self.hot + draw.below(self.keys - self.hot)
        }
    }
}

/// A normal law over places, cut at the ends.
#[derive(Clone, Debug)]
struct Gaussian {
    keys: u64,
    deviation: f64,
}

impl Gaussian {
    /// The deviation is a fraction of `keys`, above 0 and at most 1.
    fn new(keys: u64, deviation: f64) -> Self {
        Self { keys, deviation: deviation * keys as f64 }
    }

    /// A place below `keys`: that of the unit interval into which the normal variate falls (Box, Muller, 1958). Variates
    /// beyond the ends are drawn again; at most 62 % are.
    #[inline]
    fn place(&self, draw: &mut impl Draw) -> u64 {
        let end = self.keys as f64;
        loop {
            let radius = libm::sqrt(-2.0 * libm::log(draw.unit_open()));
            let angle = std::f64::consts::TAU * draw.unit_open();
            let x = end / 2.0 + self.deviation * radius * libm::cos(angle);
            if x >= 0.0 && x < end {
                // Only where a float is coarser than a place may it round up to the end.
                return (x as u64).min(self.keys - 1);
            }
        }
    }

    /// The place of a rank: outwards from the middle.
    fn place_of_rank(&self, rank: u64) -> u64 {
        let outwards = rank / 2 + rank % 2;
        if rank.is_multiple_of(2) { self.keys / 2 + outwards } else { self.keys / 2 - outwards }
    }
}

/// The key ids of an op; see [`KeyChooser::ids`].
#[derive(Clone, Debug)]
pub struct Ids<'a> {
    left: u16,
    source: IdSource<'a>,
}

#[derive(Clone, Debug)]
enum IdSource<'a> {
    /// Every `step`th id, on from 0 behind the last of `keys`.
    Walked {
        next: u64,
        step: u64,
        keys: u64,
    },
    Drawn {
        chooser: &'a KeyChooser,
        rng: DrawRng,
        origin: u64,
    },
}

impl<'a> Ids<'a> {
    #[inline]
    pub(crate) fn new(op: &Op, keys: u64, chooser: Option<&'a KeyChooser>) -> Self {
        let source = match (op.key, chooser) {
            (KeyRef::Id(id), _) => IdSource::Walked { next: id, step: 1, keys },
            (KeyRef::Drawn(step), Some(KeyChooser { law: Law::Sequential, .. })) => {
                IdSource::Walked { next: op.operand, step, keys }
            }
            (KeyRef::Drawn(seed), Some(chooser)) => {
                IdSource::Drawn { chooser, rng: DrawRng::from_draw(seed), origin: op.operand }
            }
            (key, _) => panic!("{key:?} names no ids here"),
        };
        Self { left: op.count, source }
    }
}

impl Iterator for Ids<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        Some(match &mut self.source {
            IdSource::Walked { next, step, keys } => {
                let id = *next;
                *next = add_on_ring(id, *step, *keys);
                id
            }
            IdSource::Drawn { chooser, rng, origin } => chooser.choose(rng, *origin),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Ids<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Rng};
    use brunt_plan::op::{Expectation, OpKind, ValueRef};

    const ZIPF: Popularity = Popularity::Zipf { exponent: 0.99 };

    fn drawn(popularity: Popularity, keys: u64, data_seed: u64, count: usize) -> Vec<u64> {
        let chooser = KeyChooser::new(&popularity, None, keys, data_seed);
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        (0..count).map(|_| chooser.choose(&mut rng, 0)).collect()
    }

    fn op(key: KeyRef, count: u16) -> Op {
        Op {
            kind: OpKind::Mget,
            class: 0,
            session: 0,
            key,
            count,
            value: ValueRef::None,
            ttl_s: 0,
            operand: 0,
            expectation: Expectation::Any,
            template: 0,
        }
    }

    #[test]
    fn every_agent_draws_the_same_keys() {
        for popularity in [Popularity::Uniform, ZIPF] {
            assert_eq!(
                drawn(popularity.clone(), 1_000_000, 1, 1_000),
                drawn(popularity, 1_000_000, 1, 1_000)
            );
        }
        // The seed of the run draws the ranks, the seed of the data only says which keys are hot.
        assert_eq!(drawn(Popularity::Uniform, 1_000, 1, 100), drawn(Popularity::Uniform, 1_000, 2, 100));
        assert_ne!(drawn(ZIPF, 1_000, 1, 100), drawn(ZIPF, 1_000, 2, 100));
    }

    #[test]
    fn uniform_keys_are_drawn_evenly() {
        let mut counts = [0f64; 100];
        drawn(Popularity::Uniform, 100, 1, 100_000).iter().for_each(|id| counts[*id as usize] += 1.0);
        let chi_square: f64 = counts.iter().map(|count| (count - 1_000.0).powi(2) / 1_000.0).sum();
        // 99 degrees of freedom: 0.1 to 99.9 % is 61 to 149.
        assert!((61.0..149.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn the_key_of_rank_0_is_drawn_most_and_is_scattered() {
        let ids = drawn(ZIPF, 1_000_000, 1, 100_000);
        let chooser = KeyChooser::new(&ZIPF, None, 1_000_000, 1);
        let hottest: Vec<u64> = (0..3).map(|rank| chooser.id_of_rank(rank, 0)).collect();
        for (rank, id) in hottest.iter().enumerate() {
            let share = 0.064_969 * (rank as f64 + 1.0).powf(-0.99);
            let count = ids.iter().filter(|drawn| *drawn == id).count() as f64;
            assert!((count / 1e5 - share).abs() < 4.0 * (share / 1e5).sqrt(), "rank {rank}: {count}");
        }
        assert!(hottest.iter().all(|id| *id > 1_000), "{hottest:?}");
    }

    #[test]
    fn the_keys_of_an_op_are_the_same_whenever_asked() {
        let chooser = KeyChooser::new(&ZIPF, None, 10, 1);
        let ids = |key, count| chooser.ids(&op(key, count)).collect::<Vec<_>>();
        assert_eq!(ids(KeyRef::Id(7), 1), [7]);
        assert_eq!(ids(KeyRef::Id(8), 4), [8, 9, 0, 1]);
        assert_eq!(ids(KeyRef::Drawn(5), 100), ids(KeyRef::Drawn(5), 100));
        assert_ne!(ids(KeyRef::Drawn(5), 100), ids(KeyRef::Drawn(6), 100));
        assert!(ids(KeyRef::Drawn(5), 100).iter().all(|id| *id < 10));
        assert_eq!(chooser.ids(&op(KeyRef::Drawn(5), 100)).len(), 100);
    }

    #[test]
    fn multi_gets_follow_the_popularity() {
        // Neighbouring seeds, as bad as they come: the hottest key must still have its share of the first draws.
        let chooser = KeyChooser::new(&ZIPF, None, 1_000_000, 1);
        let hottest = chooser.id_of_rank(0, 0);
        let count = (0..100_000)
            .filter(|seed| chooser.ids(&op(KeyRef::Drawn(*seed), 2)).nth(1) == Some(hottest))
            .count();
        assert!((count as f64 - 6_497.0).abs() < 4.0 * 6_497f64.sqrt(), "{count}");
    }
}
