//! The committed baseline: instructions per get by shape and part, with when, where and of which source they were counted.
//!
//! A part that is missing counts as new. The digest of the source is of contents and not of commits, so that it is the same in a shallow
//! clone, in a tree with changes that are not committed, and behind a rebase. Invariant: any byte of any file that is counted changes it;
//! while it is that of the baseline, there is nothing to count.

use super::profile::{Division, PARTS};
use crate::{programs, top, tree};
use anyhow::Context;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

const PATH: &str = "crates/brunt-bench/baseline.toml";
/// The crates that a request goes through, and the one that counts.
const CRATES: [&str; 6] = ["bench", "engine", "plan", "proto", "stats", "workload"];

/// What was counted before.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    text: String,
    table: toml::Table,
}

impl Baseline {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is no TOML.
    pub(super) fn read() -> anyhow::Result<Self> {
        Self::parse(&std::fs::read_to_string(top().join(PATH)).context(PATH)?).context(PATH)
    }

    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(Self { text: text.to_owned(), table: text.parse()? })
    }

    /// When and where it was recorded.
    pub(super) fn origin(&self) -> String {
        format!("{}, {}", self.word("recorded"), self.machine())
    }

    /// Where it was recorded: CPU, compiler, C library, valgrind.
    pub(super) fn machine(&self) -> &str {
        self.word("machine")
    }

    /// Is what would be counted the same as what was, to the byte?
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn is_of_this_source(&self) -> anyhow::Result<bool> {
        Ok(self.word("source") == digest(&self.text)?)
    }

    fn word(&self, key: &str) -> &str {
        self.table.get(key).and_then(toml::Value::as_str).unwrap_or("unknown")
    }

    /// Instructions per get of a part, or in total.
    pub(super) fn instructions(&self, shape: &str, part: &str) -> Option<f64> {
        self.table.get(shape)?.get(part)?.as_float()
    }
}

/// Makes what was counted the baseline.
///
/// # Errors
/// A source file cannot be read, or the baseline not written.
pub(super) fn record(machine: &str, counted: &[(&str, Division)]) -> anyhow::Result<()> {
    let recorded = programs::first_line("date", &["--utc", "+%F"])?;
    std::fs::write(top().join(PATH), text(&recorded, machine, counted)?).context(PATH)?;
    println!("recorded in {PATH}");
    Ok(())
}

fn text(recorded: &str, machine: &str, counted: &[(&str, Division)]) -> anyhow::Result<String> {
    let mut text = format!("recorded = \"{recorded}\"\nmachine = \"{machine}\"\n");
    for (shape, division) in counted {
        writeln!(text, "\n[\"{shape}\"]").expect("a String takes everything");
        for part in ["total"].into_iter().chain(PARTS) {
            writeln!(text, "{part} = {:.1}", division.of(part)).expect("a String takes everything");
        }
    }
    Ok(format!(
        "# Instructions of the worker per get, by the shape of the load: connections x depth, and after a slash how many\n\
         # completions a wait brings at most. `cargo xtask instructions` compares with this, `--record` writes it;\n\
         # docs/method.md says what is counted. `source` is a digest of the crates that were.\n\
         source = \"{}\"\n{text}",
        digest(&text)?
    ))
}

/// The digest of the crates and of the baseline's numbers. Another compiler may hash in another way: then there is a count.
fn digest(baseline: &str) -> anyhow::Result<String> {
    let mut hasher = DefaultHasher::new();
    for file in tree::read(top())? {
        let is_counted = CRATES.iter().any(|name| file.path.starts_with(&format!("crates/brunt-{name}/")));
        if is_counted && file.path != PATH {
            (file.path, file.bytes).hash(&mut hasher);
        }
    }
    let lines = baseline.lines().filter(|line| !line.starts_with('#') && !line.starts_with("source = "));
    lines.for_each(|line| line.hash(&mut hasher));
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_round_trip() {
        let parts = PARTS.into_iter().zip([1.0, 2.0, 3.0, 4.0, 5.0, 6.04]).chain([("io", 9.0)]);
        let text = text("2001-02-03", "a machine", &[("16x1/1", parts.collect())]).unwrap();
        let baseline = Baseline::parse(&text).unwrap();
        assert!(baseline.is_of_this_source().unwrap(), "{text}");
        // Of the numbers, but not of itself.
        assert_ne!(digest(&text.replace("21.0", "20.9")).unwrap(), digest(&text).unwrap());
        assert_eq!(digest(&text.replace("source = \"", "source = \"0")).unwrap(), digest(&text).unwrap());
        assert_eq!(baseline.origin(), "2001-02-03, a machine");
        assert_eq!(baseline.instructions("16x1/1", "total"), Some(21.0));
        assert_eq!(baseline.instructions("16x1/1", "decode"), Some(3.0));
        assert_eq!(baseline.instructions("16x1", "total"), None);
        // What is committed can be read.
        assert!(Baseline::read().unwrap().instructions("16x1", "total").is_some());
    }
}
