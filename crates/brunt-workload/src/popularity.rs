//! Sampler of keys by popularity (`--popularity`).
//!
//! Tables only, never changed after they are built: one chooser serves all sessions of a class. The state of the draw is
//! the caller's generator, and where a session is in a distribution that moves is its [`Cursor`]. Ranks become ids through a
//! bijection that depends on the data seed alone, so that every worker and every agent finds the same keys hot, and that
//! the hot keys are not neighbours.
//!
//! Every distribution works on the ring of `keys` ids from an origin: the id that its ranks are counted from, before they are
//! scattered. It moves with the drift, with the steps of a walk, with what is inserted; it is fixed when the op is made
//! and is in the op, so that the keys of a multi-get are the same whenever they are requested.

use crate::hash::{HashPurpose, IdHash, Permutation};
use crate::rng::{Draw, DrawRng};
use crate::zipf::Zipf;
use brunt_plan::op::{KeyRef, Op};
use brunt_plan::popularity::{Drift, HotShare, Popularity};
use brunt_plan::shard::StreamPart;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Draws key ids from `0..keys`.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    keys: u64,
    distribution: Sampler,
    drift: Option<Drift>,
}

#[derive(Clone, Debug)]
enum Sampler {
    Uniform,
    Zipf {
        ranks: Zipf,
        scatter: Permutation,
    },
    /// More ranks than keys, or fewer: several may fall onto one.
    HashedZipf {
        ranks: Zipf,
        hash: IdHash,
    },
    Hotspot {
        ranks: Hotspot,
        scatter: Permutation,
    },
    Sequential,
    Latest {
        ages: Zipf,
    },
    Gaussian(Gaussian),
}

/// Where a session is in distributions that move. One per session; the sessions of a worker may share a walk, so that its connections
/// ask for one key after the other.
#[derive(Clone, Debug)]
pub struct Cursor {
    part: StreamPart,
    /// Steps of a walk that the session has taken, and those whose cursors are clones of this one, all on one thread. Times `of` it is
    /// what all sessions have requested, which no run brings to 2⁶⁴.
    walked: Arc<AtomicU64>,
    /// Keys that the session has inserted; the same holds.
    inserted: u64,
}

impl Cursor {
    /// The beginning, for this session among all of its class in the whole run. The walk of a clone is the same walk.
    pub fn new(part: StreamPart) -> Self {
        Self { part, walked: Arc::default(), inserted: 0 }
    }

    /// Advances by `steps`; yields the position before.
    #[inline]
    fn walk(&self, steps: u64) -> u64 {
        let walked = self.walked.load(Relaxed);
        // No other thread takes any in between.
        self.walked.store(walked + steps, Relaxed);
        walked
    }

    /// The place of this session's turn number `turn` where all sessions take turns.
    #[inline]
    fn place(&self, turn: u64) -> u64 {
        u64::from(self.part.index) + turn * u64::from(self.part.of)
    }
}

impl KeyChooser {
    /// The sampler of this distribution over `0..keys`; `keys` is at least 1. The drift moves what a distribution finds hot: nothing in
    /// uniform and sequential ones.
    pub fn new(popularity: &Popularity, drift: Option<Drift>, keys: u64, data_seed: u64) -> Self {
        assert!(keys > 0, "no keys to choose from");
        let scatter = || Permutation::new(keys, data_seed);
        let distribution = match *popularity {
            // A window draws none of its keys here.
            Popularity::Uniform | Popularity::Window(_) => Sampler::Uniform,
            Popularity::Zipf { exponent, ranks: None } => {
                Sampler::Zipf { ranks: Zipf::new(keys, exponent), scatter: scatter() }
            }
            Popularity::Zipf { exponent, ranks: Some(ranks) } => {
                let hash = IdHash::new(data_seed, HashPurpose::Scatter);
                Sampler::HashedZipf { ranks: Zipf::new(ranks, exponent), hash }
            }
            Popularity::Hotspot(ref shares) => {
                Sampler::Hotspot { ranks: Hotspot::new(keys, shares), scatter: scatter() }
            }
            Popularity::Sequential => Sampler::Sequential,
            Popularity::Latest { exponent } => Sampler::Latest { ages: Zipf::new(keys, exponent) },
            Popularity::Gaussian { deviation } => Sampler::Gaussian(Gaussian::new(keys, deviation)),
        };
        Self { keys, distribution, drift }
    }

    /// How many keys there are to choose from.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The key of the next op that has one, `since_ns` after time 0 of the schedule; `inserts` where the op stores a key
    /// that need not be there (set, add).
    #[inline]
    pub fn next_id(&self, cursor: &mut Cursor, draw: &mut impl Draw, since_ns: u64, inserts: bool) -> u64 {
        match self.distribution {
            Sampler::Uniform => draw.below(self.keys),
            _ => self.next_id_of_any(cursor, draw, since_ns, inserts),
        }
    }

    /// [`KeyChooser::next_id`], whatever the distribution.
    #[inline(never)]
    fn next_id_of_any(&self, cursor: &mut Cursor, draw: &mut impl Draw, since_ns: u64, inserts: bool) -> u64 {
        let origin = self.origin(cursor, since_ns, inserts);
        match self.distribution {
            Sampler::Latest { .. } if inserts => origin,
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
        match self.distribution {
            Sampler::Sequential => {
                let first = cursor.place(cursor.walk(u64::from(count))) % self.keys;
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
        match self.distribution {
            Sampler::Uniform => 0,
            Sampler::Sequential => cursor.place(cursor.walk(1)) % self.keys,
            Sampler::Latest { .. } if inserts => {
                cursor.inserted += 1;
                self.add(cursor.place(cursor.inserted - 1) % self.keys, self.shift(since_ns))
            }
            Sampler::Latest { .. } => {
                let frontier = cursor.inserted * u64::from(cursor.part.of) % self.keys;
                self.add(self.subtract(frontier, 1 % self.keys), self.shift(since_ns))
            }
            Sampler::Zipf { .. }
            | Sampler::HashedZipf { .. }
            | Sampler::Hotspot { .. }
            | Sampler::Gaussian(_) => self.shift(since_ns),
        }
    }

    /// An id drawn by the distribution from this origin. A walk draws nothing: its origin is the id.
    #[inline]
    pub fn choose(&self, draw: &mut impl Draw, origin: u64) -> u64 {
        match &self.distribution {
            Sampler::Uniform => draw.below(self.keys),
            Sampler::Zipf { ranks, scatter } => scatter.apply(self.add(ranks.rank(draw), origin)),
            Sampler::HashedZipf { ranks, hash } => {
                self.add(hash.hash(ranks.rank(draw), 0) % self.keys, origin)
            }
            Sampler::Hotspot { ranks, scatter } => scatter.apply(self.add(ranks.rank(draw), origin)),
            Sampler::Sequential => origin,
            Sampler::Latest { ages } => self.subtract(origin, ages.rank(draw)),
            Sampler::Gaussian(gaussian) => self.add(gaussian.place(draw), origin),
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
    /// The rank behind each set of equally hot ones, ascending up to the number of keys, and the fraction of ops that goes below it, up
    /// to 1.
    ends: Vec<(u64, f64)>,
}

impl Hotspot {
    /// As far as there are keys, each set has one at least, and, below a fraction of 1, one at least is left for the next.
    fn new(keys: u64, shares: &[HotShare]) -> Self {
        let mut ends: Vec<(u64, f64)> = Vec::new();
        for share in shares {
            let most = if share.keys < 1.0 { (keys - 1).max(1) } else { keys };
            let least = ends.last().map_or(1, |(end, _)| end + 1).min(most);
            let end = (libm::round(share.keys * keys as f64) as u64).clamp(least, most);
            // Sets are one where there are too few keys.
            ends.pop_if(|(last, _)| *last == end);
            ends.push((end, share.ops));
        }
        match ends.last_mut() {
            Some((end, ops)) if *end == keys => *ops = 1.0,
            _ => ends.push((keys, 1.0)),
        }
        Self { ends }
    }

    /// A rank from 0 (hottest) to the number of keys less 1.
    #[inline]
    fn rank(&self, draw: &mut impl Draw) -> u64 {
        let mut begin = 0;
        let share = if self.ends.len() == 1 { 0.0 } else { draw.unit_open() };
        for &(end, ops) in &self.ends {
            if share <= ops {
                return begin + draw.below(end - begin);
            }
            begin = end;
        }
        unreachable!("the last set has all that is left")
    }
}

/// A normal distribution over places, cut at the ends.
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
    /// They are written down.
    Held(std::slice::Iter<'a, u64>),
}

impl<'a> Ids<'a> {
    #[inline]
    pub(crate) fn new(op: &Op, keys: u64, chooser: Option<&'a KeyChooser>) -> Self {
        let source = match (op.key, chooser) {
            (KeyRef::Id(id), _) => IdSource::Walked { next: id, step: 1, keys },
            (KeyRef::Drawn(step), Some(KeyChooser { distribution: Sampler::Sequential, .. })) => {
                IdSource::Walked { next: op.operand, step, keys }
            }
            (KeyRef::Drawn(seed), Some(chooser)) => {
                IdSource::Drawn { chooser, rng: DrawRng::from_draw(seed), origin: op.operand }
            }
            (key, _) => panic!("{key:?} names no ids here"),
        };
        Self { left: op.count, source }
    }

    /// These ids.
    pub(crate) fn held(ids: &'a [u64]) -> Self {
        Self { left: ids.len() as u16, source: IdSource::Held(ids.iter()) }
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
            IdSource::Held(ids) => *ids.next()?,
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
    use brunt_plan::op::OpKind;
    use proptest::prelude::*;

    const ZIPF: Popularity = Popularity::Zipf { exponent: 0.99, ranks: None };
    const ALONE: StreamPart = StreamPart { index: 0, of: 1 };

    impl KeyChooser {
        /// The id of the key of this popularity rank, 0 being the hottest. Uniform distributions and walks have no ranks: there it
        /// counts on from the origin.
        fn id_of_rank(&self, rank: u64, origin: u64) -> u64 {
            match &self.distribution {
                Sampler::Uniform | Sampler::Sequential => self.add(rank, origin),
                Sampler::Zipf { scatter, .. } | Sampler::Hotspot { scatter, .. } => {
                    scatter.apply(self.add(rank, origin))
                }
                Sampler::HashedZipf { hash, .. } => self.add(hash.hash(rank, 0) % self.keys, origin),
                Sampler::Latest { .. } => self.subtract(origin, rank),
                // Outwards from the middle.
                Sampler::Gaussian(Gaussian { keys, .. }) => {
                    let outwards = rank / 2 + rank % 2;
                    let place =
                        if rank.is_multiple_of(2) { keys / 2 + outwards } else { keys / 2 - outwards };
                    self.add(place, origin)
                }
            }
        }
    }

    fn chooser(distribution: &str, keys: u64) -> KeyChooser {
        KeyChooser::new(&distribution.parse().unwrap(), None, keys, 1)
    }

    fn drifting(distribution: &str, drift: &str, keys: u64) -> KeyChooser {
        KeyChooser::new(&distribution.parse().unwrap(), Some(drift.parse().unwrap()), keys, 1)
    }

    fn rng() -> Rng {
        Rng::for_stream(1, Purpose::Ops, 0, 0)
    }

    fn drawn(popularity: Popularity, keys: u64, data_seed: u64, count: usize) -> Vec<u64> {
        let chooser = KeyChooser::new(&popularity, None, keys, data_seed);
        let mut rng = rng();
        (0..count).map(|_| chooser.choose(&mut rng, 0)).collect()
    }

    fn op(key: KeyRef, count: u16) -> Op {
        Op { count, ..Op::of(OpKind::Mget, key) }
    }

    #[test]
    fn key_draws_depend_on_the_seed_alone() {
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

    /// The probability of every rank of a distribution over `keys` keys, by its definition.
    fn probabilities(distribution: &str, keys: u64) -> Vec<f64> {
        let weight = |rank: f64| match distribution.parse().unwrap() {
            Popularity::Uniform => 1.0,
            Popularity::Zipf { exponent, .. } | Popularity::Latest { exponent } => {
                (rank + 1.0).powf(-exponent)
            }
            Popularity::Hotspot(shares) => {
                let rank_of = |share: &HotShare| (share.keys * keys as f64).round();
                let behind = shares.iter().position(|share| rank < rank_of(share)).unwrap_or(shares.len());
                let of = |index: usize| match shares.get(index) {
                    Some(share) => (rank_of(share), share.ops),
                    None => (keys as f64, 1.0),
                };
                let ((end, ops), (begin, before)) =
                    (of(behind), behind.checked_sub(1).map_or((0.0, 0.0), of));
                (ops - before) / (end - begin)
            }
            Popularity::Gaussian { deviation } => {
                // The mass between the edges of the place, which lies outwards from the middle by turns.
                let outwards = (rank / 2.0).ceil() * if rank % 2.0 == 0.0 { 1.0 } else { -1.0 };
                let place = (keys / 2) as f64 + outwards;
                let below = |x: f64| libm::erf((x / keys as f64 - 0.5) / deviation / 2f64.sqrt());
                below(place + 1.0) - below(place)
            }
            Popularity::Sequential | Popularity::Window(_) => panic!("a walk is no draw"),
        };
        let weights: Vec<f64> = (0..keys).map(|rank| weight(rank as f64)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn every_popularity_has_its_probabilities_from_every_origin() {
        // 100 keys are 99 degrees of freedom, 0.01 to 99.99 % is 55 to 161; 101 keys have a key in the middle.
        for distribution in [
            "uniform",
            "zipf",
            "zipf:1",
            "zipf:0.3",
            "hotspot:0.2,0.8",
            "hotspot:0.5,0.1",
            "hotspot:0.01,0.1,0.1,0.55,0.5,0.99",
            "latest",
            "latest:0.5",
            "gaussian",
            "gaussian:0.3",
            "gaussian:1",
        ] {
            for (keys, origin) in [(100, 0), (100, 37), (101, 100)] {
                let (chooser, mut rng) = (chooser(distribution, keys), rng());
                let mut counts = vec![0f64; keys as usize];
                (0..200_000).for_each(|_| counts[chooser.choose(&mut rng, origin) as usize] += 1.0);
                let off = |(rank, probability): (u64, f64)| {
                    let expected = 200_000.0 * probability;
                    (counts[chooser.id_of_rank(rank, origin) as usize] - expected).powi(2) / expected
                };
                let chi_square: f64 = (0..).zip(probabilities(distribution, keys)).map(off).sum();
                assert!(
                    (55.0..161.0).contains(&chi_square),
                    "{distribution} over {keys} from {origin}: {chi_square}"
                );
            }
        }
    }

    #[test]
    fn ranks_are_a_bijection_and_fall_in_popularity() {
        for distribution in ["uniform", "zipf", "hotspot:0.3,0.9", "latest", "gaussian", "sequential"] {
            for (keys, origin) in [(1, 0), (2, 1), (99, 98), (100, 5)] {
                let chooser = chooser(distribution, keys);
                let mut ids: Vec<u64> = (0..keys).map(|rank| chooser.id_of_rank(rank, origin)).collect();
                ids.sort_unstable();
                assert!(ids.into_iter().eq(0..keys), "{distribution} over {keys} from {origin}");
                if distribution != "sequential" {
                    let falls =
                        probabilities(distribution, keys).windows(2).all(|pair| pair[1] < pair[0] + 1e-12);
                    assert!(falls, "{distribution} over {keys}");
                }
            }
        }
    }

    #[test]
    fn hot_sets_have_the_requested_size() {
        // (distribution, keys, hot keys): all ops go to the hot ones.
        for (distribution, keys, hot) in [
            ("hotspot:0.2,1", 1_000, 200),
            ("hotspot:0.0001,1", 1_000, 1),
            ("hotspot:0.9999,1", 1_000, 999),
            ("hotspot:1,1", 1_000, 1_000),
            ("hotspot:0.5,1", 3, 2),
            ("hotspot:0.9,1", 1, 1),
            ("hotspot:0.1,0.5,0.2,1", 1_000, 200),
            ("hotspot:0.0001,0.5,0.0002,1", 1_000, 2),
            ("hotspot:0.1,0.3,0.2,0.6,0.3,1", 2, 1),
        ] {
            let (chooser, mut rng) = (chooser(distribution, keys), rng());
            let drawn: std::collections::HashSet<u64> =
                (0..30_000).map(|_| chooser.choose(&mut rng, 0)).collect();
            assert_eq!(
                drawn,
                (0..hot).map(|rank| chooser.id_of_rank(rank, 0)).collect(),
                "{distribution} over {keys}"
            );
        }
        // Hot keys are no neighbours: in every tenth of the ids there are about 200, give or take four deviations of 13.4.
        let chooser = chooser("hotspot:0.02,0.5", 100_000);
        let mut counts = [0u64; 10];
        (0..2_000).for_each(|rank| counts[(chooser.id_of_rank(rank, 0) / 10_000) as usize] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(200) < 54), "{counts:?}");
    }

    #[test]
    fn very_many_keys_stay_in_range_and_in_proportion() {
        // (distribution, the fraction of draws below the middle id)
        for (distribution, below) in
            [("uniform", 0.5), ("hotspot:0.1,0.9", 0.5), ("gaussian", 0.5), ("gaussian:1", 0.5)]
        {
            for keys in [1 << 53, 1 << 63, u64::MAX] {
                let (chooser, mut rng) = (chooser(distribution, keys), rng());
                let ids: Vec<u64> = (0..10_000).map(|_| chooser.choose(&mut rng, 0)).collect();
                assert!(ids.iter().all(|id| *id < keys));
                let count = ids.iter().filter(|id| **id < keys / 2).count() as f64;
                assert!((count - below * 1e4).abs() < 200.0, "{distribution} over {keys}: {count}");
            }
        }
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
    fn hashed_ranks_have_their_shares_for_any_number_of_keys() {
        // The hottest of 10¹⁰ ranks has 1/Σ k^−0.99 = 0.037 781 of the draws, the next ones as much less as Zipf says. Others fall onto their
        // keys too, each of them onto one in `keys`.
        for keys in [1_000, 100_000, 10_000_000] {
            let (chooser, mut rng) = (chooser("zipf:0.99,10000000000", keys), rng());
            let ids: Vec<u64> = (0..1_000_000).map(|_| chooser.choose(&mut rng, 0)).collect();
            for rank in 0..10 {
                let id = chooser.id_of_rank(rank, 0);
                let share = 0.037_781 * (rank as f64 + 1.0).powf(-0.99) + 0.9 / keys as f64;
                let measured = ids.iter().filter(|drawn| **drawn == id).count() as f64 / 1e6;
                let bar = 4.0 * (share / 1e6).sqrt() + 0.5 / keys as f64;
                assert!((measured - share).abs() < bar, "rank {rank} over {keys}: {measured}, not {share}");
            }
        }
    }

    #[test]
    fn keys_of_etc_have_their_published_shares() {
        // Of a million keys three take a tenth of the requests, 1 % take 55 %, and the coldest half 1 %.
        let keys = brunt_plan::preset::keys_of("etc").unwrap();
        let law = keys["popularity"].as_str().unwrap();
        let (chooser, mut rng) = (chooser(law, 1_000_000), rng());
        let mut rank_of = vec![0; 1_000_000];
        (0..1_000_000).for_each(|rank| rank_of[chooser.id_of_rank(rank, 0) as usize] = rank);
        let ranks: Vec<u64> = (0..1_000_000).map(|_| rank_of[chooser.choose(&mut rng, 0) as usize]).collect();
        for (hottest, share) in [(3, 0.1), (10_000, 0.55), (500_000, 0.99)] {
            let measured = ranks.iter().filter(|rank| **rank < hottest).count() as f64 / 1e6;
            let bar = 3.0 * f64::sqrt(share * (1.0 - share) / 1e6);
            assert!((measured - share).abs() < bar, "the hottest {hottest}: {measured}");
        }
    }

    #[test]
    fn the_keys_of_an_op_are_stable() {
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

    #[test]
    fn every_release_draws_the_same_keys() {
        // Golden: with the seeds in a report anyone can ask for the same keys again.
        for (distribution, ids) in GOLDEN {
            let (chooser, mut rng, mut cursor) =
                (chooser(distribution, 1_000_000), rng(), Cursor::new(ALONE));
            let drawn =
                [false, false, true, false].map(|inserts| chooser.next_id(&mut cursor, &mut rng, 0, inserts));
            assert_eq!(drawn, ids, "{distribution}");
        }
    }

    const GOLDEN: [(&str, [u64; 4]); 8] = [
        ("uniform", [496_427, 284_959, 545_683, 527_377]),
        ("zipf", [996_036, 505_625, 735_657, 104_822]),
        ("hotspot:0.2,0.8", [27_826, 807_231, 317_135, 509_010]),
        ("hotspot:0.01,0.5,0.2,0.8", [771_891, 239_176, 693_394, 650_248]),
        ("zipf:0.99,10000000000", [775_519, 375_438, 833_368, 942_197]),
        ("sequential", [0, 1, 2, 3]),
        ("latest", [999_954, 995_330, 0, 991_059]),
        ("gaussian", [457_020, 319_265, 427_207, 701_288]),
    ];

    proptest! {
        #[test]
        fn sessions_walk_over_every_key_equally_often(
            keys in 1..60u64, of in 1..7u32, counts in proptest::collection::vec(1..12u16, 1..8), rounds in 1..3u64,
        ) {
            // Every session asks for the same number of keys, here several at a time; together they wrap around.
            let chooser = chooser("sequential", keys);
            let mut asked = vec![0; keys as usize];
            for index in 0..of {
                let (mut cursor, mut rng) = (Cursor::new(StreamPart { index, of }), rng());
                let (mut left, mut counts) = (keys * rounds, counts.iter().cycle());
                while left > 0 {
                    let count = left.min(u64::from(*counts.next().unwrap())) as u16;
                    left -= u64::from(count);
                    if count == 1 {
                        asked[chooser.next_id(&mut cursor, &mut rng, 0, false) as usize] += 1;
                    } else {
                        let (key, operand) = chooser.next_keys(&mut cursor, &mut rng, 0, count);
                        chooser.ids(&Op { operand, ..op(key, count) }).for_each(|id| asked[id as usize] += 1);
                    }
                }
            }
            prop_assert!(asked.iter().all(|times| *times == u64::from(of) * rounds), "{:?}", asked);
        }
    }

    #[test]
    fn sessions_of_a_worker_walk_together() {
        // Worker 1 of 2 with three sessions: whichever asks has the worker's next key.
        let (chooser, mut rng) = (chooser("sequential", 10), rng());
        let walk = Cursor::new(StreamPart { index: 1, of: 2 });
        let mut cursors = [walk.clone(), walk.clone(), walk];
        let ids =
            [0, 2, 1, 1, 0, 2].map(|session| chooser.next_id(&mut cursors[session], &mut rng, 0, false));
        assert_eq!(ids, [1, 3, 5, 7, 9, 1]);
    }

    #[test]
    fn sessions_take_turns_in_a_walk() {
        // Session 1 of 3 over ten keys: single keys, then four at once, then one again.
        let (chooser, mut rng) = (chooser("sequential", 10), rng());
        let mut cursor = Cursor::new(StreamPart { index: 1, of: 3 });
        let ids = [false, true].map(|inserts| chooser.next_id(&mut cursor, &mut rng, 0, inserts));
        assert_eq!(ids, [1, 4]);
        let (key, operand) = chooser.next_keys(&mut cursor, &mut rng, 0, 4);
        assert!(chooser.ids(&Op { operand, ..op(key, 4) }).eq([7, 0, 3, 6]));
        assert_eq!(chooser.next_id(&mut cursor, &mut rng, 0, false), 9);
    }

    #[test]
    fn the_latest_key_is_the_hottest() {
        // (session, of, op by op: what is inserted, or the newest key that is known of)
        type Steps<'a> = &'a [(bool, u64)];
        let table: [(u32, u32, Steps<'_>); 3] = [
            (0, 1, &[(false, 9), (true, 0), (false, 0), (true, 1), (true, 2), (false, 2)]),
            (1, 3, &[(false, 9), (true, 1), (false, 2), (true, 4), (true, 7), (true, 0), (false, 1)]),
            (2, 3, &[(true, 2), (false, 2), (true, 5), (false, 5), (true, 8), (true, 1), (false, 1)]),
        ];
        let chooser = chooser("latest", 10);
        for (index, of, steps) in table {
            let mut cursor = Cursor::new(StreamPart { index, of });
            for (step, (inserts, id)) in steps.iter().enumerate() {
                let origin = chooser.origin(&mut cursor, 0, *inserts);
                assert_eq!(chooser.id_of_rank(0, origin), *id, "session {index} of {of}, step {step}");
                assert_eq!(chooser.id_of_rank(9, origin), (*id + 1) % 10, "the oldest is the next to go");
            }
        }
    }

    #[test]
    fn inserted_keys_are_requested() {
        // 300 inserts, each followed by 20 reads: the key just inserted has the share of rank 0, 1/Σ k^−0.99 = 0.1930.
        let (chooser, mut rng, mut cursor) = (chooser("latest", 100), rng(), Cursor::new(ALONE));
        let mut hits = 0.0;
        for number in 0..300 {
            let inserted = chooser.next_id(&mut cursor, &mut rng, 0, true);
            assert_eq!(inserted, number % 100);
            let mut reads = (0..20).map(|_| chooser.next_id(&mut cursor, &mut rng, 0, false));
            hits += reads.by_ref().filter(|id| *id == inserted).count() as f64;
        }
        let share = probabilities("latest", 100)[0];
        assert!((hits / 6_000.0 - share).abs() < 4.0 * (share * (1.0 - share) / 6_000.0).sqrt(), "{hits}");
    }

    #[test]
    fn drift_shifts_by_a_step_each_period() {
        for (drift, keys, since_ns, shift) in [
            ("10/1s", 1_000, 0, 0),
            ("10/1s", 1_000, 999_999_999, 0),
            ("10/1s", 1_000, 1_000_000_000, 10),
            ("10/1s", 1_000, 99_999_999_999, 990),
            ("10/1s", 1_000, 100_000_000_000, 0),
            ("2500/1ms", 1_000, 3_000_000, 500),
            ("1/1ns", u64::MAX, u64::MAX - 1, u64::MAX - 1),
            ("18446744073709551614/1ns", u64::MAX, 3, u64::MAX - 3),
            ("7/1s", 1, 5_000_000_000, 0),
        ] {
            for distribution in ["zipf", "hotspot:0.1,0.9", "gaussian"] {
                let origin =
                    drifting(distribution, drift, keys).origin(&mut Cursor::new(ALONE), since_ns, false);
                assert_eq!(origin, shift, "{distribution}, {drift} over {keys} at {since_ns}");
            }
            let latest = drifting("latest", drift, keys).origin(&mut Cursor::new(ALONE), since_ns, false);
            assert_eq!(latest, ((u128::from(shift) + u128::from(keys) - 1) % u128::from(keys)) as u64);
            for distribution in ["uniform", "sequential"] {
                let origin =
                    drifting(distribution, drift, keys).origin(&mut Cursor::new(ALONE), since_ns, false);
                assert_eq!(origin, 0, "{distribution} has nothing to move");
            }
        }
    }

    #[test]
    fn drift_replaces_its_step_of_the_hot_set() {
        // A hot set of 1000 out of 10 000 keys, 100 others each 10 s: after k periods min(1, k/10) is replaced.
        for distribution in ["zipf", "hotspot:0.1,0.9", "latest", "gaussian"] {
            let chooser = drifting(distribution, "100/10s", 10_000);
            let hot = |period: u64| -> std::collections::HashSet<u64> {
                let origin = chooser.origin(&mut Cursor::new(ALONE), period * 10_000_000_000, false);
                (0..1_000).map(|rank| chooser.id_of_rank(rank, origin)).collect()
            };
            for (period, replaced) in
                [(0, 0), (1, 100), (2, 200), (9, 900), (10, 1_000), (50, 1_000), (100, 0)]
            {
                assert_eq!(
                    hot(0).difference(&hot(period)).count(),
                    replaced,
                    "{distribution}, period {period}"
                );
            }
        }
    }

    #[test]
    fn drift_cools_the_former_hot_set_as_computed() {
        // After k < 10 periods of the same drift the former hot keys get 0.9·(1 − k/10) of the ops as hot ones that are
        // left, and 0.1·(100k/9000) as cold ones.
        let chooser = drifting("hotspot:0.1,0.9", "100/10s", 10_000);
        let former: std::collections::HashSet<u64> =
            (0..1_000).map(|rank| chooser.id_of_rank(rank, 0)).collect();
        for period in [0, 1, 5, 9] {
            let (mut rng, mut cursor) = (rng(), Cursor::new(ALONE));
            let ids =
                (0..50_000).map(|_| chooser.next_id(&mut cursor, &mut rng, period * 10_000_000_000, false));
            let measured = ids.filter(|id| former.contains(id)).count() as f64 / 50_000.0;
            let k = period as f64;
            let expected = 0.9 * (1.0 - k / 10.0) + 0.1 * (100.0 * k / 9_000.0);
            let bar = 4.0 * (expected * (1.0 - expected) / 50_000.0).sqrt();
            assert!((measured - expected).abs() < bar, "{period}: {measured}, {expected} ± {bar}");
        }
    }

    #[test]
    fn multi_gets_keep_their_drift_origin() {
        // The keys of an op are those of its time, whenever they are requested: here of a second period, and of a frontier.
        for distribution in ["zipf", "hotspot:0.1,0.9", "latest", "gaussian"] {
            let (chooser, mut rng) = (drifting(distribution, "5000/1s", 10_000), rng());
            let mut cursor = Cursor::new(ALONE);
            let (key, operand) = chooser.next_keys(&mut cursor, &mut rng, 1_500_000_000, 100);
            let op = Op { operand, ..op(key, 100) };
            let ids: Vec<u64> = chooser.ids(&op).collect();
            chooser.next_id(&mut cursor, &mut rng, 9_000_000_000, true);
            assert!(chooser.ids(&op).eq(ids.iter().copied()), "{distribution}");
            let hot: Vec<u64> = (0..5_000).map(|rank| chooser.id_of_rank(rank, operand)).collect();
            let count = ids.iter().filter(|id| hot.contains(id)).count();
            assert!(count > 80, "{distribution}: {count} of 100 in the hotter half");
        }
    }
}
