//! A trace over a run: how much of a file was read, and what of it was no record.
//!
//! Not what became of its requests: they are booked like any others. Counts are of what was read, which is a little more than
//! what was sent where a run ends before its trace.

use brunt_plan::plan::Trace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord {
    /// The class that replayed it.
    pub class: String,
    /// The file as the plan names it.
    pub file: String,
    /// Lines read.
    pub lines: u64,
    /// Lines that are records.
    pub records: u64,
    /// Lines that are none, heads among them, and were passed over.
    pub unreadable: u64,
    /// The first of these.
    pub first_unreadable: Option<FirstUnreadable>,
    /// Records whose values are longer than any that is sent, and were cut.
    pub cut: u64,
    /// Records whose operation the protocol lacks, and another was sent for.
    pub substituted: u64,
    /// It was read to its end.
    pub is_whole: bool,
    /// Why it could not be read any further.
    pub error: Option<String>,
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

impl FirstUnreadable {
    /// Bytes of a line that are kept.
    pub const TEXT_BYTES: usize = 80;
}

impl TraceRecord {
    /// Nothing has been read.
    pub fn new(class: &str, trace: &Trace) -> Self {
        Self { class: class.to_owned(), file: trace.file.clone(), ..Self::default() }
    }
}
