//! What a get asks of the workload, for data sets of a thousand and of a thousand million keys.
//!
//! Nothing is stored per key and keys are written at one price, so that the count must be the same within 1 % for any
//! number of keys. Of uniform laws, that is: a Zipf law draws those ranks that its table holds at another price than the
//! others, and how often it draws them changes with the number of keys.

use super::{show_equal, show_row};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Numbers of keys.
const KEYS: [u64; 3] = [1_000, 1_000_000, 1_000_000_000];
/// Popularities; the first one must cost the same for all of [`KEYS`].
const POPULARITIES: [&str; 2] = ["uniform", "zipf"];
/// Gets of a run. Nothing but them is counted.
const OPS: u64 = 20_000;
/// One get.
const ROOT: &str = "brunt_bench::draw::Client::get";

/// Counts, and prints the table.
///
/// # Errors
/// A run fails, or a uniform law costs more for one number of keys than for another.
pub(super) fn show(binary: &Path) -> anyhow::Result<()> {
    println!("instructions per get of the workload alone, by the number of keys");
    println!("{:10}{}", "", KEYS.map(|keys| format!("{keys:>14}")).concat());
    for popularity in POPULARITIES {
        let counts = KEYS.map(|keys| count(binary, keys, popularity));
        let counts = counts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        match popularity == POPULARITIES[0] {
            true => show_equal(popularity, &counts)?,
            false => show_row(popularity, &counts),
        }
    }
    Ok(())
}

/// Instructions per get.
fn count(binary: &Path, keys: u64, popularity: &str) -> anyhow::Result<f64> {
    let written = binary.with_file_name(format!("draw-{keys}-{popularity}.callgrind"));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect={ROOT}"))
        .arg(format!("--callgrind-out-file={}", written.display()))
        .arg(binary)
        .args(["draw", "--keys", &keys.to_string(), "--popularity", popularity, "--ops", &OPS.to_string()])
        .output()
        .context("cannot run valgrind")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let total = total(&std::fs::read_to_string(&written)?).context("a profile without a total")?;
    ensure!(total > 0, "{ROOT} was not called");
    Ok(total as f64 / OPS as f64)
}

/// Everything that a profile counted.
fn total(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::spread;
    use super::*;

    #[test]
    fn totals_and_spreads() {
        assert_eq!(total("events: Ir\nfn=a\n1 5\n\ntotals: 123\n"), Some(123));
        assert_eq!(total("events: Ir\n"), None);
        assert!((spread(&[200.0, 202.0, 201.0]) - 0.01).abs() < 1e-12);
    }
}
