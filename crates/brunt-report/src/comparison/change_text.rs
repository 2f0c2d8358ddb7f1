//! Changes from A to B as text: with their sign, in per cent or points.

use super::Quantity;
use brunt_stats::rank_test::ChangeScale;

pub(super) fn change_text(quantity: Quantity, change: f64) -> String {
    let unit = if quantity.scale() == ChangeScale::Ratio { " %" } else { " points" };
    format!("{}{unit}", bare_change(change))
}

pub(super) fn change_interval(scale: ChangeScale, [low, high]: [f64; 2]) -> String {
    let unit = if scale == ChangeScale::Ratio { " %" } else { "" };
    // Where A may be nothing, B may be any number of times as much.
    let high = if high.is_finite() { format!(" {}", bare_change(high)) } else { String::new() };
    format!("[{} ..{high}]{unit}", bare_change(low))
}

/// A change in hundredths, with its sign and the decimals that a comparison of runs can have.
pub(super) fn bare_change(change: f64) -> String {
    let percent = change * 100.0;
    let decimals = match percent.abs() {
        below if below < 9.95 => 2,
        below if below < 99.5 => 1,
        _ => 0,
    };
    // What rounds to nothing has no sign.
    let text = format!("{percent:+.decimals$}");
    if text.trim_start_matches(['+', '-']).bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        text.trim_start_matches(['+', '-']).to_owned()
    } else {
        text
    }
}
