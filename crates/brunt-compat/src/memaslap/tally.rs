//! Operations of a kind, as memaslap's tables have them: how many, how many found nothing, and how long they took.
//!
//! Not text. Times are from when a request was sent to when its reply was complete, of operations that the server answered. Invariant:
//! tallies are merged by adding counts, so that those of all periods together are that of the run.

use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_stats::histogram::Histogram;
use brunt_stats::store::IntervalStore;

/// What is in the tables of gets.
pub const GETS: [OpKind; 2] = [OpKind::Get, OpKind::Mget];
/// Nanoseconds in the unit of all times that are printed.
const US: f64 = 1e3;

/// Operations of a kind in the measured window, or in a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gets that found none of their keys.
    pub misses: u64,
    /// Objects that were asked for or stored.
    pub objects: u64,
    /// Nanoseconds.
    latency: Histogram,
}

impl Tally {
    /// Adds another.
    pub fn merge(&mut self, other: &Self) {
        self.misses += other.misses;
        self.objects += other.objects;
        self.latency.merge(&other.latency);
    }

    /// How many operations.
    pub fn events(&self) -> u64 {
        self.latency.count()
    }

    /// The time that the fastest took, in whole microseconds.
    pub fn min_us(&self) -> u64 {
        self.latency.min().unwrap_or(0) / 1_000
    }

    /// The time that the slowest took, in whole microseconds.
    pub fn max_us(&self) -> u64 {
        self.latency.max().unwrap_or(0) / 1_000
    }

    /// The mean, in microseconds, of exact sums; 0 without operations.
    pub fn mean_us(&self) -> f64 {
        self.latency.moments().mean().unwrap_or(0.0) / US
    }

    /// The standard deviation of a sample (divided by n − 1), in microseconds, of exact sums; 0 of fewer than two operations.
    pub fn deviation_us(&self) -> f64 {
        let events = self.events() as f64;
        let corrected = |stddev: f64| stddev * (events / (events - 1.0)).sqrt() / US;
        self.latency.moments().stddev().filter(|_| events > 1.0).map_or(0.0, corrected)
    }

    /// The geometric mean in microseconds, every time taken for the middle of its bucket, 0.05 % off at most; 0 without operations.
    pub fn geometric_us(&self) -> f64 {
        if self.latency.count() == 0 {
            return 0.0;
        }
        let logarithms = self.latency.ranges().map(|(values, count)| {
            let middle = (*values.start() as f64 + *values.end() as f64) / 2.0;
            // A logarithm of nothing is none.
            count as f64 * (middle.max(1.0) / US).ln()
        });
        (logarithms.sum::<f64>() / self.events() as f64).exp()
    }

    /// A percentile in microseconds, 0.1 % too high at most; `None` without operations.
    pub fn percentile_us(&self, quantile: brunt_plan::quantile::Quantile) -> Option<f64> {
        self.latency.quantile(quantile).map(|value_ns| value_ns as f64 / US)
    }

    /// How many operations took less than 1 µs, then from 2ⁱ⁻¹ up to 2ⁱ µs for every i from 1, up to the longest. Exact: these limits
    /// are limits of the histogram's buckets, for 1000 · 2ⁱ has a factor 2ⁱ⁺³.
    pub fn powers(&self) -> Vec<u64> {
        let mut powers = Vec::new();
        for (values, count) in self.latency.ranges() {
            let power = power_of(*values.start());
            powers.resize(powers.len().max(power + 1), 0);
            powers[power] += count;
        }
        powers
    }
}

/// The place of a time among powers of two of a microsecond.
fn power_of(time_ns: u64) -> usize {
    (time_ns / 1_000).checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// Gets and sets, apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Gets, of one key or several.
    pub get: Tally,
    /// Sets.
    pub set: Tally,
}

impl Tallies {
    /// What intervals hold.
    pub fn of(recorded: &IntervalStore) -> Self {
        let mut tallies = Self::default();
        for (_, op, row) in recorded.rows() {
            tallies.of_kind(op.kind()).latency.merge(&row.latencies.service);
        }
        for entry in recorded.request_counts().entries().filter(|entry| entry.phase == Phase::Measure) {
            let tally = tallies.of_kind(entry.op.kind());
            let counts = &entry.counts;
            tally.misses += counts.requests.outcome(OutcomeClass::Miss);
            tally.objects += if GETS.contains(&entry.op.kind()) {
                counts.keys.requested
            } else {
                counts.requests.completed()
            };
        }
        tallies
    }

    fn of_kind(&mut self, op: OpKind) -> &mut Tally {
        if GETS.contains(&op) { &mut self.get } else { &mut self.set }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.get.merge(&other.get);
        self.set.merge(&other.set);
    }

    /// Both, each with its title, and both together, as they are printed.
    pub fn titled(&self) -> [(&'static str, Tally); 3] {
        let mut total = self.get.clone();
        total.merge(&self.set);
        [("Get", self.get.clone()), ("Set", self.set.clone()), ("Total", total)]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Operations by their time in nanoseconds.
    pub(in super::super) fn tally(times_ns: &[u64]) -> Tally {
        let mut tally = Tally::default();
        times_ns.iter().for_each(|time_ns| tally.latency.record(*time_ns));
        tally.objects = times_ns.len() as u64;
        tally
    }

    #[test]
    fn numbers_are_those_of_the_times() {
        let times_ns: Vec<u64> = (1..=5_000_u64).map(|nth| nth * nth % 7_919 * 1_013 + 900).collect();
        let tally = tally(&times_ns);
        let us: Vec<f64> = times_ns.iter().map(|time_ns| *time_ns as f64 / 1e3).collect();
        let events = us.len() as f64;
        let mean = us.iter().sum::<f64>() / events;
        let squares = us.iter().map(|us| (us - mean) * (us - mean)).sum::<f64>();
        let geometric = (us.iter().map(|us| us.ln()).sum::<f64>() / events).exp();
        assert_eq!(tally.events(), 5_000);
        assert_eq!(tally.min_us(), times_ns.iter().min().unwrap() / 1_000);
        assert_eq!(tally.max_us(), times_ns.iter().max().unwrap() / 1_000);
        assert!((tally.mean_us() - mean).abs() < 1e-6);
        assert!((tally.deviation_us() - (squares / (events - 1.0)).sqrt()).abs() < 1e-6);
        assert!(
            (tally.geometric_us() / geometric - 1.0).abs() < 5e-4,
            "{} {geometric}",
            tally.geometric_us()
        );
        let none = Tally::default();
        assert_eq!((none.min_us(), none.mean_us(), none.geometric_us()), (0, 0.0, 0.0));
        assert_eq!(super::tests::tally(&[7_000]).deviation_us(), 0.0);
    }

    #[test]
    fn powers_of_two_are_exact() {
        // Both sides of every limit, from 1 us to more than an hour.
        let mut expected = vec![2];
        let mut times_ns = vec![0, 999];
        for power in 0..32 {
            let limit_ns = 1_000_u64 << power;
            times_ns.extend([limit_ns, limit_ns + 1, 2 * limit_ns - 1]);
            expected.push(3);
        }
        assert_eq!(tally(&times_ns).powers(), expected);
        assert_eq!(tally(&[]).powers(), Vec::<u64>::new());
        assert_eq!(tally(&[3_500]).powers(), [0, 0, 1]);
    }
}
