//! What became of a trace that was sent, as its reader counts it and reports tell it.
//!
//! Invariant: whatever a rule changes or leaves out is counted.

use crate::plan::Trace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a file that was replayed. Counts are of what was read, which is a little more than what was sent where a run ends before
/// its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord {
    /// The class that replayed it.
    pub class: String,
    /// The file as the plan names it.
    pub file: String,
    /// Its lines, or records of a fixed length.
    pub lines: LineCounts,
    /// Requests that its records became, on all hosts.
    pub records: u64,
    /// Requests left out because their keys are not in the sample.
    pub sampled_out: u64,
    /// Sets left out because they followed a miss, and misses are filled.
    pub replaced_by_fills: u64,
    /// Requests whose values are longer than any that is sent, and were cut.
    pub cut: u64,
    /// Requests whose operation the protocol lacks, or all are sent as gets, and another was sent for.
    pub substituted: u64,
    /// Requests whose key was too long, or had bytes that no key may have: a hash was sent for it.
    pub hashed_keys: u64,
    /// Retrievals whose misses are not filled because nothing says how long the value is.
    pub unsized_retrievals: u64,
    /// Requests whose time to live would be below a second, and was sent as one.
    pub raised_ttls: u64,
    /// Records with a time before that of an earlier one, which they were given.
    pub clamped_times: u64,
    /// Seconds with more records than are held, which were spread in parts.
    pub overfull_seconds: u64,
    /// With `trace-preload`: requests of keys that need not be stored, or are already.
    pub not_stored: u64,
    /// It was read to its end.
    pub is_whole: bool,
    /// Why it could not be read any further.
    pub error: Option<String>,
}

/// What became of the lines or records of a file so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineCounts {
    /// Lines read.
    pub read: u64,
    /// Lines that stand for no request: heads, commands of scripts, objects without bytes.
    pub passed_over: u64,
    /// Commands that brunt does not send, and were passed over.
    pub unsupported: u64,
    /// Lines that do not have the layout, and were passed over.
    pub unreadable: u64,
    /// The first of these.
    pub first_unreadable: Option<FirstUnreadable>,
}

/// The first line that was no record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstUnreadable {
    /// Its number, from 1.
    pub line: u64,
    /// Its text, at most 80 bytes of it.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl LineCounts {
    /// Adds those of another reading of the file.
    pub fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.passed_over += other.passed_over;
        self.unsupported += other.unsupported;
        self.unreadable += other.unreadable;
        self.first_unreadable = self.first_unreadable.take().or_else(|| other.first_unreadable.clone());
    }
}

impl TraceRecord {
    /// Adds what another host read of the same file, which each reads as far as it gets.
    pub fn merge(&mut self, other: Self) {
        let is_whole = self.is_whole && other.is_whole;
        let error = self.error.take().or_else(|| other.error.clone());
        if other.lines.read > self.lines.read {
            *self = other;
        }
        (self.is_whole, self.error) = (is_whole, error);
    }

    /// Nothing has been read.
    pub fn new(class: &str, trace: &Trace) -> Self {
        Self { class: class.to_owned(), file: trace.file.clone(), ..Self::default() }
    }
}
