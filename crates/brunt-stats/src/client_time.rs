//! What the workers and the processors of the client did in a piece of time.
//!
//! Not the usage of the whole window, by which the checks judge (`usage.rs`, `host.rs`): workers read their clocks whenever they hand over
//! an interval. Invariant: every field is a sum or a maximum, so that pieces add up to longer ones in any order.

use crate::interval::{CpuTime, Interval, SLICE_NS, WorkerTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In shorter intervals, such as a worker's last one, a share says little.
const INTERVAL_MIN_NS: u64 = SLICE_NS / 2;
const MILLION: u64 = 1_000_000;

/// Times of all workers in a piece of time, and those of their CPUs. Microseconds, as there are hundreds of pieces in a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct ClientTime {
    /// The intervals whose workers read their clocks, together.
    wall_us: u64,
    busy_us: u64,
    /// Of `wall_us` the part in which the run delay is known.
    delay_wall_us: u64,
    run_delay_us: u64,
    /// The largest share that one worker was busy or delayed in an interval, in millionths.
    busiest_ppm: u64,
    /// The largest share that one worker was delayed, likewise.
    most_delayed_ppm: u64,
    cpus_us: u64,
    stolen_us: u64,
}

/// Wall, busy, wall with a known run delay, run delay, busiest, most delayed; CPUs, stolen.
type Fields = [u64; 8];

impl From<ClientTime> for Fields {
    fn from(of: ClientTime) -> Self {
        [
            of.wall_us,
            of.busy_us,
            of.delay_wall_us,
            of.run_delay_us,
            of.busiest_ppm,
            of.most_delayed_ppm,
            of.cpus_us,
            of.stolen_us,
        ]
    }
}

impl From<Fields> for ClientTime {
    fn from(fields: Fields) -> Self {
        let [
            wall_us,
            busy_us,
            delay_wall_us,
            run_delay_us,
            busiest_ppm,
            most_delayed_ppm,
            cpus_us,
            stolen_us,
        ] = fields;
        Self {
            wall_us,
            busy_us,
            delay_wall_us,
            run_delay_us,
            busiest_ppm,
            most_delayed_ppm,
            cpus_us,
            stolen_us,
        }
    }
}

/// Shares of time, from 0 to 1; `None` where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientShares {
    /// Of the workers' time in which they were busy.
    pub busy: Option<f64>,
    /// Of 100 ms, the most in which one worker was busy or delayed.
    pub busiest: Option<f64>,
    /// Of the workers' time in which they were ready to run, without a CPU.
    pub run_delay: Option<f64>,
    /// Of 100 ms, the most in which one worker was.
    pub most_delayed: Option<f64>,
    /// Of the CPUs' time that the hypervisor took.
    pub stolen: Option<f64>,
}

impl ClientTime {
    /// What an interval tells.
    pub fn of(interval: &Interval) -> Self {
        let mut time = Self::default();
        let wall_ns = interval.end_ns - interval.start_ns;
        if let Some(WorkerTime { busy_ns, run_delay_ns }) = interval.worker_time {
            (time.wall_us, time.busy_us) = (wall_ns / 1_000, busy_ns / 1_000);
            if let Some(delay_ns) = run_delay_ns {
                (time.delay_wall_us, time.run_delay_us) = (time.wall_us, delay_ns / 1_000);
            }
            let ppm = |ns: u64| u128::from(ns) * u128::from(MILLION) / u128::from(wall_ns.max(1));
            if wall_ns >= INTERVAL_MIN_NS {
                // A clock that is read a little later than the interval ends may show more than all of it.
                let [busiest, delayed] =
                    [busy_ns.saturating_add(run_delay_ns.unwrap_or(0)), run_delay_ns.unwrap_or(0)]
                        .map(|ns| ppm(ns).min(MILLION.into()) as u64);
                (time.busiest_ppm, time.most_delayed_ppm) = (busiest, delayed);
            }
        }
        if let Some(CpuTime { total_ns, stolen_ns }) = interval.cpu_time {
            (time.cpus_us, time.stolen_us) = (total_ns / 1_000, stolen_ns / 1_000);
        }
        time
    }

    /// Adds another piece.
    pub fn merge(&mut self, other: &Self) {
        let ours = Fields::from(*self);
        let theirs = Fields::from(*other);
        let mut sums = std::array::from_fn(|index| ours[index] + theirs[index]);
        let most = |index: usize| ours[index].max(theirs[index]);
        [sums[4], sums[5]] = [most(4), most(5)];
        *self = Self::from(sums);
    }

    /// The share of the workers' time in which they were busy, exactly; `None` where too little of it is known.
    pub fn busy_share(&self) -> Option<f64> {
        share_of_workers(self.busy_us, self.wall_us)
    }

    /// As shares; `None` where no clock was read.
    pub fn shares(&self) -> Option<ClientShares> {
        (*self != Self::default()).then(|| self.known_shares())
    }

    fn known_shares(&self) -> ClientShares {
        // In steps of 0.1 %: a result has hundreds of them.
        let rounded = |share: f64| (share.min(1.0) * 1e3).round() / 1e3;
        let of = |part: u64, whole: u64| (whole > 0).then(|| rounded(part as f64 / whole as f64));
        ClientShares {
            busy: self.busy_share().map(rounded),
            busiest: of(self.busiest_ppm, MILLION).filter(|_| self.wall_us > 0),
            run_delay: share_of_workers(self.run_delay_us, self.delay_wall_us).map(rounded),
            most_delayed: of(self.most_delayed_ppm, MILLION).filter(|_| self.delay_wall_us > 0),
            stolen: of(self.stolen_us, self.cpus_us),
        }
    }

    /// Can sums of a million of them be held?
    pub(crate) fn is_sane(&self) -> bool {
        Fields::from(*self).iter().all(|value| *value < 1 << 43)
    }
}

fn share_of_workers(part_us: u64, whole_us: u64) -> Option<f64> {
    (whole_us >= INTERVAL_MIN_NS / 1_000).then(|| (part_us as f64 / whole_us as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Layout, RecorderSet};

    const MS: u64 = 1_000_000;

    fn time(length_ns: u64, worker: Option<(u64, Option<u64>)>, cpus: Option<(u64, u64)>) -> ClientTime {
        let mut interval = RecorderSet::new(&Layout::default()).take_interval(0, 7, 7 + length_ns);
        interval.worker_time = worker.map(|(busy_ns, run_delay_ns)| WorkerTime { busy_ns, run_delay_ns });
        interval.cpu_time = cpus.map(|(total_ns, stolen_ns)| CpuTime { total_ns, stolen_ns });
        ClientTime::of(&interval)
    }

    /// Two workers, of which one is delayed and one does not know, and an interval that is too short to be a maximum.
    #[test]
    fn shares_are_those_of_all_workers_and_of_the_worst() {
        let pieces = [
            time(100 * MS, Some((30 * MS, Some(20 * MS))), Some((200 * MS, 10 * MS))),
            time(100 * MS, Some((10 * MS, Some(0))), Some((200 * MS, 0))),
            time(100 * MS, Some((44 * MS, None)), None),
            time(MS, Some((MS, Some(MS))), None),
            time(100 * MS, None, None),
        ];
        let sum = |order: &[usize]| {
            let mut sum = ClientTime::default();
            order.iter().for_each(|index| sum.merge(&pieces[*index]));
            sum
        };
        let whole = sum(&[0, 1, 2, 3, 4]);
        assert_eq!(whole, sum(&[4, 2, 0, 3, 1]));
        assert_eq!(
            whole.shares().unwrap(),
            ClientShares {
                busy: Some(0.282),
                busiest: Some(0.5),
                run_delay: Some(0.104),
                most_delayed: Some(0.2),
                stolen: Some(0.025),
            }
        );
        assert_eq!(pieces[4].shares(), None);
        // What a worker does when it ends takes all of its last interval.
        assert_eq!(pieces[3].shares().unwrap().busy, None);
        assert_eq!(pieces[2].shares().unwrap().run_delay, None);
        assert_eq!(ClientTime::from(Fields::from(whole)), whole);
    }
}
