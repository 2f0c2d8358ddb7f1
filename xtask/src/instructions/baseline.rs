//! The committed baseline: instructions per get by shape, with when, where and of which source they were counted.
//!
//! The digest of the source is of contents and not of commits, so that it is the same in a shallow
//! clone, in a tree with changes that are not committed, and behind a rebase. Invariant: any byte of any file that is counted changes it;
//! while it is that of the baseline, there is nothing to count.

use crate::tidy::tree;
use crate::top;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

const PATH: &str = "crates/brunt-bench/baseline.toml";
const HEAD: &str = "\
# Instructions of the worker per get, by the shape of the load: connections x depth, and after a slash how many
# completions a wait brings at most. `cargo xtask instructions` compares with this, `--record` writes it;
# docs/method.md says what is counted. `source` is a digest of the crates that were, and of the numbers.
";
/// The crates that a request goes through, and the one that counts.
const CRATES: [&str; 6] = ["bench", "engine", "plan", "proto", "stats", "workload"];

/// What was counted before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Baseline {
    source: String,
    /// The day.
    recorded: String,
    /// CPU, compiler, C library, valgrind.
    pub(super) machine: String,
    /// Instructions per get.
    #[serde(flatten)]
    pub(super) shapes: BTreeMap<String, f64>,
}

impl Baseline {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is no TOML.
    pub(super) fn read() -> anyhow::Result<Self> {
        toml::from_str(&std::fs::read_to_string(top().join(PATH)).context(PATH)?).context(PATH)
    }

    /// Of what was counted now.
    ///
    /// # Errors
    /// A source file cannot be read.
    pub(super) fn of(recorded: String, machine: String, counted: &[(&str, f64)]) -> anyhow::Result<Self> {
        let rounded = |(shape, count): &(&str, f64)| ((*shape).to_owned(), (count * 10.0).round() / 10.0);
        let shapes = counted.iter().map(rounded).collect();
        let unsigned = Self { source: String::new(), recorded, machine, shapes };
        Ok(Self { source: unsigned.digest()?, ..unsigned })
    }

    /// Makes it the one that is committed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        std::fs::write(top().join(PATH), format!("{HEAD}{}", toml::to_string(self)?)).context(PATH)?;
        println!("recorded in {PATH}");
        Ok(())
    }

    /// When and where it was recorded.
    pub(super) fn origin(&self) -> String {
        format!("{}, {}", self.recorded, self.machine)
    }

    /// Is what would be counted the same as what was, to the byte?
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn is_of_this_source(&self) -> anyhow::Result<bool> {
        Ok(self.source == self.digest()?)
    }

    /// The digest of the crates and of the numbers. Another compiler may hash in another way: then there is a count.
    fn digest(&self) -> anyhow::Result<String> {
        let mut hasher = DefaultHasher::new();
        for file in tree::read(top())? {
            let is_counted =
                CRATES.iter().any(|name| file.path.starts_with(&format!("crates/brunt-{name}/")));
            if is_counted && file.path != PATH {
                (file.path, file.bytes).hash(&mut hasher);
            }
        }
        (&self.recorded, &self.machine).hash(&mut hasher);
        toml::to_string(&self.shapes)?.hash(&mut hasher);
        Ok(format!("{:016x}", hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_round_trip() {
        let baseline =
            Baseline::of("2001-02-03".to_owned(), "a machine".to_owned(), &[("16x1/1", 21.04)]).unwrap();
        let text = toml::to_string(&baseline).unwrap();
        let read: Baseline = toml::from_str(&text).unwrap();
        assert!(read.is_of_this_source().unwrap(), "{text}");
        // Of the numbers, but not of itself.
        let other = |old: &str, new: &str| toml::from_str::<Baseline>(&text.replace(old, new)).unwrap();
        assert!(!other("21.0", "20.9").is_of_this_source().unwrap());
        assert_eq!(other("source = \"", "source = \"0").digest().unwrap(), read.source);
        assert_eq!(read.origin(), "2001-02-03, a machine");
        assert_eq!(read.shapes.get("16x1/1"), Some(&21.0));
        // What is committed can be read.
        assert!(Baseline::read().unwrap().shapes.contains_key("16x1"));
    }
}
