//! What each worker did with the last second of a run, and what each server answered in it.
//!
//! Not the timeline, whose slices grow with the run. Invariant: a second is shown when every worker has told of it.

use brunt_stats::client_time::ClientTime;
use brunt_stats::interval::Interval;

/// Sums over the intervals of a second.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// How long each worker told of.
    wall_ns: Vec<u64>,
    workers: Vec<ClientTime>,
    answered: Vec<u64>,
}

/// The second that is over, and the one that goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSecond {
    over: Sums,
    next: Sums,
}

impl LastSecond {
    /// A worker handed over what it recorded.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let Sums { wall_ns, workers, answered } = &mut self.next;
        let worker = interval.worker as usize;
        wall_ns.resize(wall_ns.len().max(worker + 1), 0);
        workers.resize(wall_ns.len(), ClientTime::default());
        answered.resize(answered.len().max(interval.servers.len()), 0);
        wall_ns[worker] += interval.end_ns - interval.start_ns;
        workers[worker].merge(&ClientTime::of(interval));
        answered.iter_mut().zip(&interval.servers).for_each(|(sum, server)| *sum += server.answered);
    }

    /// A second is complete.
    pub(crate) fn turn(&mut self) {
        self.over = std::mem::take(&mut self.next);
    }

    /// By worker.
    pub(crate) fn workers(&self) -> &[ClientTime] {
        &self.over.workers
    }

    /// What each server answered, per second, in the order of the plan.
    pub(crate) fn done_per_s(&self) -> Vec<f64> {
        // Workers tell of tenths, so that it is a second only about.
        let told = || self.over.wall_ns.iter().filter(|wall_ns| **wall_ns > 0);
        let wall_ns = told().sum::<u64>() as f64 / told().count().max(1) as f64;
        self.over.answered.iter().map(|answered| *answered as f64 * 1e9 / wall_ns.max(1.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_stats::interval::WorkerTime;
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::server::ServerCounts;

    const MS: u64 = 1_000_000;

    /// Two workers, of which the second hands over nine tenths of a second, then eleven.
    #[test]
    fn rates_are_those_of_the_time_that_was_told_of() {
        let mut set = RecorderSet::new(&Layout::default());
        let mut interval = |worker: u32, tenth: u64| {
            let held = set.take_interval(worker, tenth * 100 * MS, (tenth + 1) * 100 * MS);
            let worker_time = Some(WorkerTime { busy_ns: 30 * MS, run_delay_ns: Some(0) });
            let servers = [5, 0].map(|answered| ServerCounts { answered, ..ServerCounts::default() });
            Interval { worker_time, servers: servers.into(), ..held }
        };
        let mut second = LastSecond::default();
        (0..10).for_each(|tenth| second.add(&interval(0, tenth)));
        (0..9).for_each(|tenth| second.add(&interval(1, tenth)));
        assert_eq!(second.done_per_s(), Vec::<f64>::new(), "not complete");
        second.turn();
        assert_eq!(second.done_per_s(), [100.0, 0.0]);
        let busy = |second: &LastSecond| -> Vec<_> {
            second.workers().iter().map(|worker| worker.shares().and_then(|shares| shares.busy)).collect()
        };
        assert_eq!(busy(&second), [Some(0.3); 2]);
        (9..20).for_each(|tenth| second.add(&interval(1, tenth)));
        second.turn();
        // A worker that is gone tells nothing.
        assert_eq!(busy(&second), [None, Some(0.3)]);
        assert_eq!(second.done_per_s(), [50.0, 0.0]);
    }
}
