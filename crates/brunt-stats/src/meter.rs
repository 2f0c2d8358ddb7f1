//! A metered quantity: count, sums, extremes and a histogram of something a plan asks for beside latency.
//!
//! Not a latency. Sums are exact integers, Σ ln among them (in steps of 2⁻³², rounded once per value), so meters merge
//! in any order to the same bits.

use crate::histogram::{Histogram, RecordingHistogram, SparseHistogram};
use brunt_plan::plan::MeterKind;
use serde::{Deserialize, Serialize};

/// Steps of Σ ln in a unit.
const LN_SCALE: f64 = (1u64 << 32) as f64;

/// What a worker meters into; preallocated, and in cache lines of its own.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub struct MeterRecorder {
    kind: MeterKind,
    histogram: RecordingHistogram,
    sum_ln: u128,
    /// Are logarithms summed?
    sums_ln: bool,
    positive: u64,
}

impl MeterRecorder {
    /// Empty.
    pub fn new(kind: MeterKind, sums_ln: bool) -> Self {
        Self { kind, histogram: RecordingHistogram::default(), sum_ln: 0, sums_ln, positive: 0 }
    }

    /// Adds one value, in the unit of the kind.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.histogram.record(value);
        if self.sums_ln && value > 0 {
            // At most 44.4 · 2³², so the conversion is exact to the rounding.
            self.sum_ln += ((value as f64).ln() * LN_SCALE).round() as u128;
            self.positive += 1;
        }
    }

    /// Yields what was metered and leaves the recorder empty. Allocates.
    pub fn take(&mut self) -> Meter {
        let (sum_ln, positive) = (std::mem::take(&mut self.sum_ln), std::mem::take(&mut self.positive));
        Meter { kind: self.kind, histogram: self.histogram.take(), sum_ln, positive }
    }
}

/// What was metered. A whole run's meter has a [`Histogram`] while it is added up: adding to that takes the same time however much
/// is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter<H = SparseHistogram> {
    /// The quantity and, with it, the unit.
    pub kind: MeterKind,
    /// Its values; count, Σ, Σ², minimum and maximum are the moments of this.
    pub histogram: H,
    #[serde(with = "crate::counts::wide")]
    sum_ln: u128,
    positive: u64,
}

impl Meter {
    /// Without values.
    pub fn new(kind: MeterKind) -> Self {
        Self { kind, histogram: SparseHistogram::default(), sum_ln: 0, positive: 0 }
    }

    /// Σ ln v over the values above 0.
    pub fn sum_ln(&self) -> f64 {
        self.sum_ln as f64 / LN_SCALE
    }

    /// The geometric mean of the values above 0; `None` where there are none.
    pub fn geometric_mean(&self) -> Option<f64> {
        (self.positive > 0).then(|| (self.sum_ln() / self.positive as f64).exp())
    }

    /// Adds another meter of the same kind.
    pub fn merge(&mut self, other: &Self) {
        self.add(other, |ours, theirs| *ours = ours.merged(theirs));
    }
}

impl<H> Meter<H> {
    /// Adds what was metered of the same kind; `merge` adds its histogram.
    pub(crate) fn add<T>(&mut self, other: &Meter<T>, merge: impl Fn(&mut H, &T)) {
        assert_eq!(self.kind, other.kind, "meters of different quantities do not add");
        merge(&mut self.histogram, &other.histogram);
        self.sum_ln += other.sum_ln;
        self.positive += other.positive;
    }
}

impl Meter<Histogram> {
    /// A whole run's meter, without values.
    pub(crate) fn of_run(kind: MeterKind) -> Self {
        Self { kind, histogram: Histogram::new(), sum_ln: 0, positive: 0 }
    }

    /// The meter in the form that takes little memory.
    pub(crate) fn to_sparse(&self) -> Meter {
        let Self { kind, ref histogram, sum_ln, positive } = *self;
        Meter { kind, histogram: histogram.to_sparse(), sum_ln, positive }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::quantile::Quantile;

    #[test]
    fn sums_and_means() {
        let mut recorder = MeterRecorder::new(MeterKind::Outstanding, true);
        [0, 1, 10, 100].into_iter().for_each(|value| recorder.record(value));
        let mut meter = recorder.take();
        recorder.record(1000);
        let rest = recorder.take();
        let mut turned = rest.clone();
        turned.merge(&meter);
        meter.merge(&rest);
        assert_eq!(turned, meter);
        let moments = meter.histogram.moments();
        assert_eq!((moments.count, moments.min, moments.max, moments.sum), (5, 0, 1000, 1111));
        assert_eq!(moments.sum_squares, 1_010_101);
        // ln 1 + ln 10 + ln 100 + ln 1000 = 6 ln 10; the geometric mean of the four is 10^1.5.
        assert!((meter.sum_ln() - 6.0 * 10f64.ln()).abs() < 1e-9);
        assert!((meter.geometric_mean().unwrap() - 10f64.powf(1.5)).abs() < 1e-6);
        assert_eq!(Meter::new(MeterKind::Oversleep).geometric_mean(), None);
    }

    #[test]
    fn percentiles_of_a_meter_need_ten_values_above() {
        let mut recorder = MeterRecorder::new(MeterKind::RequestSize, true);
        (1..=100).for_each(|value| recorder.record(value));
        let values = recorder.take().histogram;
        let given = Quantile::PRINTED.map(|quantile| values.percentile(quantile));
        assert_eq!(given, [Some(50), Some(90), None, None, None, None]);
        assert_eq!((values.min(), values.max()), (Some(1), Some(100)));
        let empty = recorder.take().histogram;
        assert_eq!((empty.min(), empty.max(), empty.percentile(Quantile::P50)), (None, None, None));
    }
}
