//! What the hypervisor took of the processors of this host, by the kernel's own count.
//!
//! Not what other programs took. Where the kernel does not count it, it is nothing.

/// Ticks since the host was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

/// Where `steal` is in the line (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal. The guests' times that
/// follow are part of user and nice.
const STEAL: usize = 7;

/// Reads the host's CPU times up to now.
pub(super) fn read() -> Ticks {
    std::fs::read_to_string("/proc/stat").map(|text| of_text(&text)).unwrap_or_default()
}

fn of_text(text: &str) -> Ticks {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let counted = &ticks[..ticks.len().min(STEAL + 1)];
    Ticks { all: counted.iter().sum(), stolen: counted.get(STEAL).copied().unwrap_or(0) }
}

/// Which part of all processors' time was stolen between the two.
pub(super) fn share(before: Ticks, after: Ticks) -> f64 {
    let passed = |of: fn(Ticks) -> u64| of(after).saturating_sub(of(before)) as f64;
    passed(|ticks| ticks.stolen) / passed(|ticks| ticks.all).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_fraction_is_of_all_time() {
        let before = of_text("cpu  100 0 50 800 0 0 0 50 7 0\ncpu0 1 2 3\n");
        assert_eq!(before, Ticks { all: 1_000, stolen: 50 });
        let after = of_text("cpu  150 0 50 1100 0 0 0 100 9 0\n");
        assert_eq!(share(before, after), 50.0 / 400.0);
        assert_eq!(of_text("nothing"), Ticks::default());
        assert_eq!(share(after, after), 0.0);
    }
}
