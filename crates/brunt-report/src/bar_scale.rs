//! The height of a bar for a time, on a logarithmic scale: a line of bars shows times one after another.

use crate::layout::BARS;
use crate::quantity;

/// A scale from the least time to the most.
#[derive(Clone, Copy, Debug)]
pub struct BarScale {
    least_ns: u64,
    most_ns: u64,
}

impl BarScale {
    /// The scale of these times; `None` without any.
    pub fn of(values: &[Option<u64>]) -> Option<Self> {
        let given = || values.iter().flatten().copied();
        Some(Self { least_ns: given().min()?.max(1), most_ns: given().max()?.max(1) })
    }

    /// Widens the scale to a decade, so that times that are nearly equal have bars of nearly equal length.
    pub fn with_a_decade(self) -> Self {
        Self { most_ns: self.most_ns.max(self.least_ns.saturating_mul(10)), ..self }
    }

    /// The bar of a time; a blank for none.
    pub fn bar(&self, time_ns: Option<u64>) -> char {
        let Some(ns) = time_ns else { return ' ' };
        let height = self.part(ns) * (BARS.len() - 1) as f64;
        BARS[(height.round() as usize).min(BARS.len() - 1)]
    }

    /// Where a time stands from the least, 0, to the most, 1.
    pub(crate) fn part(&self, ns: u64) -> f64 {
        let span = (self.most_ns as f64 / self.least_ns as f64).ln();
        if span > 0.0 { (ns.max(1) as f64 / self.least_ns as f64).ln() / span } else { 0.0 }
    }
}

impl std::fmt::Display for BarScale {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = quantity::time(self.most_ns);
        match self.least_ns == self.most_ns {
            true => formatter.write_str(&most),
            false => write!(formatter, "{} to {most}, log", quantity::time_as(self.most_ns, self.least_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(times_ns: &[Option<u64>], scale: BarScale) -> String {
        times_ns.iter().map(|time_ns| scale.bar(*time_ns)).collect()
    }

    #[test]
    fn bars_are_logarithmic() {
        let times_ns = [Some(100), Some(1_000), None, Some(10_000)];
        assert_eq!(bars(&times_ns, BarScale::of(&times_ns).unwrap()), "▁▅ █");
        let alike = [Some(100), Some(120)];
        assert_eq!(bars(&alike, BarScale::of(&alike).unwrap()), "▁█");
        assert_eq!(bars(&alike, BarScale::of(&alike).unwrap().with_a_decade()), "▁▂");
        assert!(BarScale::of(&[None]).is_none());
    }
}
