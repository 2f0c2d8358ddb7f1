//! The gate: no shape may take more instructions than the baseline has, but for a small part.
//!
//! Of the total of a shape, not of its parts: work may move from one part to another. Invariant: on the machine and with
//! the toolchain of the baseline the count repeats to the last digit, so that the part allowed is for changes that are meant;
//! elsewhere more is allowed, and said.

use super::baseline::Baseline;
use super::profile::Division;

/// What a change may add to a shape unasked.
const GROWTH_MAX: f64 = 0.03;
/// Allowed growth where compiler, C library, valgrind or CPU are others than the baseline's: such a difference alone has
/// been seen to move a total by several per cent.
const GROWTH_ELSEWHERE_MAX: f64 = 0.10;

/// What became of the counts.
#[derive(Debug, PartialEq)]
pub(super) struct Judgement {
    /// Where it was counted differs from where the baseline was.
    pub(super) is_elsewhere: bool,
    /// As a part of the baseline.
    pub(super) growth_max: f64,
    /// The shapes that take more.
    pub(super) exceeded: Vec<String>,
    /// The shapes that take so much less that as much again could be added and pass.
    pub(super) outdated: Vec<String>,
}

/// Compares what was counted on `machine` with the baseline.
pub(super) fn judge(counted: &[(&str, Division)], before: &Baseline, machine: &str) -> Judgement {
    let is_elsewhere = before.machine() != machine;
    let growth_max = if is_elsewhere { GROWTH_ELSEWHERE_MAX } else { GROWTH_MAX };
    let (mut exceeded, mut outdated) = (Vec::new(), Vec::new());
    for (shape, division) in counted {
        let Some(was) = before.instructions(shape, None) else { continue };
        let is = division.worker();
        let growth = is / was - 1.0;
        let row = format!("{shape}: {is:.1} instead of {was:.1}, {:+.1} %", 100.0 * growth);
        if growth > growth_max {
            exceeded.push(row);
        } else if growth < -growth_max {
            outdated.push(row);
        }
    }
    Judgement { is_elsewhere, growth_max, exceeded, outdated }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(machine: &str, total: f64, exceeded: &[&str], outdated: &[&str]) {
        let toml = "machine = \"a\"\n[\"16x1\"]\ntotal = 1000.0\n";
        let division = |total| Division { parts: [total, 0.0, 0.0, 0.0, 0.0, 0.0], io: 0.0 };
        let before = Baseline::parse(toml).unwrap();
        // A shape that the baseline does not have is new, and passes.
        let counted = [("16x1", division(total)), ("9x9", division(9e9))];
        let judgement = judge(&counted, &before, machine);
        assert_eq!(judgement.exceeded, exceeded, "{machine} {total}");
        assert_eq!(judgement.outdated, outdated, "{machine} {total}");
    }

    #[test]
    fn a_shape_may_grow_by_three_per_cent_and_elsewhere_by_ten() {
        check("a", 1029.9, &[], &[]);
        check("a", 1030.1, &["16x1: 1030.1 instead of 1000.0, +3.0 %"], &[]);
        check("a", 970.1, &[], &[]);
        check("a", 500.0, &[], &["16x1: 500.0 instead of 1000.0, -50.0 %"]);
        check("b", 1030.1, &[], &[]);
        check("b", 1100.1, &["16x1: 1100.1 instead of 1000.0, +10.0 %"], &[]);
        check("b", 910.0, &[], &[]);
    }
}
