//! The shape of a rehearsal: how many connections, how deep, how much each wait brings.
//!
//! Not a plan: the rest of that is the same for every rehearsal. Text form `CONNECTIONSxDEPTH[/COMPLETIONS]`.

use std::str::FromStr;

/// Connections and depth are at most this; a plan takes more, but a rehearsal need not hold them.
const MAX: usize = 4_096;

/// How a rehearsal is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Connections.
    pub(crate) connections: usize,
    /// Requests in flight on each.
    pub(crate) depth: usize,
    /// Completions that a wait brings at most.
    pub(crate) completions_max: usize,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<usize>().ok().filter(|number| (1..=MAX).contains(number));
        let parsed = || {
            let (load, completions) = text.split_once('/').unwrap_or((text, ""));
            let (connections, depth) = load.split_once('x')?;
            let completions_max = if text.contains('/') { number(completions)? } else { usize::MAX };
            Some(Self { connections: number(connections)?, depth: number(depth)?, completions_max })
        };
        let accepted = "CONNECTIONSxDEPTH or CONNECTIONSxDEPTH/COMPLETIONS, each from 1 to 4096";
        parsed().ok_or_else(|| format!("--shape: '{text}' was given; accepted: {accepted}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        let table = [
            ("16x1", Some((16, 1, usize::MAX))),
            ("64x32/8", Some((64, 32, 8))),
            ("64x32/", None),
            ("64x32/0", None),
            ("0x1", None),
            ("16", None),
            ("16x5000", None),
            ("16×1", None),
        ];
        for (text, expected) in table {
            let parsed = text.parse::<Shape>().ok();
            let parsed = parsed.map(|shape| (shape.connections, shape.depth, shape.completions_max));
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
