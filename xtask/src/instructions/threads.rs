//! What a get costs where several workers share a plan.
//!
//! Nothing is shared between workers but what is only read, so that the count must be the same within 1 % for any number of
//! them. What they do to each other through caches is no instruction: `brunt-bench scale` shows that.

use super::{SHAPES, count};
use anyhow::{Context, ensure};
use std::path::Path;

/// How many workers.
const THREADS: [u32; 3] = [1, 2, 4];
/// How much the most may be above the least.
const SPREAD_MAX: f64 = 0.01;

/// Counts, and prints the table.
///
/// # Errors
/// A run fails, or a get costs more for one number of workers than for another.
pub(super) fn show(binary: &Path) -> anyhow::Result<()> {
    println!("instructions per get, by the number of workers");
    print!("{:10}", "");
    THREADS.iter().for_each(|threads| print!("{threads:>14}"));
    println!();
    let shape = SHAPES[0];
    let counts = THREADS.map(|threads| {
        let division = count(binary, shape, threads, None)?.context("no bound of time, and no count")?;
        Ok(division.worker())
    });
    let counts = counts.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
    print!("{shape:10}");
    counts.iter().for_each(|count| print!("{count:>14.1}"));
    println!();
    let most = counts.iter().copied().fold(0.0, f64::max);
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    ensure!(
        most / least - 1.0 <= SPREAD_MAX,
        "a get costs {:.1} % more for one number of workers than for another",
        100.0 * (most / least - 1.0)
    );
    Ok(())
}
