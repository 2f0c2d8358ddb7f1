//! The search for a capacity: the highest rate at which every objective is met.
//!
//! Not a measurement: it says which rate is next and is told what became of it, so that it can be walked through in a test.
//! Rates grow by a factor until one fails, then the bracket is halved until it is as narrow as the gap. One step of a second is a guess, and
//! of many guesses the luckiest ends up as the answer; so the answer is measured anew, in pairs of runs in turns: the rate that is named and
//! one that lies above it by the gap. The gap is widened until the lower one held in three of three runs and the upper one failed in two of
//! three. What neither holds nor fails errs against the capacity. Invariant: rates that are told as confirmed were decided by these runs alone.

use crate::assertion::{Assertion, Reason};
use crate::bottleneck::{Bottleneck, Limit};
use crate::bound::Decision;
use crate::capacity::Capacity;
use crate::check::{CheckId, CheckStatus};
use crate::summary::Summary;
use brunt_plan::objective::Metric;

/// Rates grow by this until one fails.
const GROWTH: f64 = 2.0;
/// When even the first rate does not hold, the next one is this fraction of it.
const RETREAT: f64 = 0.25;
/// No schedule goes higher: a billion requests per second.
const RATE_MAX: f64 = 1e9;
/// A step that the client spoils, or that decides nothing, is measured once more: a stop of the host is no property of the generator, nor of the
/// rate, and a rate that counts as failed is never tried again.
const SPOILED_MAX: u32 = 2;
/// Runs of each rate of a pair.
const PAIRS: u32 = 3;
/// So many runs of the lower rate hold, and of the upper one fail.
const HOLDING: u32 = 3;
const FAILING: u32 = 2;
/// Of how many gaps the rates of a pair lie apart: at first, and when it is widened.
const WIDENED: [f64; 3] = [1.0, 2.0, 4.0];
/// Runs in pairs, at most.
const PAIR_RUNS_MAX: u32 = 12;

brunt_plan::named! { serialized
    /// What became of one rate.
    pub enum StepResult {
        /// Every objective holds.
        Holds = "holds",
        /// An objective fails.
        Fails = "fails",
        /// The backlog grew: the longer the step, the higher its latencies.
        Overload = "overload",
        /// Too few requests decide an objective.
        Undecided = "undecided",
        /// The client's part decides, or the client could not offer the rate.
        Client = "client",
        /// What was measured is wrong.
        Invalid = "invalid",
    }
}

impl StepResult {
    /// What a run came to that was held against objectives, and whose load is limited by this.
    pub fn of_run(summary: &Summary, limit: &Limit) -> Self {
        let status = &summary.status;
        let is_broken = status.status_of(CheckId::Broken) == CheckStatus::Invalid;
        // What is allowed is a caution; a search looks for the load that the server keeps up with all the same.
        let is_allowed = status.judgement.allowed.contains(&CheckId::Load);
        let least = if is_allowed { CheckStatus::Caution } else { CheckStatus::Invalid };
        let is_overloaded = status.status_of(CheckId::Load) >= least;
        Self::of(&summary.assertions, is_broken, is_overloaded, limit.bottleneck == Bottleneck::Client)
    }

    /// What the assertions about a run come to, with what is known of the run as a whole: whether its numbers are wrong, whether its backlog
    /// grew, and whether the client is the reason for that.
    fn of(assertions: &[Assertion], is_invalid: bool, is_overloaded: bool, is_by_client: bool) -> Self {
        let any = |decision| assertions.iter().any(|assertion| assertion.decision == decision);
        let asks_for_server = |held: &Assertion| !matches!(held.objective.subject.metric, Metric::Client(_));
        let is_clients = |assertion: &Assertion| matches!(assertion.reason, Some(Reason::Client { .. }));
        if is_invalid {
            Self::Invalid
        } else if any(Decision::Fails) {
            Self::Fails
        } else if is_overloaded {
            // Of a search for what the client can do alone, its limit is the answer.
            let is_spoiled = is_by_client && assertions.iter().any(asks_for_server);
            if is_spoiled { Self::Client } else { Self::Overload }
        } else if !any(Decision::Undecided) {
            Self::Holds
        } else if assertions.iter().any(is_clients) {
            Self::Client
        } else {
            Self::Undecided
        }
    }

    /// Did the rate not hold, whatever the reason?
    const fn is_too_much(self) -> bool {
        matches!(self, Self::Fails | Self::Overload)
    }
}

/// Where to look, and how closely. Rates in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRange {
    /// The first rate.
    pub from: f64,
    /// The lowest: where the first does not hold, rates go down to it.
    pub lowest: f64,
    /// The highest, if there is one.
    pub to: Option<f64>,
    /// By which part of it the rate that fails lies above the one that holds, unless they need to lie further apart.
    pub gap: f64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextStep {
    /// Measure this rate.
    Measure {
        /// In requests per second.
        rate: f64,
        /// It is one of the runs in pairs that confirm the answer.
        is_of_pair: bool,
    },
    /// The search is over.
    Found(Capacity),
}

/// The search so far.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    range: RateRange,
    passed: Option<f64>,
    /// The lowest rate that did not hold, and what became of it.
    failed: Option<(f64, StepResult)>,
    /// How often in a row the rate in hand decided nothing, or was spoiled by the client.
    discarded: u32,
    /// The runs that confirm the answer, from when the bracket is narrow.
    pairs: Option<Pairs>,
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
            pairs: None,
            ended: None,
        }
    }

    /// What to do now. The same until something is recorded.
    pub fn next(&self) -> NextStep {
        let step = |rate: f64| NextStep::Measure { rate: rounded(rate), is_of_pair: false };
        let RateRange { from, to, lowest, .. } = self.range;
        let to = to.unwrap_or(RATE_MAX);
        if let Some(capacity) = self.ended {
            return NextStep::Found(capacity);
        }
        if let Some(pairs) = &self.pairs {
            return pairs.next();
        }
        match (self.passed, self.failed) {
            (None, None) => step(from),
            (None, Some((at, _))) if at * RETREAT >= lowest * 0.999 => step(at * RETREAT),
            (None, Some((at, StepResult::Undecided))) => NextStep::Found(Capacity::Undecided { at }),
            (None, Some((failed, _))) => NextStep::Found(Capacity::Below { failed }),
            (Some(passed), None) if passed >= rounded(to) => NextStep::Found(Capacity::AtLeast { passed }),
            (Some(passed), None) => step((passed * GROWTH).min(to)),
            (Some(passed), Some((failed, _))) => step((passed * failed).sqrt()),
        }
    }

    /// Tells what became of a rate.
    pub fn record(&mut self, rate: f64, end: StepResult) {
        let decides_nothing = match self.pairs {
            // A rate of a pair is measured again anyway.
            Some(_) => end == StepResult::Client,
            None => matches!(end, StepResult::Undecided | StepResult::Client),
        };
        if decides_nothing && self.discarded + 1 < SPOILED_MAX {
            self.discarded += 1;
            if let Some(pairs) = &mut self.pairs {
                pairs.runs += 1;
            }
            return;
        }
        self.discarded = 0;
        let passed =
            self.pairs.as_ref().map_or(self.passed, |pairs| Some(pairs.low.rate).filter(|low| *low < rate));
        match end {
            StepResult::Invalid => self.ended = Some(Capacity::Invalid { at: rate, passed }),
            StepResult::Client => self.ended = Some(Capacity::ByClient { at: rate, passed }),
            _ => match &mut self.pairs {
                Some(pairs) => pairs.record(rate, end, self.range.to.unwrap_or(RATE_MAX)),
                None => self.narrow(rate, end),
            },
        }
    }

    /// Takes a step into the bracket, and begins with pairs where it is narrow.
    fn narrow(&mut self, rate: f64, end: StepResult) {
        match end {
            StepResult::Holds => self.passed = Some(rate),
            _ => self.failed = Some((rate, end)),
        }
        let (Some(passed), Some((failed, _))) = (self.passed, self.failed) else { return };
        let middle = rounded((passed * failed).sqrt());
        // Rounding may leave no rate in between.
        if failed / passed <= 1.0 + self.range.gap || middle <= passed || middle >= failed {
            let to = self.range.to.unwrap_or(RATE_MAX).max(failed);
            self.pairs = Some(Pairs::new(passed, failed, self.range.gap, to));
        }
    }
}

/// Runs in turns of two rates.
#[derive(Clone, Debug)]
struct Pairs {
    /// The rate that is named: it holds.
    low: Side,
    /// The one above it: it fails.
    high: Side,
    gap: f64,
    /// How often the gap was widened; beyond the last of [`WIDENED`] there is no more to try.
    widened: usize,
    runs: u32,
}

/// One rate of a pair, with how many runs of it came out as it should, and as it should not.
#[derive(Clone, Copy, Debug)]
struct Side {
    rate: f64,
    expected: u32,
    others: u32,
}

impl Side {
    const fn new(rate: f64) -> Self {
        Self { rate, expected: 0, others: 0 }
    }

    const fn runs(&self) -> u32 {
        self.expected + self.others
    }
}

impl Pairs {
    /// The upper rate lies one gap above the lower one, or at `failed` where that is as far as rates may go.
    fn new(passed: f64, failed: f64, gap: f64, to: f64) -> Self {
        let high = rounded((passed * (1.0 + gap)).min(to)).max(failed);
        Self { low: Side::new(passed), high: Side::new(high), gap, widened: 0, runs: 0 }
    }

    fn next(&self) -> NextStep {
        let Self { low, high, .. } = self;
        let is_confirmed = low.expected >= HOLDING && high.expected >= FAILING && high.runs() >= PAIRS;
        if is_confirmed || self.runs >= PAIR_RUNS_MAX || self.widened >= WIDENED.len() {
            let (passed, failed) = (low.rate, high.rate);
            return NextStep::Found(Capacity::Between { passed, failed, is_confirmed });
        }
        let is_low = high.runs() >= PAIRS || low.runs() < PAIRS && low.runs() <= high.runs();
        NextStep::Measure { rate: if is_low { low.rate } else { high.rate }, is_of_pair: true }
    }

    /// A side that cannot come out as it should any more is moved away from the other one.
    fn record(&mut self, rate: f64, end: StepResult, to: f64) {
        self.runs += 1;
        let is_low = rate == self.low.rate;
        let (side, is_expected) = match is_low {
            true => (&mut self.low, end == StepResult::Holds),
            false => (&mut self.high, end.is_too_much()),
        };
        if is_expected {
            side.expected += 1;
            return;
        }
        side.others += 1;
        let may_be_otherwise = if is_low { PAIRS - HOLDING } else { PAIRS - FAILING };
        if side.others <= may_be_otherwise {
            return;
        }
        self.widened += 1;
        let Some(gaps) = WIDENED.get(self.widened) else { return };
        let apart = 1.0 + self.gap * gaps;
        match is_low {
            true => self.low = Side::new(rounded(self.high.rate / apart)),
            false if self.low.rate * apart <= to => self.high = Side::new(rounded(self.low.rate * apart)),
            // There is no rate above that may be tried.
            false => self.widened = WIDENED.len(),
        }
    }
}

/// A rate with four significant digits: finer than any gap that noise allows, and short to read and to type.
fn rounded(rate: f64) -> f64 {
    format!("{rate:.3e}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_run::Random;
    use StepResult::{Client, Fails, Holds, Invalid, Overload, Undecided};

    fn range(from: f64, to: Option<f64>) -> RateRange {
        RateRange { from, lowest: from, to, gap: 0.05 }
    }

    /// Walks through a search; `measure` is told the rate and how many runs came before it. Returns the rates of steps and of pairs.
    fn walk(
        range: RateRange,
        mut measure: impl FnMut(f64, usize) -> StepResult,
    ) -> (Capacity, Vec<f64>, Vec<f64>) {
        let (mut search, mut steps, mut pairs) = (CapacitySearch::new(range), Vec::new(), Vec::new());
        loop {
            match search.next() {
                NextStep::Found(capacity) => return (capacity, steps, pairs),
                NextStep::Measure { rate, is_of_pair } => {
                    search.record(rate, measure(rate, steps.len() + pairs.len()));
                    if is_of_pair {
                        pairs.push(rate)
                    } else {
                        steps.push(rate)
                    }
                    assert!(steps.len() < 40 && pairs.len() <= PAIR_RUNS_MAX as usize, "{steps:?} {pairs:?}");
                }
            }
        }
    }

    fn below(limit: f64) -> impl Fn(f64, usize) -> StepResult {
        move |rate, _| if rate < limit { Holds } else { Fails }
    }

    #[test]
    fn a_bracket_is_found_and_confirmed_in_turns() {
        let (capacity, steps, pairs) = walk(range(1_000.0, None), below(7_700.0));
        assert_eq!(steps, [1_000.0, 2_000.0, 4_000.0, 8_000.0, 5_657.0, 6_727.0, 7_336.0, 7_661.0]);
        assert_eq!(pairs, [7_661.0, 8_044.0, 7_661.0, 8_044.0, 7_661.0, 8_044.0]);
        assert_eq!(capacity, Capacity::Between { passed: 7_661.0, failed: 8_044.0, is_confirmed: true });
    }

    /// Whatever the limit, it lies between the two rates, which are no further apart than twice the gap.
    #[test]
    fn the_limit_lies_between_the_rates() {
        for step in 1..400 {
            let limit = 1_000.0 * 1.017_f64.powi(step) + 0.5;
            for gap in [0.3, 0.05, 0.02, 0.001] {
                let (capacity, ..) = walk(RateRange { gap, ..range(1_000.0, None) }, below(limit));
                let Capacity::Between { passed, failed, is_confirmed } = capacity else {
                    panic!("{limit}: {capacity:?}")
                };
                assert!(is_confirmed && passed < limit && limit <= failed, "{limit}: {capacity:?}");
                // Four digits are as close as rates come.
                assert!(failed / passed <= 1.0 + gap.max(0.001) + 0.001, "{limit}: {capacity:?}");
            }
        }
    }

    #[test]
    fn a_search_ends_when_every_rate_holds_or_none() {
        let (capacity, steps, pairs) = walk(range(1_000.0, None), |_, _| Fails);
        assert_eq!((capacity, steps), (Capacity::Below { failed: 1_000.0 }, vec![1_000.0]));
        assert!(pairs.is_empty(), "{pairs:?}");
        let (capacity, steps, _) = walk(range(1_000.0, Some(5_000.0)), |_, _| Holds);
        assert_eq!((capacity, steps), (Capacity::AtLeast { passed: 5_000.0 }, vec![1e3, 2e3, 4e3, 5e3]));
        let (capacity, steps, _) = walk(range(1_000.0, Some(1_000.0)), |_, _| Holds);
        assert_eq!((capacity, steps.len()), (Capacity::AtLeast { passed: 1_000.0 }, 1));
        let (capacity, ..) = walk(range(1_000.0, None), |_, _| Holds);
        assert_eq!(capacity, Capacity::AtLeast { passed: RATE_MAX });
        // A pair tries no rate above the highest.
        let (capacity, ..) = walk(range(1_000.0, Some(5_000.0)), below(4_900.0));
        assert!(
            matches!(capacity, Capacity::Between { failed, is_confirmed: true, .. } if failed <= 5_000.0)
        );
    }

    #[test]
    fn undecided_and_overloaded_steps_count_as_too_much() {
        for end in [Undecided, Overload] {
            let (capacity, ..) =
                walk(range(1_000.0, None), |rate, _| if rate > 3_000.0 { end } else { Holds });
            let Capacity::Between { passed, failed, is_confirmed } = capacity else { panic!("{capacity:?}") };
            assert!(passed <= 3_000.0 && failed > 3_000.0, "{capacity:?}");
            // What decides nothing confirms nothing.
            assert_eq!(is_confirmed, end == Overload, "{end:?}");
        }
    }

    /// Nothing is known of the lowest rate: that is no capacity below it.
    #[test]
    fn a_lowest_rate_that_is_undecided_has_not_failed() {
        let (capacity, steps, _) = walk(range(1_000.0, None), |_, _| Undecided);
        assert_eq!((capacity, steps), (Capacity::Undecided { at: 1_000.0 }, vec![1_000.0; 2]));
        assert_eq!(capacity.passed(), None);
        let (capacity, ..) = walk(range(1_000.0, None), |_, _| Overload);
        assert_eq!(capacity, Capacity::Below { failed: 1_000.0 });
    }

    /// A first rate that is too high, or that a disturbed client left open, is no end where lower ones may be tried.
    #[test]
    fn rates_go_down_to_the_lowest() {
        let range = RateRange { lowest: 1_000.0 / 64.0, ..range(1_000.0, None) };
        for end in [Undecided, Fails, Overload] {
            let (capacity, mut steps, _) = walk(range, |rate, _| if rate > 40.0 { end } else { Holds });
            steps.dedup();
            assert_eq!(steps[..4], [1_000.0, 250.0, 62.5, 15.62], "{end:?}");
            assert!(
                matches!(capacity, Capacity::Between { passed, .. } if (36.0..=40.0).contains(&passed)),
                "{capacity:?}"
            );
            let (_, steps, _) = walk(range, |_, _| end);
            // One that decides nothing is measured once more.
            assert_eq!(steps.len(), if end == Undecided { 8 } else { 4 }, "{end:?}");
        }
    }

    /// Runs that came out otherwise than the bracket has it → both rates in the end, and how many runs in pairs there were.
    #[test]
    fn the_gap_is_widened_until_the_runs_agree() {
        let walk = |is_other: &dyn Fn(f64, usize) -> bool| {
            let (capacity, steps, pairs) = walk(range(1_000.0, None), |rate, before| {
                let holds = rate < 7_700.0;
                // Eight steps come before the pairs.
                let is_other = before >= 8 && is_other(rate, before - 8);
                if holds == is_other { Fails } else { Holds }
            });
            assert_eq!(steps.len(), 8);
            let Capacity::Between { passed, failed, is_confirmed } = capacity else { panic!("{capacity:?}") };
            (passed, failed, is_confirmed, pairs.len())
        };
        // One upper run of three may hold.
        assert_eq!(walk(&|rate, run| rate > 8_000.0 && run == 1), (7_661.0, 8_044.0, true, 6));
        // Two may not: the upper rate goes up, and the runs of the lower one still count.
        assert_eq!(walk(&|rate, _| rate == 8_044.0), (7_661.0, 8_427.0, true, 7 + 1));
        assert_eq!(walk(&|rate, _| (8_000.0..8_500.0).contains(&rate)), (7_661.0, 9_193.0, true, 9 + 1));
        // No lower run of three may fail: the lower rate goes down.
        assert_eq!(walk(&|rate, _| rate == 7_661.0), (7_313.0, 8_044.0, true, 7));
        // Whatever the gap, they disagree.
        assert!(!walk(&|rate, _| rate > 8_000.0).2);
        assert!(!walk(&|rate, _| rate < 7_700.0).2);
    }

    #[test]
    fn a_client_that_is_the_limit_is_no_capacity() {
        let (capacity, steps, _) =
            walk(range(1_000.0, None), |rate, _| if rate < 5_000.0 { Holds } else { Client });
        assert_eq!(capacity, Capacity::ByClient { at: 8_000.0, passed: Some(4_000.0) });
        assert_eq!(steps, [1e3, 2e3, 4e3, 8e3, 8e3], "the rate was tried once more");
        // Once is chance, in steps and in pairs.
        let (capacity, steps, _) = walk(range(1_000.0, None), |rate, before| match (rate, before) {
            (_, 2 | 5 | 12) => Client,
            (low, _) if low < 5_000.0 => Holds,
            _ => Fails,
        });
        assert_eq!(steps[2..4], [4e3, 4e3]);
        assert!(matches!(capacity, Capacity::Between { is_confirmed: true, .. }), "{capacity:?}");
        let (capacity, _, pairs) = walk(range(1_000.0, None), |rate, before| match below(7_700.0)(rate, 0) {
            Fails if before >= 8 => Client,
            end => end,
        });
        assert_eq!(capacity, Capacity::ByClient { at: 8_044.0, passed: Some(7_661.0) });
        assert_eq!(pairs, [7_661.0, 8_044.0, 8_044.0]);
        let (capacity, ..) = walk(range(1_000.0, None), |_, _| Invalid);
        assert_eq!(capacity, Capacity::Invalid { at: 1_000.0, passed: None });
        assert_eq!(capacity.passed(), None);
    }

    /// An assertion that came out like this.
    fn assertion(decision: Decision, reason: Option<Reason>) -> Assertion {
        Assertion {
            objective: "p99 < 1ms".parse().unwrap(),
            measured: None,
            decision,
            reached: None,
            unanswered: 0,
            reason,
            another_run_ns: None,
            at_rate: None,
        }
    }

    #[test]
    fn a_step_is_decided_by_its_assertions_unless_its_load_is_not_what_it_says() {
        let client = Some(Reason::Client { part_ns: 1, unsent: 0 });
        let few = Some(Reason::Requests { more: 1, ns: None });
        let [holds, fails] = [Decision::Holds, Decision::Fails].map(|decision| assertion(decision, None));
        let open = |reason| assertion(Decision::Undecided, reason);
        let of_client = Assertion { objective: "client.p99 < 10us".parse().unwrap(), ..holds.clone() };
        let table = [
            (vec![holds.clone()], [false; 3], Holds),
            (vec![open(few)], [false; 3], Undecided),
            (vec![open(client)], [false; 3], Client),
            (vec![fails.clone()], [false; 3], Fails),
            // Every objective must hold; one that does not, decides.
            (vec![holds.clone(), open(few)], [false; 3], Undecided),
            (vec![open(client), fails.clone()], [false; 3], Fails),
            // A backlog that grows is too much, whatever the latencies were until then.
            (vec![holds.clone()], [false, true, false], Overload),
            (vec![holds.clone()], [false, true, true], Client),
            // What is asked of the client alone is answered by its limit.
            (vec![of_client.clone()], [false, true, true], Overload),
            (vec![of_client, holds.clone()], [false, true, true], Client),
            // What fails without the client's part does so beside a client without time, too.
            (vec![fails.clone()], [false, true, true], Fails),
            (vec![fails], [true, false, false], Invalid),
        ];
        for (assertions, [is_invalid, is_overloaded, is_by_client], expected) in table {
            let result = StepResult::of(&assertions, is_invalid, is_overloaded, is_by_client);
            assert_eq!(result, expected, "{assertions:?}");
        }
    }

    /// How much of M/D/1 takes longer than this many service times, by Erlang's series.
    fn above_in_m_d_1(utilisation: f64, times: f64) -> f64 {
        let wait = times - 1.0;
        let term = |k: i32| {
            let x = utilisation * (f64::from(k) - wait);
            let power: f64 = (1..=k).map(|factor| x / f64::from(factor)).product();
            power * (-x).exp()
        };
        1.0 - (1.0 - utilisation) * (0..=wait as i32).map(term).sum::<f64>()
    }

    /// A server with a fixed service time of 100 us: its p99 is 1 ms at 7 735/s, ρ = 0.7735. A step of a second counts the requests of the law
    /// that take longer; these come in clusters, as they wait for the same busy period.
    #[test]
    fn capacity_of_an_m_d_1_queue_matches_theory() {
        assert!((above_in_m_d_1(0.7735, 10.0) - 0.01).abs() < 1e-4, "{}", above_in_m_d_1(0.7735, 10.0));
        let mut random = Random(7);
        /// Variance over that of independent requests, as busy periods have it at this load.
        const CLUSTER: f64 = 12.0;
        let (mut within, mut confirmed, mut runs) = (0, 0, 0);
        for _ in 0..200 {
            let (capacity, steps, pairs) = walk(range(1_000.0, None), |rate, _| {
                if rate >= 10_000.0 {
                    return Overload;
                }
                let mean = rate * above_in_m_d_1(rate / 10_000.0, 10.0);
                let above = mean + random.normal() * (mean * CLUSTER).sqrt();
                if above <= rate * 0.01 { Holds } else { Fails }
            });
            within += u32::from((capacity.passed().unwrap() / 7_735.0 - 1.0).abs() <= 0.1);
            confirmed += u32::from(matches!(capacity, Capacity::Between { is_confirmed: true, .. }));
            runs = runs.max(steps.len() + pairs.len());
        }
        println!("{within} of 200 within 10 %, {confirmed} confirmed, at most {runs} runs");
        assert!(within >= 190, "{within} of 200 within 10 %");
        assert!(confirmed >= 180, "{confirmed} of 200 confirmed");
        assert!(runs <= 24, "{runs}");
    }
}
