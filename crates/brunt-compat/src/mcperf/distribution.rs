//! The grammar of mcperf's `--conn-rate`, `--call-rate` and `--sizes`: `[d|u|e|s]R1[,R2]`, or a rate without a letter.
//!
//! Not the generator, which is `brunt-workload`'s. Invariant: every number is finite and above 0.

use crate::options::real;
use brunt_plan::mcperf_draw::McperfShape;

/// The syntax that error messages name.
pub const ACCEPTED: &str = "a rate R, or dR, uMIN,MAX, eMEAN or sFIRST with numbers above 0";

/// Reads one; `None` where nothing is drawn, which is `0`. A number N without a letter is a rate, and 1/N is drawn.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<Option<McperfShape>, String> {
    let mut letters = text.chars();
    let (letter, numbers) = (letters.next().unwrap_or_default(), letters.as_str());
    Ok(Some(match letter {
        'd' => McperfShape::Fixed(above_zero("the interval", numbers)?),
        'e' => McperfShape::Exponential(above_zero("the mean", numbers)?),
        's' => McperfShape::Sequential(above_zero("the first number", numbers)?),
        'u' => {
            let (min, max) = numbers.split_once(',').ok_or("a comma and a maximum are missing")?;
            let (min, max) = (above_zero("the minimum", min)?, above_zero("the maximum", max)?);
            if max < min {
                return Err(format!("the maximum {max} is below the minimum {min}"));
            }
            McperfShape::Uniform(min, max)
        }
        _ => match real(text) {
            Some(0.0) => return Ok(None),
            Some(rate) if rate > 0.0 && (1.0 / rate).is_finite() => McperfShape::Fixed(1.0 / rate),
            _ => return Err(format!("'{text}' is no rate of at least 0")),
        },
    }))
}

fn above_zero(name: &str, text: &str) -> Result<f64, String> {
    real(text).filter(|number| *number > 0.0).ok_or_else(|| format!("{name} '{text}' is no number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use McperfShape::{Exponential, Fixed, Sequential, Uniform};

    #[test]
    fn distributions_are_parsed() {
        let table = [
            ("0", None),
            ("0.0", None),
            ("-0", None),
            ("1000", Some(Fixed(0.001))),
            ("0.01", Some(Fixed(100.0))),
            ("0x10", Some(Fixed(0.0625))),
            ("d1", Some(Fixed(1.0))),
            ("d0.001", Some(Fixed(0.001))),
            ("u1,16", Some(Uniform(1.0, 16.0))),
            ("u1000,1000", Some(Uniform(1000.0, 1000.0))),
            ("u 1, 16", Some(Uniform(1.0, 16.0))),
            ("e50", Some(Exponential(50.0))),
            ("s5", Some(Sequential(5.0))),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_distributions_are_rejected() {
        let table = [
            ("-5", "'-5' is no rate of at least 0"),
            ("x", "'x' is no rate of at least 0"),
            ("", "'' is no rate of at least 0"),
            ("inf", "'inf' is no rate of at least 0"),
            ("1e-320", "'1e-320' is no rate of at least 0"),
            ("d0", "the interval '0' is no number above 0"),
            ("e", "the mean '' is no number above 0"),
            ("s-1", "the first number '-1' is no number above 0"),
            ("u5", "a comma and a maximum are missing"),
            ("u0,5", "the minimum '0' is no number above 0"),
            ("u1,x", "the maximum 'x' is no number above 0"),
            ("u1,2,3", "the maximum '2,3' is no number above 0"),
            ("u5,1", "the maximum 1 is below the minimum 5"),
        ];
        for (text, fault) in table {
            assert_eq!(parse(text), Err(fault.to_owned()), "{text}");
        }
    }
}
