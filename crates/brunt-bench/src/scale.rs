//! `brunt-bench scale`: the throughput that a second worker on its own CPU adds, over canned replies in real time.
//!
//! No worker makes a system call: whatever keeps two workers from twice the work of one is shared in the program or
//! the CPU. Rounds of one and of two workers alternate, so that a busy host affects both alike. Invariant: it fails
//! unless every get was a hit.

use crate::shape::Shape;
use brunt_engine::in_process_run::{RealTimeRun, run_in_real_time};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;
use clap::{Args, value_parser};
use std::sync::atomic::AtomicBool;

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct Scale {
    /// Of each worker
    #[arg(long, default_value = "64x32")]
    shape: Shape,
    /// Of both
    #[arg(long, default_value_t = 9, value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// For how long in each round
    #[arg(long, default_value_t = 500, value_parser = value_parser!(u64).range(1..=60_000))]
    time_ms: u64,
    /// Which two processors
    #[arg(long, value_name = "A,B", default_value = "0,1", value_parser = two_cpus)]
    cpus: [u32; 2],
}

fn two_cpus(text: &str) -> Result<[u32; 2], &'static str> {
    let pair = text.split_once(',').and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
    pair.filter(|[one, other]| one != other).ok_or("expected two processors, such as 0,1")
}

/// What one or two workers did.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    /// Gets per second.
    rate: f64,
    /// Gets per second of CPU time, which preemption does not change.
    cpu_rate: f64,
}

impl Scale {
    /// A plan of this many workers, each with its shape and CPU.
    fn plan(&self, workers: usize) -> Plan {
        let pinned: Vec<String> = self.cpus[..workers].iter().map(u32::to_string).collect();
        let (time_ms, pinned) = (self.time_ms, pinned.join(","));
        let options = format!("keys = 10000\nwarmup = '20ms'\ntime = '{time_ms}ms'\ncpus = '{pinned}'");
        self.shape.plan(workers, &self.cpus, &options)
    }

    /// Runs this many workers in parallel.
    fn take(&self, workers: usize) -> Result<Measurement, String> {
        let echoes = run_in_real_time(&self.plan(workers), &AtomicBool::new(false))
            .map_err(|error| error.to_string())?;
        let gets = |echo: &RealTimeRun| echo.measured.requests.outcome(OutcomeClass::Hit);
        if let Some(echo) = echoes.iter().find(|echo| gets(echo) != echo.measured.requests.scheduled) {
            return Err(format!("not every get was a hit: {:?}", echo.measured));
        }
        let rate = echoes.iter().map(gets).sum::<u64>() as f64 * 1e3 / self.time_ms as f64;
        let cpu_rate = echoes.iter().map(|echo| gets(echo) as f64 * 1e9 / echo.cpu_ns.max(1) as f64).sum();
        Ok(Measurement { rate, cpu_rate })
    }

    /// Runs all rounds and reports the results.
    ///
    /// # Errors
    /// A thread cannot be had or pinned, or not every get was a hit.
    pub(crate) fn run(&self) -> Result<String, String> {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            // The order alternates, too.
            for workers in if round % 2 == 0 { [1, 2] } else { [2, 1] } {
                let taken = self.take(workers)?;
                if workers == 1 { one.push(taken) } else { two.push(taken) }
            }
        }
        let ratios = |of: fn(&Measurement) -> f64| {
            Spread::of(two.iter().zip(&one).map(|(two, one)| of(two) / of(one)))
        };
        let rates = |taken: &[Measurement]| Spread::of(taken.iter().map(|taken| taken.rate / 1e6));
        Ok(format!(
            "one worker, million gets/s    {}\n\
             two workers, million gets/s   {}\n\
             two workers to one            {}\n\
             by processor time             {}\n\
             medians of {} interleaved rounds of {} ms, in brackets the least and the greatest",
            rates(&one),
            rates(&two),
            ratios(|taken| taken.rate),
            ratios(|taken| taken.cpu_rate),
            self.rounds,
            self.time_ms
        ))
    }
}

/// The median of some numbers, and the least and greatest of them.
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    /// Of an odd number of them the one in the middle, else the upper of the two. There is at least one.
    fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.collect();
        sorted.sort_by(f64::total_cmp);
        Self { least: sorted[0], median: sorted[sorted.len() / 2], greatest: sorted[sorted.len() - 1] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.2} ({:.2} to {:.2})", self.median, self.least, self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;

    fn check(words: &str, expected: Result<Scale, &str>) {
        match (parsed::<Scale>(words), expected) {
            (Ok(parsed), Ok(expected)) => assert_eq!(parsed, expected, "{words}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{words}: {message}"),
            (parsed, expected) => panic!("{words}: {parsed:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn command_lines() {
        let plain = Scale { shape: "64x32".parse().unwrap(), rounds: 9, time_ms: 500, cpus: [0, 1] };
        check("", Ok(plain.clone()));
        let other = Scale { shape: "16x1".parse().unwrap(), rounds: 3, time_ms: 40, cpus: [2, 5] };
        check("--cpus 2,5 --shape 16x1 --rounds 3 --time-ms 40", Ok(other));
        check("--cpus 1,1", Err("invalid value '1,1'"));
        check("--cpus 1", Err("invalid value '1'"));
        check("--rounds 0", Err("0 is not in 1..=1000"));
    }

    /// On one processor, which both cannot have: what comes out is no measure, but all of it was answered.
    #[test]
    fn every_get_of_two_workers_is_a_hit() {
        let scale = Scale { rounds: 1, time_ms: 20, ..parsed("").unwrap() };
        let mut plan = scale.plan(2);
        assert_eq!((plan.threads, plan.cpus.as_slice()), (2, &[0, 1][..]));
        plan.cpus.clear();
        let echoes = run_in_real_time(&plan, &AtomicBool::new(false)).unwrap();
        let hits = echoes.iter().map(|echo| echo.measured.requests.outcome(OutcomeClass::Hit));
        assert_eq!(hits.filter(|hits| *hits > 0).count(), 2);
    }

    #[test]
    fn medians() {
        let spread = Spread::of([3.0, 1.0, 2.004, 9.0, 0.5].into_iter());
        assert_eq!(spread.to_string(), "2.00 (0.50 to 9.00)");
    }
}
