//! Dividing a plan among workers so that the parts add up to it exactly.
//!
//! A shard says which slice of connections, requests, arrivals and keys is a worker's own. Rates need no remainders:
//! the worker keeps the whole rate and its place among `of` streams (DESIGN of the schedule: evenly spaced arrivals are
//! dealt out slot by slot, Poisson arrivals split into independent streams of a fraction of the rate).

use crate::plan::Plan;
use std::ops::Range;

/// One stream out of several that together make up a class's arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPart {
    /// Which one, below `of`.
    pub index: u32,
    /// How many there are, at least 1.
    pub of: u32,
}

/// A worker's slice of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShard {
    /// Its connections, as numbers within the class.
    pub connections: Range<u32>,
    /// Its share of the requests of the measured window, where the plan bounds them.
    pub requests: Option<u64>,
    /// Its share of the connections begun in all, where the plan bounds them.
    pub connections_total: Option<u64>,
}

/// A worker's slice of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which worker this is among all of the run.
    pub part: StreamPart,
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

/// Divides the plan among its workers.
pub fn shards(plan: &Plan) -> Vec<Shard> {
    let of = plan.threads;
    let classes = plan.classes.len() as u64;
    let shard = |index| Shard {
        part: StreamPart { index, of },
        classes: plan
            .classes
            .iter()
            .enumerate()
            .map(|(class_index, class)| {
                let connections = share(u64::from(class.connections), index, of);
                // The requests of the plan are first divided among classes, then among workers.
                let of_class =
                    plan.stop.requests.map(|total| share_of(total, class_index as u32, classes as u32));
                ClassShard {
                    connections: connections.start as u32..connections.end as u32,
                    requests: of_class.map(|total| share_of(total, index, of)),
                    connections_total: class.lifetime.total.map(|total| share_of(total, index, of)),
                }
            })
            .collect(),
        preload: plan.data_sets().iter().map(|set| share(set.ids(), index, of)).collect(),
    };
    (0..of).map(shard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{Host, resolve};
    use crate::spec::PlanSpec;
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
            let spec = PlanSpec::from_toml(&toml).expect("the text is a plan");
            let plan = resolve(&spec, &Host { allowed_cpus: vec![0, 1], random_seed: 0 }).expect("the plan resolves");
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
}
