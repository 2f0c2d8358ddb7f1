//! Our own output: a summary becomes text and pages for a person, JSON for a script, JUnit XML for continuous integration, and
//! CSV of the run over time and of raw samples.
//!
//! Not statistics: every number is one of the summary's, or the quotient of two of them. Pure: a report is written to
//! what it is given, and the same summary always gives the same bytes. The way through this crate: [`subject::Subject`] is a run, a campaign
//! or a comparison with every medium that it has; [`run_document`], [`campaign`] and [`comparison`] build its document,
//! [`json::write`] is the schema `brunt.result.v1` that scripts rely on, [`publication`] draws the charts of a page for papers,
//! [`csv::write`] has a line per second, as [`ndjson`] has while the run goes on, [`hdr_histogram::write`] their histograms, [`journal`] every interval of a run as it came, [`file_type::FileType`] has
//! every file that a result can be written as; [`result::read`] takes
//! results in again.

#![forbid(unsafe_code)]
// A report as a document, and the writers of documents.
mod annotations;
pub mod document;
pub mod html;
mod junit;
mod markdown;
pub mod subject;
mod text;

// Who builds documents: of a run, of several, of two sets, of a trace.
mod assertion_text;
pub mod campaign;
pub mod comparison;
pub mod run_document;
mod server;
pub mod trace_document;

// Numbers, times and tables as they are printed.
mod figure;
mod grid;
pub mod instant;
pub mod layout;
pub mod quantity;

// Results and their files.
pub mod csv;
pub mod file_type;
pub mod hdr_histogram;
pub mod journal;
pub mod json;
pub mod ndjson;
pub mod publication;
pub mod result;
pub mod stored;

// Of a run that goes on.
pub mod live;
pub mod metrics;

// Tests.
#[cfg(test)]
mod tests;
