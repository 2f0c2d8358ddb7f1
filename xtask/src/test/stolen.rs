//! CPU time of this host that the hypervisor took, by the kernel's own count: not what other programs took.

/// Reads the ticks of all CPUs since the host was started, and those that were stolen; 0 if the kernel does not count them.
pub(super) fn read() -> [u64; 2] {
    std::fs::read_to_string("/proc/stat").map(|text| of_text(&text)).unwrap_or_default()
}

/// The first eight numbers of proc_stat(5), of which steal is the last: those of guests behind it are part of user and nice.
fn of_text(text: &str) -> [u64; 2] {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    [ticks.iter().sum(), ticks.get(7).copied().unwrap_or(0)]
}

/// Which part of all CPUs' time was stolen between the two.
pub(super) fn fraction(before: [u64; 2], after: [u64; 2]) -> f64 {
    let [all, stolen] = [0, 1].map(|index| after[index].saturating_sub(before[index]) as f64);
    stolen / all.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_fraction_is_of_all_time() {
        let before = of_text("cpu  100 0 50 800 0 0 0 50 7 0\ncpu0 1 2 3\n");
        assert_eq!(before, [1_000, 50]);
        let after = of_text("cpu  150 0 50 1100 0 0 0 100 9 0\n");
        assert_eq!(fraction(before, after), 50.0 / 400.0);
        assert_eq!(of_text("nothing"), [0, 0]);
        assert_eq!(fraction(after, after), 0.0);
    }
}
