//! Probability distributions of sizes and of gaps between arrivals, in the mini-language `name:a,b`, and mcperf's draws in its own words.
//!
//! Descriptions only: `brunt-workload` draws from them. The invariant: a distribution that was read from text, or that
//! [`Distribution::check`] has passed, has parameters for which every formula below is defined and no intermediate overflows.

use crate::units::{ByteSize, name_and_arguments, text_form};
use std::fmt;

/// Location μ, scale σ and shape k of a generalised distribution. With k above 0 its tail falls off like x^(−1/k), with k below 0 it
/// ends at μ − σ/k, and k = 0 is the exponential limit of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generalised {
    /// μ, in the unit of what is drawn.
    pub location: f64,
    /// σ, in the same unit; above 0.
    pub scale: f64,
    /// k, from −10 to 10.
    pub shape: f64,
}

/// Key sizes in bytes of Facebook's pool ETC: a generalised extreme value distribution.
///
/// All four constants are from Atikoglu et al., "Workload Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012, §5.
pub const FB_KEY: Generalised = Generalised { location: 30.7984, scale: 8.20449, shape: 0.078688 };
/// Gaps in microseconds between requests to the same pool: a generalised Pareto distribution.
pub const FB_INTERARRIVAL: Generalised = Generalised { location: 0.0, scale: 16.0292, shape: 0.154971 };
/// Value sizes in bytes of the same pool from 15 bytes on: a generalised Pareto distribution.
pub const FB_VALUE_TAIL: Generalised = Generalised { location: 15.0, scale: 214.476, shape: 0.348238 };
/// The probabilities of value sizes of 0 to 14 bytes in the same pool; the rest belongs to [`FB_VALUE_TAIL`].
pub const FB_VALUE_HEAD: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837,
    0.08989, 0.00092, 0.00326, 0.01980,
];

/// A distribution of probability over real numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same. Text form `fixed:N`, or a bare number.
    Fixed {
        /// The number.
        value: f64,
    },
    /// Evenly between two bounds. Text form `uniform:MIN,MAX`; `uniform:MAX` begins at 0.
    Uniform {
        /// Lower bound.
        min: f64,
        /// Upper bound, not below the lower.
        max: f64,
    },
    /// Gauss's. Text form `normal:MEAN,SD`.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation, at least 0.
        sd: f64,
    },
    /// P(X > x) = exp(−λx). Text form `exponential:LAMBDA`: the parameter is the rate, and the mean its reciprocal.
    Exponential {
        /// λ, above 0.
        lambda: f64,
    },
    /// P(X > x) = (1 + k(x − μ)/σ)^(−1/k) from μ on. Text form `pareto:LOC,SCALE,SHAPE`;
    /// `fb_ia` is [`FB_INTERARRIVAL`].
    Pareto(Generalised),
    /// P(X ≤ x) = exp(−(1 + k(x − μ)/σ)^(−1/k)), the generalised extreme value distribution. Text form
    /// `gev:LOC,SCALE,SHAPE`; `fb_key` is [`FB_KEY`].
    Gev(Generalised),
    /// The exponential of a normal distribution. Text form `lognormal:MU,SIGMA`.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm, at least 0.
        sigma: f64,
    },
    /// A table of values with weights; at least one weight is above 0. Text form `discrete:VALUE=WEIGHT,...`.
    Discrete(Vec<(f64, f64)>),
    /// [`FB_VALUE_HEAD`] and [`FB_VALUE_TAIL`]. Text form `fb_value`.
    FbValue,
}

/// The forms of the mini-language, for messages.
pub(crate) const FORMS: &str = "fixed:N, uniform:MIN,MAX, normal:MEAN,SD, exponential:LAMBDA (mean 1/LAMBDA), \
                                pareto:LOC,SCALE,SHAPE, gev:LOC,SCALE,SHAPE, lognormal:MU,SIGMA, \
                                discrete:VALUE=WEIGHT,..., fb_key, fb_value or fb_ia";

/// A parameter: its name, its range, and whether it is in the unit of what is drawn; others are pure numbers, or per unit.
type Parameter = (&'static str, fn(&str, f64) -> Result<(), String>, bool);

const OF_GENERALISED: &[Parameter] =
    &[("LOC", in_range, true), ("SCALE", above_0, true), ("SHAPE", ordinary_shape, false)];

/// The parameters of each distribution that has a fixed number of them.
const PARAMETERS: [(&str, &[Parameter]); 7] = [
    ("fixed", &[("N", in_range, true)]),
    ("uniform", &[("MIN", in_range, true), ("MAX", in_range, true)]),
    ("normal", &[("MEAN", in_range, true), ("SD", at_least_0, true)]),
    ("exponential", &[("LAMBDA", above_0, false)]),
    ("pareto", OF_GENERALISED),
    ("gev", OF_GENERALISED),
    ("lognormal", &[("MU", in_range, false), ("SIGMA", at_least_0, false)]),
];

/// No parameter is larger: their products and ratios stay far from where floating point ends.
const PARAMETER_MAX: f64 = 1e15;
/// No scale or rate that has to be above 0 is smaller, for the same reason.
const SCALE_MIN: f64 = 1e-15;
/// Generalised distributions: Γ(1 − k) and 1/k stay ordinary numbers.
const SHAPE_MAX: f64 = 10.0;

impl Distribution {
    /// Reads a distribution; `number` reads what is in the unit of the thing drawn.
    pub(crate) fn parse(text: &str, number: fn(&str) -> Option<f64>) -> Result<Self, String> {
        let text = text.trim();
        let distribution = Self::parse_unchecked(text, number).map_err(|fault| format!("{text}: {fault}"))?;
        distribution.check().map_err(|fault| format!("{text}: {fault}"))?;
        Ok(distribution)
    }

    fn parse_unchecked(text: &str, number: fn(&str) -> Option<f64>) -> Result<Self, String> {
        let (name, arguments) = name_and_arguments(text);
        match (name, arguments.as_slice()) {
            ("fb_key", []) => return Ok(Self::Gev(FB_KEY)),
            ("fb_value", []) => return Ok(Self::FbValue),
            ("fb_ia", []) => return Ok(Self::Pareto(FB_INTERARRIVAL)),
            ("discrete", items) => return parse_table(items, number),
            _ => {}
        }
        let bare = arguments.is_empty().then(|| number(name)).flatten();
        if let Some(value) = bare {
            return Ok(Self::Fixed { value });
        }
        let Some((_, parameters)) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
            return Err(format!("no distribution; expected a number, {FORMS}"));
        };
        let values = match (name, arguments.as_slice()) {
            ("uniform", [max]) => parse_numbers(&["0", max], parameters, number)?,
            (_, arguments) => parse_numbers(arguments, parameters, number)?,
        };
        let generalised = || Generalised { location: values[0], scale: values[1], shape: values[2] };
        Ok(match name {
            "fixed" => Self::Fixed { value: values[0] },
            "uniform" => Self::Uniform { min: values[0], max: values[1] },
            "normal" => Self::Normal { mean: values[0], sd: values[1] },
            "exponential" => Self::Exponential { lambda: values[0] },
            "pareto" => Self::Pareto(generalised()),
            "gev" => Self::Gev(generalised()),
            _ => Self::Lognormal { mu: values[0], sigma: values[1] },
        })
    }

    /// The name and the parameters, of which a table has none here.
    fn parts(&self) -> (&'static str, Vec<f64>) {
        let parameters = |law: &Generalised| vec![law.location, law.scale, law.shape];
        match self {
            Self::Fixed { value } => ("fixed", vec![*value]),
            Self::Uniform { min, max } => ("uniform", vec![*min, *max]),
            Self::Normal { mean, sd } => ("normal", vec![*mean, *sd]),
            Self::Exponential { lambda } => ("exponential", vec![*lambda]),
            Self::Pareto(FB_INTERARRIVAL) => ("fb_ia", Vec::new()),
            Self::Pareto(law) => ("pareto", parameters(law)),
            Self::Gev(FB_KEY) => ("fb_key", Vec::new()),
            Self::Gev(law) => ("gev", parameters(law)),
            Self::Lognormal { mu, sigma } => ("lognormal", vec![*mu, *sigma]),
            Self::Discrete(_) => ("discrete", Vec::new()),
            Self::FbValue => ("fb_value", Vec::new()),
        }
    }

    /// Are the parameters in range? If not, what is wrong with them. Those that are read from text have passed.
    pub fn check(&self) -> Result<(), String> {
        let (name, values) = self.parts();
        let parameters =
            PARAMETERS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, them)| them);
        parameters.iter().zip(values).try_for_each(|((name, check, _), value)| check(name, value))?;
        match self {
            Self::Uniform { min, max } if min > max => Err(format!("MIN {min} exceeds MAX {max}")),
            Self::Discrete(table) => check_table(table),
            _ => Ok(()),
        }
    }

    /// The least and the greatest value that can occur, infinite where there is none.
    pub fn support(&self) -> (f64, f64) {
        match self {
            Self::Fixed { value } => (*value, *value),
            Self::Uniform { min, max } => (*min, *max),
            Self::Normal { mean, sd: 0.0 } => (*mean, *mean),
            Self::Normal { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Exponential { .. } | Self::Lognormal { .. } | Self::FbValue => (0.0, f64::INFINITY),
            Self::Pareto(distribution) => (distribution.location, distribution.upper_end()),
            Self::Gev(distribution) => (distribution.lower_end(), distribution.upper_end()),
            Self::Discrete(table) => {
                let possible = || table.iter().filter(|(_, weight)| *weight > 0.0).map(|(value, _)| *value);
                (possible().fold(f64::INFINITY, f64::min), possible().fold(f64::NEG_INFINITY, f64::max))
            }
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        Self::parse(text, plain_number)
    }

    // Floats print as the shortest decimal that reads back as the same float, so that a printed distribution is the same distribution.
    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, values) = self.parts();
        let arguments: Vec<String> = match self {
            Self::Discrete(table) => {
                table.iter().map(|(value, weight)| format!("{value}={weight}")).collect()
            }
            _ => values.iter().map(f64::to_string).collect(),
        };
        let colon = if arguments.is_empty() { "" } else { ":" };
        write!(formatter, "{name}{colon}{}", arguments.join(","))
    }
}
text_form!(Distribution);

impl Generalised {
    /// Where the distribution ends, if it does.
    fn upper_end(&self) -> f64 {
        if self.shape < 0.0 { self.location - self.scale / self.shape } else { f64::INFINITY }
    }
    /// Where the extreme value distribution begins, if it does; the Pareto distribution begins at its location.
    fn lower_end(&self) -> f64 {
        if self.shape > 0.0 { self.location - self.scale / self.shape } else { f64::NEG_INFINITY }
    }
}

/// Is this the name of a distribution, whatever may follow?
pub(crate) fn is_distribution_name(name: &str) -> bool {
    name == "discrete" || PARAMETERS.iter().any(|(known, ..)| *known == name)
}

fn parse_numbers(
    texts: &[&str],
    parameters: &[Parameter],
    number: fn(&str) -> Option<f64>,
) -> Result<Vec<f64>, String> {
    if texts.len() != parameters.len() {
        let names: Vec<&str> = parameters.iter().map(|(name, ..)| *name).collect();
        return Err(format!("expected {}", names.join(",")));
    }
    let parse = |(text, (name, _, in_units)): (&&str, &Parameter)| {
        let parsed = if *in_units { number(text) } else { plain_number(text) };
        parsed.ok_or_else(|| format!("{name} '{text}' is no number"))
    };
    texts.iter().zip(parameters).map(parse).collect()
}

fn parse_table(items: &[&str], number: fn(&str) -> Option<f64>) -> Result<Distribution, String> {
    if items.is_empty() {
        return Err("expected VALUE=WEIGHT,..., such as 100=3,4096=1".to_owned());
    }
    let parse = |item: &&str| {
        let (value, weight) =
            item.split_once('=').ok_or_else(|| format!("'{item}' is no VALUE=WEIGHT, such as 100=3"))?;
        let value = number(value.trim()).ok_or_else(|| format!("VALUE '{}' is no number", value.trim()))?;
        let weight =
            plain_number(weight.trim()).ok_or_else(|| format!("WEIGHT '{}' is no number", weight.trim()))?;
        Ok((value, weight))
    };
    items.iter().map(parse).collect::<Result<_, String>>().map(Distribution::Discrete)
}

fn check_table(table: &[(f64, f64)]) -> Result<(), String> {
    for (value, weight) in table {
        in_range("VALUE", *value)?;
        at_least_0("WEIGHT", *weight)?;
    }
    let some = table.iter().any(|(_, weight)| *weight >= SCALE_MIN);
    some.then_some(()).ok_or_else(|| "no WEIGHT is above 0".to_owned())
}

/// A finite number in decimal or scientific notation.
pub(crate) fn plain_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number of bytes: with a suffix, or any number that a distribution may have for a parameter.
pub(crate) fn byte_number(text: &str) -> Option<f64> {
    text.parse::<ByteSize>().ok().map(|size| size.0 as f64).or_else(|| plain_number(text))
}

fn in_range(name: &str, value: f64) -> Result<(), String> {
    let ordinary = value.abs() <= PARAMETER_MAX;
    ordinary.then_some(()).ok_or_else(|| format!("{name} {value:e} lies outside -1e15 to 1e15"))
}

fn at_least_0(name: &str, value: f64) -> Result<(), String> {
    if value < 0.0 { Err(format!("{name} {value} is below 0")) } else { in_range(name, value) }
}

fn above_0(name: &str, value: f64) -> Result<(), String> {
    if value <= 0.0 {
        return Err(format!("{name} {value} is not above 0"));
    }
    let ordinary = (SCALE_MIN..=PARAMETER_MAX).contains(&value);
    ordinary.then_some(()).ok_or_else(|| format!("{name} {value:e} lies outside 1e-15 to 1e15"))
}

fn ordinary_shape(name: &str, value: f64) -> Result<(), String> {
    let ordinary = value.abs() <= SHAPE_MAX;
    ordinary.then_some(()).ok_or_else(|| format!("{name} {value} lies outside -{SHAPE_MAX} to {SHAPE_MAX}"))
}

/// What is before a draw in the mini-languages of sizes and arrivals.
pub(crate) const MCPERF: &str = "mcperf:";

/// A draw of mcperf for one of its clients: clients with different numbers draw different sequences. Text form `mcperf:u1,16@3`; without `@`
/// it is client 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct McperfDraw {
    /// How numbers are spread.
    pub shape: McperfShape,
    /// mcperf's `--client`: the seed of the generator.
    pub client: u32,
}

/// How the numbers of a draw are spread. Every parameter is finite and above 0, and a maximum is not below its minimum.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn supports() {
        let endless = f64::INFINITY;
        for (text, expected) in [
            ("fixed:7", (7.0, 7.0)),
            ("uniform:-1,2", (-1.0, 2.0)),
            ("normal:3,0", (3.0, 3.0)),
            ("normal:3,1", (-endless, endless)),
            ("exponential:2", (0.0, endless)),
            ("pareto:15,2,0.5", (15.0, endless)),
            ("pareto:15,2,-0.5", (15.0, 19.0)),
            ("gev:15,2,0", (-endless, endless)),
            ("gev:15,2,0.5", (11.0, endless)),
            ("gev:15,2,-0.5", (-endless, 19.0)),
            ("lognormal:0,1", (0.0, endless)),
            ("discrete:9=1,2=3,-5=0", (2.0, 9.0)),
            ("fb_value", (0.0, endless)),
            ("fb_ia", (0.0, endless)),
        ] {
            assert_eq!(text.parse::<Distribution>().unwrap().support(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_distribution_reads_back(numbers in prop::array::uniform3(-1e15..1e15f64), shape in -10.0..10.0f64) {
            let [first, second, third] = numbers;
            let generalised = Generalised { location: first, scale: second.abs() + 1e-15, shape };
            for distribution in [
                Distribution::Fixed { value: first },
                Distribution::Uniform { min: first.min(second), max: first.max(second) },
                Distribution::Normal { mean: first, sd: second.abs() },
                Distribution::Exponential { lambda: second.abs() + 1e-15 },
                Distribution::Pareto(generalised),
                Distribution::Gev(generalised),
                Distribution::Lognormal { mu: first, sigma: second.abs() },
                Distribution::Discrete(vec![(first, second.abs()), (third, 1.0)]),
            ] {
                prop_assert_eq!(distribution.to_string().parse(), Ok(distribution));
            }
        }
    }
}
