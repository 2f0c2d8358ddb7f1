//! Numbers as the messages of checks have them: three significant digits, with a unit.

/// An estimate of a count, such as a rate: a whole number.
pub(crate) fn rounded(number: f64) -> String {
    format!("{:.0}", number.round())
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A share in per cent with three significant digits.
pub(crate) fn percent(share: f64) -> String {
    significant(share * 100.0) + " %"
}

/// A time with three significant digits and a unit that suits it.
pub(crate) fn time(ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    // 999.6 us are 1.00 ms.
    match units.into_iter().find(|(scale, _)| ns as f64 >= 0.9995 * *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(ns as f64 / scale)),
        None => format!("{ns} ns"),
    }
}

pub(crate) fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        0.0 => 0,
        below if below < 9.995 => 2,
        below if below < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_whatever_they_round_to() {
        let times = [999, 1_000, 9_994, 9_996, 99_960, 999_400, 999_600, 1_234_567, 999_600_000].map(time);
        let expected =
            ["999 ns", "1.00 us", "9.99 us", "10.0 us", "100 us", "999 us", "1.00 ms", "1.23 ms", "1.00 s"];
        assert_eq!(times, expected);
        assert_eq!(
            [0.0, 0.009_996, 0.099_96, 0.999_6, 1.0].map(percent),
            ["0 %", "1.00 %", "10.0 %", "100 %", "100 %"]
        );
    }
}
