//! A set of CPUs as the kernel's own lists write it: `0-3,5`.

use crate::units::{joined, text_form};
use std::fmt;

/// Above every number that Linux gives a CPU.
const CPU_MAX: u32 = 8192;

/// CPUs by number, ascending, each once, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

impl CpuList {
    fn of_text(text: &str) -> Result<Self, String> {
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
            (first <= last && last < CPU_MAX).then_some(first..=last)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let mut cpus: Vec<u32> = ranges
            .ok_or_else(|| "expected processors by number, such as 2 or 0-3,5".to_owned())?
            .into_iter()
            .flatten()
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|one, next| *next == one + 1).map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            run => run[0].to_string(),
        });
        formatter.write_str(&joined(runs))
    }
}
text_form!(CpuList);
