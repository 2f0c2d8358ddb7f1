//! The checks that several runs name, each once, in the order in which they were named.

/// Without those that were named before.
pub(crate) fn each_once<'a>(checks: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once = Vec::new();
    for check in checks {
        if !once.contains(&check) {
            once.push(check);
        }
    }
    once
}
