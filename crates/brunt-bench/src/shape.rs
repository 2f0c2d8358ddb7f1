//! The shape of an in-process run, connections, depth, completions per wait, deferred sends, and plans of that shape.
//!
//! Text form `CONNECTIONSxDEPTH[/COMPLETIONS][,uring]`.

use brunt_engine::in_process_run::Interface;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use std::str::FromStr;

/// Maximum connections and depth; a plan takes more.
const MAX: usize = 4_096;
/// Behind a shape whose sends have their results from the next wait.
const URING: &str = ",uring";

/// Load of an in-process run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Connections.
    pub(crate) connections: usize,
    /// Requests in flight on each.
    pub(crate) depth: usize,
    pub(crate) interface: Interface,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<usize>().ok().filter(|number| (1..=MAX).contains(number));
        let parsed = || {
            let without = text.strip_suffix(URING);
            let (defers_sends, text) = (without.is_some(), without.unwrap_or(text));
            let (load, completions) = text.split_once('/').unwrap_or((text, ""));
            let (connections, depth) = load.split_once('x')?;
            let completions_max = if text.contains('/') { number(completions)? } else { usize::MAX };
            let interface = Interface { completions_max, defers_sends };
            Some(Self { connections: number(connections)?, depth: number(depth)?, interface })
        };
        let accepted =
            "CONNECTIONSxDEPTH or CONNECTIONSxDEPTH/COMPLETIONS, each from 1 to 4096, and ',uring' behind it";
        parsed().ok_or_else(|| format!("expected {accepted}"))
    }
}

impl Shape {
    /// A plan of gets of keys of 30 bytes and values of 200, for this many workers, each of this shape,
    /// with further options in TOML.
    pub(crate) fn plan(self, workers: usize, options: &str) -> Plan {
        let toml = format!(
            "threads = {workers}\nconnections = {}\ndepth = {}\nseed = 1\nkey-size = 30\nvalue-size = 200\n{options}",
            self.connections * workers,
            self.depth
        );
        let spec = PlanSpec::from_toml(&toml).expect("every option exists and every value has its form");
        resolve(&spec, &Host::of(vec![0], 1)).expect("a shape is within the plan's bounds")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        let table = [
            ("16x1", Some((16, 1, usize::MAX, false))),
            ("64x32/8", Some((64, 32, 8, false))),
            ("16x1,uring", Some((16, 1, usize::MAX, true))),
            ("64x32/8,uring", Some((64, 32, 8, true))),
            ("64x32,epoll", None),
            (",uring", None),
            ("64x32/", None),
            ("64x32/0", None),
            ("0x1", None),
            ("16", None),
            ("16x5000", None),
            ("16×1", None),
        ];
        for (text, expected) in table {
            let parsed = text.parse::<Shape>().ok();
            let parsed = parsed.map(|Shape { connections, depth, interface }| {
                (connections, depth, interface.completions_max, interface.defers_sends)
            });
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
