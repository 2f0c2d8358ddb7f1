//! The committed baseline: instructions per operation by shape and part, with when and where they were counted.
//!
//! Not a limit: it is what a change is compared with (`gate.rs` has the limit). One table a shape; a part that is missing counts as new.

use super::part::Part;
use super::profile::Division;
use super::source;
use anyhow::Context;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The file.
pub(super) fn path() -> PathBuf {
    crate::top().join(source::BASELINE)
}

/// What was counted before.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    text: String,
    table: toml::Table,
}

impl Baseline {
    /// Reads the file; one that does not exist is an empty baseline.
    ///
    /// # Errors
    /// It is there and cannot be read, or is no TOML.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads the file's text.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(Self { text: text.to_owned(), table: text.parse()? })
    }

    /// When and where it was recorded.
    pub(super) fn origin(&self) -> String {
        format!("{}, {}", self.word("recorded"), self.machine())
    }

    /// Is what would be counted the same as what was, to the byte?
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn is_of_this_source(&self) -> anyhow::Result<bool> {
        Ok(self.word(source::KEY) == source::digest(&self.text)?)
    }

    /// Where it was recorded: processor, compiler, C library, valgrind.
    pub(super) fn machine(&self) -> &str {
        self.word("machine")
    }

    fn word(&self, key: &str) -> &str {
        self.table.get(key).and_then(toml::Value::as_str).unwrap_or("unknown")
    }

    /// Instructions per operation of a part, or of all (`None`).
    pub(super) fn instructions(&self, shape: &str, part: Option<Part>) -> Option<f64> {
        let name = part.map_or("total", Part::name);
        self.table.get(shape)?.as_table()?.get(name)?.as_float()
    }
}

/// The file's text for what was counted now.
///
/// # Errors
/// A source file cannot be read.
pub(super) fn text(recorded: &str, machine: &str, counted: &[(&str, Division)]) -> anyhow::Result<String> {
    let text = text_without_source(recorded, machine, counted);
    let line = format!("{} = \"{}\"\nrecorded = ", source::KEY, source::digest(&text)?);
    Ok(text.replacen("recorded = ", &line, 1))
}

fn text_without_source(recorded: &str, machine: &str, counted: &[(&str, Division)]) -> String {
    let mut text = String::from(
        "# Instructions of the worker per get, by the shape of the load: connections x depth, and after a slash how many\n\
         # completions a wait brings at most. `cargo xtask instructions` compares with this, `--record` writes it;\n\
         # docs/performance.md says what is counted. `source` is a digest of the crates that were.\n",
    );
    let mut put = |line: &str| writeln!(text, "{line}").expect("a String takes everything");
    put(&format!("recorded = \"{recorded}\""));
    put(&format!("machine = \"{machine}\""));
    for (shape, division) in counted {
        put(&format!("\n[\"{shape}\"]"));
        put(&format!("total = {:.1}", division.worker()));
        for part in Part::ALL {
            put(&format!("{} = {:.1}", part.name(), division.parts[part as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_round_trip() {
        let division = Division { parts: [1.0, 2.0, 3.0, 4.0, 5.0, 6.04], io: 9.0 };
        let text = text("2001-02-03", "a machine", &[("16x1/1", division)]).unwrap();
        let baseline = Baseline::parse(&text).unwrap();
        assert!(baseline.is_of_this_source().unwrap(), "{text}");
        let other = Baseline::parse(&text.replace("21.0", "20.9")).unwrap();
        assert!(!other.is_of_this_source().unwrap());
        assert_eq!(baseline.origin(), "2001-02-03, a machine");
        assert_eq!(baseline.instructions("16x1/1", None), Some(21.0));
        assert_eq!(baseline.instructions("16x1/1", Some(Part::Decode)), Some(3.0));
        assert_eq!(baseline.instructions("16x1", None), None);
    }
}
