//! Changes from A to B as text: in per cent with their sign, the ends of intervals rounded outwards.

/// A change in hundredths.
pub(super) fn change_text(change: f64) -> String {
    text(change, f64::round)
}

/// The ends of an interval in hundredths.
pub(super) fn interval_texts([low, high]: [f64; 2]) -> [String; 2] {
    [text(low, f64::floor), text(high, f64::ceil)]
}

/// One decimal is as much as a comparison of runs can have.
fn text(change: f64, rounded: fn(f64) -> f64) -> String {
    // What the arithmetic leaves of a whole tenth is no part of it.
    let tenths = rounded((change * 1e9).round() / 1e6);
    // What rounds to nothing has no sign.
    if tenths == 0.0 { "0.0".to_owned() } else { format!("{:+.1}", tenths / 10.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_intervals_are_rounded_outwards() {
        // 0.1 + 0.02 is a little above 0.12, and is 12 % all the same.
        let table = [
            (0.1 + 0.02, "+12.0", ["+12.0", "+12.0"]),
            (0.1204, "+12.0", ["+12.0", "+12.1"]),
            (-0.0204, "-2.0", ["-2.1", "-2.0"]),
            (0.0004, "0.0", ["0.0", "+0.1"]),
            (-0.0004, "0.0", ["-0.1", "0.0"]),
            (8.1461, "+814.6", ["+814.6", "+814.7"]),
        ];
        for (change, rounded, ends) in table {
            assert_eq!(change_text(change), rounded);
            assert_eq!(interval_texts([change; 2]), ends, "{change}");
        }
    }
}
