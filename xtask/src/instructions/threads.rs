//! What a get costs where several workers share a plan.
//!
//! Nothing is shared between workers but what is only read, so that the count must be the same within 1 % for any number of
//! them. What they do to each other through caches is no instruction: `brunt-bench scale` shows that.

use super::{SHAPES, count, show_equal};
use anyhow::Context;
use std::path::Path;

/// How many workers.
const THREADS: [u32; 3] = [1, 2, 4];
/// Counts, and prints the table.
///
/// # Errors
/// A run fails, or a get costs more for one number of workers than for another.
pub(super) fn show(binary: &Path) -> anyhow::Result<()> {
    println!("instructions per get, by the number of workers");
    println!("{:10}{}", "", THREADS.map(|threads| format!("{threads:>14}")).concat());
    let shape = SHAPES[0];
    let counts = THREADS.map(|threads| {
        let division = count(binary, shape, threads, None)?.context("no bound of time, and no count")?;
        Ok(division.worker())
    });
    let counts = counts.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
    show_equal(shape, &counts)
}
