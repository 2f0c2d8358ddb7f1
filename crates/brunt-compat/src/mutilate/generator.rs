//! The distributions of `-K`, `-V` and `-i`: mutilate's way to write them, and what each becomes in a plan.
//!
//! Not a sampler. Invariant: the length of every key is mutilate's, to the byte; a value's is distributed as mutilate's.

use crate::options::{leading_integer, leading_number};
use brunt_plan::arrival::Arrival;
use brunt_plan::distribution::{Distribution, FB_INTERARRIVAL, FB_KEY, FB_VALUE_TAIL, Generalised};
use brunt_plan::size::SizeDistribution;
use std::fmt;

/// The longest key that memcached takes.
const KEY_BYTES_MAX: u32 = 250;
/// Where the tail of a value's length is cut: with its key it fits memcached's default limit of 1 MiB.
const VALUE_BYTES_MAX: u32 = 1_000_000;

/// A distribution as mutilate understands its text: parameters that are left out are 0, and none is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator(Distribution);

/// The length of keys, and whether some may have had to be cut to what memcached takes.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySize {
    /// For the plan.
    pub distribution: SizeDistribution,
    /// mutilate would have asked for longer ones.
    pub is_cut: bool,
}

/// Lengths that are drawn.
enum Lengths {
    One(f64),
    Drawn(Distribution),
}

impl Generator {
    /// What lengths of keys are read from.
    pub const OF_KEYS: &str = "a whole number, fixed:N, uniform:MAX, normal:MEAN,SD, exponential:LAMBDA, pareto:LOC,SCALE,SHAPE, \
                               gev:LOC,SCALE,SHAPE, fb_key or fb_ia";
    /// What lengths of values are read from.
    pub const OF_VALUES: &str = "a whole number, fixed:N, uniform:MAX, normal:MEAN,SD, exponential:LAMBDA, pareto:LOC,SCALE,SHAPE, \
                                 gev:LOC,SCALE,SHAPE, fb_key, fb_value or fb_ia";
    /// What gaps are read from.
    pub const OF_GAPS: &str = "exponential, fixed, uniform, normal:MEAN,SD, pareto:LOC,SCALE,SHAPE or fb_ia";

    /// Reads `fb_key`, a number, or a name and its parameters behind a colon. The name may be anywhere in the text and in any
    /// case, and the first of the list below wins: mutilate looks for it so.
    ///
    /// # Errors
    /// The text names none; for a user, with what is `accepted`.
    pub fn parse(text: &str, accepted: &str) -> Result<Self, String> {
        match text {
            "fb_key" => return Ok(Self(Distribution::Gev(FB_KEY))),
            "fb_value" => return Ok(Self(Distribution::FbValue)),
            "fb_ia" => return Ok(Self(Distribution::Pareto(FB_INTERARRIVAL))),
            _ if leading_integer(text) != 0 || text == "0" => {
                return Ok(Self(Distribution::Fixed { value: leading_number(text) }));
            }
            _ => {}
        }
        let behind = text.split_once(':').map_or("", |(_, arguments)| arguments);
        let mut arguments = behind.split(',').map(leading_number);
        let mut next = || arguments.next().unwrap_or(0.0);
        let lower = text.to_ascii_lowercase();
        let name = ["fixed", "normal", "exponential", "pareto", "gev", "uniform"];
        let Some(name) = name.into_iter().find(|name| lower.contains(name)) else {
            return Err(format!("expected {accepted}"));
        };
        let mut generalised = || Generalised { location: next(), scale: next(), shape: next() };
        Ok(Self(match name {
            "pareto" => Distribution::Pareto(generalised()),
            "gev" => Distribution::Gev(generalised()),
            "fixed" => Distribution::Fixed { value: next() },
            "normal" => Distribution::Normal { mean: next(), sd: next() },
            "exponential" => Distribution::Exponential { lambda: next() },
            _ => Distribution::Uniform { min: 0.0, max: next() },
        }))
    }

    /// Lengths, in a plan's words, all longer by `shift` but for a single one.
    fn lengths(&self, shift: f64) -> Result<Lengths, String> {
        let moved = |law: &Generalised| Generalised { location: law.location + shift, ..*law };
        // mutilate's formulas divide by the shape.
        let shaped = |law: &Generalised| match law.shape == 0.0 {
            true => Err("its SHAPE is 0; expected any other number".to_owned()),
            false => Ok(moved(law)),
        };
        let distribution = match &self.0 {
            Distribution::Fixed { value: length } | Distribution::Normal { mean: length, sd: 0.0 } => {
                return Ok(Lengths::One(*length));
            }
            Distribution::Uniform { max, .. } if *max <= 0.0 => return Ok(Lengths::One(0.0)),
            Distribution::Exponential { lambda } if *lambda <= 0.0 => return Ok(Lengths::One(0.0)),
            Distribution::Uniform { max, .. } => Distribution::Uniform { min: shift, max: shift + max },
            Distribution::Normal { mean, sd } => Distribution::Normal { mean: mean + shift, sd: *sd },
            Distribution::Exponential { lambda } => {
                Distribution::Pareto(Generalised { location: shift, scale: 1.0 / lambda, shape: 0.0 })
            }
            Distribution::Pareto(law) => Distribution::Pareto(shaped(law)?),
            Distribution::Gev(law) => Distribution::Gev(shaped(law)?),
            // Most of it is a table of whole numbers, which do not move.
            other => other.clone(),
        };
        distribution.check()?;
        Ok(Lengths::Drawn(distribution))
    }

    /// The length of keys with at least this many digits, behind a prefix of this many bytes.
    ///
    /// # Errors
    /// No plan has such keys; for a user.
    pub fn key_size(&self, digits: u32, prefix: u32) -> Result<KeySize, String> {
        let least = (digits + prefix).min(KEY_BYTES_MAX);
        let (distribution, usual_max) = match self.lengths(f64::from(prefix))? {
            Lengths::One(length) if length < 0.0 => return Err("expected lengths from 0 bytes".to_owned()),
            Lengths::One(length) => {
                let length = length.round() + f64::from(prefix);
                let cut = length.clamp(f64::from(least), f64::from(KEY_BYTES_MAX));
                (SizeDistribution::Fixed(cut as u32), length)
            }
            Lengths::Drawn(Distribution::FbValue) => {
                return Err(
                    "it draws lengths that no record number repeats, so that no key is found again; \
                            expected fb_key, or any other distribution"
                        .to_owned(),
                );
            }
            Lengths::Drawn(distribution) => {
                let usual_max = match &distribution {
                    Distribution::Uniform { max, .. } => *max,
                    Distribution::Normal { mean, sd } => mean + 3.0 * sd,
                    Distribution::Pareto(law) if law.shape == 0.0 => law.location + 5.0 * law.scale,
                    Distribution::Pareto(law) | Distribution::Gev(law) => law.location,
                    _ => 0.0,
                };
                (SizeDistribution::Mutilate { distribution, min: least, max: KEY_BYTES_MAX }, usual_max)
            }
        };
        Ok(KeySize { distribution, is_cut: usual_max > f64::from(KEY_BYTES_MAX) })
    }

    /// The length of values. mutilate truncates what it draws and plans round, so that a law is moved by half a byte.
    ///
    /// # Errors
    /// No plan has such values; for a user.
    pub fn value_size(&self) -> Result<SizeDistribution, String> {
        if let Distribution::Uniform { max, .. } = &self.0
            && *max > 1.0
        {
            return Ok(SizeDistribution::Uniform { min: 0, max: (max.ceil() - 1.0) as u32 });
        }
        match self.lengths(-0.5)? {
            Lengths::One(length) if (0.0..=f64::from(u32::MAX)).contains(&length.trunc()) => {
                Ok(SizeDistribution::Fixed(length as u32))
            }
            Lengths::One(_) => Err(format!("expected lengths from 0 to {} bytes", u32::MAX)),
            Lengths::Drawn(Distribution::Uniform { .. }) => Ok(SizeDistribution::Fixed(0)),
            Lengths::Drawn(distribution) => {
                Ok(SizeDistribution::Parametric { distribution, min: 0, max: VALUE_BYTES_MAX })
            }
        }
    }

    /// How arrivals are spaced: only the shape counts, for the mean follows from the rate.
    ///
    /// # Errors
    /// It is no law of gaps; for a user.
    pub fn arrival(&self) -> Result<Arrival, String> {
        let distribution = match &self.0 {
            Distribution::Fixed { .. } | Distribution::Normal { sd: 0.0, .. } => return Ok(Arrival::Uniform),
            Distribution::Exponential { .. } => return Ok(Arrival::Poisson),
            // Without a shape it is the exponential law.
            Distribution::Pareto(Generalised { location: 0.0, shape: 0.0, .. }) => {
                return Ok(Arrival::Poisson);
            }
            Distribution::Uniform { .. } => Distribution::Uniform { min: 0.0, max: 2.0 },
            // mutilate overwrites the scale in any case. With its own scale `fb_ia` keeps its name in plans and reports.
            Distribution::Pareto(law) if law.location == 0.0 && *law != FB_INTERARRIVAL => {
                Distribution::Pareto(Generalised { scale: 1.0, ..*law })
            }
            law @ (Distribution::Normal { .. } | Distribution::Pareto(_)) => law.clone(),
            _ => return Err(format!("it is no law of gaps; expected {}", Self::OF_GAPS)),
        };
        distribution.check()?;
        // Whether a law of gaps makes sense is known where arrivals are read.
        distribution.to_string().parse()
    }
}

impl fmt::Display for Generator {
    /// As mutilate's log names it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, parameters) = match &self.0 {
            Distribution::Fixed { value } => ("Fixed", vec![*value]),
            Distribution::Uniform { max, .. } => ("Uniform", vec![*max]),
            Distribution::Normal { mean, sd } => ("Normal", vec![*mean, *sd]),
            Distribution::Exponential { lambda } => ("Exponential", vec![*lambda]),
            Distribution::Gev(law) => ("GEV", vec![law.location, law.scale, law.shape]),
            Distribution::Pareto(law) => ("GPareto", vec![law.location, law.scale, law.shape]),
            _ => ("GPareto", vec![FB_VALUE_TAIL.location, FB_VALUE_TAIL.scale, FB_VALUE_TAIL.shape]),
        };
        let parameters: Vec<String> = parameters.iter().map(|parameter| format!("{parameter:.6}")).collect();
        write!(formatter, "{name}({})", parameters.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_mutilate_reads_them() {
        // (text, as mutilate's log names it)
        let table = [
            ("200", "Fixed(200.000000)"),
            ("1e3", "Fixed(1000.000000)"),
            ("100abc", "Fixed(100.000000)"),
            ("0", "Fixed(0.000000)"),
            ("fixed:0.5", "Fixed(0.500000)"),
            ("Exponential", "Exponential(0.000000)"),
            ("exponential:0.9", "Exponential(0.900000)"),
            ("normal:200,2", "Normal(200.000000,2.000000)"),
            ("normal:200", "Normal(200.000000,0.000000)"),
            ("uniform:1000", "Uniform(1000.000000)"),
            ("fb_ia", "GPareto(0.000000,16.029200,0.154971)"),
            ("fb_value", "GPareto(15.000000,214.476000,0.348238)"),
            ("pareto:0.0,16.0292,0.154971", "GPareto(0.000000,16.029200,0.154971)"),
        ];
        for (text, expected) in table {
            let generator = Generator::parse(text, Generator::OF_VALUES).unwrap();
            assert_eq!(generator.to_string(), expected, "{text}");
        }
        for text in ["foo", "0.5", "", "n:1,2"] {
            assert!(
                Generator::parse(text, Generator::OF_VALUES).unwrap_err().starts_with("expected "),
                "{text}"
            );
        }
    }

    fn key_size(text: &str, digits: u32, prefix: u32) -> String {
        match Generator::parse(text, Generator::OF_VALUES)
            .and_then(|generator| generator.key_size(digits, prefix))
        {
            Ok(KeySize { distribution, is_cut }) => {
                format!("{distribution}{}", if is_cut { " cut" } else { "" })
            }
            Err(fault) => fault,
        }
    }

    #[test]
    fn keys_have_the_configured_sizes() {
        // (text, digits, prefix, in the plan)
        let table = [
            ("30", 4, 0, "fixed:30"),
            ("2", 4, 0, "fixed:4"),
            ("30", 4, 3, "fixed:33"),
            ("300", 4, 0, "fixed:250 cut"),
            ("fb_key", 5, 0, "mutilate:fb_key@5..250"),
            ("fb_key", 5, 2, "mutilate:gev:32.7984,8.20449,0.078688@7..250"),
            ("uniform:1000", 4, 0, "mutilate:uniform:0,1000@4..250 cut"),
            ("normal:200,2", 4, 0, "mutilate:normal:200,2@4..250"),
            ("exponential", 4, 0, "fixed:4"),
            ("exponential:0.1", 4, 0, "mutilate:pareto:0,10,0@4..250"),
            ("gev:1,2", 4, 0, "its SHAPE is 0; expected any other number"),
            ("-5", 4, 0, "expected lengths from 0 bytes"),
        ];
        for (text, digits, prefix, expected) in table {
            assert_eq!(key_size(text, digits, prefix), expected, "{text}");
        }
        assert!(key_size("fb_value", 4, 0).contains("no key is found again"));
    }

    #[test]
    fn values_are_truncated() {
        let table = [
            ("200", "fixed:200"),
            ("fixed:3.9", "fixed:3"),
            ("uniform:64", "uniform:0,63"),
            ("normal:2000,2", "normal:1999.5,2"),
            ("exponential:0.01", "pareto:-0.5,100,0"),
            ("pareto:15,214,0.3", "pareto:14.5,214,0.3@0..1000000"),
            ("fb_value", "fb_value"),
        ];
        for (text, expected) in table {
            let size = Generator::parse(text, Generator::OF_VALUES).unwrap().value_size().unwrap();
            assert_eq!(size.to_string(), expected, "{text}");
        }
        assert!(Generator::parse("-5", Generator::OF_VALUES).unwrap().value_size().is_err());
    }

    #[test]
    fn gaps_keep_their_shape() {
        let table = [
            ("exponential", "poisson"),
            ("exponential:1", "poisson"),
            ("fixed", "uniform"),
            ("normal", "uniform"),
            ("normal:10,1", "normal:10,1"),
            ("uniform:1000", "uniform:0,2"),
            ("pareto", "poisson"),
            ("pareto:0,16,0.15", "pareto:0,1,0.15"),
            ("fb_ia", "fb_ia"),
        ];
        for (text, expected) in table {
            let arrival = Generator::parse(text, Generator::OF_VALUES).unwrap().arrival().unwrap();
            assert_eq!(arrival.to_string(), expected, "{text}");
        }
        for text in ["fb_value", "gev:1,2,0.1", "pareto:0,1,1.5"] {
            assert!(Generator::parse(text, Generator::OF_VALUES).unwrap().arrival().is_err(), "{text}");
        }
    }
}
