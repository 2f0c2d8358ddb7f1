//! Versions of values: the writer, and the number of its write of the key.
//!
//! Version 0 is what a preload stores; any other names its writer, from 1, and the number of the write among the
//! writer's own of that key, from 1. Text form `WRITER.NUMBER`, or `0`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version as it is in the head of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub u32);

/// Bits of a version that count writes; those above are the writer's number.
const COUNT_BITS: u32 = 20;

impl Version {
    /// The most writes of a key that a writer can tell apart.
    pub const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

    /// The most writers.
    pub const WRITERS_MAX: u32 = (1 << (u32::BITS - COUNT_BITS)) - 1;

    /// The `count`th write of a writer; both within their bounds.
    #[inline]
    pub const fn of(writer: u32, count: u32) -> Self {
        Self(writer << COUNT_BITS | count)
    }

    /// Who wrote it; 0 is the preload.
    #[inline]
    pub const fn writer(self) -> u32 {
        self.0 >> COUNT_BITS
    }

    /// Which of the writer's writes of the key it was.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 & Self::COUNT_MAX
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => formatter.write_str("0"),
            _ => write!(formatter, "{}.{}", self.writer(), self.count()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_hold_writer_and_count() {
        for (version, text) in [
            (Version(0), "0"),
            (Version::of(1, 1), "1.1"),
            (Version::of(Version::WRITERS_MAX, Version::COUNT_MAX), "4095.1048575"),
            (Version(u32::MAX), "4095.1048575"),
        ] {
            assert_eq!(version.to_string(), text);
            assert_eq!(Version::of(version.writer(), version.count()), version);
        }
    }
}
