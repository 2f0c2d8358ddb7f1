//! Lengths of keys and values, in the mini-language `name:a,b`.
//!
//! Descriptions only: `brunt-workload` draws from them.

use crate::distribution::{self, Distribution, MCPERF, McperfDraw};
use crate::units::{ByteSize, joined, name_and_arguments, text_form};
use std::fmt;

/// How long keys or values are, in bytes. The length is a function of the key, never drawn anew for each request.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeDistribution {
    /// Always this long. Text form `200`, `4KiB` or `fixed:200`.
    Fixed(u32),
    /// Every length from the first to the last, both included, equally often. Text form `uniform:10,100`.
    Uniform {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// Drawn from a distribution, rounded to the nearest byte (a half rounds up), and what lies outside the bounds moved to the
    /// nearer one. Text form: any distribution, such as `fb_value`, or with other bounds than its own `fb_value@1..64KiB`.
    Parametric {
        /// The distribution; neither fixed nor uniform, which have exact forms of their own.
        distribution: Distribution,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// Lengths as mutilate gives them to its keys: its formula of the distribution at the FNV-1a hash of the id, which is not the
    /// quantile that [`SizeDistribution::Parametric`] takes. For data sets that mutilate stored, or shall find. Text form: as of a
    /// distribution, behind `mutilate:`, such as `mutilate:fb_key@4..250`.
    Mutilate {
        /// The distribution, which its formulas know: no lognormal, no table.
        distribution: Distribution,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// Ranges, of which each has a share of the keys and all its lengths equally often. Text form
    /// `ranges:16-100@0.2,101-250@0.8`.
    Ranges(Vec<SizeRange>),
    /// The length of id n is the n-th number that mcperf draws, from 0, rounded to the nearest byte (of two the even one);
    /// draws without an end are cut at 1 MiB. Text form `mcperf:u1,16@3`.
    Mcperf(McperfDraw),
}

/// A range of lengths, both ends included, and its share of the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeRange {
    /// Shortest.
    pub min: u32,
    /// Longest, not below `min`.
    pub max: u32,
    /// Above 0; those of all ranges add up to 1, to within [`SizeRange::SUM_TOLERANCE`].
    pub share: f64,
}

impl SizeRange {
    /// Shares are given to three decimals: a third is 0.333.
    pub const SUM_TOLERANCE: f64 = 0.0015;

    /// Halfway between its ends, rounded down.
    pub const fn middle(&self) -> u32 {
        self.min + (self.max - self.min) / 2
    }

    fn parse(text: &str) -> Option<Self> {
        let (ends, share) = text.split_once('@')?;
        let (min, max) = ends.split_once('-').unwrap_or((ends, ends));
        let range = Self {
            min: parse_size(min.trim())?,
            max: parse_size(max.trim())?,
            share: share.trim().parse().ok()?,
        };
        (range.min <= range.max && range.share > 0.0 && range.share.is_finite()).then_some(range)
    }
}

/// What is before ranges.
const RANGES: &str = "ranges:";

fn ranges_form(text: &str, ranges: &str) -> Result<SizeDistribution, String> {
    let parse = |range: &str| {
        let fault = || format!("{text}: '{range}' is no range; expected MIN-MAX@SHARE, such as 16-100@0.2");
        SizeRange::parse(range).ok_or_else(fault)
    };
    let ranges = ranges.split(',').map(|range| parse(range.trim())).collect::<Result<Vec<_>, _>>()?;
    let sum: f64 = ranges.iter().map(|range| range.share).sum();
    if (sum - 1.0).abs() > SizeRange::SUM_TOLERANCE {
        return Err(format!("{text}: the shares add up to {sum}; expected 1"));
    }
    Ok(SizeDistribution::Ranges(ranges))
}

/// Where a distribution that goes on for ever is cut unless the text says otherwise: with its key and its header a value of this
/// size fits memcached's default limit of 1 MiB per item.
const LAW_SIZE_MAX: u32 = 1_000_000;

impl SizeDistribution {
    /// The shortest length that can occur.
    pub fn min(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform { min, .. } | Self::Parametric { min, .. } | Self::Mutilate { min, .. } => *min,
            Self::Ranges(ranges) => ranges.iter().map(|range| range.min).min().unwrap_or(0),
            Self::Mcperf(draw) => draw.size_min(),
        }
    }
    /// The longest length that can occur.
    pub fn max(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform { max, .. } | Self::Parametric { max, .. } | Self::Mutilate { max, .. } => *max,
            Self::Ranges(ranges) => ranges.iter().map(|range| range.max).max().unwrap_or(0),
            Self::Mcperf(draw) => draw.size_max(),
        }
    }

    /// The sizes truncated to these bounds, if they are drawn from a distribution without ends of its own. Others stay as they are: whether
    /// exact sizes fit is left to the caller, and so is a distribution that lies outside the bounds altogether.
    pub fn cut_to(self, least: u32, most: u32) -> Self {
        match self {
            Self::Parametric { distribution, min, max } if !is_bounded(&distribution) => {
                let (min, max) = overlap((min, max), (least, most));
                Self::Parametric { distribution, min, max }
            }
            Self::Mutilate { distribution, min, max } => {
                let (min, max) = overlap((min, max), (least, most));
                Self::Mutilate { distribution, min, max }
            }
            exact => exact,
        }
    }

    fn of_law(distribution: Distribution) -> Result<Self, String> {
        let (low, high) = distribution.support();
        let out_of_range =
            |size: f64| format!("{distribution}: {size} is no size; expected 0 to {} bytes", u32::MAX);
        // Half up, as sizes are drawn; ends that are infinite saturate.
        let (min, max) = ((low + 0.5).floor(), (high + 0.5).floor());
        if is_bounded(&distribution) {
            let fits = |size: f64| (0.0..=f64::from(u32::MAX)).contains(&size);
            if let Some(end) = [min, max].into_iter().find(|end| !fits(*end)) {
                return Err(out_of_range(end));
            }
            return Ok(Self::Parametric { min: min as u32, max: max as u32, distribution });
        }
        let (min, max) = overlap((min as u32, max as u32), (0, LAW_SIZE_MAX));
        Ok(Self::Parametric { distribution, min, max })
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(ranges) = text.strip_prefix(RANGES) {
            return ranges_form(text, ranges);
        }
        if text.starts_with(MCPERF) {
            return McperfDraw::parse_sizes(text).map(Self::Mcperf);
        }
        let (distribution, bounds) = match text.split_once('@') {
            Some((distribution, bounds)) => (distribution, Some(bounds)),
            None => (text, None),
        };
        if let Some(distribution) = distribution.strip_prefix(MUTILATE) {
            return mutilate_form(text, distribution, bounds);
        }
        let (name, arguments) = name_and_arguments(distribution);
        let whole = |size: &str| {
            let fault = || format!("{text}: '{size}' is no whole number of bytes, such as 200 or 4KiB");
            parse_size(size).ok_or_else(fault)
        };
        let parsed = match Distribution::parse(distribution, distribution::byte_number) {
            Ok(Distribution::Fixed { .. }) => Self::Fixed(whole(arguments.first().unwrap_or(&name))?),
            Ok(Distribution::Uniform { .. }) => match arguments.as_slice() {
                [min, max] => Self::Uniform { min: whole(min)?, max: whole(max)? },
                _ => Self::Uniform { min: 0, max: whole(arguments[0])? },
            },
            Ok(drawn) => Self::of_law(drawn)?,
            Err(_) if arguments.is_empty() && !distribution::is_distribution_name(name) => {
                return Err(format!(
                    "{text}: no size; expected a size such as 200 or 4KiB, {}",
                    distribution::FORMS
                ));
            }
            Err(fault) => return Err(fault),
        };
        match (parsed, bounds) {
            (parsed, None) => Ok(parsed),
            (Self::Parametric { distribution, .. }, Some(bounds)) => with_bounds(text, distribution, bounds),
            (_, Some(_)) => {
                Err(format!("{text}: bounds belong to a distribution, such as normal:200,50@10..400"))
            }
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(formatter, "fixed:{size}"),
            Self::Uniform { min, max } => write!(formatter, "uniform:{min},{max}"),
            Self::Parametric { distribution, min, max } => {
                write!(formatter, "{distribution}")?;
                let has_own_bounds = Self::of_law(distribution.clone()).as_ref() == Ok(self);
                if has_own_bounds { Ok(()) } else { write!(formatter, "@{min}..{max}") }
            }
            Self::Mutilate { distribution, min, max } => {
                write!(formatter, "{MUTILATE}{distribution}@{min}..{max}")
            }
            Self::Ranges(ranges) => {
                let range = |SizeRange { min, max, share }: &SizeRange| format!("{min}-{max}@{share}");
                write!(formatter, "{RANGES}{}", joined(ranges.iter().map(range)))
            }
            Self::Mcperf(draw) => write!(formatter, "{draw}"),
        }
    }
}

/// Does a distribution have ends of its own on both sides?
fn is_bounded(distribution: &Distribution) -> bool {
    let (low, high) = distribution.support();
    low.is_finite() && high.is_finite()
}

/// What two ranges share; where that is nothing, the end of the first that is nearer to the second.
fn overlap(own: (u32, u32), other: (u32, u32)) -> (u32, u32) {
    if own.0 > other.1 {
        (own.0, own.0)
    } else if own.1 < other.0 {
        (own.1, own.1)
    } else {
        (own.0.max(other.0), own.1.min(other.1))
    }
}

fn parse_size(text: &str) -> Option<u32> {
    let exact = text.parse::<ByteSize>().ok().map(|size| size.0);
    // Scientific notation, as all numbers of a distribution may have.
    let number = || distribution::byte_number(text).filter(|number| number.fract() == 0.0 && *number >= 0.0);
    exact.or_else(|| number().map(|number| number as u64)).and_then(|size| u32::try_from(size).ok())
}

text_form!(SizeDistribution);

fn with_bounds(text: &str, distribution: Distribution, bounds: &str) -> Result<SizeDistribution, String> {
    let (min, max) = parse_bounds(text, bounds)?;
    Ok(SizeDistribution::Parametric { distribution, min, max })
}

fn parse_bounds(text: &str, bounds: &str) -> Result<(u32, u32), String> {
    let parsed =
        bounds.split_once("..").and_then(|(min, max)| parse_size(min.trim()).zip(parse_size(max.trim())));
    match parsed {
        Some((min, max)) if min > max => Err(format!("{text}: bound {min} exceeds bound {max}")),
        Some(bounds) => Ok(bounds),
        None => {
            Err(format!("{text}: '{bounds}' are no bounds; expected MIN..MAX in bytes, such as 1..64KiB"))
        }
    }
}

/// What is before a distribution of [`SizeDistribution::Mutilate`].
const MUTILATE: &str = "mutilate:";

fn mutilate_form(text: &str, distribution: &str, bounds: Option<&str>) -> Result<SizeDistribution, String> {
    let distribution = Distribution::parse(distribution, distribution::byte_number)?;
    if matches!(
        distribution,
        Distribution::Fixed { .. }
            | Distribution::Lognormal { .. }
            | Distribution::Discrete(_)
            | Distribution::FbValue
    ) {
        return Err(format!(
            "{text}: expected uniform, normal, exponential, pareto, gev, fb_key or fb_ia behind it"
        ));
    }
    let (min, max) = bounds.map_or(Ok((0, LAW_SIZE_MAX)), |bounds| parse_bounds(text, bounds))?;
    Ok(SizeDistribution::Mutilate { distribution, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unbounded_sizes_are_truncated() {
        // As read; and cut to 5..=250, as a key is.
        for (text, read, cut) in [
            ("fixed:300", (300, 300), (300, 300)),
            ("uniform:1,300", (1, 300), (1, 300)),
            ("fb_key", (0, 1_000_000), (5, 250)),
            ("pareto:14.5,214,0.3", (15, 1_000_000), (15, 250)),
            ("pareto:300,214,0.3", (300, 1_000_000), (300, 300)),
            ("pareto:2e6,214,0.3", (2_000_000, 2_000_000), (2_000_000, 2_000_000)),
            ("pareto:1,100,-0.5", (1, 201), (1, 201)),
            ("gev:0,1,-0.5", (0, 2), (2, 2)),
            ("discrete:3=1,400=1", (3, 400), (3, 400)),
            ("fb_key@20..40", (20, 40), (20, 40)),
            ("normal:9,0", (9, 9), (9, 9)),
            ("mutilate:fb_key@1..300", (1, 300), (5, 250)),
            ("ranges:7-300@0.5,2-9@0.5", (2, 300), (2, 300)),
            ("mcperf:d2.5", (2, 2), (2, 2)),
            ("mcperf:u1,300", (1, 300), (1, 300)),
            ("mcperf:e50", (0, 1_665), (0, 1_665)),
            ("mcperf:s5", (5, 1 << 20), (5, 1 << 20)),
            ("mcperf:e1000000", (0, 1 << 20), (0, 1 << 20)),
        ] {
            let size: SizeDistribution = text.parse().unwrap();
            assert_eq!((size.min(), size.max()), read, "{text}");
            let size = size.cut_to(5, 250);
            assert_eq!((size.min(), size.max()), cut, "{text}");
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
