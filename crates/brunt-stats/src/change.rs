//! Two sets of runs: by how much do they differ, and is that more than runs differ by themselves?
//!
//! Not a comparison of two runs by their own intervals: these do not contain what differs from run to run (where connections landed,
//! how memory lies, what else the host did). Both tests are exact and assume no distribution. Of pairs each ratio is as likely as its
//! inverse if A and B are the same: all choices of pairs to turn round are listed. Of runs made apart each order is as likely as any other.
//! Invariant: an interval excludes no change exactly where its test rejects it at the level of that interval.

use crate::median::median_of_sorted;
use brunt_plan::split_mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So often a comparison of two sides that are the same finds a difference, at most; 1 − this is the confidence of intervals.
pub const LEVEL: f64 = 0.05;
/// Where the whole interval lies within this, the sides are the same. A part of A's value.
pub const MARGIN: f64 = 0.05;
/// Pairs of runs where nothing else is asked for.
pub const PAIRS: u32 = 8;
/// Runs of a side at most.
pub const RUNS_MAX: usize = 50;
/// Pairs up to which all choices are listed. Of more pairs as many choices are drawn.
const LISTED_MAX: usize = 16;
/// Where the choices are drawn from: the same runs have the same interval.
const DRAW_SEED: u64 = 1;
/// A change that is so many times as large as the distance of the interval's end from the estimate is found in 90 % of comparisons or
/// more: 1 + 1.282 / 1.960 by the normal distribution, whose intervals reach 1.960 standard errors or farther.
const FOUND_DISTANCES: f64 = 1.65;

brunt_plan::named! { serialized
    /// How the runs of A belong to those of B.
    pub enum Design {
        /// In pairs, one after the other with one seed.
        Pairs = "pairs",
        /// Made apart.
        Apart = "apart",
    }
}

brunt_plan::named! { serialized
    /// What the runs show of a quantity.
    pub enum Finding {
        /// B is slower than A.
        Slower = "SLOWER",
        /// B is faster than A.
        Faster = "FASTER",
        /// The interval lies within 5 %.
        Same = "SAME WITHIN 5 %",
        /// None of these.
        Undecided = "UNDECIDED",
    }
}

/// Why a quantity is undecided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// Some run does not give it, or it is 0 where ratios are compared.
    NotGiven,
    /// Even without any spread this many runs find nothing.
    TooFewRuns,
    /// The interval holds no change, and changes beyond [`MARGIN`].
    Spread {
        /// The smallest change that so many runs could find, as a part.
        detectable: f64,
    },
    /// The difference is not there, or the other way round, without the client's part.
    Client,
}

/// How values of a quantity are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeScale {
    /// As a ratio. Values must be above 0.
    Ratio,
    /// As a difference, because shares may be 0.
    Difference,
}

/// A quantity of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunValue {
    /// What was measured.
    pub value: f64,
    /// The same without the client's part.
    pub least: f64,
}

/// A quantity of all runs, in the order of the runs. Of pairs both sides are equally long.
#[derive(Clone, Debug)]
pub struct Samples {
    /// How it is compared.
    pub scale: ChangeScale,
    /// Is the side with the larger value the slower one?
    pub is_slower_above: bool,
    /// Of A; `None` where a run does not give it.
    pub a: Vec<Option<RunValue>>,
    /// Of B.
    pub b: Vec<Option<RunValue>>,
}

/// The change of a quantity from A to B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The median of A's runs, in nanoseconds, per second, or as a fraction; `None` where not every run gives it.
    pub a: Option<f64>,
    /// That of B's runs.
    pub b: Option<f64>,
    /// By which fraction B is above A (0.12 is 12 %), or B − A for `"difference"`: the median of what the test orders (Hodges and Lehmann).
    pub change: Option<f64>,
    /// Its confidence interval; `None` with too few runs.
    pub interval: Option<[f64; 2]>,
    /// The change of the medians of `least`; `None` where nothing is left.
    #[serde(rename = "change_without_client")]
    pub without_client: Option<f64>,
    /// What that shows; `None` of quantities that do not decide.
    pub finding: Option<Finding>,
    /// Why it is undecided; `None` where it is not.
    #[serde(skip)]
    pub reason: Option<Reason>,
}

/// Runs of each side, or pairs, with which a difference can be found in one of three quantities.
pub const fn runs_needed(design: Design) -> usize {
    if matches!(design, Design::Pairs) { 7 } else { 5 }
}

impl Change {
    /// The quantities that decide whether A and B differ. The probability that any of them differs by chance is [`LEVEL`] at most (Holm).
    pub fn decided<const N: usize>(design: Design, quantities: [&Samples; N]) -> [Self; N] {
        let tests = quantities.map(|samples| samples.test(design));
        let levels = levels(tests.each_ref().map(|test| test.as_ref().map_or(1.0, Test::probability)));
        std::array::from_fn(|index| quantities[index].change(tests[index].as_ref(), levels[index], true))
    }

    /// A quantity that is shown beside them.
    pub fn shown(design: Design, samples: &Samples) -> Self {
        samples.change(samples.test(design).as_ref(), LEVEL, false)
    }
}

/// Holm's levels: the smallest p is held against [`LEVEL`] divided by the number of tests, the next one against that divided by one
/// less, up to the first that is above its level, which stands for the rest.
fn levels<const N: usize>(probabilities: [f64; N]) -> [f64; N] {
    let mut ascending = probabilities;
    ascending.sort_by(f64::total_cmp);
    let level = |rank: usize| LEVEL / (N - rank.min(N - 1)) as f64;
    let rejected = (0..N).take_while(|rank| ascending[*rank] <= level(*rank)).count();
    probabilities.map(|p| level(ascending.partition_point(|other| *other < p).min(rejected)))
}

impl Samples {
    fn scaled(&self, value: f64) -> f64 {
        if self.scale == ChangeScale::Ratio { value.ln() } else { value }
    }

    fn change_of(&self, shift: f64) -> f64 {
        if self.scale == ChangeScale::Ratio { shift.exp_m1() } else { shift }
    }

    /// `None` where some run does not give the quantity.
    fn test(&self, design: Design) -> Option<Test> {
        let scaled = |side: &[Option<RunValue>]| {
            let of_run =
                |run: &Option<RunValue>| Some(self.scaled((*run)?.value)).filter(|value| value.is_finite());
            side.iter().map(of_run).collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())
        };
        Some(Test::of(design, &scaled(&self.a)?, &scaled(&self.b)?))
    }

    fn change(&self, test: Option<&Test>, level: f64, is_decided: bool) -> Change {
        let least = |side| median_of(side, |run| run.least).map(|least| self.scaled(least));
        let shift = least(&self.a).zip(least(&self.b)).map(|(a, b)| b - a);
        let without_client = shift.filter(|shift| shift.is_finite()).map(|shift| self.change_of(shift));
        let interval = |level: f64| test.and_then(|test| test.interval(level));
        let change = test.and_then(|test| median_of_sorted(&test.candidates));
        let decided = is_decided.then(|| match (change, interval(level)) {
            (None, _) => Err(Reason::NotGiven),
            (_, None) => Err(Reason::TooFewRuns),
            (Some(change), Some(interval)) => self.finding(change, interval, without_client),
        });
        let shown = interval(level).or_else(|| interval(LEVEL));
        Change {
            a: median_of(&self.a, |run| run.value),
            b: median_of(&self.b, |run| run.value),
            change: change.map(|shift| self.change_of(shift)),
            interval: shown.map(|ends| ends.map(|end| self.change_of(end))),
            without_client,
            finding: decided.map(|decided| decided.unwrap_or(Finding::Undecided)),
            reason: decided.and_then(Result::err),
        }
    }

    /// Of a change and its interval on the scale of the test.
    fn finding(&self, change: f64, ends: [f64; 2], without_client: Option<f64>) -> Result<Finding, Reason> {
        let [low, high] = ends.map(|end| self.change_of(end));
        if low >= -MARGIN && high <= MARGIN {
            return Ok(Finding::Same);
        }
        if low <= 0.0 && high >= 0.0 {
            let distance = (ends[1] - change).max(change - ends[0]);
            return Err(Reason::Spread { detectable: self.change_of(distance * FOUND_DISTANCES) });
        }
        if without_client.is_none_or(|without| without == 0.0 || (without > 0.0) != (low > 0.0)) {
            return Err(Reason::Client);
        }
        Ok(if (low > 0.0) == self.is_slower_above { Finding::Slower } else { Finding::Faster })
    }
}

fn median_of(side: &[Option<RunValue>], of: fn(&RunValue) -> f64) -> Option<f64> {
    let mut values = side.iter().map(|run| run.as_ref().map(of)).collect::<Option<Vec<f64>>>()?;
    values.sort_by(f64::total_cmp);
    median_of_sorted(&values)
}

/// The exact probability, over all orders of the values, of ranks as uneven as those of two sides; equal values count for the weaker side.
pub(crate) fn rank_probability(a: &[f64], b: &[f64]) -> f64 {
    Test::of(Design::Apart, a, b).probability()
}

/// An exact test of every shift at once: the number of candidates at or below the true shift has a known distribution.
struct Test {
    /// Ascending.
    candidates: Vec<f64>,
    /// The probability that at most so many candidates lie at or below the true shift, and the same for at or above.
    tail: Vec<f64>,
}

impl Test {
    fn of(design: Design, a: &[f64], b: &[f64]) -> Self {
        let mut candidates: Vec<f64> = match design {
            Design::Pairs => means(&b.iter().zip(a).map(|(b, a)| b - a).collect::<Vec<f64>>()),
            Design::Apart => b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect(),
        };
        let mut tail = match design {
            // Each choice of pairs is as likely as another; that of none has no mean.
            Design::Pairs => vec![1.0; candidates.len() + 1],
            Design::Apart => orders(a.len(), b.len()),
        };
        let (all, mut sum): (f64, f64) = (tail.iter().sum(), 0.0);
        for probability in &mut tail {
            sum += *probability;
            *probability = sum / all;
        }
        candidates.sort_by(f64::total_cmp);
        Self { candidates, tail }
    }

    /// The probability, if the true shift is 0, of candidates that lie as unevenly on both sides of it.
    fn probability(&self) -> f64 {
        let at_or_below = self.candidates.partition_point(|shift| *shift <= 0.0);
        let at_or_above = self.candidates.len() - self.candidates.partition_point(|shift| *shift < 0.0);
        (2.0 * self.tail[at_or_below.min(at_or_above)]).min(1.0)
    }

    /// All shifts that the test does not reject at this level; `None` where it rejects none.
    fn interval(&self, level: f64) -> Option<[f64; 2]> {
        let left_out = self.tail.partition_point(|below| 2.0 * below <= level).checked_sub(1)?;
        Some([self.candidates[left_out], self.candidates[self.candidates.len() - 1 - left_out]])
    }
}

/// The means of all choices of at least one difference (Hartigan's typical values): a choice that is turned round has a sum as large as
/// that of all differences, less a shift each, exactly where its mean is at most the shift.
fn means(differences: &[f64]) -> Vec<f64> {
    let pairs = differences.len();
    let mean = |index: u64| {
        let choice = if pairs <= LISTED_MAX { index } else { split_mix::output(DRAW_SEED, index) };
        let chosen = differences.iter().enumerate().filter(|(pair, _)| choice >> pair & 1 == 1);
        let (sum, count) = chosen.fold((0.0, 0.0), |(sum, count), (_, held)| (sum + held, count + 1.0));
        (count > 0.0).then(|| sum / count)
    };
    (1..1 << pairs.min(LISTED_MAX)).filter_map(mean).collect()
}

/// In how many orders of so many runs each number of pairs has the run of B below that of A (Mann and Whitney).
fn orders(a: usize, b: usize) -> Vec<f64> {
    let mut by_b = vec![vec![1.0]; b + 1];
    for _ in 0..a {
        for runs in 1..=b {
            // The highest run is one of A, above all of B, or one of B.
            let mut counts = vec![0.0; runs];
            counts.extend(&by_b[runs]);
            counts.iter_mut().zip(&by_b[runs - 1]).for_each(|(count, of_b)| *count += of_b);
            by_b[runs] = counts;
        }
    }
    by_b.swap_remove(b)
}

#[cfg(test)]
mod tests;
