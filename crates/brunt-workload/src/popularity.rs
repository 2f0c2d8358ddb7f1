//! Which key is asked for: the sampler behind the plan's `--popularity`.
//!
//! Tables only, never changed after they are built: one chooser serves all sessions of a class, the state of the draw is
//! the caller's generator. Ranks become ids through a bijection that depends on the data seed alone, so that every worker
//! and every agent finds the same keys hot, and that the hot keys are not neighbours.

use crate::permutation::Permutation;
use crate::rng::{Draw, DrawRng};
use crate::zipf::Zipf;
use brunt_plan::op::{KeyRef, Op};
use brunt_plan::popularity::Popularity;

/// Draws key ids from `0..keys`.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    keys: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    Zipf { ranks: Zipf, scatter: Permutation },
}

impl KeyChooser {
    /// The sampler of this law over `0..keys`; `keys` is at least 1.
    pub fn new(popularity: &Popularity, keys: u64, data_seed: u64) -> Self {
        assert!(keys > 0, "no keys to choose from");
        let law = match popularity {
            Popularity::Uniform => Law::Uniform,
            Popularity::Zipf { exponent } => {
                Law::Zipf { ranks: Zipf::new(keys, *exponent), scatter: Permutation::new(keys, data_seed) }
            }
        };
        Self { keys, law }
    }

    /// How many keys there are to choose from.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The id of the next key.
    #[inline]
    pub fn choose(&self, draw: &mut impl Draw) -> u64 {
        match &self.law {
            Law::Uniform => draw.below(self.keys),
            Law::Zipf { ranks, scatter } => scatter.apply(ranks.rank(draw)),
        }
    }

    /// The id of the key of this popularity rank, 0 being the hottest. A uniform law has no ranks: rank and id are one.
    pub fn id_of_rank(&self, rank: u64) -> u64 {
        match &self.law {
            Law::Uniform => rank,
            Law::Zipf { scatter, .. } => scatter.apply(rank),
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
}

/// The key ids of an op; see [`KeyChooser::ids`].
#[derive(Clone, Debug)]
pub struct Ids<'a> {
    left: u16,
    source: IdSource<'a>,
}

#[derive(Clone, Debug)]
enum IdSource<'a> {
    /// One id after the other, from 0 again behind the last of `keys`.
    Consecutive {
        next: u64,
        keys: u64,
    },
    Drawn {
        chooser: &'a KeyChooser,
        rng: DrawRng,
    },
}

impl<'a> Ids<'a> {
    #[inline]
    pub(crate) fn new(op: &Op, keys: u64, chooser: Option<&'a KeyChooser>) -> Self {
        let source = match (op.key, chooser) {
            (KeyRef::Id(id), _) => IdSource::Consecutive { next: id, keys },
            (KeyRef::Drawn(seed), Some(chooser)) => {
                IdSource::Drawn { chooser, rng: DrawRng::from_draw(seed) }
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
            IdSource::Consecutive { next, keys } => {
                let id = *next;
                *next = if id + 1 >= *keys { 0 } else { id + 1 };
                id
            }
            IdSource::Drawn { chooser, rng } => chooser.choose(rng),
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
        let chooser = KeyChooser::new(&popularity, keys, data_seed);
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        (0..count).map(|_| chooser.choose(&mut rng)).collect()
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
        let chooser = KeyChooser::new(&ZIPF, 1_000_000, 1);
        let hottest: Vec<u64> = (0..3).map(|rank| chooser.id_of_rank(rank)).collect();
        for (rank, id) in hottest.iter().enumerate() {
            let share = 0.064_969 * (rank as f64 + 1.0).powf(-0.99);
            let count = ids.iter().filter(|drawn| *drawn == id).count() as f64;
            assert!((count / 1e5 - share).abs() < 4.0 * (share / 1e5).sqrt(), "rank {rank}: {count}");
        }
        assert!(hottest.iter().all(|id| *id > 1_000), "{hottest:?}");
    }

    #[test]
    fn the_keys_of_an_op_are_the_same_whenever_asked() {
        let chooser = KeyChooser::new(&ZIPF, 10, 1);
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
        let chooser = KeyChooser::new(&ZIPF, 1_000_000, 1);
        let hottest = chooser.id_of_rank(0);
        let count = (0..100_000)
            .filter(|seed| chooser.ids(&op(KeyRef::Drawn(*seed), 2)).nth(1) == Some(hottest))
            .count();
        assert!((count as f64 - 6_497.0).abs() < 4.0 * 6_497f64.sqrt(), "{count}");
    }
}
