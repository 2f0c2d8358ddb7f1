//! Dividing a plan among workers so that the parts add up to it exactly.
//!
//! A shard says which slice of connections, requests, arrivals and keys is a worker's own. Rates need no remainders:
//! the worker keeps the whole rate and its portion of the arrivals (DESIGN of the schedule: evenly spaced arrivals are
//! dealt out slot by slot, Poisson arrivals split into independent streams of a fraction of the rate).

use crate::plan::{Class, DataSet, Load, Plan, Protocol, SessionScope};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One stream out of several that together make up a class's arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPart {
    /// Which one, below `of`.
    pub index: u32,
    /// How many there are, at least 1.
    pub of: u32,
}

/// The arrivals of a class that a worker sends: of every `of` in turn, `width` arrivals from number `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portion {
    /// The first, below `of`.
    pub first: u32,
    /// How many, at least 1: its weight beside the other workers.
    pub width: u32,
    /// The weights of all workers together.
    pub of: u32,
}

impl Portion {
    /// Where all workers weigh the same.
    pub const fn even(part: StreamPart) -> Self {
        Self { first: part.index, width: 1, of: part.of }
    }

    /// That of the `nth` worker after this one, where they weigh the same.
    pub const fn nth(self, nth: u32) -> Self {
        Self { first: self.first + nth * self.width, ..self }
    }

    /// Its part of `total` requests.
    fn share_of(self, total: u64) -> u64 {
        let begin = share(total, self.first, self.of).start;
        share(total, self.first + self.width, self.of).start - begin
    }
}

/// A worker's slice of one class; of one that other workers carry out, nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShard {
    /// Which worker this is among those that carry the class out.
    pub part: StreamPart,
    /// What of its arrivals in open loop is the worker's own.
    pub portion: Portion,
    /// Its connections, as numbers within the class.
    pub connections: Range<u32>,
    /// Its share of the requests of the measured window, where the plan bounds them and they are counted here.
    pub requests: Option<u64>,
    /// Its share of the connections begun in all, where the plan bounds them.
    pub connections_total: Option<u64>,
}

impl ClassShard {
    /// Its sessions that share the records of a trace, and how many there are on all workers.
    pub fn record_takers(&self, class: &Class) -> (Range<u32>, u32) {
        match class.sessions {
            _ if self.connections.is_empty() => (0..0, 1),
            SessionScope::Worker => (self.part.index..self.part.index + 1, self.part.of),
            SessionScope::Connection => (self.connections.clone(), class.connections),
            SessionScope::Client { connections: each } => {
                (self.connections.start / each..self.connections.end / each, class.connections / each)
            }
        }
    }
}

/// A worker's slice of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which worker this is among all of the run.
    pub part: StreamPart,
    /// What it speaks.
    pub protocol: Protocol,
    /// One entry per class of the plan.
    pub classes: Vec<ClassShard>,
    /// For every data set of [`Plan::data_sets`], the ids this worker preloads.
    pub preload: Vec<Range<u64>>,
}

/// Part `index` of `total` things divided among `of`: the first parts hold one more where it does not divide evenly.
pub fn share(total: u64, index: u32, of: u32) -> Range<u64> {
    // 128 bits, because total · index may exceed 64.
    let cut = |index: u32| {
        let even = u128::from(total / u64::from(of)) * u128::from(index);
        (even + u128::from(u64::from(index).min(total % u64::from(of)))) as u64
    };
    cut(index)..cut(index + 1)
}

/// How many things are in part `index` of `total` divided among `of`.
pub fn share_of(total: u64, index: u32, of: u32) -> u64 {
    let part = share(total, index, of);
    part.end - part.start
}

/// How many requests of a class are measured at most.
pub fn requests_of(plan: &Plan, class: usize) -> Option<u64> {
    plan.stop.requests.map(|total| share_of(total, class as u32, plan.classes.len() as u32))
}

/// Divides the plan among its workers, which all weigh the same.
pub fn shards(plan: &Plan) -> Vec<Shard> {
    let part = |index| StreamPart { index, of: plan.threads };
    (0..plan.threads).map(|index| shard(plan, index, Portion::even(part(index)))).collect()
}

/// The slice of one worker, with these arrivals where it carries out every class.
pub fn shard(plan: &Plan, index: u32, portion: Portion) -> Shard {
    let (all, groups) = (0..plan.threads, plan.worker_groups());
    let group = groups.iter().find(|group| group.workers.contains(&index));
    let (protocol, own) =
        group.map_or((plan.protocol, all.clone()), |group| (group.protocol, group.workers.clone()));
    let part = StreamPart { index: index - own.start, of: own.end - own.start };
    let portion = if own == all { portion } else { Portion::even(part) };
    let carries = |class: &Class| class.protocol == protocol;
    let of_class = |(class_index, class): (usize, &Class)| {
        // The requests of the plan are first divided among classes, then among workers. Those
        // of a trace that come with their times are counted where the file is read.
        let requests = requests_of(plan, class_index).filter(|_| !class.has_timed_records());
        let whole = share_of_class(class, part, portion, requests);
        if carries(class) {
            return whole;
        }
        // Others carry it out.
        let (requests, connections_total) = (requests.map(|_| 0), whole.connections_total.map(|_| 0));
        ClassShard { connections: 0..0, requests, connections_total, ..whole }
    };
    let of_set = |set: &DataSet<'_>| match carries(&plan.classes[set.classes[0]]) {
        true => share_of_set(plan, set, part),
        false => 0..0,
    };
    Shard {
        part: StreamPart { index, of: plan.threads },
        protocol,
        classes: plan.classes.iter().enumerate().map(of_class).collect(),
        preload: plan.data_sets().iter().map(of_set).collect(),
    }
}

/// The ids that a worker preloads: its part among all workers, or among those that have its server.
fn share_of_set(plan: &Plan, set: &DataSet<'_>, part: StreamPart) -> Range<u64> {
    let servers = set.home.len() as u32;
    match plan.placement.of_worker(part.index, servers) {
        None => share(set.ids_preloaded(), part.index, part.of),
        // Every client fills its own window.
        Some(_) if set.windows.is_some() => share(set.ids_preloaded(), part.index, part.of),
        Some(server) => {
            share(set.ids_preloaded(), part.index / servers, (part.of - server).div_ceil(servers))
        }
    }
}

/// What a worker carries out of a class.
fn share_of_class(class: &Class, part: StreamPart, portion: Portion, requests: Option<u64>) -> ClassShard {
    // Clients stay in one piece.
    let each = class.sessions.connections_each();
    let clients = share(u64::from(class.connections / each), part.index, part.of);
    let connections = clients.start * u64::from(each)..clients.end * u64::from(each);
    ClassShard {
        part,
        portion,
        connections: connections.start as u32..connections.end as u32,
        requests: requests.map(|total| match class.load {
            Load::Open { .. } => portion.share_of(total),
            Load::Closed { .. } => share_of(total, part.index, part.of),
        }),
        connections_total: class.lifetime.total.map(|total| share_of(total, part.index, part.of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::resolved;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_contiguous_and_add_up(total in any::<u64>(), of in 1..200u32) {
            let mut next = 0;
            for index in 0..of {
                let part = share(total, index, of);
                prop_assert_eq!(part.start, next);
                prop_assert!(part.end - part.start >= total / u64::from(of));
                prop_assert!(part.end - part.start <= total / u64::from(of) + 1);
                next = part.end;
            }
            prop_assert_eq!(next, total);
        }

        #[test]
        fn shards_add_up_to_the_plan(
            threads in 1..9u32, connections in 9..100u32, requests in 1..1_000_000u64, keys in 1..1_000_000u64,
        ) {
            let toml = format!("threads={threads}\nrequests={requests}\nkeys={keys}\nconnections={connections}\n\
                                [[class]]\nname='a'\n[[class]]\nname='b'\nprefix='b'");
            let plan = resolved(&toml).unwrap();
            let shards = shards(&plan);
            prop_assert_eq!(shards.len() as u32, threads);
            for class in 0..2 {
                let sum: u32 = shards.iter().map(|shard| shard.classes[class].connections.len() as u32).sum();
                prop_assert_eq!(sum, connections);
                prop_assert!(shards.iter().all(|shard| !shard.classes[class].connections.is_empty()));
            }
            let sum: u64 = shards.iter().flat_map(|shard| &shard.classes).filter_map(|class| class.requests).sum();
            prop_assert_eq!(sum, requests);
            for keyspace in 0..2 {
                let sum: u64 = shards.iter().map(|shard| shard.preload[keyspace].end - shard.preload[keyspace].start).sum();
                prop_assert_eq!(sum, keys);
            }
        }
    }

    /// Classes of two protocols on three workers: each class is divided among its own.
    #[test]
    fn protocols_have_their_own_workers() {
        let toml = "threads=3\nrequests=90\nkeys=12\nserver='a'\n[[class]]\nname='x'\nrate=5\n[[class]]\nname='y'\nserver='redis://b'";
        let plan = resolved(toml).unwrap();
        let of_class =
            |class: &ClassShard| (class.connections.clone(), class.requests.unwrap(), class.portion.of);
        let shown = |shard: &Shard| {
            (shard.protocol, of_class(&shard.classes[0]), of_class(&shard.classes[1]), shard.preload.clone())
        };
        let found: Vec<_> = shards(&plan).iter().map(shown).collect();
        let (text, redis) = (Protocol::MemcachedText, Protocol::Resp2);
        assert_eq!(
            found,
            [
                (text, (0..8, 23, 2), (0..0, 0, 2), vec![0..6, 0..0]),
                (text, (8..16, 22, 2), (0..0, 0, 2), vec![6..12, 0..0]),
                (redis, (0..0, 0, 1), (0..16, 45, 1), vec![0..0, 0..12]),
            ]
        );
    }

    /// Six workers on three servers, by what each preloads; and fewer workers than servers.
    #[test]
    fn workers_of_one_server_share_its_preload() {
        for (threads, idle, expected) in [
            (6_u32, vec![], "[0..6, 0..6, 0..6, 6..12, 6..12, 6..12]"),
            (4, vec![], "[0..6, 0..12, 0..12, 6..12]"),
            (2, vec![2], "[0..12, 0..12]"),
            (1, vec![1, 2], "[0..12]"),
        ] {
            let toml = format!(
                "threads={threads}\nconnections=36\nkeys=12\nserver=['a','b','c']\nplacement='by-thread'"
            );
            let plan = resolved(&toml).unwrap();
            let preload: Vec<_> = shards(&plan).iter().map(|shard| shard.preload[0].clone()).collect();
            assert_eq!(format!("{preload:?}"), expected, "{threads}");
            assert_eq!((plan.idle_servers(), plan.preload_stores()), (idle, 12 * u64::from(threads.min(3))));
            assert_eq!(resolved(&plan.spec.to_toml()), Ok(plan));
        }
    }

    proptest! {
        /// Workers of any weights: requests in open loop are divided by weight, to the last, and those in closed loop evenly.
        #[test]
        fn weights_add_up_to_the_plan(weights in proptest::collection::vec(1..9u32, 1..6), requests in 1..100_000u64) {
            let threads = weights.len();
            let toml = |load: &str| format!("threads={threads}\nrequests={requests}\nconnections={threads}\n{load}");
            let of = weights.iter().sum();
            for (load, is_open) in [("rate=5", true), ("", false)] {
                let plan = resolved(&toml(load)).unwrap();
                let mut first = 0;
                let mut sum = 0;
                for (index, width) in (0..).zip(&weights) {
                    let own = shard(&plan, index, Portion { first, width: *width, of });
                    let own = own.classes[0].requests.unwrap();
                    let (part, whole) = if is_open { (*width, of) } else { (1, threads as u32) };
                    let exact = requests as f64 * f64::from(part) / f64::from(whole);
                    prop_assert!((own as f64 - exact).abs() <= f64::from(part), "{own}, not {exact}");
                    sum += own;
                    first += width;
                }
                prop_assert_eq!(sum, requests);
            }
        }
    }
}
