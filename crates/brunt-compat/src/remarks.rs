//! What no tool's report has a place for, in lines for standard error.
//!
//! Not what is a tool's own to say. Invariant: the checks that decided the status follow it.

use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_stats::summary::Summary;

/// The status, and what decided it.
pub fn status(summary: &Summary) -> Vec<String> {
    let findings = summary.status.findings().into_iter();
    std::iter::once(format!("note: {}", summary.status.headline()))
        .chain(findings.map(|check| format!("note: {}: {}", check.id.name(), check.text())))
        .collect()
}

/// Requests, as a tool calls them, that waited until there was no time left.
pub fn unsent(summary: &Summary, requests: &str) -> Option<String> {
    let book = &summary.total.requests;
    let (unsent, scheduled) = (book.unsent, book.scheduled);
    (unsent > 0).then(|| format!("warning: {unsent} of {scheduled} {requests} were due and never sent"))
}

/// The first error that a server replied; else the first bytes that are no reply, as when it closes a connection with a line for all.
pub fn said(summary: &Summary) -> Option<String> {
    let garbage = summary.counts().first_malformed.as_ref();
    let garbage = || garbage.map(|sent| format!("\"{}\": {}", QuotedBytes(sent.bytes()), sent.reason));
    summary.counts().first_error.as_ref().map(|text| format!("an error: {text}")).or_else(garbage)
}
