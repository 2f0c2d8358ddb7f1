//! What mcperf draws sizes and gaps from, in its own words: `d5`, `u1,16`, `e50`, `s5`.
//!
//! A description only; the generator behind it is `brunt-workload/src/rand48.rs`. Invariant: every number is finite and
//! above 0, and the maximum of an interval is not below its minimum.

use std::fmt;

/// What is before a draw in the mini-languages of sizes and arrivals.
pub(crate) const MCPERF: &str = "mcperf:";

/// A draw of mcperf, and whose it is: clients of other numbers draw other numbers. Text form `mcperf:u1,16@3`; without `@`
/// it is client 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct McperfDraw {
    /// How numbers are spread.
    pub shape: McperfShape,
    /// mcperf's `--client`: the seed of the generator.
    pub client: u32,
}

/// How the numbers of a draw are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum McperfShape {
    /// Always the same: `d5`.
    Fixed(f64),
    /// Evenly from the first up to the second, which is never reached: `u1,16`.
    Uniform(f64, f64),
    /// Exponential with this mean: `e50`.
    Exponential(f64),
    /// This number, then one more each time: `s5`.
    Sequential(f64),
}

impl McperfDraw {
    /// The largest value of mcperf, to which draws without an end are cut where they are sizes.
    const SIZE_MAX: u32 = 1 << 20;
    /// The largest exponential number in means: that of the largest fraction below 1 that its generator makes, 1 − 2⁻⁴⁸.
    const EXPONENTIAL_MAX: f64 = 33.3;

    /// The mean of all numbers; `None` where they grow without end.
    pub fn mean(&self) -> Option<f64> {
        match self.shape {
            McperfShape::Fixed(mean) | McperfShape::Exponential(mean) => Some(mean),
            McperfShape::Uniform(min, max) => Some((min + max) / 2.0),
            McperfShape::Sequential(_) => None,
        }
    }

    /// The smallest size in bytes.
    pub fn size_min(&self) -> u32 {
        match self.shape {
            McperfShape::Fixed(least) | McperfShape::Uniform(least, _) | McperfShape::Sequential(least) => {
                round(least)
            }
            McperfShape::Exponential(_) => 0,
        }
    }

    /// The largest size in bytes; where there is no end, or a far one, 1 MiB.
    pub fn size_max(&self) -> u32 {
        match self.shape {
            McperfShape::Fixed(most) | McperfShape::Uniform(_, most) => round(most),
            McperfShape::Exponential(mean) => round(mean * Self::EXPONENTIAL_MAX).min(Self::SIZE_MAX),
            McperfShape::Sequential(first) => round(first).max(Self::SIZE_MAX),
        }
    }

    /// The draw behind [`MCPERF`] in `text`, or what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let draw = text.trim().strip_prefix(MCPERF).unwrap_or(text);
        let (shape, client) = match draw.split_once('@') {
            Some((shape, client)) => {
                let fault = || format!("{text}: '{client}' is no number of a client, such as 3");
                (shape, client.trim().parse().map_err(|_| fault())?)
            }
            None => (draw, 0),
        };
        let shape = McperfShape::parse(shape.trim()).ok_or_else(|| {
            format!(
                "{text}: expected dSIZE, uMIN,MAX, eMEAN or sFIRST behind {MCPERF}, all above 0, such as u1,16"
            )
        })?;
        Ok(Self { shape, client })
    }

    /// The draw behind [`MCPERF`] as sizes in bytes.
    pub(crate) fn parse_sizes(text: &str) -> Result<Self, String> {
        let draw = Self::parse(text)?;
        let largest = match draw.shape {
            McperfShape::Fixed(number) | McperfShape::Uniform(_, number) => number,
            McperfShape::Exponential(number) | McperfShape::Sequential(number) => number,
        };
        if largest > f64::from(u32::MAX) {
            return Err(format!("{text}: {largest} is no size; expected up to {} bytes", u32::MAX));
        }
        Ok(draw)
    }
}

/// The nearest size: of two the even one, as C's `lrint` has it. The conversion saturates.
fn round(number: f64) -> u32 {
    number.round_ties_even() as u32
}

impl McperfShape {
    fn parse(text: &str) -> Option<Self> {
        let (letter, numbers) = (text.get(..1)?, text.get(1..)?);
        let number =
            |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        Some(match letter {
            "d" => Self::Fixed(number(numbers)?),
            "u" => {
                let (min, max) = numbers.split_once(',')?;
                let (min, max) = (number(min)?, number(max)?);
                (min <= max).then_some(Self::Uniform(min, max))?
            }
            "e" => Self::Exponential(number(numbers)?),
            "s" => Self::Sequential(number(numbers)?),
            _ => return None,
        })
    }
}

impl fmt::Display for McperfDraw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MCPERF)?;
        match self.shape {
            McperfShape::Fixed(number) => write!(formatter, "d{number}"),
            McperfShape::Uniform(min, max) => write!(formatter, "u{min},{max}"),
            McperfShape::Exponential(mean) => write!(formatter, "e{mean}"),
            McperfShape::Sequential(first) => write!(formatter, "s{first}"),
        }?;
        if self.client == 0 { Ok(()) } else { write!(formatter, "@{}", self.client) }
    }
}
