//! The search for a capacity: the highest rate at which every objective is met.
//!
//! Not a measurement: it says which rate is next and is told what became of it, so that it can be walked through in a test.
//! Rates grow by a factor until one fails, then the bracket is halved until it is narrow enough. A rate passes only where
//! every percentile lies under its bound whatever the client did, and fails only where one lies over it; what neither passes
//! nor fails in the longest time there is counts as failed, which errs against the capacity; but that no rate passes is said
//! only where the lowest one failed. Invariant: the capacity that is told was measured and passed, and the rate above it was
//! measured and did not.

use crate::bottleneck::Bottleneck;
use crate::bound::Decision;
use crate::check::{CheckId, CheckStatus};
use crate::summary::Summary;
use brunt_plan::objective::Ceiling;
use serde::{Deserialize, Serialize};

/// Rates grow by this until one fails: few steps where each lasts seconds, and a bracket that is halved in a handful more.
const GROWTH: f64 = 2.0;
/// When even the first rate does not pass, the next one is this fraction of it.
const RETREAT: f64 = 0.25;
/// No schedule goes higher: a billion requests per second.
const RATE_MAX: f64 = 1e9;
/// A step that the client spoils, or that decides nothing, is measured once more: a stop of the host is no property of the generator, nor of the
/// rate, and a rate that counts as failed is never tried again.
const SPOILED_MAX: u32 = 2;

brunt_plan::named! {
    /// What became of one rate.
    pub enum StepResult {
        /// Every percentile lies under its bound, whatever the client did.
        Passed = "passed",
        /// A percentile lies over its bound, whatever the client did.
        Failed = "failed",
        /// The server did not keep up, or answered with errors.
        Saturated = "saturated",
        /// The bounds of a percentile still held what the objective allows when the time was up.
        Undecided = "undecided",
        /// The client could not offer this rate as planned.
        ClientLimited = "client limited",
        /// The numbers are wrong, for a reason that has nothing to do with the rate.
        Broken = "broken",
    }
}

impl StepResult {
    /// What a step came to that was to find out on which side of these ceilings its rate lies.
    pub fn of_step(summary: &Summary, ceilings: &[Ceiling]) -> Self {
        let decide = |ceiling: &Ceiling| match summary.row(ceiling.op) {
            Some(row) => summary.client.decide_ceiling(ceiling, row),
            None => Decision::Undecided,
        };
        let decisions: Vec<Decision> = ceilings.iter().map(decide).collect();
        let is_broken = summary.status.status_of(CheckId::Broken) == CheckStatus::Invalid;
        Self::of(is_broken, summary.status.bottleneck(), &decisions)
    }

    /// Reads a step by whether each percentile lies below its bound. That allows for whatever the client did; a rate that was not offered as
    /// planned does not pass, and numbers that are wrong decide nothing.
    pub fn of(is_broken: bool, bottleneck: Option<Bottleneck>, decisions: &[Decision]) -> Self {
        if is_broken {
            Self::Broken
        } else if matches!(bottleneck, Some(Bottleneck::Server | Bottleneck::Connections)) {
            Self::Saturated
        } else if decisions.contains(&Decision::Fails) {
            Self::Failed
        } else if bottleneck.is_none() && decisions.iter().all(|decision| *decision == Decision::Holds) {
            Self::Passed
        } else if bottleneck == Some(Bottleneck::Client) {
            Self::ClientLimited
        } else {
            Self::Undecided
        }
    }
}

/// Where to look, and how closely. Rates in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRange {
    /// The first rate.
    pub from: f64,
    /// The lowest: where the first does not pass, rates go down to it.
    pub lowest: f64,
    /// The highest, if there is one.
    pub to: Option<f64>,
    /// How wide the bracket may be, as a part of its upper end.
    pub resolution: f64,
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Capacity {
    /// The highest rate that passed, and the lowest that did not.
    Between {
        /// The highest rate that passed.
        passed: f64,
        /// The lowest rate that did not pass.
        failed: f64,
    },
    /// The highest rate that may be tried passed.
    AtLeast {
        /// The rate, in requests per second.
        passed: f64,
    },
    /// Even the lowest rate failed, or was too much for the server.
    Below {
        /// The rate, in requests per second.
        failed: f64,
    },
    /// The lowest rate neither passed nor failed in the time there was.
    Undecided {
        /// The rate, in requests per second.
        at: f64,
    },
    /// The generator, not the server, is the limit.
    ClientLimited {
        /// The rate at which the search ended.
        at: f64,
        /// The highest rate that passed before.
        passed: Option<f64>,
    },
    /// A step was broken, for a reason that has nothing to do with its rate.
    Broken {
        /// The rate at which the search ended.
        at: f64,
        /// The highest rate that passed before.
        passed: Option<f64>,
    },
}

impl Capacity {
    /// The highest rate that passed.
    pub const fn passed(&self) -> Option<f64> {
        match *self {
            Self::Between { passed, .. } | Self::AtLeast { passed } => Some(passed),
            Self::ClientLimited { passed, .. } | Self::Broken { passed, .. } => passed,
            Self::Below { .. } | Self::Undecided { .. } => None,
        }
    }

    /// The lowest rate that did not pass.
    pub const fn not_passed(&self) -> Option<f64> {
        match *self {
            Self::Between { failed: rate, .. }
            | Self::Below { failed: rate }
            | Self::Undecided { at: rate }
            | Self::ClientLimited { at: rate, .. }
            | Self::Broken { at: rate, .. } => Some(rate),
            Self::AtLeast { .. } => None,
        }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextStep {
    /// Measure this rate.
    Measure(f64),
    /// The search is over.
    Found(Capacity),
}

/// The search so far.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    range: RateRange,
    passed: Option<f64>,
    /// The lowest rate that did not pass, and what became of it.
    failed: Option<(f64, StepResult)>,
    /// How often in a row the rate in hand decided nothing, or was spoiled by the client.
    discarded: u32,
    /// What ended it before a bracket did.
    ended: Option<Capacity>,
}

impl CapacitySearch {
    /// Begins a search.
    pub fn new(range: RateRange) -> Self {
        let to = range.to.unwrap_or(RATE_MAX).min(RATE_MAX);
        Self {
            range: RateRange { to: Some(to), ..range },
            passed: None,
            failed: None,
            discarded: 0,
            ended: None,
        }
    }

    /// What to do now. The same until something is recorded.
    pub fn next(&self) -> NextStep {
        let RateRange { from, to, resolution, .. } = self.range;
        let to = to.unwrap_or(RATE_MAX);
        match (self.ended, self.passed, self.failed) {
            (Some(capacity), ..) => NextStep::Found(capacity),
            (None, None, None) => NextStep::Measure(rounded(from)),
            (None, None, Some((at, _))) if at * RETREAT >= self.range.lowest * 0.999 => {
                NextStep::Measure(rounded(at * RETREAT))
            }
            (None, None, Some((at, StepResult::Undecided))) => NextStep::Found(Capacity::Undecided { at }),
            (None, None, Some((failed, _))) => NextStep::Found(Capacity::Below { failed }),
            (None, Some(passed), None) if passed >= rounded(to) => {
                NextStep::Found(Capacity::AtLeast { passed })
            }
            (None, Some(passed), None) => NextStep::Measure(rounded((passed * GROWTH).min(to))),
            (None, Some(passed), Some((failed, _))) => {
                let middle = rounded((passed + failed) / 2.0);
                // Rounding may leave no rate in between.
                let is_narrow =
                    (failed - passed) / failed <= resolution || middle <= passed || middle >= failed;
                match is_narrow {
                    true => NextStep::Found(Capacity::Between { passed, failed }),
                    false => NextStep::Measure(middle),
                }
            }
        }
    }

    /// Tells what became of a rate.
    pub fn record(&mut self, rate: f64, end: StepResult) {
        if matches!(end, StepResult::Undecided | StepResult::ClientLimited)
            && self.discarded + 1 < SPOILED_MAX
        {
            self.discarded += 1;
            return;
        }
        let passed = self.passed;
        match end {
            StepResult::Passed => self.passed = Some(rate),
            StepResult::Failed | StepResult::Saturated | StepResult::Undecided => {
                self.failed = Some((rate, end))
            }
            StepResult::Broken => self.ended = Some(Capacity::Broken { at: rate, passed }),
            StepResult::ClientLimited => self.ended = Some(Capacity::ClientLimited { at: rate, passed }),
        }
        self.discarded = 0;
    }
}

/// A rate with four significant digits: finer than any resolution that noise allows, and short to read and to type.
fn rounded(rate: f64) -> f64 {
    format!("{rate:.3e}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{Bounds, decide};

    fn range(from: f64, to: Option<f64>) -> RateRange {
        RateRange { from, lowest: from, to, resolution: 0.02 }
    }

    /// Walks through a search; `measure` is told the rate and how many steps came before it.
    fn walk(range: RateRange, mut measure: impl FnMut(f64, usize) -> StepResult) -> (Capacity, Vec<f64>) {
        let (mut search, mut rates) = (CapacitySearch::new(range), Vec::new());
        loop {
            match search.next() {
                NextStep::Found(capacity) => return (capacity, rates),
                NextStep::Measure(rate) => {
                    search.record(rate, measure(rate, rates.len()));
                    rates.push(rate);
                    assert!(rates.len() < 60, "{rates:?}");
                }
            }
        }
    }

    fn below(limit: f64) -> impl Fn(f64, usize) -> StepResult {
        move |rate, _| if rate < limit { StepResult::Passed } else { StepResult::Failed }
    }

    #[test]
    fn a_bracket_is_found_and_halved() {
        let (capacity, rates) = walk(range(1_000.0, None), below(7_700.0));
        let expected = [1_000.0, 2_000.0, 4_000.0, 8_000.0, 6_000.0, 7_000.0, 7_500.0, 7_750.0, 7_625.0];
        assert_eq!(rates, expected);
        assert_eq!(capacity, Capacity::Between { passed: 7_625.0, failed: 7_750.0 });
    }

    /// Whatever the limit, it lies in the bracket, which is as narrow as was asked for.
    #[test]
    fn the_limit_lies_in_the_bracket() {
        for step in 1..400 {
            let limit = 1_000.0 * 1.017_f64.powi(step) + 0.5;
            for resolution in [0.3, 0.05, 0.02, 0.001] {
                let range = RateRange { resolution, ..range(1_000.0, None) };
                let (capacity, _) = walk(range, below(limit));
                let Capacity::Between { passed, failed } = capacity else { panic!("{limit}: {capacity:?}") };
                assert!(passed < limit && limit <= failed, "{limit}: {capacity:?}");
                // Four digits are as close as rates come.
                assert!((failed - passed) / failed <= resolution.max(0.001), "{limit}: {capacity:?}");
            }
        }
    }

    #[test]
    fn a_search_ends_when_every_rate_passes_or_none() {
        let (capacity, rates) = walk(range(1_000.0, None), |_, _| StepResult::Failed);
        assert_eq!((capacity, rates), (Capacity::Below { failed: 1_000.0 }, vec![1_000.0]));
        let (capacity, rates) = walk(range(1_000.0, Some(5_000.0)), |_, _| StepResult::Passed);
        assert_eq!((capacity, rates), (Capacity::AtLeast { passed: 5_000.0 }, vec![1e3, 2e3, 4e3, 5e3]));
        let (capacity, rates) = walk(range(1_000.0, Some(1_000.0)), |_, _| StepResult::Passed);
        assert_eq!((capacity, rates.len()), (Capacity::AtLeast { passed: 1_000.0 }, 1));
        let (capacity, _) = walk(range(1_000.0, None), |_, _| StepResult::Passed);
        assert_eq!(capacity, Capacity::AtLeast { passed: RATE_MAX });
    }

    #[test]
    fn undecided_and_saturated_steps_count_as_failed() {
        for end in [StepResult::Undecided, StepResult::Saturated] {
            let (capacity, _) =
                walk(range(1_000.0, None), |rate, _| if rate > 3_000.0 { end } else { StepResult::Passed });
            let Capacity::Between { passed, failed } = capacity else { panic!("{capacity:?}") };
            assert!(passed <= 3_000.0 && failed > 3_000.0 && failed / passed < 1.03, "{capacity:?}");
        }
    }

    /// Nothing is known of the lowest rate: that is no capacity below it.
    #[test]
    fn a_lowest_rate_that_is_undecided_has_not_failed() {
        let (capacity, rates) = walk(range(1_000.0, None), |_, _| StepResult::Undecided);
        assert_eq!((capacity, rates), (Capacity::Undecided { at: 1_000.0 }, vec![1_000.0; 2]));
        assert_eq!(capacity.passed(), None);
        let (capacity, _) = walk(range(1_000.0, None), |_, _| StepResult::Saturated);
        assert_eq!(capacity, Capacity::Below { failed: 1_000.0 });
    }

    /// A first rate that is too high, or that a disturbed client left open, is no end where lower ones may be tried.
    #[test]
    fn rates_go_down_to_the_lowest() {
        let range = RateRange { lowest: 1_000.0 / 64.0, ..range(1_000.0, None) };
        for end in [StepResult::Undecided, StepResult::Failed, StepResult::Saturated] {
            let (capacity, rates) = walk(range, |rate, _| if rate > 40.0 { end } else { StepResult::Passed });
            let mut first = rates.clone();
            first.dedup();
            assert_eq!(first[..4], [1_000.0, 250.0, 62.5, 15.62], "{end:?}");
            assert!(
                matches!(capacity, Capacity::Between { passed, .. } if (38.0..=40.0).contains(&passed)),
                "{capacity:?}"
            );
            let (_, rates) = walk(range, |_, _| end);
            // One that decides nothing is measured once more.
            assert_eq!(rates.len(), if end == StepResult::Undecided { 8 } else { 4 }, "{end:?}");
        }
    }

    #[test]
    fn client_limits_are_not_reported_as_capacity() {
        let (capacity, rates) = walk(range(1_000.0, None), |rate, _| match rate {
            low if low < 5_000.0 => StepResult::Passed,
            _ => StepResult::ClientLimited,
        });
        assert_eq!(capacity, Capacity::ClientLimited { at: 8_000.0, passed: Some(4_000.0) });
        assert_eq!(rates, [1e3, 2e3, 4e3, 8e3, 8e3], "the rate was tried once more");
        // Once is chance.
        let (capacity, rates) = walk(range(1_000.0, None), |rate, before| match (rate, before) {
            (_, 2 | 5) => StepResult::ClientLimited,
            (low, _) if low < 5_000.0 => StepResult::Passed,
            _ => StepResult::Failed,
        });
        assert_eq!(rates[2..4], [4e3, 4e3]);
        assert!(matches!(capacity, Capacity::Between { .. }), "{capacity:?}");
        let (capacity, _) = walk(range(1_000.0, None), |_, _| StepResult::Broken);
        assert_eq!(capacity, Capacity::Broken { at: 1_000.0, passed: None });
        assert_eq!(capacity.passed(), None);
    }

    #[test]
    fn a_step_is_decided_by_its_intervals_unless_limited() {
        use Decision::{Fails, Holds, Undecided};
        let client = Some(Bottleneck::Client);
        let table = [
            (None, vec![Holds], StepResult::Passed),
            (None, vec![Undecided], StepResult::Undecided),
            (None, vec![Fails], StepResult::Failed),
            // Every objective must be met; one that is not, decides.
            (None, vec![Holds, Undecided], StepResult::Undecided),
            (None, vec![Undecided, Fails], StepResult::Failed),
            (Some(Bottleneck::Server), vec![Holds], StepResult::Saturated),
            (Some(Bottleneck::Connections), vec![Holds], StepResult::Saturated),
            // What lies over its bound whatever the client did does so beside a client that is late, too.
            (client, vec![Fails], StepResult::Failed),
            (client, vec![Undecided], StepResult::ClientLimited),
            // A client without time left has not offered the rate.
            (client, vec![Holds], StepResult::ClientLimited),
        ];
        for (bottleneck, decisions, expected) in table {
            assert_eq!(
                StepResult::of(false, bottleneck, &decisions),
                expected,
                "{bottleneck:?} {decisions:?}"
            );
            assert_eq!(StepResult::of(true, bottleneck, &decisions), StepResult::Broken);
        }
    }

    /// The p99 of the response time of M/D/1 by Erlang's series, in units of the service time.
    fn p99_of_m_d_1(utilisation: f64) -> f64 {
        let within = |wait: f64| {
            let term = |k: i32| {
                let x = utilisation * (f64::from(k) - wait);
                let power: f64 = (1..=k).map(|factor| x / f64::from(factor)).product();
                power * (-x).exp()
            };
            (1.0 - utilisation) * (0..=wait as i32).map(term).sum::<f64>()
        };
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if within(middle) < 0.99 { low = middle } else { high = middle }
        }
        low + 1.0
    }

    /// A server with a fixed service time of 100 us: its p99 is 1 ms at ρ = 0.7735. Every step measures the law's p99 with
    /// an error, says how large errors are, and is repeated at twice the length, up to eight times, while it decides nothing.
    #[test]
    fn capacity_of_an_m_d_1_queue_matches_theory() {
        let table = [(0.7, 7.485), (0.8, 11.356), (0.9, 22.898)];
        for (utilisation, expected) in table {
            // The series alternates: near saturation floating point leaves three digits behind the point.
            assert!((p99_of_m_d_1(utilisation) - expected).abs() < 0.01, "{utilisation}");
        }
        let mut state = 7u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut error = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut within = 0;
        for _ in 0..200 {
            let (capacity, _) = walk(range(1_000.0, None), |rate, _| {
                if rate >= 10_000.0 {
                    return StepResult::Saturated;
                }
                let true_ns = p99_of_m_d_1(rate / 10_000.0) * 1e5;
                let lengths = [1.0, 2.0, 4.0, 8.0];
                let measured = lengths.map(|length: f64| {
                    let deviation_ns = 0.04 * true_ns / length.sqrt();
                    let (value_ns, half_ns) = (true_ns + error() * deviation_ns, 1.96 * deviation_ns);
                    let bounds = Bounds { low: value_ns - half_ns, high: value_ns + half_ns };
                    StepResult::of(false, None, &[decide(bounds, |ns| ns < 1e6)])
                });
                measured
                    .into_iter()
                    .find(|end| *end != StepResult::Undecided)
                    .unwrap_or(StepResult::Undecided)
            });
            within += u32::from((capacity.passed().unwrap() / 7_735.0 - 1.0).abs() <= 0.05);
        }
        assert!(within >= 190, "{within} of 200 within 5 %");
    }
}
