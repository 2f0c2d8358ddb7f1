//! The option that was probably meant by a misspelled one.
//!
//! Not a search: of a few names the nearest, or nothing. Invariant: a name that is suggested differs from the given one in a third of
//! its letters at most.

/// The name that is nearest to what was given, if one is near. Hyphens and underscores count as the same.
pub fn closest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.trim_matches('-').replace('_', "-").to_lowercase();
    let given = plain(given);
    let distances = names.into_iter().map(|name| (distance(&given, &plain(name)), name));
    let (least, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= name.len().div_ceil(3).min(given.len() / 2 + 1)).then_some(name)
}

/// How many letters must be put in, taken out, replaced, or swapped with their neighbours (optimal string alignment).
pub fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let names = ["server", "service", "rate", "request-timeout", "style", "seed", "size"];
        for (given, expected) in [
            ("-server", Some("server")),
            ("sever", Some("server")),
            ("ratee", Some("rate")),
            ("request_timeot", Some("request-timeout")),
            ("Styel", Some("style")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(given, names), expected, "{given}");
        }
        assert_eq!(
            [("", "abc"), ("kitten", "sitting"), ("ab", "ab"), ("sede", "seed")]
                .map(|(one, other)| distance(one, other)),
            [3, 3, 0, 1]
        );
    }
}
