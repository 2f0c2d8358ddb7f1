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
    match units.into_iter().find(|(scale, _)| ns as f64 >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(ns as f64 / scale)),
        None => format!("{ns} ns"),
    }
}

pub(crate) fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        0.0 => 0,
        below if below < 10.0 => 2,
        below if below < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}
